/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>

#include "pm/symbol.h"

enum {
	ALL = 1 << 30,
};

struct fixture {
	struct pm_perf_map map;
	struct pm_jit_table *table;
	int fd;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->table = pm_jit_table_new(NULL);
	f->fd = memfd_create("map", MFD_CLOEXEC);
	*state = f;
	return f->table && f->fd >= 0 ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	pm_jit_table_free(f->table);
	close(f->fd);
	free(f);
	return 0;
}

static void append(struct fixture *f, const char *text)
{
	assert_int_equal(lseek(f->fd, 0, SEEK_END) >= 0, 1);
	assert_int_equal(write(f->fd, text, strlen(text)), strlen(text));
}

static void read_on(struct fixture *f)
{
	assert_int_equal(pm_perf_map_read(&f->map, f->fd, f->table, ALL), 0);
}

static const char *name_at(const struct fixture *f, uint64_t address)
{
	const struct pm_jit_function *function = pm_jit_table_find(f->table, address);

	return function ? function->name : NULL;
}

static void test_lines(void **state)
{
	struct fixture *f = *state;

	append(f, "1000 10 plain\n"
		  "0x2000 0x20 with a blank \n"
		  "00003000\t8\ttabs\r\n"
		  "\n"
		  "4000 10 a\x1b[31mb\xff\n"
		  "ABCDEF 1 upper\n");
	read_on(f);
	assert_int_equal(f->map.bad_lines, 0);
	assert_null(name_at(f, 0xfff));
	assert_string_equal(name_at(f, 0x1000), "plain");
	assert_string_equal(name_at(f, 0x100f), "plain");
	assert_null(name_at(f, 0x1010));
	assert_string_equal(name_at(f, 0x201f), "with a blank");
	assert_string_equal(name_at(f, 0x3007), "tabs");
	assert_string_equal(name_at(f, 0x4000), "a\\x1b[31mb\xef\xbf\xbd");
	assert_string_equal(name_at(f, 0xabcdef), "upper");
}

static void test_bad_lines(void **state)
{
	static const char *const bad[] = {
		"hello world foo\n",
		"1000\n",
		"1000 10\n",
		"1000 10 \n",
		"0x 10 x\n",
		"1000 0x x\n",
		"-1 10 x\n",
		"10000000000000000 1 x\n",
		"ffffffffffffffff 2 x\n",
		"1000,10 x\n",
	};
	struct fixture *f = *state;
	struct pm_jit_table_stats stats;

	for (size_t i = 0; i < PM_ARRAY_LEN(bad); i++) {
		append(f, bad[i]);
		read_on(f);
		assert_int_equal(f->map.bad_lines, i + 1);
	}
	append(f, "1000 0 a mark of a place\n");
	append(f, "1001 1 good\n");
	read_on(f);
	assert_int_equal(f->map.bad_lines, PM_ARRAY_LEN(bad));
	pm_jit_table_stats(f->table, &stats);
	assert_int_equal(stats.functions, 1);
	assert_string_equal(name_at(f, 0x1001), "good");
}

static void test_nul_in_name(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(write(f->fd, "10 1 a\0b\n", 9), 9);
	read_on(f);
	assert_string_equal(name_at(f, 0x10), "a\\x00b");
}

static void test_half_line_waits(void **state)
{
	struct fixture *f = *state;

	append(f, "1000 10 first\n2000 10 an");
	read_on(f);
	assert_string_equal(name_at(f, 0x1000), "first");
	assert_null(name_at(f, 0x2000));
	append(f, "other\n");
	assert_null(name_at(f, 0x2000));
	read_on(f);
	assert_string_equal(name_at(f, 0x2000), "another");
}

static void test_later_lines_win(void **state)
{
	struct fixture *f = *state;

	append(f, "1000 100 old\n1040 10 middle\n");
	read_on(f);
	assert_string_equal(name_at(f, 0x103f), "old");
	assert_string_equal(name_at(f, 0x1040), "middle");
	assert_string_equal(name_at(f, 0x104f), "middle");
	assert_string_equal(name_at(f, 0x1050), "old");
	append(f, "fff 51 left\n10f0 20 right\n");
	read_on(f);
	assert_string_equal(name_at(f, 0xfff), "left");
	assert_string_equal(name_at(f, 0x104f), "left");
	assert_string_equal(name_at(f, 0x1050), "old");
	assert_string_equal(name_at(f, 0x10ef), "old");
	assert_string_equal(name_at(f, 0x10ff), "right");
	append(f, "0 10000 all\n");
	read_on(f);
	assert_string_equal(name_at(f, 0x1045), "all");
	assert_string_equal(name_at(f, 0), "all");
}

/* (generation, address) names one function for ever once it was used. */
static void test_generations(void **state)
{
	struct fixture *f = *state;
	uint32_t first;

	append(f, "1000 100 a\n");
	read_on(f);
	first = pm_jit_table_find(f->table, 0x1000)->generation;
	append(f, "1000 100 b\n");
	read_on(f);
	/* Nobody has seen `a`. */
	assert_int_equal(pm_jit_table_use(f->table, 0x1000)->generation, first);
	append(f, "1010 10 c\n");
	read_on(f);
	assert_int_equal(pm_jit_table_find(f->table, 0x1010)->generation, first + 1);
	assert_int_equal(pm_jit_table_find(f->table, 0x1000)->generation, first);
	append(f, "1000 100 b\n");
	read_on(f);
	assert_int_equal(pm_jit_table_find(f->table, 0x1000)->generation, first + 1);
	/* Written anew: what `b` was shall not become something else. */
	assert_int_equal(ftruncate(f->fd, 0), 0);
	append(f, "1000 100 d\n");
	read_on(f);
	assert_int_equal(f->map.restarts, 1);
	assert_string_equal(name_at(f, 0x1000), "d");
	assert_true(pm_jit_table_find(f->table, 0x1000)->generation > first + 1);
}

static void test_same_again_changes_nothing(void **state)
{
	struct fixture *f = *state;
	struct pm_jit_table_stats before, after;

	append(f, "1000 10 a\n");
	read_on(f);
	pm_jit_table_stats(f->table, &before);
	append(f, "1000 10 a\n");
	read_on(f);
	pm_jit_table_stats(f->table, &after);
	assert_int_equal(after.changes, before.changes);
	assert_int_equal(after.functions, 1);
	assert_int_equal(after.bytes, before.bytes);
}

static void test_written_anew(void **state)
{
	struct fixture *f = *state;

	append(f, "1000 10 a\n2000 10 b\n");
	read_on(f);
	/* Longer than before, but another beginning. */
	assert_int_equal(ftruncate(f->fd, 0), 0);
	append(f, "1000 10 x\n3000 10 yyyyyyyyyyyyyyyyyyyy\n");
	read_on(f);
	assert_int_equal(f->map.restarts, 1);
	assert_string_equal(name_at(f, 0x1000), "x");
	assert_null(name_at(f, 0x2000));
	/* Shorter. */
	assert_int_equal(ftruncate(f->fd, 0), 0);
	read_on(f);
	assert_int_equal(f->map.restarts, 2);
	assert_null(name_at(f, 0x1000));
}

/* What a jitdump told stays when the map is written anew, also of what both told. */
static void test_written_anew_beside_a_dump(void **state)
{
	struct pm_jit_function function = { .source = PM_JIT_OF_DUMP,
					    .start = 0x4000,
					    .len = 16 };
	struct fixture *f = *state;
	uint32_t generation;

	append(f, "1000 10 a\n5000 10 both\n");
	read_on(f);
	assert_int_equal(pm_jit_table_add(f->table, &function, "dumped", 6), 0);
	function.start = 0x5000;
	assert_int_equal(pm_jit_table_add(f->table, &function, "both", 4), 0);
	append(f, "4000 10 dumped\n");
	read_on(f);
	generation = pm_jit_table_use(f->table, 0x4000)->generation;
	assert_int_equal(ftruncate(f->fd, 0), 0);
	append(f, "2000 10 x\n");
	read_on(f);
	assert_int_equal(f->map.restarts, 1);
	assert_null(name_at(f, 0x1000));
	assert_string_equal(name_at(f, 0x2000), "x");
	assert_string_equal(name_at(f, 0x4000), "dumped");
	assert_string_equal(name_at(f, 0x5000), "both");
	assert_int_equal(pm_jit_table_find(f->table, 0x4000)->generation, generation);
}

/* Of all that stands between, one source's goes and the other's stays, in many blocks. */
static void test_clear_source(void **state)
{
	enum {
		FUNCTIONS = 3000
	};
	struct fixture *f = *state;
	struct pm_jit_table_stats empty, stats;

	pm_jit_table_stats(f->table, &empty);
	for (uint64_t i = 0; i < FUNCTIONS; i++) {
		struct pm_jit_function function = { .source = i % 3 == 0 || i < 600
								      ? PM_JIT_OF_MAP
								      : PM_JIT_OF_DUMP,
						    .start = 16 * i,
						    .len = 16 };

		assert_int_equal(pm_jit_table_add(f->table, &function, "f", 1), 0);
	}
	pm_jit_table_clear_source(f->table, PM_JIT_OF_MAP);
	for (uint64_t i = 0; i < FUNCTIONS; i++)
		assert_int_equal(name_at(f, 16 * i) != NULL, i % 3 != 0 && i >= 600);
	pm_jit_table_stats(f->table, &stats);
	assert_int_equal(stats.functions, (FUNCTIONS - 600) / 3 * 2);
	pm_jit_table_clear_source(f->table, PM_JIT_OF_DUMP);
	pm_jit_table_stats(f->table, &stats);
	assert_int_equal(stats.functions, 0);
	assert_int_equal(stats.bytes, empty.bytes);
}

/* However often a map is written anew: only names that somebody was given use up generations. */
static void test_often_written_anew(void **state)
{
	struct pm_jit_function function = { .start = 0x1000, .len = 16 };
	struct fixture *f = *state;
	struct pm_jit_table_stats stats;

	for (size_t i = 0; i < 2 * PM_JIT_GENERATIONS_MAX; i++) {
		assert_int_equal(pm_jit_table_add(f->table, &function, "f", 1), 0);
		pm_jit_table_clear(f->table);
	}
	assert_int_equal(pm_jit_table_add(f->table, &function, "f", 1), 0);
	assert_string_equal(name_at(f, 0x1000), "f");
	for (size_t i = 0; i < PM_JIT_GENERATIONS_MAX; i++) {
		assert_non_null(pm_jit_table_use(f->table, 0x1000)->name);
		pm_jit_table_clear(f->table);
		assert_int_equal(pm_jit_table_add(f->table, &function, "f", 1), 0);
	}
	assert_null(name_at(f, 0x1000));
	pm_jit_table_stats(f->table, &stats);
	assert_int_equal(stats.left_out, 1);
}

static void add_with_frame(struct fixture *f, const void *eh_frame, uint32_t line)
{
	struct pm_jit_line where = { .line = line, .file = "x.c" };
	struct pm_jit_function function = { .source = PM_JIT_OF_DUMP,
					    .start = 0x1000,
					    .len = 4,
					    .lines = &where,
					    .lines_len = line > 0,
					    .eh_frame = eh_frame,
					    .eh_frame_len = eh_frame ? 4 : 0,
					    .code = (const uint8_t *)"code" };

	assert_int_equal(pm_jit_table_add(f->table, &function, "f", 1), 0);
}

/* The same name in the same place is another function when it tells something else. */
static void test_other_contents_replace(void **state)
{
	struct fixture *f = *state;
	uint64_t serial;

	add_with_frame(f, "one!", 7);
	serial = pm_jit_table_find(f->table, 0x1000)->serial;
	add_with_frame(f, "one!", 7);
	add_with_frame(f, "one!", 0);
	add_with_frame(f, NULL, 0);
	append(f, "1000 4 f\n");
	read_on(f);
	assert_int_equal(pm_jit_table_find(f->table, 0x1000)->serial, serial);
	add_with_frame(f, "two!", 7);
	assert_true(pm_jit_table_find(f->table, 0x1000)->serial > serial);
	assert_memory_equal(pm_jit_table_find(f->table, 0x1000)->eh_frame, "two!", 4);
	add_with_frame(f, "two!", 8);
	assert_int_equal(pm_jit_table_find(f->table, 0x1000)->lines[0].line, 8);
}

static void test_long_lines(void **state)
{
	enum {
		LONG = 5000,
		ENDLESS = 3 << 20
	};
	struct fixture *f = *state;
	char *text = malloc(ENDLESS + 1);

	assert_non_null(text);
	memset(text, 'n', ENDLESS);
	text[ENDLESS] = '\0';
	append(f, "1000 10 ");
	text[LONG] = '\n';
	text[LONG + 1] = '\0';
	append(f, text);
	append(f, "2000 10 ");
	text[LONG] = text[LONG + 1] = 'n';
	append(f, text);
	append(f, "\n3000 10 after\n");
	read_on(f);
	assert_int_equal(strlen(name_at(f, 0x1000)), PM_JIT_NAME_MAX + strlen("…"));
	assert_null(name_at(f, 0x2000));
	assert_int_equal(f->map.bad_lines, 1);
	assert_string_equal(name_at(f, 0x3000), "after");
	free(text);
}

/* In pieces and at once give the same. */
static void test_pieces(void **state)
{
	enum {
		LINES = 40000
	};
	struct fixture *f = *state;
	FILE *out = fdopen(dup(f->fd), "w");
	struct pm_jit_table_stats stats;
	size_t calls = 1;

	for (size_t i = 0; i < LINES; i++)
		fprintf(out, "%zx 10 function number %zu\n", (i * 7919 % LINES) * 16, i);
	fclose(out);
	while (pm_perf_map_read(&f->map, f->fd, f->table, 1000) == 1)
		calls++;
	assert_true(calls > 3);
	pm_jit_table_stats(f->table, &stats);
	assert_int_equal(stats.functions, LINES);
	for (size_t i = 0; i < LINES; i++) {
		char name[64];

		snprintf(name, sizeof(name), "function number %zu", i);
		assert_string_equal(name_at(f, (i * 7919 % LINES) * 16 + 15), name);
	}
}

/* Random ranges, in any order and over each other, against a plain array. */
static void test_against_array(void **state)
{
	enum {
		SPACE = 4096,
		ROUNDS = 20000
	};
	struct fixture *f = *state;
	static uint32_t truth[SPACE];
	struct pm_jit_table_stats stats;
	uint32_t seed = 1;

	memset(truth, 0, sizeof(truth));
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		struct pm_jit_function function = { 0 };
		char name[16];

		seed = seed * 1664525u + 1013904223u;
		function.start = seed >> 8 & (SPACE - 1);
		function.len = 1 + (seed >> 20) % (seed & 0x80 ? 3 : 300);
		if (function.start + function.len > SPACE)
			function.len = SPACE - function.start;
		snprintf(name, sizeof(name), "%u", round);
		assert_int_equal(
			pm_jit_table_add(f->table, &function, name, strlen(name)), 0);
		for (uint64_t i = 0; i < function.len; i++)
			truth[function.start + i] = round;
		if (round % 97 != 0)
			continue;
		for (uint64_t i = 0; i < SPACE; i++) {
			const char *found = name_at(f, i);

			assert_int_equal(found ? strtoul(found, NULL, 10) : 0, truth[i]);
		}
	}
	pm_jit_table_clear(f->table);
	pm_jit_table_stats(f->table, &stats);
	assert_int_equal(stats.functions, 0);
	assert_null(name_at(f, 0));
}

static void test_places_in_names(void **state)
{
	static const struct {
		const char *name, *file;
		uint32_t line;
	} cases[] = {
		{ "JS:*leaf /src/work.js:1:17", "/src/work.js", 1 },
		{ "JS:~ node:internal/util:357:10", "node:internal/util", 357 },
		{ "JS:^get foo /a b/c.js:12:3", "/a b/c.js", 12 },
		{ "LazyCompile:*x file:///y.mjs:9:1", "file:///y.mjs", 9 },
		{ "Script:~ [eval]-wrapper:1:1", "[eval]-wrapper", 1 },
		{ "JS:~a b c.js:1:2", NULL, 0 }, /* `a` of `b c.js`, or `a b` of `c.js` */
		{ "JS:~leaf", NULL, 0 },
		{ "JS:~leaf file.js", NULL, 0 },
		{ "JS:~leaf file.js:", NULL, 0 },
		{ "JS:leaf file.js:1:2", NULL, 0 }, /* no mark */
		{ "Builtin:f x:1:2", NULL, 0 },
		{ "JS:~f :1:2", NULL, 0 },
		{ "JS:~:1:2", NULL, 0 },
		/* V8 up to that of Node.js 18 */
		{ "LazyCompile:*inner /src/work.js:5", "/src/work.js", 5 },
		{ "Function:^ /src/work.js:22", "/src/work.js", 22 },
		{ "Eval:~ node:internal/per_context/primordials:1",
		  "node:internal/per_context/primordials", 1 },
		{ "LazyCompile:~get x node:vm:12", "node:vm", 12 },
		{ "LazyCompile:~x :12", NULL, 0 },
		{ "LazyCompile:~:12", NULL, 0 },
		{ "RegExp:^[a b]:12", NULL, 0 },
		{ "py::f:/usr/lib/x.py", "/usr/lib/x.py", 0 },
		{ "py::C.<locals>.g:<frozen importlib._bootstrap>",
		  "<frozen importlib._bootstrap>", 0 },
		{ "py::f:", NULL, 0 },
		{ "py::", NULL, 0 },
		{ "std::f(int):1:2", NULL, 0 },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct pm_jit_function function = { .start = 16 * i, .len = 16 };
		const char *file;
		uint32_t line;

		assert_int_equal(pm_jit_table_add(f->table, &function, cases[i].name,
						  strlen(cases[i].name)),
				 0);
		pm_jit_function_place(pm_jit_table_find(f->table, 16 * i), 16 * i + 3,
				      &file, &line);
		assert_string_equal(name_at(f, 16 * i), cases[i].name);
		assert_string_equal(file ? file : "none",
				    cases[i].file ? cases[i].file : "none");
		assert_int_equal(line, cases[i].line);
	}
}

static void test_limits(void **state)
{
	struct fixture *f = *state;
	struct pm_jit_table_stats stats;
	struct pm_jit_function function = { .len = 1 };

	for (size_t i = 0; i < PM_JIT_FUNCTIONS_MAX; i++) {
		function.start = i;
		assert_int_equal(pm_jit_table_add(f->table, &function, "f", 1), 0);
	}
	function.start++;
	assert_int_equal(pm_jit_table_add(f->table, &function, "f", 1), -ENOSPC);
	pm_jit_table_stats(f->table, &stats);
	assert_int_equal(stats.left_out, 1);
	assert_true(stats.bytes <= PM_JIT_TABLE_BYTES_MAX);
	/* Of a place that changes its name too often the name is not known any more. */
	pm_jit_table_clear(f->table);
	for (size_t i = 0; i < PM_JIT_GENERATIONS_MAX + 2; i++) {
		assert_int_equal(
			pm_jit_table_add(f->table, &function, i % 2 ? "one" : "two", 3),
			0);
		pm_jit_table_use(f->table, function.start);
	}
	assert_null(name_at(f, function.start));
	assert_int_equal(pm_jit_table_find(f->table, function.start)->generation,
			 PM_JIT_GENERATIONS_MAX);
}

static void test_shared_budget(void **state)
{
	struct pm_jit_budget budget = { .max = 1 << 16 };
	struct pm_jit_table *one = pm_jit_table_new(&budget);
	struct pm_jit_table *other = pm_jit_table_new(&budget);
	struct pm_jit_function function = { .start = 0x1000, .len = 16 };
	struct pm_jit_table_stats stats;
	int ret;

	(void)state;
	assert_true(one && other);
	for (;;) {
		ret = pm_jit_table_add(one, &function, "name", 4);
		if (ret != 0)
			break;
		function.start += 16;
	}
	assert_int_equal(ret, -ENOSPC);
	assert_int_equal(pm_jit_table_add(other, &function, "name", 4), -ENOSPC);
	pm_jit_table_stats(other, &stats);
	assert_int_equal(stats.left_out, 1);
	assert_true(budget.bytes <= budget.max);
	pm_jit_table_free(one);
	assert_int_equal(pm_jit_table_add(other, &function, "name", 4), 0);
	pm_jit_table_stats(other, &stats);
	assert_int_equal(budget.bytes, stats.bytes);
	pm_jit_table_free(other);
	assert_int_equal(budget.bytes, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_lines),
		TEST(test_bad_lines),
		TEST(test_nul_in_name),
		TEST(test_half_line_waits),
		TEST(test_later_lines_win),
		TEST(test_generations),
		TEST(test_same_again_changes_nothing),
		TEST(test_written_anew),
		TEST(test_written_anew_beside_a_dump),
		TEST(test_clear_source),
		TEST(test_often_written_anew),
		TEST(test_other_contents_replace),
		TEST(test_long_lines),
		TEST(test_pieces),
		TEST(test_against_array),
		TEST(test_places_in_names),
		TEST(test_limits),
		cmocka_unit_test(test_shared_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
