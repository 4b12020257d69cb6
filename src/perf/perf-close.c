/* SPDX-License-Identifier: MIT */
/*
 * Closes events. At the end of a recording, that must not wait for the kernel.
 *
 * When the last event of a tracepoint is closed, perf_trace_event_unreg()
 * (kernel/trace/trace_event_perf.c) calls tracepoint_synchronize_unregister(), which
 * waits until no CPU is inside the tracepoint any more: 20 to 100 ms, for each
 * tracepoint. The process that drops the last reference waits, even if it does so by
 * exiting. Therefore a child inherits these descriptors, and drops its references after
 * its parent has dropped its own.
 *
 * The same holds for a file that has no name any more: the kernel frees its blocks, and
 * waits for those that are being written to disk (truncate_inode_pages_range()). With a
 * hundred busy threads, which keep the kernel's writing thread from running, that took
 * 18 s.
 */
#include "perf-state.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static bool is_slow_to_close(const struct pm_perf *perf, const struct pm_perf_fd *entry)
{
	return entry->event >= 0 &&
	       perf->events.data[entry->event].actual.kind == PM_EVENT_TRACEPOINT;
}

static int compare_fd_numbers(const void *left, const void *right)
{
	const int *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static int close_fd_range(unsigned int first, unsigned int last)
{
	return (int)syscall(SYS_close_range, first, last, 0u);
}

/* @fds must be sorted and contain at least one descriptor. */
static bool close_all_other_fds(const int *fds, size_t len)
{
	unsigned int first = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned int fd = (unsigned int)fds[i];

		if (fd > first && close_fd_range(first, fd - 1) < 0)
			return false;
		first = fd + 1;
	}
	return close_fd_range(first, UINT32_MAX) == 0;
}

/*
 * Runs in the child. Only system calls are allowed, because another thread of the parent
 * may have held any lock. @parent_has becomes readable when the parent has closed its
 * descriptors. If the child closed its own before that, the parent would wait.
 */
static _Noreturn void close_fds_in_child(const int *fds, size_t len, int parent_has)
{
	int ret;
	char byte;

	prctl(PR_SET_NAME, "pmrec-close");
	(void)setsid();
	ret = chdir("/");
	if (!close_all_other_fds(fds, len))
		_exit(1);
	do
		ret = read(parent_has, &byte, 1) < 0 ? errno : 0;
	while (ret == EINTR);
	_exit(0); /* closes the remaining descriptors */
}

/* Lists the descriptors that the child closes; returns -1 if out of memory. */
static ssize_t list_slow_fds(const struct pm_perf *perf, int **out)
{
	int *fds = calloc(perf->fds.len + PM_TREE_FOLLOWERS + 1, sizeof(*fds));
	size_t len = 0;

	if (!fds)
		return -1;
	if (perf->filter)
		len = pm_tree_filter_followers(perf->filter, fds);
	for (size_t i = 0; i < perf->fds.len; i++)
		if (is_slow_to_close(perf, &perf->fds.data[i]))
			fds[len++] = perf->fds.data[i].fd;
	*out = fds;
	return (ssize_t)len;
}

/* Both ends of the pipe to the child. End of file shows that the parent has closed its
 * descriptors. */
struct behind {
	int ends[2];
};

/* Starts the child for @fds, which must have room for one more entry. Returns its pid, or 0. */
static pid_t closing_child_start(struct behind *behind, int *fds, size_t len)
{
	int nice = getpriority(PRIO_PROCESS, 0);
	pid_t child;

	*behind = (struct behind){ { -1, -1 } };
	if (len == 0 || pipe2(behind->ends, O_CLOEXEC) < 0)
		return 0;
	fds[len++] = behind->ends[0];
	qsort(fds, len, sizeof(*fds), compare_fd_numbers);
	child = fork();
	if (child == 0)
		close_fds_in_child(fds, len, behind->ends[0]);
	/* If our nice value is better than the default, SCHED_RESET_ON_FORK has taken it
	 * from the child. Restore it: a reader of our output waits until the child has
	 * closed it. */
	if (child > 0)
		setpriority(PRIO_PROCESS, (id_t)child, nice);
	if (child < 0)
		return 0;
	return child;
}

static void closing_child_wait(const struct behind *behind)
{
	for (size_t i = 0; i < PM_ARRAY_LEN(behind->ends); i++)
		if (behind->ends[i] >= 0)
			close(behind->ends[i]);
}

void pm_perf_free(struct pm_perf *perf)
{
	if (!perf)
		return;
	pm_perf_close_all(perf);
	pm_tree_filter_free(perf->filter);
	if (perf->cgroup_fd >= 0)
		close(perf->cgroup_fd);
	pm_perf_notes_release(&perf->notes);
	pm_vec_release(&perf->poll_fds);
	pm_vec_release(&perf->fds);
	pm_vec_release(&perf->events);
	pm_vec_release(&perf->before);
	pm_vec_release(&perf->places);
	pm_vec_release(&perf->tasks);
	free(perf);
}

void pm_perf_free_behind(struct pm_perf *perf)
{
	PM_AUTO_FREE int *fds = NULL;
	ssize_t len = perf ? list_slow_fds(perf, &fds) : 0;
	struct behind behind;

	closing_child_start(&behind, fds, len > 0 ? (size_t)len : 0);
	pm_perf_free(perf);
	closing_child_wait(&behind);
}

pid_t pm_perf_close_behind(int fd)
{
	int fds[2] = { fd };
	struct behind behind;
	pid_t child = closing_child_start(&behind, fds, 1);

	close(fd);
	closing_child_wait(&behind);
	return child;
}

/* ---- while recording -------------------------------------------------------------------- */

void pm_perf_close_events(struct pm_perf *perf)
{
	pm_event_ids_release(&perf->ids);
	for (size_t i = 0; i < perf->fds.len; i++)
		close(perf->fds.data[i].fd);
	pm_vec_clear(&perf->fds);
	for (size_t i = 0; i < perf->places.len; i++)
		if (perf->places.data[i].watch >= 0)
			close(pm_take_fd(&perf->places.data[i].watch));
}

void pm_perf_close_all(struct pm_perf *perf)
{
	pm_perf_close_events(perf);
	pm_merge_release(&perf->merge);
	pm_vec_clear(&perf->poll_fds);
	for (size_t i = 0; i < perf->places.len; i++) {
		struct pm_perf_place *place = &perf->places.data[i];
		int *fds[] = { &place->anchor, &place->backward };

		for (size_t k = 0; k < PM_ARRAY_LEN(fds); k++)
			if (*fds[k] >= 0)
				close(pm_take_fd(fds[k]));
	}
}
