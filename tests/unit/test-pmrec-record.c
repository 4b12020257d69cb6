/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>

#include "src/pmrec/generation.h"
#include "src/pmrec/hold.h"
#include "src/pmrec/output.h"
#include "src/pmrec/record.h"
#include "pm/chain-jit.h"
#include "pm/chain-spaces.h"
#include "src/pmrec/summary.h"

static const struct pm_file_event event = { .name = "e",
					    .requested = "e",
					    .actual = "e",
					    .modifiers = "",
					    .unit = "events",
					    .rate = 1 };

static void begin_as(struct pm_rec_session *session, const char *path,
		     enum pm_call_graph call_graph, bool lbr, bool stitch)
{
	struct pm_file_header header = { .version = PM_FILE_VERSION,
					 .pmrec = "0",
					 .created = "2024-05-06T07:08:09Z",
					 .clock = "monotonic",
					 .events = &event,
					 .events_len = 1,
					 .options = { .call_graph = "none" } };
	struct pm_chain_source source = { .modules = &session->modules,
					  .call_graph = call_graph,
					  .lbr = lbr,
					  .stitch = stitch };

	session->procs = source.procs = pm_procs_new(pm_chain_space_free);
	assert_non_null(session->procs);
	pm_chain_modules_init(&session->modules);
	assert_int_equal(pm_file_writer_open(&session->writer, path, NULL), 0);
	assert_int_equal(pm_file_write_header(session->writer, &header), 0);
	source.writer = session->writer;
	session->chains = pm_chains_new(&source);
	session->counts.events_len = 1;
	session->counts.events = calloc(1, sizeof(*session->counts.events));
	session->hold = pm_rec_hold_new();
	assert_true(session->chains && session->counts.events && session->hold);
}

static void begin_with(struct pm_rec_session *session, const char *path,
		       enum pm_call_graph call_graph, bool lbr)
{
	begin_as(session, path, call_graph, lbr, false);
}

static void begin_stitching(struct pm_rec_session *session, const char *path)
{
	begin_as(session, path, PM_CALL_GRAPH_DWARF, false, true);
}

static void begin(struct pm_rec_session *session, const char *path,
		  enum pm_call_graph call_graph)
{
	begin_with(session, path, call_graph, false);
}

static void end(struct pm_rec_session *session)
{
	pm_rec_hold_free(session->hold);
	pm_chains_free(session->chains);
	pm_chain_threads_release(&session->threads);
	pm_chain_modules_release(&session->modules);
	pm_procs_free(session->procs);
	free(session->counts.events);
}

/* Numbers that the file cannot hold must not end a recording. */
static void test_numbers_too_large(void **state)
{
	static const struct pm_rec_options options = { .quiet = true };
	struct pm_rec_session session = { .options = &options };
	char path[] = "/tmp/test-pmrec-record.XXXXXX";
	struct pm_record sample = { .type = PERF_RECORD_SAMPLE,
				    .misc = PERF_RECORD_MISC_KERNEL,
				    .pid = 1,
				    .tid = 1 };
	struct pm_record lost = { .type = PERF_RECORD_LOST,
				  .time = UINT64_MAX,
				  .lost = UINT64_MAX };
	uint64_t periods[] = { 7, INT64_MAX, UINT64_MAX, 9 };
	struct pm_file_reader *reader;
	struct pm_file_record record;
	size_t samples = 0;
	bool noted = false, footer = false;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	begin(&session, path, PM_CALL_GRAPH_NONE);
	for (size_t i = 0; i < PM_ARRAY_LEN(periods); i++) {
		sample.sample.period = periods[i];
		sample.time = i == 0 ? UINT64_MAX : i;
		assert_int_equal(pm_rec_record(&session, &sample), 0);
	}
	pm_rec_summary_warn(&session);
	assert_int_equal(pm_rec_record(&session, &lost), 0);
	assert_int_equal(pm_rec_record(&session, &lost), 0);
	assert_int_equal(pm_rec_summary_footer(&session), 0);
	assert_int_equal(pm_file_writer_close(session.writer, NULL), 0);
	end(&session);

	assert_int_equal(pm_file_reader_open(&reader, path, NULL), 0);
	while (pm_file_reader_next(reader, &record, NULL) > 0) {
		if (record.type == PM_FILE_SAMPLE) {
			uint64_t period = periods[samples++];

			assert_true(record.sample.period ==
				    (period > INT64_MAX ? INT64_MAX : period));
		} else if (record.type == PM_FILE_NOTE) {
			noted |= strstr(record.note.text, "2 times or periods") != NULL;
		} else if (record.type == PM_FILE_FOOTER) {
			footer = true;
			assert_true(record.footer.lost == INT64_MAX);
			assert_true(record.footer.events[0].period == INT64_MAX);
		}
	}
	assert_int_equal(samples, PM_ARRAY_LEN(periods));
	assert_true(noted && footer);
	pm_file_reader_free(reader);
	unlink(path);
}

/* A recording that ends with an error has the samples whose stacks were still incomplete. */
static void test_held_samples_at_an_error(void **state)
{
	static const struct pm_rec_options options = { .quiet = true };
	struct pm_rec_session session = { .options = &options };
	struct pm_chain chain = { .stop = PM_UNW_STOP_TRUNCATED,
				  .stack = PM_FILE_NONE,
				  .promise = 1 };
	struct pm_chain_names names = { .known = true };
	const struct pm_file_sample sample = {
		.time = 7, .pid = 1, .tid = 1, .stack = PM_FILE_NONE, .stop = "truncated"
	};
	char path[] = "/tmp/test-pmrec-record.XXXXXX";
	struct pm_file_reader *reader;
	struct pm_file_record record;
	struct pm_error err = { 0 };
	size_t samples = 0;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	begin_stitching(&session, path);
	assert_int_equal(pm_rec_hold_add(&session, &sample, &chain, &names), 0);
	assert_int_equal(pm_rec_output_close(&session, -EIO, &err), -EIO);
	end(&session);
	assert_int_equal(pm_file_reader_open(&reader, path, NULL), 0);
	while (pm_file_reader_next(reader, &record, NULL) > 0)
		samples += record.type == PM_FILE_SAMPLE;
	assert_int_equal(samples, 1);
	pm_file_reader_free(reader);
	free(session.place);
	unlink(path);
}

/* What @session's file says where its last sample's stack ends. */
static void read_stop(const char *path, char ret[32])
{
	struct pm_file_reader *reader;
	struct pm_file_record record;

	assert_int_equal(pm_file_reader_open(&reader, path, NULL), 0);
	while (pm_file_reader_next(reader, &record, NULL) > 0)
		if (record.type == PM_FILE_SAMPLE)
			snprintf(ret, 32, "%s", record.sample.stop);
	pm_file_reader_free(reader);
}

/* In the kernel with registers of code that is in no mapping: in execve(2), if there was one. */
static void stop_of_unmapped(bool executed, bool in_kernel, char ret[32])
{
	static const struct pm_rec_options options = { .quiet = true };
	struct pm_rec_session session = { .options = &options };
	char path[] = "/tmp/test-pmrec-record.XXXXXX";
	const uint64_t chain[] = { (uint64_t)PERF_CONTEXT_KERNEL, 0xffffffff81000020 };
	struct pm_record comm = { .type = PERF_RECORD_COMM,
				  .pid = 1,
				  .tid = 1,
				  .comm = { .name = "true", .exec = executed } };
	struct pm_record sample = {
		.type = PERF_RECORD_SAMPLE,
		.misc = in_kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER,
		.pid = 1,
		.tid = 1,
		.sample = { .ip = 0x1000,
			    .callchain = chain,
			    .callchain_len = in_kernel ? 2 : 0,
			    .regs = { .abi = PM_REGS_64, .known = UINT64_MAX } }
	};
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < PM_DWARF_REGS_MAX; i++)
		sample.sample.regs.value[i] = 0x1000;
	begin(&session, path, PM_CALL_GRAPH_DWARF);
	assert_int_equal(pm_rec_record(&session, &comm), 0);
	assert_int_equal(pm_rec_record(&session, &sample), 0);
	assert_int_equal(pm_rec_summary_footer(&session), 0);
	assert_int_equal(pm_file_writer_close(session.writer, NULL), 0);
	end(&session);
	read_stop(path, ret);
	unlink(path);
}

static void test_exec(void **state)
{
	char stop[32];

	stop_of_unmapped(true, true, stop);
	assert_string_equal(stop, "exec");
	stop_of_unmapped(false, true, stop);
	assert_string_not_equal(stop, "exec");
	/* It has begun, in code that is not known. */
	stop_of_unmapped(true, false, stop);
	assert_string_not_equal(stop, "exec");
}

/* A thread that the kernel did not tell has nobody's name, not that of its process either. */
static void test_unknown_thread(void **state)
{
	static const struct pm_rec_options options = { .quiet = true };
	struct pm_rec_session session = { .options = &options };
	char path[] = "/tmp/test-pmrec-record.XXXXXX";
	struct pm_record comm = {
		.type = PERF_RECORD_COMM, .pid = 7, .tid = 7, .comm = { .name = "leader" }
	};
	struct pm_record sample = { .type = PERF_RECORD_SAMPLE,
				    .misc = PERF_RECORD_MISC_KERNEL,
				    .pid = 7,
				    .tid = UINT32_MAX };
	struct pm_file_reader *reader;
	struct pm_file_record record;
	size_t threads = 0, samples = 0;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	begin(&session, path, PM_CALL_GRAPH_NONE);
	assert_int_equal(pm_rec_record(&session, &comm), 0);
	assert_int_equal(pm_rec_record(&session, &sample), 0);
	assert_int_equal(pm_file_writer_close(session.writer, NULL), 0);
	end(&session);

	assert_int_equal(pm_file_reader_open(&reader, path, NULL), 0);
	while (pm_file_reader_next(reader, &record, NULL) > 0) {
		if (record.type == PM_FILE_THREAD) {
			assert_int_equal(record.thread.tid, 7);
			threads++;
		} else if (record.type == PM_FILE_SAMPLE) {
			assert_true(record.sample.pid == 7 &&
				    record.sample.tid == PM_FILE_NONE);
			samples++;
		}
	}
	assert_true(threads == 1 && samples == 1);
	pm_file_reader_free(reader);
	unlink(path);
}

/* The kernel cuts chains of 127 frames; its markers are none. */
static void test_markers_are_no_frames(void **state)
{
	static const struct pm_rec_options options = { .quiet = true };
	struct pm_rec_session session = { .options = &options };
	struct pm_record sample = { .type = PERF_RECORD_SAMPLE, .pid = 1, .tid = 1 };
	char path[] = "/tmp/test-pmrec-record.XXXXXX";
	uint64_t chain[129];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	begin(&session, path, PM_CALL_GRAPH_FP);
	for (size_t i = 0; i < PM_ARRAY_LEN(chain); i++)
		chain[i] = 0x1000 + i;
	chain[0] = (uint64_t)PERF_CONTEXT_KERNEL;
	chain[2] = (uint64_t)PERF_CONTEXT_USER;
	sample.sample.callchain = chain;
	sample.sample.callchain_len = 128;
	assert_int_equal(pm_rec_record(&session, &sample), 0);
	assert_int_equal(session.counts.stops[PM_CHAIN_STOP_FP_END], 1);
	sample.sample.callchain_len = 129;
	assert_int_equal(pm_rec_record(&session, &sample), 0);
	assert_int_equal(session.counts.stops[PM_UNW_STOP_LIMIT], 1);
	assert_int_equal(pm_file_writer_close(session.writer, NULL), 0);
	end(&session);
	unlink(path);
}

static __attribute__((noinline)) uint64_t where(void)
{
	return (uint64_t)(uintptr_t)__builtin_return_address(0);
}

/* A place in a frame whose CFA is told by rbp, because rsp moves by an unknown amount. */
static __attribute__((noinline)) uint64_t in_frame_of_rbp(size_t bytes)
{
	volatile char *room = __builtin_alloca(bytes);
	uint64_t ret;

	room[0] = 1;
	ret = where();
	room[bytes - 1] = room[0];
	return ret;
}

/* What an old kernel does not know is unknown, not an address. */
static void test_unsaved_registers(void **state)
{
	static const struct pm_rec_options options = { .quiet = true };
	static const uint64_t words[8];
	struct pm_rec_session session = { .options = &options };
	struct pm_record record = { .type = PERF_RECORD_SAMPLE,
				    .pid = (uint32_t)getpid(),
				    .tid = (uint32_t)getpid() };
	struct pm_sample *sample = &record.sample;
	char path[] = "/tmp/test-pmrec-record.XXXXXX";
	int fd;

#ifndef __x86_64__
	print_message("# it is kernels of x86-64 that did not save them\n");
	skip();
#endif
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	begin(&session, path, PM_CALL_GRAPH_DWARF);
	pm_chain_modules_raise_limit(&session.modules);
	assert_int_equal(pm_procs_read(session.procs, getpid(), NULL), 0);
	sample->regs.abi = PM_REGS_64;
	sample->regs.known = (1u << PM_UNW_X86_64_REGS) - 1;
	sample->regs.value[PM_UNW_X86_64_RSP] = 0x7000;
	sample->regs.value[PM_UNW_X86_64_RIP] = in_frame_of_rbp(64);
	sample->stack = (const uint8_t *)words;
	sample->stack_len = sizeof(words);
	sample->regs.value[PM_UNW_X86_64_RBX] = sample->regs.value[PM_UNW_X86_64_RBP] =
		UINT64_MAX;
	for (size_t i = 12; i < 15; i++)
		sample->regs.value[i] = UINT64_MAX;
	/* One that has a value was saved, and then all were. */
	assert_int_equal(pm_rec_record(&session, &record), 0);
	assert_int_equal(session.counts.stops[PM_UNW_STOP_BAD_MEMORY], 1);
	sample->regs.value[15] = UINT64_MAX;
	assert_int_equal(pm_rec_record(&session, &record), 0);
	assert_int_equal(session.counts.stops[PM_UNW_STOP_NO_REGISTER], 1);
	assert_int_equal(pm_file_writer_close(session.writer, NULL), 0);
	end(&session);
	unlink(path);
}

/* ---- branches ------------------------------------------------------------------------- */

enum {
	BRANCHES = 3,
};

/* A sample as the kernel writes it, by hand: no machine of ours has branch records. */
static size_t craft(uint64_t *at, uint64_t ip, const struct perf_branch_entry *entries)
{
	struct perf_event_header header = { .type = PERF_RECORD_SAMPLE,
					    .misc = PERF_RECORD_MISC_USER };
	uint64_t *begin = at++;

	*at++ = ip;
	*at++ = (uint64_t)(uint32_t)getpid() << 32 | (uint32_t)getpid();
	*at++ = 1234; /* time */
	*at++ = 4; /* callchain */
	*at++ = (uint64_t)PERF_CONTEXT_KERNEL;
	*at++ = 0xffffffff81000010;
	*at++ = (uint64_t)PERF_CONTEXT_USER;
	*at++ = ip;
	*at++ = BRANCHES;
	memcpy(at, entries, BRANCHES * sizeof(*entries));
	at += BRANCHES * sizeof(*entries) / sizeof(*at);
	header.size = (uint16_t)((size_t)(at - begin) * sizeof(*at));
	memcpy(begin, &header, sizeof(header));
	return header.size;
}

struct seen {
	struct pm_file_branch branches[BRANCHES];
	struct {
		uint32_t module;
		uint64_t address;
		char how[16];
	} frames[16];
	uint32_t parent[16], frame_of[16], stack, frames_len;
	size_t branches_len;
	char stop[16];
};

static void read_seen(const char *path, struct seen *seen)
{
	struct pm_file_reader *reader;
	struct pm_file_record record;

	assert_int_equal(pm_file_reader_open(&reader, path, NULL), 0);
	while (pm_file_reader_next(reader, &record, NULL) > 0) {
		if (record.type == PM_FILE_FRAME) {
			uint32_t id = record.frame.id;

			assert_true(id < 16);
			seen->frames[id].module = record.frame.module;
			seen->frames[id].address = record.frame.address;
			snprintf(seen->frames[id].how, sizeof(seen->frames[id].how), "%s",
				 record.frame.how);
			seen->frames_len = id + 1;
		} else if (record.type == PM_FILE_STACK) {
			assert_true(record.stack.id < 16);
			seen->parent[record.stack.id] = record.stack.parent;
			seen->frame_of[record.stack.id] = record.stack.frame;
		} else if (record.type == PM_FILE_SAMPLE) {
			seen->stack = record.sample.stack;
			seen->branches_len = record.sample.branches_len;
			assert_true(seen->branches_len <= BRANCHES);
			for (size_t i = 0; i < seen->branches_len; i++)
				seen->branches[i] = record.sample.branches[i];
			snprintf(seen->stop, sizeof(seen->stop), "%s",
				 record.sample.stop ? record.sample.stop : "root");
		}
	}
	pm_file_reader_free(reader);
}

/* From the bytes of the ring to the file, with the layout that pm_perf_open() asks for. */
static void record_branches(bool lbr, uint64_t ip,
			    const struct perf_branch_entry *entries, struct seen *seen)
{
	static const struct pm_rec_options options = { .quiet = true };
	const struct pm_record_layout layout = {
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_BRANCH_STACK,
	};
	struct pm_rec_session session = { .options = &options };
	uint64_t bytes[64];
	struct pm_record record = { 0 };
	char path[] = "/tmp/test-pmrec-record.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	begin_with(&session, path, PM_CALL_GRAPH_FP, lbr);
	pm_chain_modules_raise_limit(&session.modules);
	assert_int_equal(pm_procs_read(session.procs, getpid(), NULL), 0);
	craft(bytes, ip, entries);
	assert_int_equal(pm_record_decode((const void *)bytes, &layout, &record, NULL),
			 0);
	assert_int_equal(pm_rec_record(&session, &record), 0);
	assert_int_equal(pm_file_writer_close(session.writer, NULL), 0);
	end(&session);
	read_seen(path, seen);
	unlink(path);
}

static void test_branches(void **state)
{
	uint64_t own = (uint64_t)(uintptr_t)&test_branches;
	const struct perf_branch_entry entries[BRANCHES] = {
		{ .from = own + 8,
		  .to = own + 16,
		  .mispred = 1,
		  .cycles = 12,
		  .type = 4 },
		{ .from = 0xffffffff81000020, .to = own + 8, .predicted = 1, .in_tx = 1 },
		{ .from = own + 8, .to = 0x10, .abort = 1, .cycles = 65535 },
	};
	struct seen seen = { 0 };

	record_branches(false, own, entries, &seen);
	assert_string_equal(seen.stop, "fp_end");
	assert_int_equal(seen.branches_len, BRANCHES);
	assert_int_equal(seen.branches[0].flags, 1 | 4 << 4);
	assert_int_equal(seen.branches[0].cycles, 12);
	assert_int_equal(seen.branches[1].flags, 2 | 4);
	assert_true(seen.branches[1].cycles == PM_FILE_NONE);
	assert_int_equal(seen.branches[2].flags, 8);
	assert_int_equal(seen.branches[2].cycles, 65535);
	/* One place is one frame; it is not the frame of a stack. */
	assert_int_equal(seen.branches[0].from, seen.branches[1].to);
	assert_int_equal(seen.branches[0].from, seen.branches[2].from);
	for (size_t i = 0; i < BRANCHES; i++) {
		assert_string_equal(seen.frames[seen.branches[i].from].how, "branch");
		assert_string_equal(seen.frames[seen.branches[i].to].how, "branch");
	}
	assert_int_equal(seen.frames[seen.branches[0].to].address -
				 seen.frames[seen.branches[0].from].address,
			 8);
	assert_true(seen.frames[seen.branches[0].to].module != PM_FILE_NONE);
	assert_true(seen.frames[seen.branches[1].from].module !=
		    seen.frames[seen.branches[0].to].module);
	assert_int_equal(seen.frames[seen.branches[1].from].address, 0xffffffff81000020);
	assert_true(seen.frames[seen.branches[2].to].module == PM_FILE_NONE);
	assert_int_equal(seen.frames[seen.branches[2].to].address, 0x10);
}

/* Calls that have not returned, newest first: where from is in the caller. */
static void test_calls_as_stack(void **state)
{
	static const char *const hows[] = { "kernel", "ip", "lbr", "lbr", "lbr" };
	uint64_t own = (uint64_t)(uintptr_t)&test_calls_as_stack;
	const struct perf_branch_entry entries[BRANCHES] = {
		{ .from = own + 0x20, .to = own },
		{ .from = own + 0x30, .to = own + 0x18 },
		{ .from = own + 0x40, .to = own + 0x28 },
	};
	struct seen seen = { 0 };
	uint64_t ip = 0;
	uint32_t stack;

	record_branches(true, own + 4, entries, &seen);
	assert_int_equal(seen.branches_len, 0);
	assert_string_equal(seen.stop, "lbr_end");
	stack = seen.stack;
	for (size_t i = 0; i < PM_ARRAY_LEN(hows); i++) {
		assert_true(stack != PM_FILE_NONE);
		assert_string_equal(seen.frames[seen.frame_of[stack]].how, hows[i]);
		if (i == 1)
			ip = seen.frames[seen.frame_of[stack]].address;
		if (i > 1)
			assert_int_equal(seen.frames[seen.frame_of[stack]].address - ip,
					 0x20 + 0x10 * (i - 2) - 4);
		stack = seen.parent[stack];
	}
	assert_true(stack == PM_FILE_NONE);
}

struct lines {
	size_t threads, samples;
	char names[8][16]; /* of the samples, as the lines before them say */
	bool misnamed; /* a note says that */
	uint64_t thread_ns; /* of the last thread line */
};

static void read_lines(const char *path, struct lines *ret)
{
	struct pm_file_reader *reader;
	struct pm_file_record record;
	char name[16] = "";
	int r;

	*ret = (struct lines){ 0 };
	assert_int_equal(pm_file_reader_open(&reader, path, NULL), 0);
	while ((r = pm_file_reader_next(reader, &record, NULL)) > 0) {
		if (record.type == PM_FILE_THREAD) {
			ret->threads++;
			ret->thread_ns = record.thread.time;
			snprintf(name, sizeof(name), "%s", record.thread.comm);
		} else if (record.type == PM_FILE_SAMPLE) {
			if (ret->samples < PM_ARRAY_LEN(ret->names))
				memcpy(ret->names[ret->samples], name, sizeof(name));
			ret->samples++;
		} else if (record.type == PM_FILE_NOTE) {
			ret->misnamed |= strstr(record.note.text, "4 samples of threads "
								  "that change") != NULL;
		}
	}
	assert_int_equal(r, 0);
	pm_file_reader_free(reader);
}

/* A line is written when a sample is, and not for each rename. */
static void test_renames(void **state)
{
	static const struct pm_rec_options options = { .quiet = true };
	struct pm_rec_session session = { .options = &options };
	char path[] = "/tmp/test-pmrec-record.XXXXXX", name[16];
	struct pm_record comm = {
		.type = PERF_RECORD_COMM, .pid = 7, .tid = 7, .comm = { .name = name }
	};
	struct pm_record sample = { .type = PERF_RECORD_SAMPLE,
				    .misc = PERF_RECORD_MISC_KERNEL,
				    .pid = 7,
				    .tid = 7 };
	struct lines lines;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	begin(&session, path, PM_CALL_GRAPH_NONE);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "name-%d", i);
		comm.time = 1000 + (uint64_t)i;
		assert_int_equal(pm_rec_record(&session, &comm), 0);
	}
	for (int i = 0; i < 3; i++) {
		sample.time = 5000000;
		assert_int_equal(pm_rec_record(&session, &sample), 0);
	}
	assert_int_equal(pm_file_writer_flush(session.writer), 0);
	read_lines(path, &lines);
	assert_int_equal(lines.threads, 1);
	assert_int_equal(lines.samples, 3);
	assert_string_equal(lines.names[0], "name-999");
	assert_int_equal(lines.thread_ns, 1999); /* since when it has that name */
	/* A sample after each rename: up to PM_CHAIN_RENAMES_MAX lines in this second. */
	for (int i = 0; i < PM_CHAIN_RENAMES_MAX + 3; i++) {
		snprintf(name, sizeof(name), "new-%d", i);
		assert_int_equal(pm_rec_record(&session, &comm), 0);
		assert_int_equal(pm_rec_record(&session, &sample), 0);
	}
	pm_rec_generation_warn(&session);
	assert_int_equal(pm_file_writer_close(session.writer, NULL), 0);
	end(&session);
	read_lines(path, &lines);
	assert_int_equal(lines.threads, PM_CHAIN_RENAMES_MAX);
	assert_true(lines.misnamed);
	unlink(path);
}

/* Checks what a reader would check: ids are dense, and defined before they are used. */
struct told_ids {
	uint32_t frames, stacks, samples;
};

/* pm_file_tee_fn */
static int see(void *user, const struct pm_file_record *record)
{
	struct told_ids *seen = user;

	if (record->type == PM_FILE_FRAME) {
		assert_int_equal(record->frame.id, seen->frames++);
	} else if (record->type == PM_FILE_STACK) {
		assert_int_equal(record->stack.id, seen->stacks++);
		assert_true(record->stack.frame < seen->frames);
		assert_true(record->stack.parent == PM_FILE_NONE ||
			    record->stack.parent < record->stack.id);
	} else if (record->type == PM_FILE_SAMPLE) {
		assert_true(record->sample.stack < seen->stacks);
		seen->samples++;
	}
	return 0;
}

/* Tables of frames and stacks that are full begin anew, in a file that stays valid. */
static void test_generations(void **state)
{
	static const struct pm_rec_options options = { .quiet = true,
						       .symbols = true,
						       .call_graph = PM_CALL_GRAPH_FP };
	enum {
		FRAMES = 127,
		SAMPLES = (PM_FILE_FRAMES_MAX + PM_FILE_FRAMES_MAX / 16) / FRAMES,
	};
	struct pm_rec_session session = { .options = &options, .child = PM_CHILD_INIT };
	struct pm_record sample = { .type = PERF_RECORD_SAMPLE, .pid = 1, .tid = 1 };
	uint64_t chain[FRAMES + 1], address = 0x1000;
	struct told_ids seen = { 0 };

	(void)state;
	begin(&session, NULL, PM_CALL_GRAPH_FP);
	session.jit = pm_chain_jit_new(
		&(struct pm_chain_jit_source){ .procs = session.procs,
					       .modules = &session.modules,
					       .writer = session.writer });
	assert_non_null(session.jit);
	pm_file_writer_tee(session.writer, see, &seen);
	chain[0] = (uint64_t)PERF_CONTEXT_USER;
	sample.sample.callchain = chain;
	sample.sample.callchain_len = PM_ARRAY_LEN(chain);
	for (size_t i = 0; i < SAMPLES; i++) {
		for (size_t j = 1; j < PM_ARRAY_LEN(chain); j++)
			chain[j] = address += 16;
		sample.time = session.newest_ns + 1;
		assert_int_equal(pm_rec_record(&session, &sample), 0);
		assert_int_equal(pm_rec_generation_check(&session), 0);
		assert_true(pm_file_writer_table_bytes(session.writer) < (size_t)128
										 << 20);
	}
	assert_int_equal(session.tables.frames, 1);
	/* A frame and a stack of the old generation get new ids. */
	assert_int_equal(pm_rec_record(&session, &sample), 0);
	assert_int_equal(pm_rec_generation_finish(&session), 0);
	assert_null(session.naming);
	assert_int_equal(seen.samples, SAMPLES + 1);
	assert_int_equal(pm_file_writer_close(session.writer, NULL), 0);
	pm_chain_jit_free(session.jit);
	end(&session);
}

/* Of many new files, those that are mapped stay, and the names of frames in the others
 * are looked up. */
static void test_generations_of_modules(void **state)
{
	static const struct pm_rec_options options = { .quiet = true,
						       .symbols = true,
						       .call_graph = PM_CALL_GRAPH_FP };
	enum {
		FILES = 5000
	};
	struct pm_rec_session session = { .options = &options, .child = PM_CHILD_INIT };
	const uint64_t chain[] = { (uint64_t)PERF_CONTEXT_USER, 0x10010 };
	struct pm_record map = { .type = PERF_RECORD_MMAP2,
				 .pid = 1,
				 .tid = 1,
				 .mmap = { .start = 0x10000,
					   .len = 0x1000,
					   .prot = PROT_READ | PROT_EXEC,
					   .identified = true } };
	struct pm_record sample = { .type = PERF_RECORD_SAMPLE,
				    .pid = 1,
				    .tid = 1,
				    .sample = { .callchain = chain,
						.callchain_len = 2 } };
	struct pm_procs_stats stats;
	struct told_ids seen = { 0 };
	char file[32];

	(void)state;
	begin(&session, NULL, PM_CALL_GRAPH_FP);
	session.jit = pm_chain_jit_new(
		&(struct pm_chain_jit_source){ .procs = session.procs,
					       .modules = &session.modules,
					       .writer = session.writer });
	assert_non_null(session.jit);
	pm_file_writer_tee(session.writer, see, &seen);
	map.mmap.path = file;
	for (uint64_t i = 0; i < FILES; i++) {
		snprintf(file, sizeof(file), "/nowhere/%d", (int)i);
		map.mmap.inode = i + 1;
		map.time = sample.time = i + 1;
		assert_int_equal(pm_rec_record(&session, &map), 0);
		assert_int_equal(pm_rec_record(&session, &sample), 0);
		assert_int_equal(pm_rec_generation_check(&session), 0);
	}
	assert_int_equal(pm_rec_generation_finish(&session), 0);
	assert_int_equal(session.tables.frames, 1);
	pm_procs_stats(session.procs, &stats);
	assert_true(stats.modules < FILES - 4000);
	assert_int_equal(seen.samples, FILES);
	assert_int_equal(seen.frames, FILES);
	assert_int_equal(pm_file_writer_close(session.writer, NULL), 0);
	pm_chain_jit_free(session.jit);
	end(&session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_renames),
		cmocka_unit_test(test_generations),
		cmocka_unit_test(test_generations_of_modules),
		cmocka_unit_test(test_numbers_too_large),
		cmocka_unit_test(test_held_samples_at_an_error),
		cmocka_unit_test(test_exec),
		cmocka_unit_test(test_unknown_thread),
		cmocka_unit_test(test_markers_are_no_frames),
		cmocka_unit_test(test_unsaved_registers),
		cmocka_unit_test(test_branches),
		cmocka_unit_test(test_calls_as_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
