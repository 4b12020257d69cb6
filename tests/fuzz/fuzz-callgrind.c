/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a file of callgrind, and as two: the first half of one process, the second of
 * another. Summed for regions of a program /p that overlap each other.
 */
#include "src/count/callgrind.h"

#include <string.h>
#include <sys/mman.h>

enum {
	REGIONS = 4,
};

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static char program[] = "/p", *command[] = { program, NULL };
static char module[] = "/p", names[REGIONS][2] = { "a", "b", "c", "d" };

static const struct {
	enum pm_stat_scope_kind kind;
	uint64_t low, high;
	int32_t sum;
} wanted[REGIONS] = {
	{ PM_STAT_FUNCTION, 0x10, 0x20, -1 },
	{ PM_STAT_RANGE, 0x18, 0x30, -1 },
	{ PM_STAT_INLINED, 0, 0, -1 }, /* the sum of the next one */
	{ PM_STAT_INLINED, 0x14, 0x16, 2 },
};

static void make_regions(struct pm_regions *regions)
{
	static const uint8_t exits[][2] = { { 0x1f, 0xc3 }, { 0x1e, 0xeb } };

	for (size_t i = 0; i < REGIONS; i++) {
		struct pm_region region = { .kind = wanted[i].kind,
					    .name = names[i],
					    .module = module,
					    .fd = -1,
					    .sum = wanted[i].sum };
		struct pm_region_piece piece = { wanted[i].low, wanted[i].high };

		if (piece.high > 0)
			CHECK(pm_vec_push(&region.pieces, piece) == 0);
		CHECK(pm_vec_push(&regions->list, region) == 0);
	}
	for (size_t i = 0; i < PM_ARRAY_LEN(exits); i++) {
		struct pm_place place = { .kind = PM_PLACE_EXIT,
					  .address = exits[i][0],
					  .bytes = { exits[i][1] },
					  .len = 1 };

		CHECK(pm_vec_push(&regions->places, place) == 0);
	}
}

static void add_file(struct pm_callgrind_sums *sums, const uint8_t *data, size_t size)
{
	struct pm_error err = { 0 };
	int fd = memfd_create("callgrind", MFD_CLOEXEC);
	int ret;

	CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	ret = pm_callgrind_sums_add(sums, fd, "fuzz", &err);
	CHECK(ret == 0 || (ret == err.code && err.text[0]));
}

static void check_scope(const struct pm_stat_scope *scope)
{
	CHECK(scope->unfinished <= scope->calls && scope->nested <= scope->calls);
	CHECK(scope->values && scope->per_call && !scope->per_call[0].known);
	CHECK((scope->max_depth == 0) == (scope->calls == 0));
	for (size_t i = 0; i < scope->callers.len; i++)
		CHECK(scope->callers.data[i].frames.len == 1);
}

/* Names and costs are foreign: what the file's writer does not take is an error. */
static void write_stacks(const struct pm_callgrind_sums *sums, struct pm_stat *stat)
{
	struct pm_error err = { 0 };
	int ret;

	CHECK(pm_stat_text(&stat->version, "0") == 0);
	CHECK(pm_stat_text(&stat->created, "2024-05-06T07:08:09Z") == 0);
	ret = pm_callgrind_sums_write_stacks(sums, stat, &err);
	CHECK(ret == 0 || (ret == err.code && err.text[0]));
}

static void sum_up(const uint8_t *data, size_t size, size_t half)
{
	static struct pm_regions regions;
	struct pm_engine_options options = { .regions = &regions,
					     .by_thread = true,
					     .calls_from = 1,
					     .command = command,
					     .stacks = "/dev/null" };
	struct pm_stat stat = { 0 };
	struct pm_stat_run run = { 0 };
	struct pm_callgrind_sums *sums;

	if (regions.list.len == 0)
		make_regions(&regions);
	CHECK(pm_callgrind_sums_new(&sums, &options) == 0);
	CHECK(pm_sim_event_describe(&stat, "sim.Ir", true, NULL) == 0);
	CHECK(pm_vec_push(&stat.runs, run) == 0);
	add_file(sums, data, half);
	if (half < size)
		add_file(sums, data + half, size - half);
	CHECK(pm_callgrind_sums_finish(sums, &stat, 0) == 0);
	CHECK(stat.scopes.len == REGIONS - 1);
	for (size_t i = 0; i < stat.scopes.len; i++)
		check_scope(&stat.scopes.data[i]);
	write_stacks(sums, &stat);
	pm_callgrind_sums_free(sums);
	pm_stat_release(&stat);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	sum_up(data, size, size);
	sum_up(data, size, size / 2);
	return 0;
}
