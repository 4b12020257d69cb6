/* SPDX-License-Identifier: MIT */
/*
 * Events of a CPU that sample some tasks only.
 *
 * An event that tasks inherit starts its period anew in each of them: of threads that live
 * shorter than a period hardly one is ever sampled. An event of a CPU does not restart, but it
 * sees everybody. So a BPF program at the event looks whether the running task is marked, and
 * no record is made when it is not; others follow forks, so that the marks spread to all that
 * a marked task starts, before that runs.
 *
 * The marks are one byte for each number a task may have, in memory shared with the kernel:
 * no insertion that could fail, nothing to look up.
 */
#pragma once

#include "pm/base.h"

struct pm_tree_filter;

enum pm_tree_mark {
	PM_TREE_NO = 0,
	PM_TREE_YES = 1, /* its samples are recorded */
	PM_TREE_AT_EXEC = 2, /* from its next exec on */
};

/*
 * @inherit: what a marked task starts is marked, too. Needs CAP_BPF and CAP_PERFMON (or root),
 * Linux 5.8, tracefs, and that our process numbers are the kernel's (-ENOTSUP in a PID
 * namespace). @err says what is missing.
 */
int pm_tree_filter_new(struct pm_tree_filter **ret, bool inherit, struct pm_error *err);
/* Nothing stays in the kernel but what events that are still open need. */
void pm_tree_filter_free(struct pm_tree_filter *filter);

enum {
	PM_TREE_FOLLOWERS = 3
};
/* The descriptors of the events at tracepoints, which are slow to close; returns how many. */
size_t pm_tree_filter_followers(const struct pm_tree_filter *filter,
				int ret[PM_TREE_FOLLOWERS]);

/* Filters the event @fd, which must not be one of a tracepoint; @probe: of the uprobe or kprobe
 * PMU, whose events are nobody else's. @index is the caller's. 0 or -errno. */
int pm_tree_filter_attach(struct pm_tree_filter *filter, int fd, uint32_t index,
			  bool probe);
/* The sum of the periods of samples that were not recorded, of all events of @index. -ENOTSUP
 * where that is not known. */
int pm_tree_filter_left_out(const struct pm_tree_filter *filter, uint32_t index,
			    uint64_t *ret);

/* Before what it is to record begins. A number that no task can have is ignored. */
void pm_tree_filter_mark(struct pm_tree_filter *filter, pid_t tid,
			 enum pm_tree_mark mark);
enum pm_tree_mark pm_tree_filter_marked(const struct pm_tree_filter *filter, pid_t tid);
