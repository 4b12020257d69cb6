/* SPDX-License-Identifier: MIT */
/* Corpora: what was written is read; version 1 as it is; what is not valid is refused. */
#include "pm/corpus.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define NONE ((uint32_t)PM_CORPUS_NO_MODULE)

static const struct pm_corpus_load loads[] = {
	{ 0, 0x1000, 0, 0x900, 4 },
	{ 0x1000, 0x800, 0x1000, 0x800, 5 },
};
static const struct pm_corpus_map maps[] = {
	{ 0x400000, 0x401000, 0x1000, 0, 5 },
	{ 0x401000, 0x402000, 0, NONE, 5 },
};
static const uint8_t stack[] = "twenty bytes of stack";

static struct pm_corpus_module some_module(void)
{
	return (struct pm_corpus_module){ .machine = PM_CORPUS_X86_64,
					  .flags = PM_CORPUS_EXEC,
					  .path = "/bin/a b",
					  .build_id = { 1, 2, 3 },
					  .build_id_len = 3,
					  .entry = 0x1234,
					  .loads = loads,
					  .loads_len = PM_ARRAY_LEN(loads),
					  .eh_frame_hdr = { 0x10, "hdr", 3 },
					  .eh_frame = { 0x20, "eh_frame", 8 },
					  .debug_frame = { 0, "debug_frame", 11 } };
}

static struct pm_corpus_sample some_sample(void)
{
	return (struct pm_corpus_sample){ .index = 77,
					  .time = 1234567890123,
					  .ip = 0xffffffff81000000,
					  .pid = 11,
					  .tid = 12,
					  .machine = PM_CORPUS_X86_64,
					  .known = 1u << 16 | 1u << 7,
					  .regs = { [7] = 0x7000, [16] = 0x400010 },
					  .stack_start = 0x7000,
					  .stack = stack,
					  .stack_len = sizeof(stack) };
}

struct fixture {
	char path[64];
	struct pm_corpus_writer *writer;
};

static void begin(struct fixture *fixture, const char *end)
{
	struct pm_corpus_header header = { .stack_bytes = 4096, .created_s = 99 };
	struct pm_error err = { 0 };
	const char *parent = getenv("TMPDIR");

	snprintf(fixture->path, sizeof(fixture->path), "%s/corpus-XXXXXX%s",
		 parent && strlen(parent) < 32 ? parent : "/tmp", end);
	assert_int_not_equal(close(mkstemps(fixture->path, (int)strlen(end))), -1);
	if (pm_corpus_writer_open(&fixture->writer, fixture->path, &header, &err) < 0)
		fail_msg("%s", err.text);
}

static void write_all(struct fixture *fixture)
{
	struct pm_corpus_module module = some_module();
	struct pm_corpus_space space = { 11, maps, PM_ARRAY_LEN(maps) };
	struct pm_corpus_code code = { 0, { 0x1010, "\xe8\1\2\3\4", 5 } };
	struct pm_corpus_sample sample = some_sample();
	uint32_t id = NONE;

	assert_int_equal(pm_corpus_write_module(fixture->writer, &module, &id), 0);
	assert_int_equal(id, 0);
	assert_int_equal(pm_corpus_write_space(fixture->writer, &space, &id), 0);
	assert_int_equal(id, 0);
	assert_int_equal(pm_corpus_write_code(fixture->writer, &code), 0);
	assert_int_equal(pm_corpus_write_sample(fixture->writer, &sample), 0);
	sample.index = 78;
	assert_int_equal(pm_corpus_write_sample(fixture->writer, &sample), 0);
}

static void assert_part(const struct pm_corpus_part *a, const struct pm_corpus_part *b)
{
	assert_int_equal(a->svma, b->svma);
	assert_int_equal(a->len, b->len);
	assert_memory_equal(a->data, b->data, a->len);
}

static struct pm_corpus_record next(struct pm_corpus *corpus, enum pm_corpus_type type)
{
	struct pm_corpus_record record;
	struct pm_error err = { 0 };

	if (pm_corpus_next(corpus, &record, &err) != 1)
		fail_msg("no record: %s", err.text);
	assert_int_equal(record.type, type);
	return record;
}

static void assert_end(struct pm_corpus *corpus, bool cut)
{
	struct pm_corpus_record record;

	assert_int_equal(pm_corpus_next(corpus, &record, NULL), 0);
	assert_int_equal(pm_corpus_next(corpus, &record, NULL), 0);
	assert_int_equal(pm_corpus_is_cut(corpus), cut);
}

static void assert_module(const struct pm_corpus_module *module)
{
	struct pm_corpus_module want = some_module();

	assert_int_equal(module->machine, want.machine);
	assert_int_equal(module->flags, want.flags);
	assert_string_equal(module->path, want.path);
	assert_int_equal(module->build_id_len, want.build_id_len);
	assert_memory_equal(module->build_id, want.build_id, sizeof(want.build_id));
	assert_int_equal(module->entry, want.entry);
	assert_int_equal(module->loads_len, want.loads_len);
	assert_memory_equal(module->loads, loads, sizeof(loads));
	assert_part(&module->eh_frame_hdr, &want.eh_frame_hdr);
	assert_part(&module->eh_frame, &want.eh_frame);
	assert_part(&module->debug_frame, &want.debug_frame);
}

static void assert_sample(const struct pm_corpus_sample *sample, uint64_t index)
{
	struct pm_corpus_sample want = some_sample();

	assert_int_equal(sample->index, index);
	assert_int_equal(sample->time, want.time);
	assert_int_equal(sample->ip, want.ip);
	assert_int_equal(sample->space, 0);
	assert_int_equal(sample->pid, want.pid);
	assert_int_equal(sample->tid, want.tid);
	assert_int_equal(sample->known, want.known);
	assert_memory_equal(sample->regs, want.regs, sizeof(want.regs));
	assert_int_equal(sample->stack_start, want.stack_start);
	assert_int_equal(sample->stack_len, want.stack_len);
	assert_memory_equal(sample->stack, stack, sizeof(stack));
}

static void assert_written(struct pm_corpus *corpus)
{
	struct pm_corpus_record record;

	assert_int_equal(pm_corpus_header(corpus)->stack_bytes, 4096);
	assert_int_equal(pm_corpus_header(corpus)->created_s, 99);
	record = next(corpus, PM_CORPUS_MODULE);
	assert_module(&record.module);
	record = next(corpus, PM_CORPUS_SPACE);
	assert_int_equal(record.space.pid, 11);
	assert_int_equal(record.space.maps_len, PM_ARRAY_LEN(maps));
	assert_memory_equal(record.space.maps, maps, sizeof(maps));
	record = next(corpus, PM_CORPUS_CODE);
	assert_int_equal(record.code.module, 0);
	assert_int_equal(record.code.part.svma, 0x1010);
	assert_int_equal(record.code.part.len, 5);
	assert_memory_equal(record.code.part.data, "\xe8\1\2\3\4", 5);
	record = next(corpus, PM_CORPUS_SAMPLE);
	assert_sample(&record.sample, 77);
	record = next(corpus, PM_CORPUS_SAMPLE);
	assert_sample(&record.sample, 78);
}

static void round_trip(const char *end)
{
	struct fixture fixture;
	struct pm_corpus *corpus;
	struct stat st;

	begin(&fixture, end);
	write_all(&fixture);
	assert_int_equal(pm_corpus_writer_close(fixture.writer, true, NULL), 0);
	assert_int_equal(stat(fixture.path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(pm_corpus_open(&corpus, fixture.path, NULL), 0);
	assert_written(corpus);
	assert_end(corpus, false);
	pm_corpus_free(corpus);
	unlink(fixture.path);
}

static void test_round_trip(void **state)
{
	round_trip("");
	round_trip(".zst");
}

/* A file as bytes, complete or not; to be freed. */
static uint8_t *written(bool complete, size_t *len)
{
	struct fixture fixture;
	struct stat st;
	uint8_t *bytes;
	int fd;

	begin(&fixture, "");
	write_all(&fixture);
	assert_int_equal(pm_corpus_writer_close(fixture.writer, complete, NULL), 0);
	fd = open(fixture.path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	*len = (size_t)st.st_size;
	bytes = malloc(*len);
	assert_non_null(bytes);
	assert_int_equal(read(fd, bytes, *len), (ssize_t)*len);
	close(fd);
	unlink(fixture.path);
	return bytes;
}

/* Reads to the end. */
static int drain(const uint8_t *bytes, size_t len, size_t *records, bool *cut)
{
	struct pm_corpus *corpus;
	struct pm_corpus_record record;
	struct pm_error err = { 0 };
	int result = pm_corpus_open_memory(&corpus, bytes, len, &err);

	*records = 0;
	if (result == 0) {
		while ((result = pm_corpus_next(corpus, &record, &err)) == 1)
			++*records;
		*cut = pm_corpus_is_cut(corpus);
		pm_corpus_free(corpus);
	}
	if (result < 0) {
		assert_int_equal(err.code, result);
		assert_true(err.text[0]);
	}
	return result;
}

static void test_cut(void **state)
{
	size_t len, records, last = 0;
	uint8_t *bytes = written(false, &len);
	bool cut;

	/* Its writer was killed: all is there but the end. */
	assert_int_equal(drain(bytes, len, &records, &cut), 0);
	assert_true(cut);
	assert_int_equal(records, 5);
	for (size_t at = 64; at < len; at++) {
		assert_int_equal(drain(bytes, at, &records, &cut), 0);
		assert_true(cut);
		assert_in_range(records, last, 5);
		last = records;
	}
	assert_int_equal(last, 4);
	for (size_t at = 1; at < 64; at++)
		assert_int_equal(drain(bytes, at, &records, &cut), -EBADMSG);
	free(bytes);
}

/* Each byte of a good file changed: an error, or records that keep the promises; the rest is
 * the sanitizers' to see. */
static void test_damaged(void **state)
{
	size_t len, records, refused = 0;
	uint8_t *bytes = written(true, &len);
	bool cut;

	for (size_t at = 0; at < len; at++) {
		static const uint8_t flips[] = { 0xff, 0x01, 0x80 };

		for (size_t i = 0; i < sizeof(flips); i++) {
			bytes[at] ^= flips[i];
			refused += drain(bytes, len, &records, &cut) < 0;
			bytes[at] ^= flips[i];
		}
	}
	/* Most of it is values that may be anything; lengths and ids are not. */
	assert_in_range(refused, 100, 3 * len);
	assert_int_equal(drain(bytes, len, &records, &cut), 0);
	assert_int_equal(records, 5);
	assert_false(cut);
	free(bytes);
}

static void test_versions(void **state)
{
	size_t len, records;
	uint8_t *bytes = written(true, &len);
	bool cut;

	bytes[7] = '3';
	assert_int_equal(drain(bytes, len, &records, &cut), -ENOTSUP);
	bytes[7] = '1';
	assert_int_equal(drain(bytes, len, &records, &cut), -ENOTSUP);
	bytes[6] = 'X';
	assert_int_equal(drain(bytes, len, &records, &cut), -EBADMSG);
	assert_int_equal(drain((const uint8_t *)"", 0, &records, &cut), -ENODATA);
	free(bytes);
}

/* A record of a type that we do not know, in front of the others. */
static void test_unknown_type(void **state)
{
	static const uint64_t record[] = { 1000, 24, 0xdeadbeef };
	size_t len, records;
	uint8_t *bytes = written(true, &len);
	uint8_t *more = malloc(len + sizeof(record));
	bool cut;

	assert_non_null(more);
	memcpy(more, bytes, 64);
	memcpy(more + 64, record, sizeof(record));
	memcpy(more + 64 + sizeof(record), bytes + 64, len - 64);
	assert_int_equal(drain(more, len + sizeof(record), &records, &cut), 0);
	assert_int_equal(records, 5);
	assert_false(cut);
	free(bytes);
	free(more);
}

static void test_refused_by_writer(void **state)
{
	struct fixture fixture;
	struct pm_corpus_sample sample = some_sample();
	struct pm_corpus_space space = { 11, maps, PM_ARRAY_LEN(maps) };
	struct pm_corpus_map falling[] = { maps[1], maps[0] };
	struct pm_corpus_module module = some_module();
	struct pm_corpus_code code = { 0, { 0x1010, "\xe8", 1 } };
	struct pm_corpus *corpus;

	begin(&fixture, "");
	assert_int_equal(pm_corpus_write_sample(fixture.writer, &sample), -EINVAL);
	assert_int_equal(pm_corpus_write_space(fixture.writer, &space, NULL), -EINVAL);
	assert_int_equal(pm_corpus_write_code(fixture.writer, &code), -EINVAL);
	module.build_id_len = PM_CORPUS_BUILD_ID_MAX + 1;
	assert_int_equal(pm_corpus_write_module(fixture.writer, &module, NULL), -EINVAL);
	write_all(&fixture);
	falling[0].module = falling[1].module = NONE;
	space.maps = falling;
	assert_int_equal(pm_corpus_write_space(fixture.writer, &space, NULL), -EINVAL);
	sample.known = (uint64_t)1 << PM_CORPUS_REGS_MAX;
	assert_int_equal(pm_corpus_write_sample(fixture.writer, &sample), -EINVAL);
	sample = some_sample();
	sample.space = 1;
	assert_int_equal(pm_corpus_write_sample(fixture.writer, &sample), -EINVAL);
	assert_int_equal(pm_corpus_writer_close(fixture.writer, true, NULL), 0);
	/* None of it left a trace. */
	assert_int_equal(pm_corpus_open(&corpus, fixture.path, NULL), 0);
	assert_written(corpus);
	assert_end(corpus, false);
	pm_corpus_free(corpus);
	unlink(fixture.path);
}

static void test_full_disk(void **state)
{
	struct pm_corpus_header header = { 0 };
	struct pm_corpus_writer *writer;
	struct pm_corpus_module module = some_module();
	struct pm_error err = { 0 };
	PM_AUTO_FREE uint8_t *big = calloc(1, 3 << 20);

	if (access("/dev/full", W_OK) != 0) {
		print_message("# SKIP there is no /dev/full\n");
		skip();
	}
	assert_non_null(big);
	assert_int_equal(pm_corpus_writer_open(&writer, "/dev/full", &header, NULL), 0);
	module.eh_frame = (struct pm_corpus_part){ 0, big, 3 << 20 };
	assert_int_equal(pm_corpus_write_module(writer, &module, NULL), -ENOSPC);
	assert_int_equal(pm_corpus_write_module(writer, &module, NULL), -ENOSPC);
	assert_int_equal(pm_corpus_writer_close(writer, true, &err), -ENOSPC);
	assert_string_equal(err.source, "/dev/full");
	assert_int_equal(pm_corpus_writer_close(NULL, true, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_unknown_type),
		cmocka_unit_test(test_refused_by_writer),
		cmocka_unit_test(test_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
