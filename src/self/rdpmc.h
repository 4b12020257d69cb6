/* SPDX-License-Identifier: MIT */
/*
 * Two counters of the calling thread, cycles and instructions of the program's own code: read
 * without the kernel where it allows that (rdpmc), else by one read(2) of both. Source:
 * perf_event_open(2), linux/perf_event.h.
 */
#pragma once

#include <linux/perf_event.h>

#include "pm/base.h"

enum {
	PM_SELF_COUNTERS = 2,
};

enum pm_self_way {
	PM_SELF_UNREAD,
	PM_SELF_BY_PAGE,
	PM_SELF_BY_CALL,
};

struct pm_self_counters {
	int fds[PM_SELF_COUNTERS]; /* a group; the first one leads */
	uint64_t ids[PM_SELF_COUNTERS]; /* by which they are told from other files */
	struct perf_event_mmap_page *pages[PM_SELF_COUNTERS]; /* NULL: not by page */
	size_t page_bytes;
};

struct pm_self_reading {
	enum pm_self_way way;
	uint64_t values[PM_SELF_COUNTERS];
	/* How long the counters have waited for their turn. What was counted between two
	 * readings is all there is only if that stood still. */
	uint64_t waited_ns;
};

/* The hardware counter of an index of the page, less 1. */
typedef uint64_t (*pm_self_pmc_fn)(uint32_t counter);

/*
 * One counter by its page, as the kernel's comment in struct perf_event_mmap_page tells how,
 * under its sequence lock. False where it cannot be read so: not allowed, not on the CPU now,
 * or the page changes all the time.
 */
bool pm_self_page_read(const struct perf_event_mmap_page *page, pm_self_pmc_fn pmc,
		       uint64_t *value, uint64_t *waited_ns);

/* Of the calling thread; @attrs are completed. 0 or negative errno. */
int pm_self_counters_open(struct pm_self_counters *ret,
			  const struct perf_event_attr attrs[PM_SELF_COUNTERS]);
/* Cycles and instructions. */
int pm_self_counters_open_default(struct pm_self_counters *ret);
/* Files that the program has closed itself, and perhaps has others in their place, stay. */
void pm_self_counters_close(struct pm_self_counters *counters);

/* The beginning: by page if that works now, else by call. @ret says how, or _UNREAD. */
void pm_self_counters_begin(const struct pm_self_counters *counters,
			    struct pm_self_reading *ret);
/* The end, in the way of the beginning: @counted since @begin. False: not known. */
bool pm_self_counters_end(const struct pm_self_counters *counters,
			  const struct pm_self_reading *begin,
			  uint64_t counted[PM_SELF_COUNTERS]);
