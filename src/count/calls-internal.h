/* SPDX-License-Identifier: MIT */
/* Shadow stacks, while they are maintained and when they are reported: shared by
 * calls*.c. */
#pragma once

#include "pm/count.h"

#define PM_CALLS_NO_CALLER UINT32_MAX

enum {
	PM_CALLS_KEPT_MAX =
		2048, /* calls per region whose numbers are kept, for quantiles */
};

/*
 * The state of a thread at a visit is a row of words: the counts by event, followed by
 * these columns. None of them ever decreases, and the amount between two visits is a
 * difference.
 */
enum pm_calls_column {
	PM_CALLS_TIME,
	PM_CALLS_ENABLED,
	PM_CALLS_RUNNING,
	/* Visits at places that the kernel emulates, and at others; each kind has a cost.
	 * The row of an entry includes its own visit, the row of an exit does not: the
	 * difference counts the visits of other calls. */
	PM_CALLS_CHEAP,
	PM_CALLS_DEAR,
	/* 0 at an entry, 1 at its exit: the difference is the number of measured calls,
	 * by which the cost of a call is multiplied. */
	PM_CALLS_OWN,
	PM_CALLS_COLUMNS,
};

/*
 * An open call. It has two rows of words: the thread's columns at the entry, and the
 * amount that was already covered for its region at that time.
 */
struct pm_calls_frame {
	uint32_t region, caller;
	uint64_t sp; /* at the function's first instruction */
	bool copied; /* copied by fork: the parent has the call, too */
	uint32_t depth;
};

/* A region in a thread. */
struct pm_calls_cell {
	uint32_t region;
	uint32_t live; /* calls that are open */
	uint64_t calls;
};

struct pm_calls_thread {
	pid_t pid, tid; /* tid 0: a free row */
	char comm[16];
	uint64_t cheap, dear; /* visits */
	uint64_t *last; /* columns of the last visit */
	PM_VEC(uint32_t) live; /* frames, oldest first */
	/* Frames that appear to have been left without an exit, by region and sp. A frame
	 * is discarded once the same region is entered again with the same sp. */
	struct pm_index dead;
	PM_VEC(uint32_t) dead_list; /* row → frame; PM_INDEX_NONE: unused */
	PM_VEC(uint32_t) dead_unused;
	PM_VEC(struct pm_calls_cell) cells;
	PM_VEC(uint64_t) covered; /* cells × columns */
	struct pm_index by_region;
};

struct pm_calls_site { /* a caller of a region */
	uint32_t region, caller;
	uint64_t calls;
};

struct pm_calls_done { /* a region in a thread that has ended; for by_thread */
	uint32_t region;
	pid_t pid, tid;
	char comm[16];
	uint64_t calls;
};

struct pm_calls_region {
	uint64_t calls, nested, unfinished, completed;
	uint32_t max_depth;
	/* Calls that were open at a fork and continued in the child have added to the
	 * totals. */
	bool copies_add;
	uint64_t random;
	size_t kept;
	PM_VEC(uint64_t) rows; /* kept × columns: the values of individual calls */
	uint64_t *least, *most; /* minimum and maximum, columns */
};

struct pm_calls {
	struct pm_calls_options options;
	size_t columns;
	PM_VEC(struct pm_calls_region) regions;
	uint64_t *totals; /* regions × columns */
	PM_VEC(struct pm_calls_frame) frames;
	PM_VEC(uint64_t) words; /* frames × 2 × columns */
	PM_VEC(uint32_t) frames_unused;
	PM_VEC(struct pm_calls_thread) threads;
	PM_VEC(uint32_t) threads_unused;
	struct pm_index by_tid;
	PM_VEC(struct pm_calls_site) sites;
	PM_VEC(uint64_t) site_words; /* sites × columns */
	struct pm_index by_site;
	PM_VEC(struct pm_calls_done) done;
	PM_VEC(uint64_t) done_words; /* done × columns */
	uint64_t *scratch; /* columns, of the current visit */
	uint64_t *part; /* columns, of the call that has just ended */
	bool failed; /* out of memory where no error could be returned */
	/* Costs to subtract, by event and then elapsed time; index: whether the place is
	 * cheap. NULL: not given. */
	uint64_t *call_cost[2], *visit_cost[2];
};

/* ---- calls-threads.c --------------------------------------------------------------------- */

/* Returns the thread, which is created if it is unknown; NULL if out of memory. The
 * pointer is invalid after the next creation. */
struct pm_calls_thread *pm_calls_thread(struct pm_calls *calls, pid_t pid, pid_t tid);
struct pm_calls_thread *pm_calls_find_thread(struct pm_calls *calls, pid_t tid);
/* Returns the row of the region's cell, or UINT32_MAX if out of memory. */
uint32_t pm_calls_cell(struct pm_calls *calls, struct pm_calls_thread *thread,
		       uint32_t region);
/* Adds the sums of a thread whose calls are all closed to the totals, and removes the
 * thread. Returns 0 or -ENOMEM. */
int pm_calls_thread_fold(struct pm_calls *calls, struct pm_calls_thread *thread);
void pm_calls_thread_release(struct pm_calls_thread *thread);

/* ---- calls-sums.c ------------------------------------------------------------------------ */

/* Records the values @words of a call of @region that has ended; @region may also be the
 * sum that the call belongs to. */
int pm_calls_keep(struct pm_calls *calls, uint32_t region, const uint64_t *words);
/* Adds @words to the calls that @caller made of @region. */
int pm_calls_site_add(struct pm_calls *calls, uint32_t region, uint32_t caller,
		      const uint64_t *words, bool new_call);

static inline uint64_t *pm_calls_words(struct pm_calls *calls, uint32_t frame)
{
	return &calls->words.data[(size_t)frame * 2 * calls->columns];
}
