/* SPDX-License-Identifier: MIT */
/*
 * Per-CPU events that sample some tasks only.
 *
 * An inherited event restarts its period in each task, so that threads that run for less
 * than a period are hardly ever sampled. A per-CPU event does not restart, but it sees
 * all tasks. A BPF program attached to the event therefore checks whether the running
 * task is marked, and no record is written if it is not. Further programs follow forks
 * and mark everything that a marked task starts before it runs.
 *
 * The marks are an array of bytes indexed by thread id, in memory shared with the
 * kernel: no insertion can fail, and nothing has to be looked up.
 */
#pragma once

#include "pm/base.h"

struct pm_tree_filter;

enum pm_tree_mark {
	PM_TREE_NO = 0,
	PM_TREE_YES = 1, /* its samples are recorded */
	PM_TREE_AT_EXEC = 2, /* starts to be recorded at its next exec */
};

/*
 * @inherit: tasks started by a marked task are marked, too. Requires CAP_BPF and
 * CAP_PERFMON (or root), Linux 5.8, tracefs, and that our process ids are the kernel's
 * (-ENOTSUP in a PID namespace). @err says what is missing.
 */
int pm_tree_filter_new(struct pm_tree_filter **out, bool inherit, struct pm_error *err);
/* Frees the filter. What events that are still open need stays in the kernel. */
void pm_tree_filter_free(struct pm_tree_filter *filter);

enum {
	PM_TREE_FOLLOWERS = 3
};
/* Stores in @out the descriptors of the tracepoint events, which are slow to close, and
 * returns their number. */
size_t pm_tree_filter_followers(const struct pm_tree_filter *filter,
				int out[PM_TREE_FOLLOWERS]);

/* Filters the event @fd, which must not be a tracepoint. @probe: the event belongs to
 * the uprobe or kprobe PMU, so no other program shares it. @index, chosen by the caller,
 * selects the sum of pm_tree_filter_left_out(). Returns 0 or -errno. */
int pm_tree_filter_attach(struct pm_tree_filter *filter, int fd, uint32_t index,
			  bool probe);
/* Sums the periods of dropped samples over all events with this @index. Returns -ENOTSUP
 * if that is not known. */
int pm_tree_filter_left_out(const struct pm_tree_filter *filter, uint32_t index,
			    uint64_t *out);

/* To be called before the work to be recorded starts. An id that no task can have is
 * ignored. */
void pm_tree_filter_mark(struct pm_tree_filter *filter, pid_t tid,
			 enum pm_tree_mark mark);
enum pm_tree_mark pm_tree_filter_marked(const struct pm_tree_filter *filter, pid_t tid);
