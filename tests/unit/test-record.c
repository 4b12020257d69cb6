/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>

#include "src/perf/perf-internal.h"
#include "tests/unit/records.h"

enum {
	ID_CYCLES = 71,
	ID_FAULTS = 72,
};

static struct pm_event_ids ids;
static struct record_builder build;

static struct pm_record_layout layout_of(enum pm_call_graph graph)
{
	struct pm_record_layout layout =
		pm_attr_layout(&(struct pm_attr_shape){ .call_graph = graph });

	layout.ids = &ids;
	return layout;
}

static int setup(void **state)
{
	memset(&build, 0, sizeof(build));
	ids = (struct pm_event_ids){ 0 };
	return pm_event_ids_add(&ids, ID_CYCLES, 0) |
	       pm_event_ids_add(&ids, ID_FAULTS, 1);
}

static int teardown(void **state)
{
	pm_event_ids_release(&ids);
	return 0;
}

static struct pm_record decode(const struct perf_event_header *header,
			       const struct pm_record_layout *layout)
{
	struct pm_record record;
	struct pm_error err;
	uint64_t time;

	memset(&record, 0x55, sizeof(record));
	if (pm_record_decode(header, layout, &record, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(pm_record_time(header, layout, &time));
	assert_int_equal(time, record.time);
	return record;
}

/* Every shorter version of the record must be refused, and leave the output alone. The
 * copy has exactly the bytes that it claims, so that a sanitizer sees each step over. */
static void refuse_truncated(const struct perf_event_header *header,
			     const struct pm_record_layout *layout, size_t from)
{
	struct pm_record record, untouched;

	memset(&record, 0x55, sizeof(record));
	untouched = record;
	for (size_t size = 0; size < header->size; size += size < 16 ? 1 : 8) {
		uint8_t *copy = malloc(size < 8 ? 8 : size);
		struct pm_error err = { 0 };
		uint16_t short_size = (uint16_t)size;
		uint64_t time;
		int r;

		assert_non_null(copy);
		memcpy(copy, header, size < 8 ? 8 : size);
		memcpy(copy + offsetof(struct perf_event_header, size), &short_size, 2);
		r = pm_record_decode((void *)copy, layout, &record, &err);
		pm_record_time((void *)copy, layout, &time);
		if (size < from)
			assert_int_equal(r, -EBADMSG);
		if (r < 0) {
			assert_int_equal(err.code, r);
			assert_memory_equal(&record, &untouched, sizeof(record));
		} else {
			record = untouched;
		}
		free(copy);
	}
}

/* IDENTIFIER, IP, TID, TIME, CPU, PERIOD */
static void put_sample_start(uint64_t id)
{
	begin_record(&build, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	put_u64(&build, id);
	put_u64(&build, 0x401234);
	put_u32s(&build, 100, 101);
	put_u64(&build, 123456789);
	put_u32s(&build, 3, 0);
	put_u64(&build, 1001);
}

static void check_sample_start(const struct pm_record *record, uint32_t event)
{
	assert_int_equal(record->type, PERF_RECORD_SAMPLE);
	assert_int_equal(record->misc, PERF_RECORD_MISC_USER);
	assert_int_equal(record->sample.ip, 0x401234);
	assert_int_equal(record->pid, 100);
	assert_int_equal(record->tid, 101);
	assert_int_equal(record->time, 123456789);
	assert_int_equal(record->cpu, 3);
	assert_int_equal(record->sample.period, 1001);
	assert_int_equal(record->event, event);
}

static void test_sample_plain(void **state)
{
	struct pm_record_layout layout = layout_of(PM_CALL_GRAPH_NONE);
	struct perf_event_header *header;
	struct pm_record record;

	put_sample_start(ID_FAULTS);
	header = end_record(&build);
	record = decode(header, &layout);
	check_sample_start(&record, 1);
	assert_null(record.sample.callchain);
	assert_int_equal(record.sample.callchain_len, 0);
	assert_int_equal(record.sample.regs.abi, PM_REGS_NONE);
	assert_int_equal(record.sample.regs.known, 0);
	assert_null(record.sample.stack);
	assert_int_equal(record.sample.stack_asked, 0);
	refuse_truncated(header, &layout, header->size);
}

static void test_sample_of_an_unknown_event(void **state)
{
	struct pm_record_layout layout = layout_of(PM_CALL_GRAPH_NONE);
	struct pm_record record;
	struct pm_error err = { 0 };

	put_sample_start(9999);
	assert_int_equal(pm_record_decode(end_record(&build), &layout, &record, &err),
			 -EBADMSG);
	layout.ids = NULL;
	assert_int_equal(pm_record_decode(end_record(&build), &layout, &record, &err), 0);
	assert_int_equal(record.event, 0);
}

static void test_sample_callchain(void **state)
{
	struct pm_record_layout layout = layout_of(PM_CALL_GRAPH_FP);
	struct perf_event_header *header;
	struct pm_record record;
	uint64_t huge = UINT64_MAX / 8 + 2;

	put_sample_start(ID_CYCLES);
	put_u64(&build, 3);
	put_u64(&build, PERF_CONTEXT_USER);
	put_u64(&build, 0x401234);
	put_u64(&build, 0x402000);
	header = end_record(&build);
	record = decode(header, &layout);
	check_sample_start(&record, 0);
	assert_int_equal(record.sample.callchain_len, 3);
	assert_ptr_equal(record.sample.callchain, (uint8_t *)header + 64);
	assert_int_equal(record.sample.callchain[2], 0x402000);
	refuse_truncated(header, &layout, header->size);
	/* A count whose bytes would overflow. */
	memcpy((uint8_t *)header + 56, &huge, sizeof(huge));
	assert_int_equal(pm_record_decode(header, &layout, &record, NULL), -EBADMSG);
}

static void put_dwarf_sample(uint64_t abi, size_t stack_bytes, uint64_t used)
{
	put_sample_start(ID_CYCLES);
	put_u64(&build, 0); /* no kernel frames */
	put_u64(&build, abi);
	for (uint64_t mask = pm_regs_native()->mask; abi && mask; mask &= mask - 1)
		put_u64(&build, 0xabcd000000000000 + (uint64_t)__builtin_ctzll(mask));
	put_u64(&build, stack_bytes);
	if (stack_bytes == 0)
		return;
	for (size_t i = 0; i < stack_bytes; i++)
		build.bytes[build.len++] = (uint8_t)i;
	put_u64(&build, used);
}

static void test_sample_dwarf(void **state)
{
	struct pm_record_layout layout = layout_of(PM_CALL_GRAPH_DWARF);
	struct perf_event_header *header;
	struct pm_record record;

	put_dwarf_sample(PERF_SAMPLE_REGS_ABI_64, 512, 200);
	header = end_record(&build);
	record = decode(header, &layout);
	check_sample_start(&record, 0);
	assert_null(record.sample.callchain);
	assert_int_equal(record.sample.regs.abi, PM_REGS_64);
	assert_int_equal(record.sample.stack_asked, 512);
	assert_int_equal(record.sample.stack_len, 200);
	assert_int_equal(record.sample.stack[199], 199);
	assert_ptr_equal(record.sample.stack, (uint8_t *)header + header->size - 8 - 512);
	refuse_truncated(header, &layout, header->size);
}

static void test_sample_dwarf_kernel_thread(void **state)
{
	struct pm_record_layout layout = layout_of(PM_CALL_GRAPH_DWARF);
	struct pm_record record;

	put_dwarf_sample(PERF_SAMPLE_REGS_ABI_NONE, 0, 0);
	record = decode(end_record(&build), &layout);
	assert_int_equal(record.sample.regs.abi, PM_REGS_NONE);
	assert_int_equal(record.sample.regs.known, 0);
	assert_null(record.sample.stack);
	assert_int_equal(record.sample.stack_len, 0);
}

static void test_sample_dwarf_lies(void **state)
{
	struct pm_record_layout layout = layout_of(PM_CALL_GRAPH_DWARF);
	struct pm_record record;

	put_dwarf_sample(PERF_SAMPLE_REGS_ABI_64, 64, 65); /* used more than there is */
	assert_int_equal(pm_record_decode(end_record(&build), &layout, &record, NULL),
			 -EBADMSG);
	build.len = 0;
	put_dwarf_sample(3, 64, 64); /* an ABI that does not exist */
	assert_int_equal(pm_record_decode(end_record(&build), &layout, &record, NULL),
			 -EBADMSG);
	build.len = 0;
	put_sample_start(ID_CYCLES);
	put_u64(&build, 0);
	put_u64(&build, PERF_SAMPLE_REGS_ABI_NONE);
	put_u64(&build, UINT64_MAX - 7); /* a size that wraps around */
	put_u64(&build, 0);
	assert_int_equal(pm_record_decode(end_record(&build), &layout, &record, NULL),
			 -EBADMSG);
}

static void test_sample_fields_around(void **state)
{
	struct pm_record_layout layout = {
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
			       PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_RAW |
			       PERF_SAMPLE_STACK_USER,
		.ids = &ids,
	};
	struct perf_event_header *header;
	struct pm_record record;

	begin_record(&build, PERF_RECORD_SAMPLE, 0);
	put_u64(&build, 0x111);
	put_u64(&build, 222);
	put_u64(&build, 0xadd7);
	put_u64(&build, ID_FAULTS);
	put_u64(&build, 0x57);
	put_u32s(&build, 12, 0x61616161); /* raw: 12 bytes */
	put_u64(&build, 0x6161616161616161);
	put_u64(&build, 8);
	put_u64(&build, 0x1122334455667788);
	put_u64(&build, 8);
	header = end_record(&build);
	record = decode(header, &layout);
	assert_int_equal(record.sample.ip, 0x111);
	assert_int_equal(record.event, 1);
	assert_int_equal(record.sample.stack_len, 8);
	assert_int_equal(record.sample.stack[0], 0x88);
	assert_int_equal(record.sample.address, 0xadd7);
	assert_int_equal(record.sample.raw_len, 12);
	assert_memory_equal(record.sample.raw, "aaaaaaaaaaaa", 12);
	assert_null(record.sample.branches);
	assert_null(record.sample.counts);
	refuse_truncated(header, &layout, header->size);
}

static void put_branches(uint64_t nr, bool hw_index, bool counters)
{
	put_u64(&build, nr);
	if (hw_index)
		put_u64(&build, 5);
	for (uint64_t i = 0; i < nr; i++) {
		put_u64(&build, 0x1000 + i);
		put_u64(&build, 0x2000 + i);
		put_u64(&build, 1); /* mispredicted */
	}
	for (uint64_t i = 0; counters && i < nr; i++)
		put_u64(&build, 77);
}

static void test_branches(void **state)
{
	for (int shape = 0; shape < 4; shape++) {
		bool hw_index = shape & 1, counters = shape & 2;
		struct pm_record_layout layout = layout_of(PM_CALL_GRAPH_NONE);
		struct perf_event_header *header;
		struct pm_record record;

		layout.sample_type |= PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_STACK_USER;
		if (hw_index)
			layout.branch_sample_type |= PERF_SAMPLE_BRANCH_HW_INDEX;
		if (counters)
			layout.branch_sample_type |= 1u << 19;
		build.len = 0;
		put_sample_start(ID_CYCLES);
		put_branches(3, hw_index, counters);
		put_u64(&build, 8);
		put_u64(&build, 0x1122334455667788);
		put_u64(&build, 8);
		header = end_record(&build);
		record = decode(header, &layout);
		assert_int_equal(record.sample.branches_len, 3);
		assert_int_equal(record.sample.branches[2].from, 0x1002);
		assert_int_equal(record.sample.branches[2].to, 0x2002);
		assert_int_equal(record.sample.branches[0].mispred, 1);
		assert_int_equal(record.sample.stack[0], 0x88);
		refuse_truncated(header, &layout, header->size);
		build.len = 0;
		put_sample_start(ID_CYCLES);
		put_u64(&build, UINT64_MAX / 24 + 2); /* times 24 it is small */
		put_u64(&build, 0);
		put_u64(&build, 0);
		header = end_record(&build);
		assert_int_equal(pm_record_decode(header, &layout, &record, NULL),
				 -EBADMSG);
	}
}

/* All 32 forms of struct read_format; the callchain behind it shows that none is misread. */
static void test_counts(void **state)
{
	for (uint64_t format = 0; format < 32; format++) {
		struct pm_record_layout layout = layout_of(PM_CALL_GRAPH_FP);
		bool group = format & PERF_FORMAT_GROUP;
		struct perf_event_header *header;
		struct pm_record record;
		uint64_t count = 0;
		int r;

		layout.sample_type |= PERF_SAMPLE_READ;
		layout.read_format = format;
		build.len = 0;
		put_sample_start(ID_CYCLES);
		if (group)
			put_u64(&build, 2);
		else
			put_u64(&build, 1000);
		if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
			put_u64(&build, 11);
		if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
			put_u64(&build, 12);
		for (uint64_t i = 0; i < (group ? 2 : 1); i++) {
			if (group)
				put_u64(&build, 1000 + i);
			if (format & PERF_FORMAT_ID)
				put_u64(&build, ID_CYCLES + i);
			if (format & PERF_FORMAT_LOST)
				put_u64(&build, 3);
		}
		put_u64(&build, 1);
		put_u64(&build, 0x401234);
		header = end_record(&build);
		record = decode(header, &layout);
		assert_int_equal(record.sample.callchain_len, 1);
		assert_int_equal(record.sample.callchain[0], 0x401234);
		r = pm_sample_count(&record.sample, &layout, 1, &count);
		if (group && (format & PERF_FORMAT_ID)) {
			assert_int_equal(r, 0);
			assert_int_equal(count, 1001);
			assert_int_equal(
				pm_sample_count(&record.sample, &layout, 2, &count),
				-ENOENT);
		} else {
			assert_int_equal(r, -ENOTSUP);
		}
		refuse_truncated(header, &layout, header->size);
	}
}

static void test_switches(void **state)
{
	struct pm_record_layout layout = layout_of(PM_CALL_GRAPH_NONE);
	struct perf_event_header *header;
	struct pm_record record;

	begin_record(&build, PERF_RECORD_SWITCH_CPU_WIDE,
		     PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
	put_u32s(&build, 7, 8);
	header = end_record_with_id(&build, 100, 101, 5, 1, ID_CYCLES);
	record = decode(header, &layout);
	assert_int_equal(record.tid, 101);
	assert_true(record.switched.out);
	assert_true(record.switched.preempted);
	begin_record(&build, PERF_RECORD_SWITCH, 0);
	header = end_record_with_id(&build, 100, 101, 6, 1, ID_CYCLES);
	record = decode(header, &layout);
	assert_int_equal(record.tid, 101);
	assert_false(record.switched.out);
}

static void test_mmap2(void **state)
{
	struct pm_record_layout layout = layout_of(PM_CALL_GRAPH_DWARF);
	struct perf_event_header *header;
	struct pm_record record;

	begin_record(&build, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
	put_u32s(&build, 100, 101);
	put_u64(&build, 0x7f0000001000);
	put_u64(&build, 0x2000);
	put_u64(&build, 0x3000);
	put_u32s(&build, 8, 1);
	put_u64(&build, 4711);
	put_u64(&build, 99);
	put_u32s(&build, PROT_READ | PROT_EXEC, MAP_PRIVATE);
	put_text(&build, "/usr/lib/libx.so (deleted)");
	header = end_record_with_id(&build, 7, 8, 555, 2, ID_FAULTS);
	record = decode(header, &layout);
	assert_int_equal(record.pid, 100); /* whom it is about, not who was running */
	assert_int_equal(record.tid, 101);
	assert_int_equal(record.time, 555);
	assert_int_equal(record.cpu, 2);
	assert_int_equal(record.event, 1);
	assert_int_equal(record.mmap.start, 0x7f0000001000);
	assert_int_equal(record.mmap.len, 0x2000);
	assert_int_equal(record.mmap.pgoff, 0x3000);
	assert_int_equal(record.mmap.major, 8);
	assert_int_equal(record.mmap.minor, 1);
	assert_int_equal(record.mmap.inode, 4711);
	assert_int_equal(record.mmap.inode_generation, 99);
	assert_true(record.mmap.identified);
	assert_int_equal(record.mmap.prot, PROT_READ | PROT_EXEC);
	assert_string_equal(record.mmap.path, "/usr/lib/libx.so (deleted)");
	/* 8 header, 64 fixed, one byte of name, 32 trailer */
	refuse_truncated(header, &layout, 8 + 64 + 1 + 32);
}

static void put_mmap2_of_other(const char *path)
{
	begin_record(&build, PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID);
	put_u32s(&build, 100, 100);
	put_u64(&build, 0x400000);
	put_u64(&build, 0x1000);
	put_u64(&build, 0);
	put_u32s(&build, 254, 1);
	put_u64(&build, 4711);
	put_u64(&build, 7);
	put_u32s(&build, PROT_EXEC, 0);
	put_text(&build, path);
}

/* The bit comes from an event of another program that asked for build-ids; ours did
 * not. */
static void test_mmap2_with_bit_of_others(void **state)
{
	struct pm_record_layout layout = layout_of(PM_CALL_GRAPH_NONE);
	struct pm_record record;

	put_mmap2_of_other("");
	record = decode(end_record_with_id(&build, 100, 100, 1, 0, ID_CYCLES), &layout);
	assert_int_equal(record.mmap.major, 254);
	assert_int_equal(record.mmap.minor, 1);
	assert_int_equal(record.mmap.inode, 4711);
	assert_int_equal(record.mmap.inode_generation, 7);
	assert_int_equal(record.mmap.prot, PROT_EXEC);
	assert_string_equal(record.mmap.path, "");
}

/* A name without its NUL must not run on into the trailer. */
static void test_text_without_end(void **state)
{
	struct pm_record_layout layout = layout_of(PM_CALL_GRAPH_NONE);
	struct pm_record record;

	put_mmap2_of_other("");
	memcpy(build.bytes + build.len - 8, "/bin/sh!", 8);
	assert_int_equal(
		pm_record_decode(end_record_with_id(&build, 1, 1, 1, 0, ID_CYCLES),
				 &layout, &record, NULL),
		-EBADMSG);
	build.len = 0;
	begin_record(&build, PERF_RECORD_COMM, 0);
	put_u32s(&build, 1, 1);
	put_bytes(&build, "sixteen-letters!", 16);
	assert_int_equal(
		pm_record_decode(end_record_with_id(&build, 1, 1, 1, 0, ID_CYCLES),
				 &layout, &record, NULL),
		-EBADMSG);
}

static void test_mmap(void **state)
{
	struct pm_record_layout layout = layout_of(PM_CALL_GRAPH_NONE);
	struct perf_event_header *header;
	struct pm_record record;

	begin_record(&build, PERF_RECORD_MMAP, 0);
	put_u32s(&build, 100, 101);
	put_u64(&build, 0x1000);
	put_u64(&build, 0x2000);
	put_u64(&build, 0x3000);
	put_text(&build, "[vdso]");
	header = end_record_with_id(&build, 7, 8, 555, 2, ID_CYCLES);
	record = decode(header, &layout);
	assert_int_equal(record.mmap.pgoff, 0x3000);
	assert_true(record.mmap.prot & PROT_EXEC);
	assert_string_equal(record.mmap.path, "[vdso]");
	refuse_truncated(header, &layout, 8 + 32 + 1 + 32);
	header->misc = PERF_RECORD_MISC_MMAP_DATA;
	record = decode(header, &layout);
	assert_false(record.mmap.prot & PROT_EXEC);
}

static void test_comm(void **state)
{
	struct pm_record_layout layout = layout_of(PM_CALL_GRAPH_NONE);
	struct perf_event_header *header;
	struct pm_record record;

	begin_record(&build, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	put_u32s(&build, 100, 101);
	put_text(&build, "cc1plus");
	header = end_record_with_id(&build, 100, 101, 555, 2, ID_CYCLES);
	record = decode(header, &layout);
	assert_string_equal(record.comm.name, "cc1plus");
	assert_true(record.comm.exec);
	refuse_truncated(header, &layout, 8 + 8 + 1 + 32);
	header->misc = 0;
	record = decode(header, &layout);
	assert_false(record.comm.exec);
}

static void test_fork_and_exit(void **state)
{
	struct pm_record_layout layout = layout_of(PM_CALL_GRAPH_NONE);
	struct perf_event_header *header;
	struct pm_record record;

	begin_record(&build, PERF_RECORD_FORK, 0);
	put_u32s(&build, 200, 100);
	put_u32s(&build, 201, 101);
	put_u64(&build, 554);
	header = end_record_with_id(&build, 100, 101, 555, 2, ID_CYCLES);
	record = decode(header, &layout);
	assert_int_equal(record.pid, 200);
	assert_int_equal(record.tid, 201);
	assert_int_equal(record.fork.parent_pid, 100);
	assert_int_equal(record.fork.parent_tid, 101);
	assert_int_equal(record.time, 555);
	refuse_truncated(header, &layout, header->size);
	header->type = PERF_RECORD_EXIT;
	record = decode(header, &layout);
	assert_int_equal(record.pid, 200);
}

static void test_lost(void **state)
{
	struct pm_record_layout layout = layout_of(PM_CALL_GRAPH_NONE);
	struct perf_event_header *header;
	struct pm_record record;

	begin_record(&build, PERF_RECORD_LOST, 0);
	put_u64(&build, ID_FAULTS);
	put_u64(&build, 4711);
	header = end_record_with_id(&build, 100, 101, 555, 2, ID_FAULTS);
	record = decode(header, &layout);
	assert_int_equal(record.lost, 4711);
	assert_int_equal(record.event, 1);
	refuse_truncated(header, &layout, header->size);
	build.len = 0;
	begin_record(&build, PERF_RECORD_LOST_SAMPLES, 0);
	put_u64(&build, 12);
	header = end_record_with_id(&build, 100, 101, 555, 2, ID_CYCLES);
	record = decode(header, &layout);
	assert_int_equal(record.lost, 12);
	refuse_truncated(header, &layout, header->size);
}

static void test_other_records(void **state)
{
	static const uint32_t types[] = { PERF_RECORD_THROTTLE, PERF_RECORD_UNTHROTTLE,
					  PERF_RECORD_ITRACE_START, 77, UINT32_MAX };
	struct pm_record_layout layout = layout_of(PM_CALL_GRAPH_DWARF);

	for (size_t i = 0; i < PM_ARRAY_LEN(types); i++) {
		struct perf_event_header *header;
		struct pm_record record;

		build.len = 0;
		begin_record(&build, types[i], 5);
		put_u64(&build, 1);
		put_u64(&build, ID_FAULTS);
		put_u64(&build, ID_FAULTS);
		header = end_record_with_id(&build, 100, 101, 555, 2, ID_FAULTS);
		record = decode(header, &layout);
		assert_int_equal(record.type, types[i]);
		assert_int_equal(record.misc, 5);
		assert_int_equal(record.pid, 100);
		assert_int_equal(record.tid, 101);
		assert_int_equal(record.time, 555);
		assert_int_equal(record.cpu, 2);
		assert_int_equal(record.event, 1);
		refuse_truncated(header, &layout, 8 + 32);
	}
}

/* ---- registers -------------------------------------------------------------------------- */

static void test_regs_x86_64(void **state)
{
	/* ax bx cx dx si di bp sp ip r8-r15, named by their DWARF numbers */
	static const uint8_t dwarf[] = { 0, 3, 2,  1,  4,  5,  6,  7, 16,
					 8, 9, 10, 11, 12, 13, 14, 15 };
	uint64_t values[17];
	struct pm_user_regs regs;

	for (size_t i = 0; i < 17; i++)
		values[i] = 0x7fff00000000 + dwarf[i];
	pm_regs_convert(&pm_regs_x86, PM_REGS_64, pm_regs_x86.mask, values, &regs);
	assert_int_equal(regs.abi, PM_REGS_64);
	assert_int_equal(regs.known, 0x1ffff);
	for (size_t i = 0; i < 17; i++)
		assert_int_equal(regs.value[i], 0x7fff00000000 + i);
}

static void test_regs_x86_flags_are_left_out(void **state)
{
	/* ax, ip, flags, gs, r8: flags and gs have a place in the record but no number. */
	uint64_t mask = 1u << 0 | 1u << 8 | 1u << 9 | 1u << 15 | 1u << 16;
	uint64_t values[] = { 10, 11, 12, 13, 14 };
	struct pm_user_regs regs;

	pm_regs_convert(&pm_regs_x86, PM_REGS_64, mask, values, &regs);
	assert_int_equal(regs.known, 1u << 0 | 1u << 16 | 1u << 8);
	assert_int_equal(regs.value[0], 10);
	assert_int_equal(regs.value[16], 11);
	assert_int_equal(regs.value[8], 14);
}

static void test_regs_x86_32(void **state)
{
	uint64_t values[17] = { 0xffffffff00000001, 2, 3, 4, 5, 6, 7, 8, 9, 99, 99 };
	/* psABI i386: eax ecx edx ebx esp ebp esi edi eip */
	static const uint64_t want[] = { 1, 3, 4, 2, 8, 7, 5, 6, 9 };
	struct pm_user_regs regs;

	pm_regs_convert(&pm_regs_x86, PM_REGS_32, pm_regs_x86.mask, values, &regs);
	assert_int_equal(regs.abi, PM_REGS_32);
	assert_int_equal(regs.known, 0x1ff);
	for (size_t i = 0; i < 9; i++)
		assert_int_equal(regs.value[i], want[i]);
}

static void test_regs_aarch64(void **state)
{
	uint64_t values[33];
	struct pm_user_regs regs;

	for (size_t i = 0; i < 33; i++)
		values[i] = 1000 + i;
	pm_regs_convert(&pm_regs_aarch64, PM_REGS_64, pm_regs_aarch64.mask, values,
			&regs);
	assert_int_equal(regs.known, 0x1ffffffff);
	for (size_t i = 0; i < 33; i++)
		assert_int_equal(regs.value[i], 1000 + i);
	pm_regs_convert(&pm_regs_aarch64, PM_REGS_32, pm_regs_aarch64.mask, values,
			&regs);
	assert_int_equal(regs.known, 0xffff);
	assert_int_equal(regs.value[13], 1013);
	assert_int_equal(regs.value[15], 1032);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_sample_plain),
		TEST(test_sample_of_an_unknown_event),
		TEST(test_sample_callchain),
		TEST(test_sample_dwarf),
		TEST(test_sample_dwarf_kernel_thread),
		TEST(test_sample_dwarf_lies),
		TEST(test_sample_fields_around),
		TEST(test_branches),
		TEST(test_counts),
		TEST(test_switches),
		TEST(test_mmap2),
		TEST(test_mmap2_with_bit_of_others),
		TEST(test_text_without_end),
		TEST(test_mmap),
		TEST(test_comm),
		TEST(test_fork_and_exit),
		TEST(test_lost),
		TEST(test_other_records),
		cmocka_unit_test(test_regs_x86_64),
		cmocka_unit_test(test_regs_x86_flags_are_left_out),
		cmocka_unit_test(test_regs_x86_32),
		cmocka_unit_test(test_regs_aarch64),
	};

	return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
