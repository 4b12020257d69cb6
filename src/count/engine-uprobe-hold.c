/* SPDX-License-Identifier: MIT */
/*
 * Some kernels do not pass counters at places on to new threads and processes. A tracer
 * then holds each of them before its first instruction until its own counters are open.
 * Only two other threads are stopped: one that is creating a thread, until it is done,
 * and one that receives a signal, which is passed on. Threads with CLONE_UNTRACED, which
 * no library creates, would not be counted.
 */
#include "engine-uprobe.h"
#include "tell.h"

#include <string.h>

enum {
	EVENTS_MAX = 64, /* events in a row, as the rings must be read, too */
	TICK_MS = 10,
};

#define PART_NS 1000000000u /* wait for threads that are still traced at the end */

/* ---- start --------------------------------------------------------------------------- */

static int hold_seize_tasks(struct pm_up_engine *it, struct pm_error *err)
{
	const struct pm_targets *targets = it->options->targets;
	int ret;

	if (!targets)
		return pm_trace_seize(it->hold.trace, it->child->launch.pid, true, err);
	for (size_t i = 0; i < targets->roots.len; i++) {
		if (targets->roots.data[i].tid != 0)
			return pm_error_set(err, -ENOTSUP,
					    "only those of whole processes can be");
		ret = pm_trace_seize(it->hold.trace, targets->roots.data[i].pid, true,
				     err);
		if (ret > 0)
			ret = pm_error_set(err, -EAGAIN,
					   "they are made faster than they can be found");
		if (ret < 0)
			return ret;
	}
	return 0;
}

static void hold_follow_thread(struct pm_up_hold *hold, struct pm_hits *hits, pid_t tid)
{
	struct pm_error why;
	int ret = pm_hits_follow(hits, tid, &why);

	if (ret == 0 || ret == -ESRCH)
		return;
	if (hold->refused++ == 0)
		hold->why = why;
}

int pm_up_hold_begin(struct pm_up_engine *it, struct pm_error *err)
{
	struct pm_up_hold *hold = &it->hold;

	if (!pm_hits_finds_threads(it->hits))
		return 0;
	if (pm_engine_ptrace_check(&hold->why) < 0)
		return 0;
	hold->trace = pm_trace_new();
	if (!hold->trace)
		return pm_error_set(err, -ENOMEM, "no memory for the threads");
	if (!it->options->targets)
		pm_trace_watch_usage(hold->trace, it->child->launch.pid);
	if (hold_seize_tasks(it, &hold->why) < 0) {
		/* Threads that were already seized are released. */
		pm_trace_detach(hold->trace);
		if (pm_trace_len(hold->trace) == 0)
			pm_up_hold_release(hold);
		return 0;
	}
	hold->holds = true;
	pm_hits_hold(it->hits);
	/* Threads that may have started while the events of the others were being
	 * opened. */
	for (pid_t tid = 0; (tid = pm_trace_next_tid(hold->trace, tid)) != 0;)
		hold_follow_thread(hold, it->hits, tid);
	return 0;
}

/* ---- while it runs ------------------------------------------------------------------- */

static void hold_end_command(struct pm_up_engine *it, int status)
{
	struct pm_child *child = it->child;

	child->running = false;
	child->status = status;
	child->status_known = true;
	child->usage = *pm_trace_usage(it->hold.trace);
}

/* Records of an older thread with the same tid are read first. */
static int hold_handle_new_thread(struct pm_up_engine *it, pid_t tid,
				  struct pm_error *err)
{
	int ret = 0;

	if (pm_hits_follows(it->hits, tid))
		ret = pm_up_drain(it, false, err);
	if (ret == 0)
		hold_follow_thread(&it->hold, it->hits, tid);
	return ret;
}

static int hold_handle_exec(struct pm_up_engine *it, const struct pm_trace_event *event,
			    struct pm_error *err)
{
	int ret;

	it->hold.privileged += pm_tell_is_privileged(event->pid);
	if (event->former_tid == event->tid)
		return 0;
	ret = pm_up_drain(it, false, err);
	if (ret == 0)
		pm_hits_renamed(it->hits, event->former_tid, event->tid);
	return ret;
}

/* 1: an event was handled; 0: none; or negative. */
static int hold_handle_next_event(struct pm_up_engine *it, struct pm_trace_event *event,
				  struct pm_error *err)
{
	struct pm_up_hold *hold = &it->hold;
	int ret = pm_trace_next(hold->trace, event, err);

	if (ret <= 0)
		return ret;
	if (event->what == PM_TRACE_EXIT && !it->options->targets &&
	    event->tid == it->child->launch.pid && !it->child->status_known)
		hold_end_command(it, event->status);
	if (event->what == PM_TRACE_NEW && hold->holds)
		ret = hold_handle_new_thread(it, event->tid, err);
	else if (event->what == PM_TRACE_EXEC && hold->holds)
		ret = hold_handle_exec(it, event, err);
	pm_trace_go_on(hold->trace);
	if (ret < 0)
		return ret;
	return 1;
}

int pm_up_hold_turn(struct pm_up_engine *it, struct pm_error *err)
{
	struct pm_trace_event event;
	int ret = it->hold.trace ? 1 : 0;

	it->hold.more = false;
	for (size_t i = 0; i < EVENTS_MAX && ret == 1; i++)
		ret = hold_handle_next_event(it, &event, err);
	if (it->hold.trace)
		it->hold.more = ret == 1 || pm_trace_more(it->hold.trace);
	if (ret < 0)
		return ret;
	return 0;
}

int pm_up_hold_until_exec(struct pm_up_engine *it, struct pm_error *err)
{
	pid_t pid = it->child->launch.pid;

	for (;;) {
		struct pollfd signals = { it->child->signal_fd, POLLIN, 0 };
		struct pm_trace_event event;
		int ret = hold_handle_next_event(it, &event, err);

		if (ret < 0 ||
		    (ret == 1 && event.tid == pid &&
		     (event.what == PM_TRACE_EXEC || event.what == PM_TRACE_EXIT))) {
			if (ret < 0)
				return ret;
			return 0;
		}
		if (ret == 1)
			continue;
		poll(&signals, 1, pm_trace_more(it->hold.trace) ? 0 : TICK_MS);
		pm_child_signals(it->child);
	}
}

/* ---- the end ------------------------------------------------------------------------- */

void pm_up_hold_end(struct pm_up_engine *it)
{
	struct pm_up_hold *hold = &it->hold;
	uint64_t begin = pm_now_ns();

	if (!hold->trace)
		return;
	hold->holds = false;
	pm_trace_detach(hold->trace);
	while (pm_trace_len(hold->trace) > 0 && pm_now_ns() - begin < PART_NS) {
		struct pollfd signals = { it->child->signal_fd, POLLIN, 0 };

		pm_up_hold_turn(it, NULL);
		if (pm_trace_len(hold->trace) == 0)
			return;
		poll(&signals, 1, hold->more ? 0 : TICK_MS);
		pm_child_signals(it->child);
	}
}

void pm_up_hold_release(struct pm_up_hold *hold)
{
	pm_trace_free(hold->trace);
	hold->trace = NULL;
}
