/* SPDX-License-Identifier: MIT */
/*
 * Two counters of the calling thread, cycles and instructions in user space. They are
 * read without a system call if the kernel allows that (rdpmc), otherwise by one read(2)
 * for both. Source: perf_event_open(2), linux/perf_event.h.
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
	/* NULL: the counter cannot be read through its page. */
	struct perf_event_mmap_page *pages[PM_SELF_COUNTERS];
	size_t page_bytes;
};

struct pm_self_reading {
	enum pm_self_way way;
	uint64_t values[PM_SELF_COUNTERS];
	/* The time for which the counters have waited for a hardware counter. A
	 * difference of two readings is complete only if this time has not changed. */
	uint64_t waited_ns;
};

/* Reads the hardware counter with number @counter, which is the page's index minus 1. */
typedef uint64_t (*pm_self_pmc_fn)(uint32_t counter);

/*
 * Reads one counter through its page under the sequence lock, as described in the
 * kernel's comment on struct perf_event_mmap_page. Returns false if that is impossible:
 * it is not allowed, the event is not on the CPU now, or the page keeps changing.
 */
bool pm_self_page_read(const struct perf_event_mmap_page *page, pm_self_pmc_fn pmc,
		       uint64_t *value, uint64_t *waited_ns);

/* Opens the counters of the calling thread, and fills in the remaining fields of @attrs.
 * Returns 0 or a negative errno. */
int pm_self_counters_open(struct pm_self_counters *out,
			  const struct perf_event_attr attrs[PM_SELF_COUNTERS]);
/* Opens counters for cycles and instructions. */
int pm_self_counters_open_default(struct pm_self_counters *out);
/* Closes the counters. If the program has closed the descriptors itself, other files that
 * may have reused their numbers stay open. */
void pm_self_counters_close(struct pm_self_counters *counters);

/* Reads the start values: through the pages if that works now, otherwise by system call.
 * @out says which of these was used, or _UNREAD. */
void pm_self_counters_begin(const struct pm_self_counters *counters,
			    struct pm_self_reading *out);
/* Reads the end values in the same way as the start values. @counted is set to the
 * difference. Returns false if it is not known. */
bool pm_self_counters_end(const struct pm_self_counters *counters,
			  const struct pm_self_reading *begin,
			  uint64_t counted[PM_SELF_COUNTERS]);
