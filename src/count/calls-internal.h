/* SPDX-License-Identifier: MIT */
/* Shadow stacks while they are kept and while they are told: shared by the calls*.c files. */
#pragma once

#include "pm/count.h"

#define PM_CALLS_NO_CALLER UINT32_MAX

enum {
	PM_CALLS_KEPT_MAX =
		2048, /* calls of a region whose numbers are kept for quantiles */
};

/*
 * What is known of a thread at a visit is a row of words: the counts by event, and behind them
 * these. All only grow, so that what was between two visits is a difference.
 */
enum pm_calls_column {
	PM_CALLS_TIME,
	PM_CALLS_ENABLED,
	PM_CALLS_RUNNING,
	/* Visits at places that the kernel emulates, and at others: each has a cost. With an
	 * entry's own, and without an exit's: what is between is of others. */
	PM_CALLS_CHEAP,
	PM_CALLS_DEAR,
	PM_CALLS_OWN, /* 0 at an entry, 1 at its exit: measured calls, by which that costs */
	PM_CALLS_COLUMNS,
};

/*
 * An open call. Its words are `columns` at the entry, and then as many of what was covered of
 * its region then.
 */
struct pm_calls_frame {
	uint32_t region, caller;
	uint64_t sp; /* at the function's first instruction */
	bool copied; /* by fork: the parent has the call */
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
	/* Frames that seemed to have been left without an exit, by region and sp. One that
	 * was entered again at the same place is gone for good. */
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

struct pm_calls_done { /* a region in a thread that has ended, by_thread */
	uint32_t region;
	pid_t pid, tid;
	char comm[16];
	uint64_t calls;
};

struct pm_calls_region {
	uint64_t calls, nested, unfinished, completed;
	uint32_t max_depth;
	bool copies_add; /* numbers of calls that were open at a fork, and went on in the child */
	uint64_t random;
	size_t kept;
	PM_VEC(uint64_t) rows; /* kept × columns: of single calls */
	uint64_t *least, *most; /* columns */
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
	uint64_t *scratch; /* columns, of the present visit */
	uint64_t *part; /* columns, of the call that has just ended */
	bool failed; /* memory ended where nobody could be told */
	/* What is taken off, each of events and elapsed time, by whether a place is cheap. NULL:
	 * not given. */
	uint64_t *call_cost[2], *visit_cost[2];
};

/* ---- calls-threads.c --------------------------------------------------------------------- */

/* Made when it is not known. NULL without memory. Moves when another one is made. */
struct pm_calls_thread *pm_calls_thread(struct pm_calls *calls, pid_t pid, pid_t tid);
struct pm_calls_thread *pm_calls_find_thread(struct pm_calls *calls, pid_t tid);
/* The row of the region's cell, or UINT32_MAX without memory. */
uint32_t pm_calls_cell(struct pm_calls *calls, struct pm_calls_thread *thread,
		       uint32_t region);
/* Takes the sums of a thread whose calls are all closed, and forgets it. 0 or -ENOMEM. */
int pm_calls_thread_fold(struct pm_calls *calls, struct pm_calls_thread *thread);
void pm_calls_thread_release(struct pm_calls_thread *thread);

/* ---- calls-sums.c ------------------------------------------------------------------------ */

/* A call of @region, or of the sum that it is a part of, has ended, and had @words. */
int pm_calls_keep(struct pm_calls *calls, uint32_t region, const uint64_t *words);
/* Adds @words to what @caller made of @region. */
int pm_calls_site_add(struct pm_calls *calls, uint32_t region, uint32_t caller,
		      const uint64_t *words, bool new_call);

static inline uint64_t *pm_calls_words(struct pm_calls *calls, uint32_t frame)
{
	return &calls->words.data[(size_t)frame * 2 * calls->columns];
}
