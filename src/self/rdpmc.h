/* SPDX-License-Identifier: MIT */
/*
 * Two counters of the calling thread, cycles and instructions in user space: read without
 * the kernel where it allows that (rdpmc), otherwise by one read(2) for both. Source:
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
	int fds[PM_SELF_COUNTERS]; /* a group led by the first one */
	uint64_t ids[PM_SELF_COUNTERS]; /* distinguish them from other files */
	/* NULL: cannot be read by page. */
	struct perf_event_mmap_page *pages[PM_SELF_COUNTERS];
	size_t page_bytes;
};

struct pm_self_reading {
	enum pm_self_way way;
	uint64_t values[PM_SELF_COUNTERS];
	/* How long the counters have waited for a hardware counter. The difference
	 * between two readings is only complete if this did not change. */
	uint64_t waited_ns;
};

/* Reads the hardware counter given by the index of the page, minus 1. */
typedef uint64_t (*pm_self_pmc_fn)(uint32_t counter);

/*
 * Reads one counter through its page under the sequence lock, as described in the
 * kernel's comment on struct perf_event_mmap_page. False if that is impossible: not
 * allowed, the event is not on the CPU now, or the page keeps changing.
 */
bool pm_self_page_read(const struct perf_event_mmap_page *page, pm_self_pmc_fn pmc,
		       uint64_t *value, uint64_t *waited_ns);

/* Opens the counters of the calling thread; @attrs are completed. Returns 0 or a negative
 * errno. */
int pm_self_counters_open(struct pm_self_counters *out,
			  const struct perf_event_attr attrs[PM_SELF_COUNTERS]);
/* Cycles and instructions. */
int pm_self_counters_open_default(struct pm_self_counters *out);
/* If the program has closed the descriptors itself, other files that may have reused
 * their numbers stay open. */
void pm_self_counters_close(struct pm_self_counters *counters);

/* Reads the start values: by page if that works now, otherwise by call. @out contains the
 * way, or _UNREAD. */
void pm_self_counters_begin(const struct pm_self_counters *counters,
			    struct pm_self_reading *out);
/* Reads the end values in the same way as the start values: @counted is the difference.
 * False: not known. */
bool pm_self_counters_end(const struct pm_self_counters *counters,
			  const struct pm_self_reading *begin,
			  uint64_t counted[PM_SELF_COUNTERS]);
