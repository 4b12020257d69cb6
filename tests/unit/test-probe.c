/* SPDX-License-Identifier: MIT */
/* Places in real files, against programs whose truth is known (tests/programs/probes.c), and
 * broken notes and caches byte by byte. */
#include "pm/probe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "src/probe/probe-internal.h"

static const char *programs;

static char *in_programs(const char *name)
{
	char *path;

	assert_true(asprintf(&path, "%s/%s", programs, name) > 0);
	return path;
}

/* ---- what words come to ------------------------------------------------------------------ */

struct world {
	struct pm_event_specs specs;
	struct pm_probes probes;
	struct pm_error err;
	int code;
};

static void world_release(struct world *world)
{
	pm_event_specs_release(&world->specs);
	pm_probes_release(&world->probes);
}

struct words {
	const char *file, *symbol, *source;
	uint32_t line;
	uint64_t offset;
	bool usdt, on_return;
};

static void add_words(struct world *world, const struct words *words)
{
	struct pm_event_spec spec = { .kind = PM_EVENT_UPROBE,
				      .type = 77,
				      .config = words->on_return,
				      .leader = (uint32_t)world->specs.list.len,
				      .user = true,
				      .kernel = true,
				      .place = { .wanted = true,
						 .on_return = words->on_return,
						 .usdt = words->usdt,
						 .file = words->file,
						 .symbol = words->symbol,
						 .source = words->source,
						 .line = words->line,
						 .offset = words->offset } };

	strcpy(spec.requested, "as typed");
	assert_int_equal(pm_vec_push(&world->specs.list, spec), 0);
}

static void resolve(struct world *world, const struct words *words, const char *command)
{
	struct pm_probe_context context = { .command = command };

	*world = (struct world){ 0 };
	add_words(world, words);
	world->code =
		pm_probes_resolve(&world->probes, &world->specs, &context, &world->err);
	if (world->code < 0) {
		assert_int_equal(world->err.code, world->code);
		assert_int_equal(world->specs.list.len, 1);
		assert_true(world->specs.list.data[0].place.wanted);
	}
}

/* Each of @names, NULL-terminated, is one place and there is no other. */
static void assert_places(const struct words *words, const char *command,
			  const char *const *names)
{
	struct world world;
	size_t len = 0;

	resolve(&world, words, command);
	if (world.code < 0)
		fail_msg("%s: %s", words->symbol ? words->symbol : words->source,
			 world.err.text);
	while (names[len])
		len++;
	for (size_t i = 0; i < world.specs.list.len; i++) {
		const struct pm_event_spec *spec = &world.specs.list.data[i];
		bool found = false;

		for (size_t n = 0; n < len; n++)
			found |= strcmp(names[n], spec->name) == 0;
		if (!found)
			fail_msg("unexpected %s", spec->name);
		assert_int_equal(spec->leader, i);
		assert_false(spec->place.wanted);
		assert_int_equal(spec->type, 77);
		assert_string_equal(spec->requested, "as typed");
		assert_non_null(spec->path);
		assert_true(spec->config2 > 0);
	}
	assert_int_equal(world.specs.list.len, len);
	world_release(&world);
}

static void assert_refused(const struct words *words, const char *command, int code,
			   const char *because)
{
	struct world world;

	resolve(&world, words, command);
	if (world.code != code)
		fail_msg("%d (%s) instead of %d", world.code, world.err.text, code);
	if (!strstr(world.err.text, because) && !strstr(world.err.fix, because))
		fail_msg("\"%s\" (%s) does not say \"%s\"", world.err.text, world.err.fix,
			 because);
	world_release(&world);
}

#define NAMES(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define AT(...)    (&(struct words){ __VA_ARGS__ })

static void test_functions(void **state)
{
	PM_AUTO_FREE char *probes = in_programs("probes");
	struct world world;

	assert_places(AT(probes, "thrice"), NULL, NAMES("uprobe:probes:thrice"));
	assert_places(AT("probes", "hidden"), probes, NAMES("uprobe:probes:hidden"));
#ifdef __aarch64__
	assert_places(AT(probes, "thrice", .offset = 4), NULL,
		      NAMES("uprobe:probes:thrice+0x4"));
	assert_refused(AT(probes, "thrice", .offset = 1), NULL, -EINVAL,
		       "no instruction begins at thrice+0x1");
#else
	assert_places(AT(probes, "thrice", .offset = 1), NULL,
		      NAMES("uprobe:probes:thrice+0x1"));
#endif
	assert_places(AT(probes, "nest", .on_return = true), NULL,
		      NAMES("uretprobe:probes:nest"));
	/* Two names of one address: as typed, and once. */
	assert_places(AT(probes, "alias_other"), NULL,
		      NAMES("uprobe:probes:alias_other"));
	resolve(&world, AT(probes, "alias_*"), NULL);
	assert_int_equal(world.specs.list.len, 1);
	world_release(&world);
	assert_places(AT(probes, "[ht][hi][rd][di][ce][en]"), NULL,
		      NAMES("uprobe:probes:thrice", "uprobe:probes:hidden"));
}

static void test_offset_is_in_the_file(void **state)
{
	PM_AUTO_FREE char *probes = in_programs("probes");
	struct pm_probe_elf elf;
	struct pm_probe_tables tables;
	struct world world;
	uint64_t offset = 0;
	int fd = open(probes, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	resolve(&world, AT(probes, "thrice"), NULL);
	assert_int_equal(world.code, 0);
	assert_int_equal(pm_probe_elf_open(&elf, fd), 0);
	assert_int_equal(pm_probe_tables_open(&tables, &elf, NULL), 0);
	assert_true(tables.has_symtab);
	for (size_t i = 0; i < tables.table[0].len; i++) {
		struct pm_probe_symbol symbol;

		if (pm_probe_table_row(&tables.table[0], i, &symbol) &&
		    strcmp(symbol.name, "thrice") == 0)
			assert_true(pm_probe_elf_code(&elf, symbol.address, &offset));
	}
	assert_int_equal(world.specs.list.data[0].config2, offset);
	/* The path leads to the very file. */
	struct stat own, its;
	assert_int_equal(fstat(fd, &own), 0);
	assert_int_equal(stat(world.specs.list.data[0].path, &its), 0);
	assert_int_equal(own.st_ino, its.st_ino);
	pm_probe_tables_close(&tables);
	pm_probe_elf_close(&elf);
	world_release(&world);
	close(fd);
}

static void test_refusals(void **state)
{
	PM_AUTO_FREE char *probes = in_programs("probes");

	assert_refused(AT(probes, "thrcie"), NULL, -ENOENT, "near names: thrice");
	assert_refused(AT(probes, "no_such_*"), NULL, -ENOENT, "no function");
	assert_refused(AT(probes, "probes_sum"), NULL, -EINVAL, "-e mem:probes_sum");
	assert_refused(AT(probes, "thrice", .offset = 4000), NULL, -EINVAL, "has only");
	assert_refused(AT(probes, "malloc"), NULL, -ENOENT, "uprobe:libc:malloc");
	assert_refused(AT("probse", "main"), probes, -ENOENT, "near names: probes");
	assert_refused(AT("/no/such/file", "main"), NULL, -ENOENT, "No such file");
	assert_refused(AT("/proc/self", "main"), NULL, -ENOTSUP, "no regular file");
	assert_refused(AT("/proc/self/maps", "main"), NULL, -ENOEXEC, "no ELF file");
	assert_refused(AT(probes, NULL, "prbes.c", 1), NULL, -ENOENT,
		       "near names: probes.c");
	assert_refused(AT(probes, NULL, "probes.c", 100000), NULL, -ENOENT, "no code");
	assert_refused(AT(probes, "probes:plainn", .usdt = true), NULL, -ENOENT,
		       "near names: probes:plain");
}

static void test_cpp(void **state)
{
	PM_AUTO_FREE char *probes = in_programs("probes-cpp");

	if (access(probes, R_OK) < 0) {
		print_message("# no C++ compiler made probes-cpp\n");
		skip();
	}
	assert_places(AT(probes, "shapes::area"), NULL,
		      NAMES("uprobe:probes-cpp:shapes::area(int)",
			    "uprobe:probes-cpp:shapes::area(int, char)"));
	assert_places(AT(probes, "shapes::area(int,char)"), NULL,
		      NAMES("uprobe:probes-cpp:shapes::area(int, char)"));
	assert_places(AT(probes, "_ZN6shapes4areaEi"), NULL,
		      NAMES("uprobe:probes-cpp:shapes::area(int)"));
	assert_places(AT(probes, "shapes::a*(*)"), NULL,
		      NAMES("uprobe:probes-cpp:shapes::area(int)",
			    "uprobe:probes-cpp:shapes::area(int, char)"));
	/* Without its scope, where there is only one of that name. */
	assert_places(AT(probes, "area"), NULL,
		      NAMES("uprobe:probes-cpp:shapes::area(int)",
			    "uprobe:probes-cpp:shapes::area(int, char)"));
	assert_refused(AT(probes, "grow"), NULL, -ENOENT, "near names: shapes::grow<");
	assert_refused(AT(probes, "shapes::aera"), NULL, -ENOENT,
		       "near names: shapes::area");
}

/* The line of a source that has @mark in it. */
static uint32_t line_of(const char *mark)
{
	FILE *file PM_AUTO_FCLOSE = NULL;
	char path[4096], line[512];

	snprintf(path, sizeof(path), "%s/tests/programs/probes.c", getenv("PM_SOURCE"));
	file = fopen(path, "re");
	assert_non_null(file);
	for (uint32_t number = 1; fgets(line, sizeof(line), file); number++)
		if (strstr(line, mark))
			return number;
	fail_msg("%s is not in %s", mark, path);
	return 0;
}

static void test_lines(void **state)
{
	PM_AUTO_FREE char *probes = in_programs("probes");
	uint32_t line = line_of("LINE spread");
	struct world world;
	char name[64];

	/* At two places, or some more: inlined twice. */
	resolve(&world, AT(probes, NULL, "probes.c", line), NULL);
	assert_int_equal(world.code, 0);
	assert_in_range(world.specs.list.len, 2, 4);
	snprintf(name, sizeof(name), "uprobe:probes:probes.c:%u", line);
	assert_string_equal(world.specs.list.data[0].name, name);
	snprintf(name, sizeof(name), "uprobe:probes:probes.c:%u@0x", line);
	assert_memory_equal(world.specs.list.data[1].name, name, strlen(name));
	assert_int_equal(world.probes.notes.len, 1);
	world_release(&world);
	/* The comment before it has no code. */
	resolve(&world, AT(probes, NULL, "programs/probes.c", line - 4), NULL);
	assert_int_equal(world.code, 0);
	assert_non_null(
		strstr(world.probes.notes.data[0], "has no code, the probe is on"));
	world_release(&world);
}

static void test_markers(void **state)
{
	PM_AUTO_FREE char *probes = in_programs("probes");
	struct world world;

	assert_places(AT(probes, "probes:plain", .usdt = true), NULL,
		      NAMES("usdt:probes:probes:plain"));
	resolve(&world, AT(probes, "pro*:twi*", .usdt = true), NULL);
	assert_int_equal(world.specs.list.len, 2);
	assert_int_equal(world.specs.list.data[0].config, 0);
	assert_true(world.specs.list.data[0].config2 != world.specs.list.data[1].config2);
	world_release(&world);
	resolve(&world, AT(probes, "probes:counted", .usdt = true), NULL);
	assert_int_equal(world.specs.list.len, 1);
	assert_int_equal((uint32_t)world.specs.list.data[0].config, 0);
	assert_true(world.specs.list.data[0].config >> 32 > 0);
	world_release(&world);
}

/* ---- libraries ---------------------------------------------------------------------------- */

static void test_libraries(void **state)
{
	PM_AUTO_FREE char *probes = in_programs("probes");
	struct world world;
	struct stat own, its;
	Dl_info info;

	resolve(&world, AT("libc", "malloc"), probes);
	if (world.code < 0)
		fail_msg("%s", world.err.text);
	assert_int_equal(world.specs.list.len, 1);
	assert_string_equal(world.specs.list.data[0].name, "uprobe:libc.so.6:malloc");
	/* The one that this very process has. */
	assert_true(dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &info) != 0);
	assert_int_equal(stat(info.dli_fname, &own), 0);
	assert_int_equal(stat(world.specs.list.data[0].path, &its), 0);
	assert_int_equal(own.st_ino, its.st_ino);
	world_release(&world);
	/* Without a command by the loader's cache. */
	resolve(&world, AT("libc.so.6", "malloc"), NULL);
	assert_int_equal(world.code, 0);
	assert_int_equal(stat(world.specs.list.data[0].path, &its), 0);
	assert_int_equal(own.st_ino, its.st_ino);
	world_release(&world);
	assert_refused(AT("libc", "memcpy"), probes, -EINVAL, "IFUNC");
	assert_refused(AT("libc", "malcol"), probes, -ENOENT, "malloc");
	assert_refused(AT("libcc", "malloc"), probes, -ENOENT, "near names: libc");
}

static void test_own_process(void **state)
{
	pid_t pid = getpid();
	struct pm_probe_context context = { .pids = &pid, .pids_len = 1 };
	struct world world = { 0 };

	add_words(&world, AT("libc", "malloc"));
	add_words(&world, AT("test-probe", "main"));
	assert_int_equal(
		pm_probes_resolve(&world.probes, &world.specs, &context, &world.err), 0);
	assert_int_equal(world.specs.list.len, 2);
	assert_string_equal(world.specs.list.data[0].name, "uprobe:libc.so.6:malloc");
	assert_string_equal(world.specs.list.data[1].name, "uprobe:test-probe:main");
	world_release(&world);
}

static void test_library_names(void **state)
{
	assert_true(pm_probe_library_is("libc.so.6", "libc"));
	assert_true(pm_probe_library_is("libc.so.6", "libc.so"));
	assert_true(pm_probe_library_is("libc.so.6", "libc.so.6"));
	assert_true(pm_probe_library_is("libc-2.31.so", "libc"));
	assert_true(pm_probe_library_is("libstdc++.so.6.0.30", "libstdc++"));
	assert_false(pm_probe_library_is("libcap.so.2", "libc"));
	assert_false(pm_probe_library_is("libc.so.6", "libc.so.7"));
	assert_false(pm_probe_library_is("libc-client.so.1", "libc"));
	assert_false(pm_probe_library_is("c.so", "libc"));
}

/* ---- groups ---------------------------------------------------------------------------------- */

static void test_leaders(void **state)
{
	PM_AUTO_FREE char *probes = in_programs("probes");
	struct pm_probe_context context = { 0 };
	struct world world = { 0 };
	/* cycles, {twice, twice}, cycles: of which the markers are at two places each. */
	static const uint32_t leaders[] = { 0, 1, 1, 1, 1, 5 };

	add_words(&world, AT(probes, "thrice"));
	world.specs.list.data[0].place.wanted = false;
	add_words(&world, AT(probes, "probes:twice", .usdt = true));
	add_words(&world, AT(probes, "probes:twice", .usdt = true));
	world.specs.list.data[2].leader = 1;
	add_words(&world, AT(probes, "thrice"));
	assert_int_equal(
		pm_probes_resolve(&world.probes, &world.specs, &context, &world.err), 0);
	assert_int_equal(world.specs.list.len, PM_ARRAY_LEN(leaders));
	for (size_t i = 0; i < PM_ARRAY_LEN(leaders); i++)
		assert_int_equal(world.specs.list.data[i].leader, leaders[i]);
	world_release(&world);
}

/* ---- data -------------------------------------------------------------------------------------- */

static volatile long probed_variable __attribute__((used));

static void test_data(void **state)
{
	PM_AUTO_FREE char *probes = in_programs("probes");
	pid_t pid = getpid();
	struct pm_probe_context own = { .pids = &pid, .pids_len = 1 };
	struct pm_probe_context command = { .command = probes };
	struct pm_event_spec spec = { .kind = PM_EVENT_BREAKPOINT,
				      .type = PERF_TYPE_BREAKPOINT,
				      .bp_type = 3,
				      .config2 = 4,
				      .place = { .wanted = true,
						 .symbol = "probed_variable" } };
	struct world world = { 0 };

	probed_variable = 1;
	assert_int_equal(pm_vec_push(&world.specs.list, spec), 0);
	assert_int_equal(pm_probes_resolve(&world.probes, &world.specs, &own, &world.err),
			 0);
	assert_int_equal(world.specs.list.data[0].config1, (uintptr_t)&probed_variable);
	spec.place.symbol = "probes_sum";
	world.specs.list.data[0] = spec;
	/* probes is built as a position-independent executable. */
	assert_int_equal(
		pm_probes_resolve(&world.probes, &world.specs, &command, &world.err),
		-EINVAL);
	assert_non_null(strstr(world.err.text, "known only when it runs"));
	assert_non_null(strstr(world.err.fix, "-p PID"));
	spec.place.symbol = "probes_smu";
	world.specs.list.data[0] = spec;
	assert_int_equal(
		pm_probes_resolve(&world.probes, &world.specs, &command, &world.err),
		-ENOENT);
	assert_non_null(strstr(world.err.text, "near names: probes_sum"));
	world_release(&world);
}

/* ---- copies and parts ---------------------------------------------------------------------------- */

static void test_copies(void **state)
{
	static const struct {
		const char *name;
		size_t len;
		enum pm_probe_copy copy;
	} cases[] = {
		{ "foo", 3, PM_PROBE_WHOLE },
		{ "foo.constprop.0", 3, PM_PROBE_WHOLE },
		{ "foo.isra.0", 3, PM_PROBE_WHOLE },
		{ "foo.llvm.123456", 3, PM_PROBE_WHOLE },
		{ "foo.part.0", 3, PM_PROBE_PART },
		{ "foo.cold", 3, PM_PROBE_PART },
		{ "foo.constprop.0.cold", 3, PM_PROBE_PART },
		{ "foo.part.0.isra.0", 3, PM_PROBE_PART },
		{ "foo.bar", 7, PM_PROBE_WHOLE },
		{ "foo.bar.0", 9, PM_PROBE_WHOLE },
		{ ".cold", 5, PM_PROBE_WHOLE },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		enum pm_probe_copy copy;

		assert_int_equal(pm_probe_base_len(cases[i].name, &copy), cases[i].len);
		assert_int_equal(copy, cases[i].copy);
	}
}

/* ---- foreign bytes --------------------------------------------------------------------------------- */

static int count_library(void *user, const char *name, const char *path)
{
	size_t *count = user;

	assert_string_equal(name, "libx.so.1");
	assert_string_equal(path, "/lib/libx.so.1");
	++*count;
	return 0;
}

static void test_cache(void **state)
{
	struct {
		char magic[20];
		uint32_t count, strings_len, flags, extension, unused[3];
		struct {
			int32_t flags;
			uint32_t name, path, version;
			uint64_t hwcap;
		} entry[3];
		char strings[32];
	} cache = { .magic = "glibc-ld.so.cache1.", .count = 3 };
	const struct pm_probe_abi abi = { .machine = EM_X86_64, .is_64 = true };
	size_t count = 0, strings = offsetof(__typeof__(cache), strings);

	cache.magic[19] = '1';
	memcpy(cache.strings, "libx.so.1\0/lib/libx.so.1", 25);
	cache.entry[0].flags = 0x0303;
	cache.entry[0].name = (uint32_t)strings;
	cache.entry[0].path = (uint32_t)strings + 10;
	cache.entry[1] = cache.entry[0];
	cache.entry[1].flags = 0x0003; /* of 32 bits */
	cache.entry[2] = cache.entry[0];
	cache.entry[2].name = UINT32_MAX;
	assert_int_equal(pm_probe_cache_parse((const char *)&cache, sizeof(cache), &abi,
					      count_library, &count),
			 0);
	assert_int_equal(count, 1);
	/* Cut anywhere: fewer entries, nothing else. */
	for (size_t len = 0; len < sizeof(cache); len++) {
		PM_AUTO_FREE char *copy = malloc(len + 1);

		assert_non_null(copy);
		memcpy(copy, &cache, len);
		assert_int_equal(
			pm_probe_cache_parse(copy, len, &abi, count_library, &count), 0);
	}
}

static int count_marker(void *user, const struct pm_probe_marker *marker)
{
	size_t *count = user;

	++*count;
	return 0;
}

static void test_notes(void **state)
{
	struct __attribute__((packed)) {
		uint32_t name_len, desc_len, type;
		char name[8];
		uint64_t pc, base, semaphore;
		char texts[16];
	} note[2] = { { 8, 40, 3, "stapsdt", 1, 2, 3, "prov\0name\0args" } };
	size_t count = 0;

	note[0].desc_len = 24 + 16;
	note[1] = note[0];
	assert_int_equal(pm_probe_markers_each((const char *)note, sizeof(note), true,
					       count_marker, &count),
			 0);
	assert_int_equal(count, 2);
	/* A text without an end, a note of somebody else: left out. */
	memset(note[0].texts, 'x', sizeof(note[0].texts));
	note[1].type = 4;
	assert_int_equal(pm_probe_markers_each((const char *)note, sizeof(note), true,
					       count_marker, &count),
			 0);
	assert_int_equal(count, 2);
	note[0].name_len = UINT32_MAX;
	assert_int_equal(pm_probe_markers_each((const char *)note, sizeof(note), true,
					       count_marker, &count),
			 0);
	assert_int_equal(count, 2);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_offset_is_in_the_file),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_cpp),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_markers),
		cmocka_unit_test(test_libraries),
		cmocka_unit_test(test_own_process),
		cmocka_unit_test(test_library_names),
		cmocka_unit_test(test_leaders),
		cmocka_unit_test(test_data),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_notes),
	};

	programs = getenv("PROGRAMS");
	if (!programs || !getenv("PM_SOURCE")) {
		puts("1..0 # SKIP PROGRAMS and PM_SOURCE are not set");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
