/* SPDX-License-Identifier: MIT */
/* A run with uprobes, from the start of the command to its scopes. */
#include "engine-uprobe.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "callers.h"
#include "live.h"
#include "tell.h"

enum {
	TICK_MS = 50, /* between two reads of the rings */
	TICK_LIVE_MS = 10,
	TICK_LATE_MS = 1, /* threads that are not held must be found soon */
};

#define GRACE_NS 2000000000u /* for the command to end after SIGTERM */

/* Releases all threads. */
static void uprobe_hold_release(struct pm_up_hold *hold)
{
	pm_trace_free(hold->trace);
	hold->trace = NULL;
}

static void uprobe_engine_release(struct pm_up_engine *it)
{
	uprobe_hold_release(&it->hold);
	pm_hits_free(it->hits);
	pm_passed_release(&it->passed);
	pm_calls_free(it->calls);
	pm_callers_free(it->callers);
	pm_up_places_release(&it->places);
	pm_up_cost_release(&it->cost);
	pm_vec_release(&it->poll_fds);
	pm_vec_release(&it->descendants);
}

/* ---- hits and records ---------------------------------------------------------------- */

static int uprobe_handle_hit(struct pm_up_engine *it, const struct pm_hit *hit)
{
	const struct pm_regions *regions = it->options->regions;
	struct pm_visit visit = {
		.time = hit->time,
		.pid = hit->pid,
		.tid = hit->tid,
		.place = it->places.order.data[hit->place],
		.sp = hit->sp,
		.counts = hit->counts,
		.enabled_ns = hit->enabled_ns,
		.running_ns = hit->running_ns,
		.caller = UINT32_MAX,
	};
	const struct pm_place *place = &regions->places.data[visit.place];

	pm_passed_count(&it->passed, place->region);
	if (place->condition != 0 && !pm_place_leaves(place, hit->flags))
		return 0;
	if (it->callers && place->kind == PM_PLACE_ENTRY &&
	    pm_callers_of_sample(it->callers, hit->pid, hit->sample, &visit.caller) < 0)
		return -ENOMEM;
	return pm_calls_visit(it->calls, &visit);
}

/* Several groups may report the same fork. */
static int uprobe_handle_process(struct pm_up_engine *it, pid_t pid, bool begins)
{
	size_t at = it->descendants.len;

	while (at > 0 && it->descendants.data[at - 1] != pid)
		at--;
	if (begins) {
		if (at > 0)
			return 0;
		return pm_vec_push(&it->descendants, pid);
	}
	if (at > 0)
		it->descendants.data[at - 1] =
			it->descendants.data[--it->descendants.len];
	return 0;
}

static int uprobe_handle_record(struct pm_up_engine *it, const struct pm_record *record)
{
	pid_t pid = (pid_t)record->pid, tid = (pid_t)record->tid;

	if (it->callers && pm_callers_record(it->callers, record) < 0)
		return -ENOMEM;
	if ((record->type == PERF_RECORD_FORK || record->type == PERF_RECORD_EXIT) &&
	    pid == tid &&
	    uprobe_handle_process(it, pid, record->type == PERF_RECORD_FORK) < 0)
		return -ENOMEM;
	switch (record->type) {
	case PERF_RECORD_FORK:
		return pm_calls_fork(it->calls, (pid_t)record->fork.parent_tid, pid, tid,
				     record->time);
	case PERF_RECORD_EXIT:
		pm_calls_thread_exit(it->calls, tid);
		return 0;
	case PERF_RECORD_COMM:
		if (record->comm.exec)
			pm_calls_thread_exit(it->calls, tid);
		if (it->options->by_thread)
			pm_calls_thread_named(it->calls, pid, tid, record->comm.name);
		return 0;
	default:
		return 0;
	}
}

/* Reads the rings; @final: completely. */
static int uprobe_drain(struct pm_up_engine *it, bool final, struct pm_error *err)
{
	enum pm_hits_what what;
	struct pm_record record;
	struct pm_hit hit;
	int ret;

	pm_hits_begin(it->hits, final);
	while ((ret = pm_hits_next(it->hits, &what, &hit, &record, err)) == 1) {
		if (what == PM_HITS_HIT)
			ret = uprobe_handle_hit(it, &hit);
		else
			ret = uprobe_handle_record(it, &record);
		if (ret < 0)
			return pm_up_no_memory(err);
	}
	return ret;
}

/* ---- holding new threads --------------------------------------------------------------- */

/*
 * Some kernels do not pass counters at places on to new threads and processes. A tracer
 * then holds each of them before its first instruction until its own counters are open.
 * Only two other threads are stopped: one that is creating a thread, until it is done,
 * and one that receives a signal, which is passed on. Threads with CLONE_UNTRACED, which
 * no library creates, would not be counted.
 */

enum {
	HOLD_EVENTS_MAX = 64, /* events in a row, as the rings must be read, too */
	HOLD_TICK_MS = 10,
};

#define PART_NS 1000000000u /* wait for threads that are still traced at the end */

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

/* To be called once the hits are open and before the command starts. Returns 0 also if
 * threads cannot be held; that is reported only if a thread was missed. */
static int uprobe_hold_begin(struct pm_up_engine *it, struct pm_error *err)
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
			uprobe_hold_release(hold);
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

static void hold_end_command(struct pm_up_engine *it, int status)
{
	struct pm_child *child = it->child;

	child->running = false;
	child->status = status;
	child->status_known = true;
	child->usage = *pm_trace_usage(it->hold.trace);
}

/* Reads the records of an older thread with the same tid first. */
static int hold_handle_new_thread(struct pm_up_engine *it, pid_t tid,
				  struct pm_error *err)
{
	int ret = 0;

	if (pm_hits_follows(it->hits, tid))
		ret = uprobe_drain(it, false, err);
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
	ret = uprobe_drain(it, false, err);
	if (ret == 0)
		pm_hits_renamed(it->hits, event->former_tid, event->tid);
	return ret;
}

/* Returns 1 if an event was handled, 0 if there was none, or a negative error. */
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

/* Handles pending events, after SIGCHLD; for a command also its end. */
static int uprobe_hold_turn(struct pm_up_engine *it, struct pm_error *err)
{
	struct pm_trace_event event;
	int ret = it->hold.trace ? 1 : 0;

	it->hold.more = false;
	for (size_t i = 0; i < HOLD_EVENTS_MAX && ret == 1; i++)
		ret = hold_handle_next_event(it, &event, err);
	if (it->hold.trace)
		it->hold.more = ret == 1 || pm_trace_more(it->hold.trace);
	if (ret < 0)
		return ret;
	return 0;
}

/* For a command that is about to execute its program: returns 0 when it has done so or has
 * ended. */
static int uprobe_hold_until_exec(struct pm_up_engine *it, struct pm_error *err)
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
		poll(&signals, 1, pm_trace_more(it->hold.trace) ? 0 : HOLD_TICK_MS);
		pm_child_signals(it->child);
	}
}

/* Releases all threads. */
static void uprobe_hold_end(struct pm_up_engine *it)
{
	struct pm_up_hold *hold = &it->hold;
	uint64_t begin = pm_now_ns();

	if (!hold->trace)
		return;
	hold->holds = false;
	pm_trace_detach(hold->trace);
	while (pm_trace_len(hold->trace) > 0 && pm_now_ns() - begin < PART_NS) {
		struct pollfd signals = { it->child->signal_fd, POLLIN, 0 };

		uprobe_hold_turn(it, NULL);
		if (pm_trace_len(hold->trace) == 0)
			return;
		poll(&signals, 1, hold->more ? 0 : HOLD_TICK_MS);
		pm_child_signals(it->child);
	}
}

/* ---- while it runs ------------------------------------------------------------------- */

static int fill_poll(struct pm_up_engine *it)
{
	const int ends = it->options->targets ? it->options->targets->ends_fd : -1;
	const int own[] = { it->child->signal_fd, ends };
	size_t len;
	const int *rings = pm_hits_poll_fds(it->hits, &len);
	int ret = 0;

	pm_vec_clear(&it->poll_fds);
	for (size_t i = 0; i < PM_ARRAY_LEN(own) && ret == 0; i++)
		ret = pm_vec_push(&it->poll_fds, (struct pollfd){ own[i], POLLIN, 0 });
	for (size_t i = 0; i < len && ret == 0; i++)
		ret = pm_vec_push(&it->poll_fds, (struct pollfd){ rings[i], POLLIN, 0 });
	return ret;
}

/* Whether the time for the targets is up. When a command's time is up, ends it with
 * SIGTERM, later with SIGKILL. */
static bool is_time_up(struct pm_up_engine *it)
{
	if (pm_now_ns() < it->deadline_ns)
		return false;
	if (!it->options->targets) {
		kill(it->child->launch.pid, it->timed_out ? SIGKILL : SIGTERM);
		it->child->ending = true;
		it->deadline_ns += GRACE_NS;
	}
	it->timed_out = true;
	return it->options->targets != NULL;
}

/* Whether there is nothing left to wait for. */
static bool uprobe_is_over(struct pm_up_engine *it)
{
	bool time_up = is_time_up(it);

	if (it->options->targets)
		return time_up || it->child->interrupts > 0 ||
		       pm_targets_ended(it->options->targets);
	if (!it->hold.trace)
		pm_child_reap(it->child);
	pm_child_give_up_stuck(it->child, "pmstat");
	return !it->child->running;
}

static int uprobe_follow_hits(struct pm_up_engine *it, struct pm_error *err)
{
	int tick = TICK_MS;
	bool over = false;
	int ret = 0;

	if (pm_hits_finds_threads(it->hits))
		tick = TICK_LATE_MS;
	else if (it->options->live)
		tick = TICK_LIVE_MS;

	while (!over && ret == 0) {
		if (fill_poll(it) < 0)
			return pm_up_no_memory(err);
		poll(it->poll_fds.data, it->poll_fds.len, it->hold.more ? 0 : tick);
		pm_child_signals(it->child);
		ret = uprobe_hold_turn(it, err);
		over = uprobe_is_over(it);
		if (!over && ret == 0)
			ret = uprobe_drain(it, false, err);
		pm_passed_tell(&it->passed, it->options);
	}
	it->end_ns = pm_now_ns();
	pm_hits_disable(it->hits);
	uprobe_hold_end(it);
	if (ret == 0)
		return uprobe_drain(it, true, err);
	return ret;
}

/* The counting has failed halfway; this must not affect the command. */
static void uprobe_wait_for_command(struct pm_up_engine *it)
{
	struct pollfd signals = { .fd = it->child->signal_fd, .events = POLLIN };

	while (!it->options->targets && it->child->running) {
		poll(&signals, 1, TICK_MS);
		pm_child_signals(it->child);
		if (it->hold.trace)
			uprobe_hold_turn(it, NULL);
		else
			pm_child_reap(it->child);
		pm_child_give_up_stuck(it->child, "pmstat");
	}
}

/* ---- start --------------------------------------------------------------------------- */

static int uprobe_open_hits(struct pm_up_engine *it, struct pm_error *err)
{
	const struct pm_engine_options *options = it->options;
	struct pm_hits_options wanted = {
		.counters = options->specs,
		.counters_len = options->specs_len,
		.places = it->places.specs.data,
		.places_len = it->places.specs.len,
		.classes = it->places.classes.data,
		.target = options->targets ? PM_PERF_TASKS : PM_PERF_COMMAND,
		.pid = it->child->launch.pid,
		.no_inherit = options->no_inherit,
	};
	int ret;

	if (it->callers) {
		wanted.stack_bytes = pm_callers_stack_bytes(options->calls_from);
		wanted.with_stack = it->places.entries.data;
	}
	if (options->targets) {
		wanted.tids = options->targets->tids.data;
		wanted.tids_len = options->targets->tids.len;
	}
	ret = pm_hits_open(&it->hits, &wanted, err);
	if (ret == 0 && pm_up_fill_events(it) < 0)
		return pm_up_no_memory(err);
	return ret;
}

/* The command stops at its exec for a moment, and pm_child_go() waits for that. */
static int begin_held(struct pm_up_engine *it, struct pm_error *err)
{
	int ret = pm_launch_begin(&it->child->launch, err);

	if (ret == 0)
		return uprobe_hold_until_exec(it, err);
	return ret;
}

static int uprobe_launch_command(struct pm_up_engine *it, struct pm_error *err)
{
	int ret = pm_child_prepare(it->child, it->options->command, it->options->user,
				   it->options->data_on_stdout, err);

	if (ret == 0)
		ret = pm_child_catch_signals(it->child, false, err);
	if (ret == 0)
		ret = uprobe_open_hits(it, err);
	if (ret == 0)
		ret = uprobe_hold_begin(it, err);
	it->begin_ns = pm_now_ns();
	if (ret == 0 && it->hold.holds)
		ret = begin_held(it, err);
	if (ret == 0)
		return pm_child_go(it->child, err);
	return ret;
}

/* There is no COMM record for a thread that is already running. */
static void uprobe_name_running_thread(struct pm_up_engine *it, pid_t tid)
{
	char path[64], comm[16];
	FILE *file PM_AUTO_FCLOSE = NULL;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)tid);
	file = fopen(path, "re");
	if (!file || !fgets(comm, sizeof(comm), file))
		return;
	comm[strcspn(comm, "\n")] = '\0';
	pm_calls_thread_named(it->calls, 0, tid, comm);
}

static int uprobe_attach_targets(struct pm_up_engine *it, struct pm_error *err)
{
	struct pm_targets *targets = it->options->targets;
	int ret = pm_child_catch_signals(it->child, false, err);

	if (ret == 0 && targets->kind != PM_PERF_TASKS)
		return pm_error_set(err, -EINVAL,
				    "functions are looked at in a command or in "
				    "processes, not on all CPUs or in control groups");
	if (ret == 0)
		ret = uprobe_open_hits(it, err);
	if (ret == 0)
		ret = uprobe_hold_begin(it, err);
	if (ret == 0)
		ret = pm_targets_begin(targets, err);
	/* Started while the events of the others were being opened. */
	for (size_t i = 0; ret == 0 && i < targets->late.len; i++)
		pm_hits_follow(it->hits, targets->late.data[i], NULL);
	for (size_t i = 0; ret == 0 && it->callers && i < targets->roots.len; i++)
		if (pm_callers_process(it->callers, targets->roots.data[i].pid) < 0)
			return pm_up_no_memory(err);
	for (size_t i = 0; ret == 0 && it->options->by_thread && i < targets->tids.len;
	     i++)
		uprobe_name_running_thread(it, targets->tids.data[i]);
	it->begin_ns = pm_now_ns();
	return ret;
}

static void uprobe_on_call_ended(void *user, uint32_t region,
				 const struct pm_visit *entry,
				 const struct pm_visit *exit, uint32_t depth)
{
	const struct pm_up_engine *it = user;
	const uint64_t *subtracted = NULL;

	if (it->cost.known && !it->options->keep_overhead)
		subtracted = it->cost.call[pm_up_entered_cheaply(it->options->regions,
								 region)];
	pm_live_call(it->options, it->stat, subtracted, region, entry, exit, depth);
}

static int uprobe_name_caller(void *user, uint32_t caller, struct pm_stat_caller *out)
{
	return pm_callers_name(((struct pm_up_engine *)user)->callers, caller, out);
}

/* Fails if none of the functions can be counted. */
static int check_any_function_probed(const struct pm_up_engine *it, struct pm_error *err)
{
	const struct pm_regions *regions = it->options->regions;

	for (uint32_t i = 0; i < regions->list.len; i++)
		if (regions->list.data[i].sum < 0 && !pm_regions_is_deaf(regions, i))
			return 0;
	pm_error_set(
		err, -EINVAL,
		"the kernel puts no probe on the instructions that %s begins with: its "
		"calls cannot be counted so",
		regions->list.len > 0 ? regions->list.data[0].name : "");
	pm_error_fix(err, "--engine ptrace");
	return -EINVAL;
}

static int uprobe_engine_prepare(struct pm_up_engine *it, struct pm_error *err)
{
	const struct pm_engine_options *options = it->options;
	struct pm_calls_options calls = { .regions = options->regions,
					  .events = options->specs_len,
					  .by_thread = options->by_thread,
					  .ended = options->live && options->live_line
							   ? uprobe_on_call_ended
							   : NULL,
					  .name_caller = uprobe_name_caller,
					  .user = it };
	struct timespec now;
	int ret;

	if (options->specs_len > PM_HITS_COUNTERS_MAX)
		return pm_error_set(err, -E2BIG,
				    "%zu events at each call: %d at most can be counted",
				    options->specs_len, PM_HITS_COUNTERS_MAX);
	clock_gettime(CLOCK_REALTIME, &now);
	it->began_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	if (pm_passed_init(&it->passed, options) < 0)
		return pm_up_no_memory(err);
	ret = pm_up_places_make(&it->places, options->regions);
	if (ret == 0 && check_any_function_probed(it, err) < 0)
		return -EINVAL;
	if (ret == 0)
		ret = pm_up_cost_measure(&it->cost, options);
	if (ret == 0)
		ret = pm_calls_new(&it->calls, &calls);
	if (ret == 0 && options->calls_from > 0) {
		it->callers = pm_callers_new(options->calls_from);
		if (it->callers)
			ret = 0;
		else
			ret = -ENOMEM;
	}
	for (size_t i = 0; i < 2 && ret == 0 && it->cost.known; i++)
		ret = pm_calls_set_costs(it->calls, i == 1, it->cost.call[i],
					 it->cost.visit[i]);
	if (ret < 0)
		return pm_up_no_memory(err);
	return 0;
}

/* ---- public -------------------------------------------------------------------------- */

int pm_engine_uprobe_check(struct pm_error *err)
{
	return pm_hits_check(err);
}

int pm_engine_uprobe_run(struct pm_stat *stat, const struct pm_engine_options *options,
			 struct pm_child *child, struct pm_error *err)
{
	struct pm_up_engine it PM_CLEANUP(uprobe_engine_release) = { .stat = stat,
								     .options = options,
								     .child = child,
								     .deadline_ns =
									     UINT64_MAX };
	int ret = pm_engine_uprobe_check(err);

	if (ret == 0)
		ret = uprobe_engine_prepare(&it, err);
	if (ret == 0) {
		if (options->targets)
			ret = uprobe_attach_targets(&it, err);
		else
			ret = uprobe_launch_command(&it, err);
	}
	if (ret < 0)
		return ret;
	if (options->timeout_ns > 0)
		it.deadline_ns = it.begin_ns + options->timeout_ns;
	ret = uprobe_follow_hits(&it, err);
	if (ret < 0) {
		uprobe_wait_for_command(&it);
		return ret;
	}
	return pm_up_tell(&it, err);
}
