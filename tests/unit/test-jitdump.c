/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <string.h>
#include <sys/mman.h>

#include "pm/symbol.h"

enum {
	ALL = 1 << 30,
	LOAD = 0,
	MOVE = 1,
	DEBUG_INFO = 2,
	CLOSE = 3,
	UNWINDING_INFO = 4,
	CODE = 0x10000, /* where functions are */
};

struct header {
	uint32_t magic, version, total_size, elf_mach, pad, pid;
	uint64_t timestamp, flags;
};

static const struct header good = {
	.magic = 0x4a695444,
	.version = 1,
	.total_size = sizeof(struct header),
#if defined(__aarch64__)
	.elf_mach = EM_AARCH64,
#else
	.elf_mach = EM_X86_64,
#endif
	.pid = 1,
};

struct fixture {
	struct pm_jitdump *dump;
	struct pm_jit_table *table;
	int fd;
	uint8_t payload[8192];
	size_t len;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->dump = pm_jitdump_new();
	f->table = pm_jit_table_new(NULL);
	f->fd = memfd_create("dump", MFD_CLOEXEC);
	*state = f;
	return f->dump && f->table && f->fd >= 0 ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	pm_jitdump_free(f->dump);
	pm_jit_table_free(f->table);
	close(f->fd);
	free(f);
	return 0;
}

static void put(struct fixture *f, const void *bytes, size_t len)
{
	assert_true(f->len + len <= sizeof(f->payload));
	memcpy(f->payload + f->len, bytes, len);
	f->len += len;
}

static void put_u32(struct fixture *f, uint32_t value)
{
	put(f, &value, sizeof(value));
}

static void put_u64(struct fixture *f, uint64_t value)
{
	put(f, &value, sizeof(value));
}

static void put_text(struct fixture *f, const char *text)
{
	put(f, text, strlen(text) + 1);
}

static void append(struct fixture *f, const void *bytes, size_t len)
{
	assert_true(lseek(f->fd, 0, SEEK_END) >= 0);
	assert_int_equal(write(f->fd, bytes, len), len);
}

/* Writes the payload that was put together as a record. */
static void record(struct fixture *f, uint32_t id, uint64_t time)
{
	uint32_t prefix[2] = { id, 16 + (uint32_t)f->len };

	append(f, prefix, sizeof(prefix));
	append(f, &time, sizeof(time));
	append(f, f->payload, f->len);
	f->len = 0;
}

static void load(struct fixture *f, uint64_t time, uint64_t start, uint64_t len,
		 const char *name)
{
	put_u64(f, 0);
	put_u64(f, start);
	put_u64(f, start);
	put_u64(f, len);
	put_u64(f, 0);
	put_text(f, name);
	for (uint64_t i = 0; i < len; i++)
		put(f, "\x90", 1);
	record(f, LOAD, time);
}

static int read_until(struct fixture *f, uint64_t until_ns)
{
	return pm_jitdump_read(f->dump, f->fd, f->table, until_ns, ALL, NULL);
}

static const char *name_at(const struct fixture *f, uint64_t address)
{
	const struct pm_jit_function *function = pm_jit_table_find(f->table, address);

	return function ? function->name : "none";
}

static void test_in_time_order(void **state)
{
	struct fixture *f = *state;
	uint64_t time_ns;

	append(f, &good, sizeof(good));
	load(f, 100, CODE, 16, "first");
	load(f, 200, CODE, 16, "second");
	assert_int_equal(read_until(f, 99), 0);
	assert_string_equal(name_at(f, CODE), "none");
	assert_true(pm_jitdump_peek(f->dump, f->fd, &time_ns));
	assert_int_equal(time_ns, 100);
	assert_int_equal(read_until(f, 199), 0);
	assert_string_equal(name_at(f, CODE + 15), "first");
	assert_string_equal(name_at(f, CODE + 16), "none");
	assert_int_equal(read_until(f, 200), 0);
	assert_string_equal(name_at(f, CODE), "second");
	assert_false(pm_jitdump_peek(f->dump, f->fd, &time_ns));
}

static void test_grows(void **state)
{
	struct fixture *f = *state;
	const uint8_t *bytes = (const uint8_t *)&good;

	assert_int_equal(read_until(f, UINT64_MAX), 0);
	append(f, bytes, 20);
	assert_int_equal(read_until(f, UINT64_MAX), 0);
	append(f, bytes + 20, sizeof(good) - 20);
	assert_int_equal(read_until(f, UINT64_MAX), 0);
	load(f, 1, CODE, 16, "whole");
	/* A record that is being written waits. */
	assert_int_equal(ftruncate(f->fd, lseek(f->fd, 0, SEEK_END) - 1), 0);
	assert_int_equal(read_until(f, UINT64_MAX), 0);
	assert_string_equal(name_at(f, CODE), "none");
	append(f, "\x90", 1);
	assert_int_equal(read_until(f, UINT64_MAX), 0);
	assert_string_equal(name_at(f, CODE), "whole");
}

static void test_move(void **state)
{
	struct fixture *f = *state;

	append(f, &good, sizeof(good));
	load(f, 1, CODE, 16, "JS:*f /x.js:3:1");
	put_u64(f, 0);
	put_u64(f, 0x20000);
	put_u64(f, CODE);
	put_u64(f, 0x20000);
	put_u64(f, 16);
	put_u64(f, 0);
	record(f, MOVE, 2);
	assert_int_equal(read_until(f, 1), 0);
	assert_string_equal(name_at(f, 0x20000), "none");
	assert_int_equal(read_until(f, 2), 0);
	assert_string_equal(name_at(f, 0x2000f), "JS:*f /x.js:3:1");
	assert_int_equal(pm_jit_table_find(f->table, 0x20000)->line, 3);
}

static void move(struct fixture *f, uint64_t time, uint64_t from, uint64_t to)
{
	put_u64(f, 0);
	put_u64(f, to);
	put_u64(f, from);
	put_u64(f, to);
	put_u64(f, 16);
	put_u64(f, 0);
	record(f, MOVE, time);
}

/* A move is 64 bytes in the file, and is not to be much more in memory. */
static void test_moves_copy_nothing(void **state)
{
	enum {
		LARGE = 500000,
		MOVES = 1000
	};
	struct fixture *f = *state;
	struct pm_jit_table_stats empty, before, after;
	struct pm_jit_function function = { .source = PM_JIT_OF_DUMP,
					    .start = CODE,
					    .len = 16,
					    .eh_frame_len = LARGE,
					    .eh_frame_at = CODE + 16 };
	uint8_t *eh_frame = calloc(1, LARGE);

	function.eh_frame = eh_frame;
	append(f, &good, sizeof(good));
	pm_jit_table_stats(f->table, &empty);
	assert_int_equal(pm_jit_table_add(f->table, &function, "f", 1), 0);
	free(eh_frame);
	pm_jit_table_stats(f->table, &before);
	for (uint64_t i = 0; i < MOVES; i++)
		move(f, i, CODE + 16 * i, CODE + 16 * (i + 1));
	assert_int_equal(read_until(f, MOVES), 0);
	pm_jit_table_stats(f->table, &after);
	assert_int_equal(after.functions, MOVES + 1);
	assert_true(after.bytes - before.bytes < (size_t)MOVES * 1024);
	/* Also the first one's place may get something else. */
	load(f, MOVES, CODE, 16, "g");
	assert_int_equal(read_until(f, MOVES), 0);
	assert_string_equal(name_at(f, CODE), "g");
	assert_string_equal(name_at(f, CODE + 16 * MOVES), "f");
	assert_int_equal(pm_jit_table_find(f->table, CODE + 16 * MOVES)->eh_frame_at,
			 CODE + 16 * MOVES + 16);
	assert_int_equal(
		pm_jit_table_find(f->table, CODE + 16 * MOVES)->eh_frame[LARGE - 1], 0);
	pm_jit_table_clear(f->table);
	pm_jit_table_stats(f->table, &after);
	assert_int_equal(after.bytes, empty.bytes);
}

static void test_close(void **state)
{
	struct fixture *f = *state;
	uint64_t time_ns;

	append(f, &good, sizeof(good));
	record(f, CLOSE, 1);
	load(f, 2, CODE, 16, "after");
	assert_int_equal(read_until(f, UINT64_MAX), 0);
	assert_string_equal(name_at(f, CODE), "none");
	assert_false(pm_jitdump_peek(f->dump, f->fd, &time_ns));
}

static void entry(struct fixture *f, uint64_t address, uint32_t line, const char *file)
{
	put_u64(f, address);
	put_u32(f, line);
	put_u32(f, 1);
	put_text(f, file);
}

static void check_place(struct fixture *f, uint64_t address, const char *file,
			uint32_t line)
{
	const char *found_file;
	uint32_t found_line;

	pm_jit_function_place(pm_jit_table_find(f->table, address), address, &found_file,
			      &found_line);
	assert_string_equal(found_file ? found_file : "none", file);
	assert_int_equal(found_line, line);
}

static void test_lines(void **state)
{
	struct fixture *f = *state;

	append(f, &good, sizeof(good));
	put_u64(f, CODE);
	put_u64(f, 4);
	entry(f, CODE + 2, 10, "a.js");
	entry(f, CODE + 4, 11, "\xff");
	entry(f, CODE + 4, 12, "b.js");
	entry(f, CODE + 8, 13, "a.js");
	record(f, DEBUG_INFO, 1);
	load(f, 1, CODE, 16, "JS:*f /x.js:3:1");
	/* Only for the next one. */
	load(f, 1, 0x20000, 16, "g");
	assert_int_equal(read_until(f, 1), 0);
	check_place(f, CODE, "/x.js", 3);
	check_place(f, CODE + 2, "a.js", 10);
	check_place(f, CODE + 3, "a.js", 10);
	check_place(f, CODE + 4, "b.js", 12);
	check_place(f, CODE + 15, "a.js", 13);
	check_place(f, 0x20000, "none", 0);
}

/* V8's addresses are 0x40 too high, and its files may be nonsense. */
static void test_lines_of_v8(void **state)
{
	static const char *const files[] = { "w.js", "w\xed.js", "w\x01.js", "w.js" };
	struct fixture *f = *state;
	struct header header = good;

	header.pad = 0xdeadbeef;
	append(f, &header, sizeof(header));
	for (uint64_t i = 0; i < PM_ARRAY_LEN(files); i++) {
		uint64_t at = CODE + i * 0x100;

		put_u64(f, at);
		put_u64(f, 2);
		entry(f, at + 0x40 + 4, 7, "ok.js");
		/* The last one lies outside of its function. */
		entry(f, at + 0x40 + (i == 3 ? 17 : 16), 8, files[i]);
		record(f, DEBUG_INFO, i);
		load(f, i, at, 16, "JS:^f x.js:5:1");
	}
	assert_int_equal(read_until(f, UINT64_MAX), 0);
	check_place(f, CODE + 3, "x.js", 5);
	check_place(f, CODE + 4, "ok.js", 7);
	for (uint64_t i = 1; i < PM_ARRAY_LEN(files); i++)
		check_place(f, CODE + i * 0x100 + 4, "x.js", 5);
}

static void unwinding(struct fixture *f, uint64_t mapped, const void *data, size_t len,
		      uint64_t header_size)
{
	put_u64(f, len);
	put_u64(f, header_size);
	put_u64(f, mapped);
	put(f, data, len);
	record(f, UNWINDING_INFO, 1);
}

static void test_unwinding(void **state)
{
	static const uint8_t frame_first[] = "\x14\0\0\0FRAMEFRAME"
					     "\x01\x1b\x03\x3bHEAD";
	static const uint8_t header_first[] = "\x01\x1b\x03\x3bHEAD"
					      "\x14\0\0\0FRAMEFRAME";
	struct fixture *f = *state;
	const struct pm_jit_function *function;

	append(f, &good, sizeof(good));
	unwinding(f, 22, frame_first, 22, 8);
	load(f, 1, CODE, 13, "v8");
	unwinding(f, 22, header_first, 22, 8);
	load(f, 1, 0x20000, 13, "llvm");
	unwinding(f, 0, header_first, 22, 8);
	load(f, 1, 0x30000, 13, "not mapped");
	unwinding(f, 8, header_first, 8, 8);
	load(f, 1, 0x40000, 13, "header only");
	unwinding(f, 8, header_first, 8, 100);
	load(f, 1, 0x50000, 13, "nonsense");
	assert_int_equal(read_until(f, 1), 0);
	function = pm_jit_table_find(f->table, CODE);
	assert_int_equal(function->eh_frame_len, 14);
	assert_memory_equal(function->eh_frame, frame_first, 14);
	assert_int_equal(function->eh_frame_at, CODE + 16);
	assert_memory_equal(function->code, "\x90\x90\x90", 3);
	function = pm_jit_table_find(f->table, 0x20000);
	assert_memory_equal(function->eh_frame, header_first + 8, 14);
	assert_int_equal(function->eh_frame_at, 0x20000 + 16 + 8);
	assert_null(pm_jit_table_find(f->table, 0x30000)->eh_frame);
	assert_null(pm_jit_table_find(f->table, 0x40000)->eh_frame);
	assert_null(pm_jit_table_find(f->table, 0x50000)->eh_frame);
}

static void refuse(struct fixture *f, const struct header *header, int error)
{
	struct pm_error err;
	uint64_t time_ns;

	pm_jitdump_free(f->dump);
	f->dump = pm_jitdump_new();
	assert_int_equal(ftruncate(f->fd, 0), 0);
	append(f, header, sizeof(*header));
	load(f, 1, CODE, 16, "f");
	for (int i = 0; i < 2; i++) {
		err = (struct pm_error){ 0 };
		assert_int_equal(
			pm_jitdump_read(f->dump, f->fd, f->table, UINT64_MAX, ALL, &err),
			error);
		assert_true(err.text[0] != '\0');
	}
	assert_false(pm_jitdump_peek(f->dump, f->fd, &time_ns));
	assert_string_equal(name_at(f, CODE), "none");
}

static void test_refused(void **state)
{
	struct fixture *f = *state;
	struct header header = good;

	header.magic = 0x4454694a;
	refuse(f, &header, -ENOTSUP);
	header.magic = 1;
	refuse(f, &header, -ENOEXEC);
	header = good;
	header.version = 2;
	refuse(f, &header, -ENOTSUP);
	header = good;
	header.elf_mach = EM_SPARC;
	refuse(f, &header, -ENOTSUP);
	header = good;
	header.flags = 1;
	refuse(f, &header, -ENOTSUP);
	header = good;
	header.total_size = 8;
	refuse(f, &header, -EBADMSG);
}

static void test_broken_records(void **state)
{
	struct fixture *f = *state;
	uint32_t tiny[4] = { LOAD, 8, 0, 0 };

	append(f, &good, sizeof(good));
	load(f, 1, CODE, 16, "good");
	load(f, 1, CODE + 16, 0, "no code");
	load(f, 1, UINT64_MAX - 3, 16, "wraps");
	load(f, 1, CODE + 16, 16, "");
	put_text(f, "of a later version");
	record(f, 77, 1);
	put_u64(f, CODE + 32);
	put_u64(f, UINT64_MAX); /* entries */
	record(f, DEBUG_INFO, 1);
	load(f, 1, CODE + 32, 16, "good, too");
	append(f, tiny, sizeof(tiny));
	assert_int_equal(read_until(f, 1), -EBADMSG);
	assert_string_equal(name_at(f, CODE), "good");
	assert_string_equal(name_at(f, CODE + 16), "none");
	assert_string_equal(name_at(f, CODE + 32), "good, too");
	assert_int_equal(read_until(f, 1), -EBADMSG);
}

static void test_short_records(void **state)
{
	for (uint32_t id = LOAD; id <= MOVE; id++) {
		struct fixture *f = *state;

		pm_jitdump_free(f->dump);
		f->dump = pm_jitdump_new();
		assert_int_equal(ftruncate(f->fd, 0), 0);
		append(f, &good, sizeof(good));
		put_u64(f, 1);
		record(f, id, 1);
		assert_int_equal(read_until(f, 1), -EBADMSG);
	}
}

static void test_cut_short(void **state)
{
	struct fixture *f = *state;

	append(f, &good, sizeof(good));
	load(f, 1, CODE, 16, "f");
	assert_int_equal(read_until(f, 1), 0);
	assert_int_equal(ftruncate(f->fd, sizeof(good)), 0);
	assert_int_equal(read_until(f, 1), -ESTALE);
	assert_string_equal(name_at(f, CODE), "f");
}

/* More than is read at once, and records larger than that. */
static void test_large(void **state)
{
	enum {
		FUNCTIONS = 3000,
		BYTES = 3 << 20
	};
	struct fixture *f = *state;
	uint8_t *code = calloc(BYTES, 1);
	uint32_t prefix[4] = { LOAD, 16 + 40 + 6 + BYTES, 1, 0 };
	size_t calls = 1;

	append(f, &good, sizeof(good));
	for (uint64_t i = 0; i < FUNCTIONS; i++) {
		char name[32];

		snprintf(name, sizeof(name), "f%u", (unsigned int)i);
		load(f, 1, CODE + i * 64, 64, name);
	}
	append(f, prefix, sizeof(prefix));
	put_u64(f, 0);
	put_u64(f, 0x10000000);
	put_u64(f, 0x10000000);
	put_u64(f, BYTES);
	put_u64(f, 0);
	put_text(f, "large");
	append(f, f->payload, f->len);
	f->len = 0;
	append(f, code, BYTES);
	load(f, 1, 0x20000000, 64, "last");
	while (pm_jitdump_read(f->dump, f->fd, f->table, 1, 1, NULL) == 1)
		calls++;
	assert_true(calls > 3);
	assert_string_equal(name_at(f, CODE), "f0");
	assert_string_equal(name_at(f, CODE + 2999 * 64), "f2999");
	assert_string_equal(name_at(f, 0x10000000 + BYTES - 1), "large");
	assert_string_equal(name_at(f, 0x20000000), "last");
	free(code);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_in_time_order), TEST(test_grows),
		TEST(test_move),          TEST(test_moves_copy_nothing),
		TEST(test_close),         TEST(test_lines),
		TEST(test_lines_of_v8),   TEST(test_unwinding),
		TEST(test_refused),       TEST(test_broken_records),
		TEST(test_short_records), TEST(test_cut_short),
		TEST(test_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
