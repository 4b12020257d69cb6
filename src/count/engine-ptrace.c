/* SPDX-License-Identifier: MIT */
/*
 * The engine for users who may not place uprobes: a run, from the start of the command to
 * its scopes.
 */
#include "engine-ptrace-run.h"
#include "live.h"

#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum {
	HITS_GAIN = 2, /* factor by which hits must be cheaper, as they may be lost */
};

#define TICK_NS  20000000 /* between two checks of signals and the time */
#define GRACE_NS 2000000000u /* for the command to end after SIGTERM */
#define PART_NS  1000000000u /* for the remaining processes after the command's end */

/* ---- visits and threads -------------------------------------------------------------- */

static int ptrace_on_visit(void *user, const struct pm_visit *visit)
{
	struct pm_ptr_engine *it = user;

	pm_passed_count(&it->passed,
			it->options->regions->places.data[visit->place].region);
	return pm_calls_visit(it->calls, visit);
}

static int ptrace_on_fork(void *user, pid_t parent_tid, pid_t pid, pid_t tid)
{
	return pm_calls_fork(((struct pm_ptr_engine *)user)->calls, parent_tid, pid, tid,
			     pm_now_ns());
}

static void ptrace_on_thread_exit(void *user, pid_t tid)
{
	pm_calls_thread_exit(((struct pm_ptr_engine *)user)->calls, tid);
}

static void ptrace_on_thread_named(void *user, pid_t pid, pid_t tid, const char *comm)
{
	pm_calls_thread_named(((struct pm_ptr_engine *)user)->calls, pid, tid, comm);
}

static int ptrace_name_caller(void *user, uint32_t caller, struct pm_stat_caller *out)
{
	const struct pm_ptr_engine *it = user;

	return pm_ptr_callers_fill(&it->ptr.callers, it->ptr.procs, caller, out);
}

static void ptrace_on_call_ended(void *user, uint32_t region,
				 const struct pm_visit *entry,
				 const struct pm_visit *exit, uint32_t depth)
{
	const struct pm_ptr_engine *it = user;
	const struct pm_ptr_counts *counts = &it->ptr.counts;
	const struct pm_ptr_costs *costs = &it->costs[it->ptr.hw.hits != NULL];
	const struct pm_counters_event *events = counts->events.data;
	const uint64_t *subtracted = NULL;
	size_t len = counts->events.len;

	if (it->ptr.hw.hits)
		events = pm_hits_counters(it->ptr.hw.hits, &len);
	/* Events that do not exist must not be shown. */
	for (size_t i = 0; i < len && i < it->stat->events.len; i++)
		if ((int64_t)i != counts->clock)
			it->stat->events.data[i].state = events[i].state;
	if (costs->known && !it->options->keep_overhead)
		subtracted = costs->call;
	pm_live_call(it->options, it->stat, subtracted, region, entry, exit, depth);
}

static const struct pm_ptr_listener listener = { .visit = ptrace_on_visit,
						 .fork = ptrace_on_fork,
						 .exit = ptrace_on_thread_exit,
						 .named = ptrace_on_thread_named };

/* ---- signals to us ------------------------------------------------------------------- */

static void ignore_tick_signal(int number)
{
}

/*
 * While the tracer waits for a stop it waits for nothing else; that makes a stop cheap. A
 * timer interrupts the wait. It signals this thread only.
 */
static int start_tick_timer(struct pm_ptr_engine *it, struct pm_error *err)
{
	struct sigaction action = { .sa_handler = ignore_tick_signal };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = SIGALRM };
	struct itimerspec period = { { 0, TICK_NS }, { 0, TICK_NS } };

	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (sigaction(SIGALRM, &action, &it->before) < 0)
		return pm_error_set(err, -errno, "sigaction: %s", strerror(errno));
	if (timer_create(CLOCK_MONOTONIC, &event, &it->timer) < 0) {
		int ret = -errno;

		sigaction(SIGALRM, &it->before, NULL);
		return pm_error_set(err, ret, "timer: %s", strerror(-ret));
	}
	/* Without hits, SIGCHLD is not used, and each stop would send one. */
	if (!it->ptr.hw_wanted) {
		action = (struct sigaction){ .sa_handler = SIG_DFL,
					     .sa_flags = SA_NOCLDSTOP };
		sigaction(SIGCHLD, &action, &it->child_before);
	} else {
		sigaction(SIGCHLD, NULL, &it->child_before);
	}
	it->has_timer = true;
	timer_settime(it->timer, 0, &period, NULL);
	return 0;
}

static void stop_tick_timer(struct pm_ptr_engine *it)
{
	if (!it->has_timer)
		return;
	timer_delete(it->timer);
	sigaction(SIGALRM, &it->before, NULL);
	sigaction(SIGCHLD, &it->child_before, NULL);
	it->has_timer = false;
}

static void ptrace_engine_release(struct pm_ptr_engine *it)
{
	stop_tick_timer(it);
	for (size_t i = 0; i < PM_ARRAY_LEN(it->costs); i++)
		pm_ptr_costs_release(&it->costs[i]);
	pm_vec_release(&it->polled);
	pm_passed_release(&it->passed);
	pm_calls_free(it->calls);
	pm_ptr_release(&it->ptr);
}

/* ---- following ----------------------------------------------------------------------- */

static void ptrace_end_command(struct pm_ptr_engine *it, int status)
{
	struct pm_child *child = it->child;

	child->running = false;
	child->status = status;
	child->status_known = true;
	it->end_ns = pm_now_ns();
	getrusage(RUSAGE_CHILDREN, &child->usage);
	timersub(&child->usage.ru_utime, &it->usage_before.ru_utime,
		 &child->usage.ru_utime);
	timersub(&child->usage.ru_stime, &it->usage_before.ru_stime,
		 &child->usage.ru_stime);
}

/* Hits do not wake a thread that waits for stops. */
static int next_or_hits(struct pm_ptr_engine *it, struct pm_trace_event *event,
			struct pm_error *err)
{
	size_t len;
	const int *rings = pm_hits_poll_fds(it->ptr.hw.hits, &len);
	int ret = pm_trace_next(it->ptr.trace, event, err);

	if (ret != 0)
		return ret;
	pm_vec_clear(&it->polled);
	if (pm_vec_push(&it->polled, (struct pollfd){ it->child->signal_fd, POLLIN, 0 }) <
	    0)
		return pm_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < len; i++)
		if (pm_vec_push(&it->polled, (struct pollfd){ rings[i], POLLIN, 0 }) < 0)
			return pm_error_set(err, -ENOMEM, "out of memory");
	if (!pm_trace_more(it->ptr.trace))
		poll(it->polled.data, it->polled.len, TICK_NS / 1000000);
	return pm_ptr_drain(&it->ptr, false, err);
}

/* Handles the next event, or our signals. Returns 1 after an event, 0 without one, or a
 * negative error. */
static int ptrace_handle_next_event(struct pm_ptr_engine *it,
				    struct pm_trace_event *event, struct pm_error *err)
{
	int ret;

	if (it->ptr.hw.hits)
		ret = next_or_hits(it, event, err);
	else
		ret = pm_trace_wait(it->ptr.trace, event, err);
	if (ret <= 0) {
		pm_child_signals(it->child);
		return ret;
	}
	ret = pm_ptr_event(&it->ptr, event);
	pm_ptr_go_on(&it->ptr);
	if (event->what == PM_TRACE_EXIT && event->tid == it->child->launch.pid &&
	    !it->child->status_known)
		ptrace_end_command(it, event->status);
	if (ret < 0)
		return pm_error_set(err, ret, "%s", strerror(-ret));
	return 1;
}

/* When the time is up, ends the command with SIGTERM, later with SIGKILL. */
static void check_timeout(struct pm_ptr_engine *it)
{
	if (pm_now_ns() < it->deadline_ns)
		return;
	if (it->options->targets) {
		it->stopped = true;
	} else {
		kill(it->child->launch.pid, it->timed_out ? SIGKILL : SIGTERM);
		it->child->ending = true;
		it->deadline_ns += GRACE_NS;
	}
	it->timed_out = true;
}

static size_t left_behind(const struct pm_ptr_engine *it)
{
	const struct pm_ptr *ptr = &it->ptr;
	size_t count = 0;

	for (size_t i = 0; i < ptr->processes.len; i++)
		count += ptr->processes.data[i].threads > 0 &&
			 ptr->processes.data[i].counted &&
			 ptr->processes.data[i].pid != ptr->command;
	return count;
}

static int ptrace_follow_command(struct pm_ptr_engine *it, struct pm_error *err)
{
	struct pm_child *child = it->child;
	struct pm_trace_event event;
	int ret = 0;

	while (ret >= 0 && !it->stopped && child->interrupts == 0 &&
	       (it->options->targets || child->running)) {
		ret = ptrace_handle_next_event(it, &event, err);
		if (ret == 0 && pm_trace_len(it->ptr.trace) == 0)
			break;
		if (ret != 0)
			continue;
		check_timeout(it);
		pm_child_give_up_stuck(child, "pmstat");
		pm_passed_tell(&it->passed, it->options);
	}
	if (it->end_ns == 0)
		it->end_ns = pm_now_ns();
	if (!it->options->targets)
		it->outlived = left_behind(it);
	if (it->ptr.hw.hits) {
		pm_hits_disable(it->ptr.hw.hits);
		if (ret >= 0)
			ret = pm_ptr_drain(&it->ptr, true, err);
	}
	if (ret < 0)
		return ret;
	return 0;
}

/* Releases all threads; the command may take its time to end. */
static void ptrace_release_threads(struct pm_ptr_engine *it)
{
	uint64_t begin = pm_now_ns();
	struct pm_trace_event event;

	pm_ptr_let_go(&it->ptr);
	for (;;) {
		bool some = pm_trace_len(it->ptr.trace) > 0;

		if (!it->child->running && (!some || pm_now_ns() - begin > PART_NS))
			return;
		/* Events of a command that was released still arrive, as it is our
		 * child. */
		if (ptrace_handle_next_event(it, &event, NULL) == 0) {
			check_timeout(it);
			pm_child_give_up_stuck(it->child, "pmstat");
		}
	}
}

/* ---- start --------------------------------------------------------------------------- */

static int ptrace_launch_command(struct pm_ptr_engine *it, struct pm_error *err)
{
	struct pm_child *child = it->child;
	bool begun = false;
	int ret = pm_child_prepare(child, it->options->command, it->options->user,
				   it->options->data_on_stdout, err);

	if (ret == 0)
		ret = pm_child_catch_signals(child, false, err);
	getrusage(RUSAGE_CHILDREN, &it->usage_before);
	it->ptr.command = child->launch.pid;
	pm_trace_kill_with_us(it->ptr.trace);
	if (ret == 0)
		ret = pm_ptr_attach(&it->ptr, child->launch.pid, err);
	if (ret >= 0)
		ret = start_tick_timer(it, err);
	if (ret == 0)
		ret = pm_launch_begin(&child->launch, err);
	it->begin_ns = pm_now_ns();
	while (ret >= 0 && !begun) {
		struct pm_trace_event event;

		ret = ptrace_handle_next_event(it, &event, err);
		begun = ret > 0 && event.tid == child->launch.pid &&
			(event.what == PM_TRACE_EXEC || event.what == PM_TRACE_EXIT);
	}
	if (ret < 0)
		return ret;
	return pm_child_go(child, err);
}

static int ptrace_attach_targets(struct pm_ptr_engine *it, struct pm_error *err)
{
	const struct pm_targets *targets = it->options->targets;
	int ret = pm_child_catch_signals(it->child, false, err);

	for (size_t i = 0; ret >= 0 && i < targets->roots.len; i++) {
		if (targets->roots.data[i].tid != 0)
			return pm_error_set(err, -EINVAL,
					    "breakpoints are of a process: single "
					    "threads cannot be looked at with ptrace");
		ret = pm_ptr_attach(&it->ptr, targets->roots.data[i].pid, err);
	}
	if (ret >= 0)
		ret = start_tick_timer(it, err);
	it->begin_ns = pm_now_ns();
	/* Each process stops for a moment, and gets its breakpoints then. */
	if (ret >= 0)
		pm_trace_interrupt(it->ptr.trace);
	if (ret < 0)
		return ret;
	return 0;
}

/* ---- public -------------------------------------------------------------------------- */

/*
 * Whether to use the processor's breakpoints. Hits have no stack, and may be lost if the
 * rings are too small. Their cost depends on the machine: in a virtual one, the
 * processor's breakpoints may cost more than a stop.
 */
static bool wants_hw(const struct pm_ptr_engine *it)
{
	const struct pm_ptr_costs *stops = &it->costs[0], *hits = &it->costs[1];

	if (it->options->targets || it->options->calls_from > 0 ||
	    it->kind == PM_PTR_STOPS)
		return false;
	return it->kind == PM_PTR_HITS || (stops->known && hits->known && hits->by_hits &&
					   hits->whole_ns < stops->whole_ns / HITS_GAIN);
}

static int ptrace_measure_costs(struct pm_ptr_engine *it)
{
	const struct pm_engine_options *options = it->options;
	int ret = 0;

	for (int hw = 0; ret == 0 && hw <= (PM_PTR_HW_MAX > 0); hw++) {
		ret = pm_ptr_costs_init(&it->costs[hw], options->specs_len);
		if (ret == 0)
			pm_ptr_measure(options->specs, options->specs_len, hw,
				       &it->costs[hw], hw ? NULL : &it->no_costs);
	}
	return ret;
}

static int ptrace_engine_prepare(struct pm_ptr_engine *it, struct pm_error *err)
{
	const struct pm_engine_options *options = it->options;
	struct pm_calls_options calls = { .regions = options->regions,
					  .events = options->specs_len,
					  .by_thread = options->by_thread,
					  .ended = options->live ? ptrace_on_call_ended
								 : NULL,
					  .name_caller = ptrace_name_caller,
					  .user = it };
	struct timespec now;
	int ret = pm_ptr_init(&it->ptr, options->regions, options->specs,
			      options->specs_len, err);

	if (ret < 0)
		return ret;
	it->ptr.no_inherit = options->no_inherit;
	it->ptr.by_thread = options->by_thread;
	it->ptr.calls_from = options->calls_from;
	it->ptr.listener = &listener;
	it->ptr.user = it;
	clock_gettime(CLOCK_REALTIME, &now);
	it->began_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	ret = pm_calls_new(&it->calls, &calls);
	if (ret == 0)
		ret = pm_passed_init(&it->passed, options);
	if (ret == 0)
		ret = ptrace_measure_costs(it);
	it->ptr.hw_wanted = wants_hw(it);
	if (ret < 0)
		return pm_error_set(err, ret, "%s", strerror(-ret));
	return 0;
}

int pm_ptr_run(struct pm_stat *stat, const struct pm_engine_options *options,
	       enum pm_ptr_kind kind, struct pm_child *child, struct pm_error *err)
{
	struct pm_ptr_engine it PM_CLEANUP(
		ptrace_engine_release) = { .stat = stat,
					   .options = options,
					   .kind = kind,
					   .child = child,
					   .deadline_ns = UINT64_MAX };
	int ret = pm_engine_ptrace_check(err);

	if (ret == 0)
		ret = ptrace_engine_prepare(&it, err);
	if (ret == 0) {
		if (options->targets)
			ret = ptrace_attach_targets(&it, err);
		else
			ret = ptrace_launch_command(&it, err);
	}
	if (ret < 0)
		return ret;
	if (options->timeout_ns > 0)
		it.deadline_ns = it.begin_ns + options->timeout_ns;
	ret = ptrace_follow_command(&it, err);
	ptrace_release_threads(&it);
	if (ret < 0)
		return ret;
	return pm_ptr_tell(&it, err);
}

int pm_engine_ptrace_run(struct pm_stat *stat, const struct pm_engine_options *options,
			 struct pm_child *child, struct pm_error *err)
{
	return pm_ptr_run(stat, options, PM_PTR_CHOOSE, child, err);
}

#if defined(__x86_64__) || defined(__aarch64__)
/* All information about processes is read there, by the ids that wait(2) returns. */
static int check_proc(struct pm_error *err)
{
	char target[32];
	ssize_t len = readlink("/proc/self", target, sizeof(target) - 1);
	uint64_t pid;

	target[len > 0 ? len : 0] = '\0';
	if (pm_parse_u64(target, &pid) && pid == (uint64_t)getpid())
		return 0;
	pm_error_set(err, -ENOENT,
		     len < 0 ? "/proc is not mounted"
			     : "/proc is of another PID namespace than this process");
	pm_error_fix(err, "mount -t proc proc /proc, or unshare --mount-proc");
	return -ENOENT;
}
#endif

int pm_engine_ptrace_check(struct pm_error *err)
{
#if defined(__x86_64__) || defined(__aarch64__)
	return check_proc(err);
#else
	return pm_error_set(err, -EOPNOTSUPP,
			    "breakpoints by ptrace are for x86-64 and aarch64 only");
#endif
}
