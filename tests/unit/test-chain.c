/* SPDX-License-Identifier: MIT */
/* The frames of the file that a sample's callchain becomes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pm/chain-spaces.h"
#include "pm/chain.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>

enum {
	NOBODY = 0x7fff0000, /* beyond PID_MAX_LIMIT: nothing is read of this process */
};
#define KERNEL 0xffffffff81000000
#define USER   0x400000

struct world {
	struct pm_procs *procs;
	struct pm_chain_modules modules;
	struct pm_file_writer *writer;
	struct pm_chains *chains;
};

static void begin(struct world *world, enum pm_call_graph call_graph)
{
	static const struct pm_file_event event = { .name = "e",
						    .requested = "e",
						    .actual = "e",
						    .modifiers = "",
						    .unit = "events",
						    .rate = 1 };
	const struct pm_file_header header = { .version = PM_FILE_VERSION,
					       .pmrec = "0",
					       .created = "2024-05-06T07:08:09Z",
					       .clock = "monotonic",
					       .events = &event,
					       .events_len = 1,
					       .options = { .call_graph = "fp" } };
	PM_AUTO_CLOSE int fd = memfd_create("test-chain", MFD_CLOEXEC);
	struct pm_chain_source source = { .modules = &world->modules,
					  .call_graph = call_graph };
	char path[32];

	assert_true(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	world->procs = source.procs = pm_procs_new(pm_chain_space_free);
	assert_non_null(world->procs);
	pm_chain_modules_init(&world->modules);
	assert_int_equal(pm_file_writer_open(&world->writer, path, NULL), 0);
	assert_int_equal(pm_file_write_header(world->writer, &header), 0);
	source.writer = world->writer;
	world->chains = pm_chains_new(&source);
	assert_non_null(world->chains);
}

static void end(struct world *world)
{
	const struct pm_file_footer footer = {
		.events = (struct pm_file_footer_event[]){ { 0 } },
		.events_len = 1,
	};

	assert_int_equal(pm_file_write_footer(world->writer, &footer), 0);
	assert_int_equal(pm_file_writer_close(world->writer, NULL), 0);
	pm_chains_free(world->chains);
	pm_chain_modules_release(&world->modules);
	pm_procs_free(world->procs);
}

static struct pm_chain add(struct world *world, const uint64_t *callchain, size_t len)
{
	struct pm_record record = { .type = PERF_RECORD_SAMPLE,
				    .time = 1,
				    .pid = NOBODY,
				    .tid = NOBODY,
				    .sample = { .callchain = callchain,
						.callchain_len = len } };
	struct pm_chain chain;

	assert_int_equal(pm_chains_add(world->chains, &record, &chain), 0);
	return chain;
}

/* The file's frames are @expected, outermost first. */
static void expect_frames(const struct world *world, const struct pm_file_frame *expected,
			  size_t expected_len)
{
	size_t len;
	const struct pm_file_frame *frames = pm_file_writer_frames(world->writer, &len);

	assert_int_equal(len, expected_len);
	for (size_t i = 0; i < len; i++) {
		assert_int_equal(frames[i].address, expected[i].address);
		assert_string_equal(frames[i].how, expected[i].how);
	}
}

/* A return address belongs to the instruction before it, also to another function if the call
 * is the last instruction of its function. The interrupted places are exact. */
static void return_addresses_lie_in_the_call(void **state)
{
	static const uint64_t callchain[] = {
		(uint64_t)PERF_CONTEXT_KERNEL, KERNEL, KERNEL + 0x100, KERNEL + 0x200,
		(uint64_t)PERF_CONTEXT_USER,   USER,   USER + 0x10,    USER + 0x20
	};
	static const struct pm_file_frame expected[] = {
		{ .address = USER + 0x1f, .how = "fp" },
		{ .address = USER + 0xf, .how = "fp" },
		{ .address = USER, .how = "ip" },
		{ .address = KERNEL + 0x1ff, .how = "kernel" },
		{ .address = KERNEL + 0xff, .how = "kernel" },
		{ .address = KERNEL, .how = "kernel" },
	};
	struct world world = { 0 };
	struct pm_chain chain;

	(void)state;
	begin(&world, PM_CALL_GRAPH_FP);
	chain = add(&world, callchain, PM_ARRAY_LEN(callchain));
	assert_string_equal(pm_chain_stop_name(chain.stop), "fp_end");
	expect_frames(&world, expected, PM_ARRAY_LEN(expected));
	end(&world);
}

/* The unwinder supplies the user's part, and the kernel's chain only its own. */
static void only_the_kernels_part_counts_beside_dwarf(void **state)
{
	static const uint64_t callchain[] = {
		(uint64_t)PERF_CONTEXT_KERNEL, KERNEL, 0,          KERNEL + 0x100,
		(uint64_t)PERF_CONTEXT_USER,   USER,   USER + 0x10
	};
	static const struct pm_file_frame expected[] = {
		{ .address = KERNEL + 0xff, .how = "kernel" },
		{ .address = KERNEL, .how = "kernel" },
	};
	struct world world = { 0 };

	(void)state;
	begin(&world, PM_CALL_GRAPH_DWARF);
	add(&world, callchain, PM_ARRAY_LEN(callchain));
	expect_frames(&world, expected, PM_ARRAY_LEN(expected));
	end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(return_addresses_lie_in_the_call),
		cmocka_unit_test(only_the_kernels_part_counts_beside_dwarf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
