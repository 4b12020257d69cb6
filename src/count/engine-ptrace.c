/* SPDX-License-Identifier: MIT */
/*
 * The engine for users who may not place uprobes: a run, from the command's start to its
 * scopes.
 */
#include "engine-ptrace.h"

#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#define TICK_NS  20000000 /* between two looks at signals and the time */
#define GRACE_NS 2000000000u /* to end by SIGTERM when the time is up */
#define PART_NS  1000000000u /* for who is left when the command has ended */

struct engine {
	struct pm_ptr ptr;
	struct pm_calls *calls;
	const struct pm_engine_options *options;
	struct pm_stat *stat;
	struct pm_child *child;
	struct rusage usage_before; /* of children that are not the command */
	uint32_t run;
	uint64_t began_ns; /* CLOCK_REALTIME */
	uint64_t begin_ns, end_ns, deadline_ns; /* UINT64_MAX: none */
	bool stopped, timed_out;
	uint64_t *costs; /* of a call and of a visit: each by event, and elapsed time */
	bool costs_known;
	struct pm_error no_costs; /* why not */
	timer_t timer;
	bool has_timer;
	struct sigaction before; /* of SIGALRM */
};

/* ---- what is seen -------------------------------------------------------------------- */

static int on_visit(void *user, const struct pm_visit *visit)
{
	return pm_calls_visit(((struct engine *)user)->calls, visit);
}

static int on_fork(void *user, pid_t parent_tid, pid_t pid, pid_t tid)
{
	return pm_calls_fork(((struct engine *)user)->calls, parent_tid, pid, tid);
}

static void on_exit_of(void *user, pid_t tid)
{
	pm_calls_thread_exit(((struct engine *)user)->calls, tid);
}

static void on_named(void *user, pid_t pid, pid_t tid, const char *comm)
{
	pm_calls_thread_named(((struct engine *)user)->calls, pid, tid, comm);
}

static int name_caller(void *user, uint32_t caller, struct pm_stat_caller *ret)
{
	const struct engine *it = user;

	return pm_ptr_callers_fill(&it->ptr.callers, it->ptr.procs, caller, ret);
}

/* For --live: all in one write, for others write there, too. */
static void on_ended(void *user, uint32_t region, const struct pm_visit *entry,
		     const struct pm_visit *exit, uint32_t depth)
{
	const struct engine *it = user;
	struct pm_str line = { 0 };

	pm_str_printf(&line, "%*s", (int)(depth > 1 ? depth - 1 : 0) * 2, "");
	pm_str_printable(&line, it->options->regions->list.data[region].name,
			 strlen(it->options->regions->list.data[region].name));
	pm_str_printf(&line, " %d/%d %llu ns", (int)exit->pid, (int)exit->tid,
		      (unsigned long long)(exit->time - entry->time));
	for (size_t i = 0; i < it->options->specs_len; i++)
		pm_str_printf(&line, ", %llu %s",
			      (unsigned long long)(exit->counts[i] - entry->counts[i]),
			      it->options->specs[i].name);
	pm_str_putc(&line, '\n');
	if (!line.failed)
		(void)!write(STDERR_FILENO, line.data, line.len);
	pm_str_release(&line);
}

static const struct pm_ptr_listener listener = {
	.visit = on_visit, .fork = on_fork, .exit = on_exit_of, .named = on_named
};

/* ---- signals to us ------------------------------------------------------------------- */

static void wake(int number)
{
}

/*
 * Who waits for a stop waits for nothing else, which is what makes a stop cheap. So a timer
 * comes in between; what it is sent to is this thread alone.
 */
static int start_timer(struct engine *it, struct pm_error *err)
{
	struct sigaction action = { .sa_handler = wake };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = SIGALRM };
	struct itimerspec period = { { 0, TICK_NS }, { 0, TICK_NS } };

	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (sigaction(SIGALRM, &action, &it->before) < 0)
		return pm_error_set(err, -errno, "sigaction: %s", strerror(errno));
	if (timer_create(CLOCK_MONOTONIC, &event, &it->timer) < 0) {
		int code = -errno;

		sigaction(SIGALRM, &it->before, NULL);
		return pm_error_set(err, code, "timer: %s", strerror(-code));
	}
	it->has_timer = true;
	timer_settime(it->timer, 0, &period, NULL);
	return 0;
}

static void stop_timer(struct engine *it)
{
	if (!it->has_timer)
		return;
	timer_delete(it->timer);
	sigaction(SIGALRM, &it->before, NULL);
	it->has_timer = false;
}

static void engine_release(struct engine *it)
{
	stop_timer(it);
	free(it->costs);
	pm_calls_free(it->calls);
	pm_ptr_release(&it->ptr);
}

/* ---- following ----------------------------------------------------------------------- */

static void end_of_command(struct engine *it, int status)
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

/* The next of what happens, or a look at our signals. 1: an event, 0, or negative. */
static int turn(struct engine *it, struct pm_trace_event *event, struct pm_error *err)
{
	int ret = pm_trace_wait(it->ptr.trace, event, err), rc;

	if (ret <= 0) {
		pm_child_signals(it->child);
		return ret;
	}
	rc = pm_ptr_event(&it->ptr, event);
	if (event->what == PM_TRACE_EXIT && event->tid == it->child->launch.pid &&
	    !it->child->status_known)
		end_of_command(it, event->status);
	return rc < 0 ? pm_error_set(err, rc, "%s", strerror(-rc)) : 1;
}

/* Once politely, and then for good. */
static void look_at_time(struct engine *it)
{
	if (pm_now_ns() < it->deadline_ns)
		return;
	if (it->options->targets) {
		it->stopped = true;
	} else {
		kill(it->child->launch.pid, it->timed_out ? SIGKILL : SIGTERM);
		it->deadline_ns += GRACE_NS;
	}
	it->timed_out = true;
}

static int go_on(struct engine *it, struct pm_error *err)
{
	const struct pm_child *child = it->child;
	struct pm_trace_event event;
	int ret = 0;

	while (ret >= 0 && !it->stopped && child->interrupts == 0 &&
	       (it->options->targets || child->running)) {
		ret = turn(it, &event, err);
		if (ret == 0 && pm_trace_len(it->ptr.trace) == 0)
			break;
		if (ret == 0)
			look_at_time(it);
	}
	if (it->end_ns == 0)
		it->end_ns = pm_now_ns();
	return ret < 0 ? ret : 0;
}

/* Everybody is as without us; the command may take its time to end. */
static void part(struct engine *it)
{
	uint64_t begin = pm_now_ns();
	struct pm_trace_event event;

	pm_ptr_let_go(&it->ptr);
	for (;;) {
		bool some = pm_trace_len(it->ptr.trace) > 0;

		if (!it->child->running && (!some || pm_now_ns() - begin > PART_NS))
			return;
		if (turn(it, &event, NULL) == 0) {
			look_at_time(it);
			/* Nobody is followed, but the command is still our child. */
			pm_child_reap(it->child);
		}
	}
}

/* ---- begin --------------------------------------------------------------------------- */

static int launch(struct engine *it, struct pm_error *err)
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
		ret = start_timer(it, err);
	if (ret == 0)
		ret = pm_launch_begin(&child->launch, err);
	it->begin_ns = pm_now_ns();
	while (ret >= 0 && !begun) {
		struct pm_trace_event event;

		ret = turn(it, &event, err);
		begun = ret > 0 && event.tid == child->launch.pid &&
			(event.what == PM_TRACE_EXEC || event.what == PM_TRACE_EXIT);
	}
	if (ret < 0)
		return ret;
	ret = pm_child_go(child, err);
	if (ret == 0 && child->status_known)
		child->running = false;
	return ret;
}

static int attach(struct engine *it, struct pm_error *err)
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
		ret = start_timer(it, err);
	it->begin_ns = pm_now_ns();
	/* Each stops for a moment, and gets its breakpoints then. */
	if (ret >= 0)
		pm_trace_interrupt(it->ptr.trace);
	return ret < 0 ? ret : 0;
}

/* ---- end ----------------------------------------------------------------------------- */

static PM_PRINTF(2, 3) int warn(struct pm_stat *stat, const char *format, ...)
{
	va_list args;
	char *text = NULL;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	if (len < 0 || pm_vec_push(&stat->warnings, text) < 0) {
		if (len >= 0)
			free(text);
		return -ENOMEM;
	}
	return 0;
}

static int tell_warnings(const struct engine *it)
{
	const struct pm_ptr *ptr = &it->ptr;
	int ret = 0;

	if (ptr->unplanted > 0)
		ret = warn(it->stat,
			   "%llu places got no breakpoint: their code was another one in "
			   "memory, or could not be moved; calls are missing",
			   (unsigned long long)ptr->unplanted);
	if (ret == 0 && ptr->privileged > 0)
		ret = warn(it->stat,
			   "%llu set-user-ID or set-group-ID programs were run without "
			   "their privileges, as they are traced",
			   (unsigned long long)ptr->privileged);
	if (ret == 0 && ptr->counts.threads_missed > 0)
		ret = warn(it->stat, "%llu threads could not be counted: %s",
			   (unsigned long long)ptr->counts.threads_missed,
			   ptr->counts.why.text);
	return ret;
}

static uint64_t time_of(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_usec * 1000u;
}

/* What clocks and wait4(2) say; of an attached process only clocks. */
static void fill_tool_events(const struct engine *it, struct pm_stat_value *values)
{
	const struct rusage *usage = &it->child->usage;
	const struct {
		const char *name;
		bool known;
		uint64_t value;
	} tools[] = {
		{ "wall-time", true, it->end_ns - it->begin_ns },
		{ "user-time", it->child->status_known, time_of(&usage->ru_utime) },
		{ "system-time", it->child->status_known, time_of(&usage->ru_stime) },
		{ "max-rss", it->child->status_known, (uint64_t)usage->ru_maxrss * 1024 },
	};

	for (size_t i = 0; i < it->stat->events.len; i++)
		for (size_t j = 0; j < PM_ARRAY_LEN(tools); j++)
			if (tools[j].known &&
			    strcmp(it->stat->events.data[i].source, "tool") == 0 &&
			    strcmp(it->stat->events.data[i].name, tools[j].name) == 0)
				values[i] =
					(struct pm_stat_value){ .state = PM_STAT_OK,
								.value = tools[j].value,
								.raw = tools[j].value };
}

/* Where perf is denied, a command's task-clock is what wait4(2) says. */
static void fill_clock(const struct engine *it, struct pm_stat_value *values)
{
	const struct rusage *usage = &it->child->usage;
	int32_t clock = it->ptr.counts.clock;
	uint64_t used = time_of(&usage->ru_utime) + time_of(&usage->ru_stime);

	if (clock >= 0 && it->child->status_known)
		values[clock] = (struct pm_stat_value){ .state = PM_STAT_OK,
							.value = used,
							.raw = used };
}

static int fill_run(struct engine *it)
{
	const struct pm_child *child = it->child;
	struct pm_stat_run *run;

	it->run = (uint32_t)it->stat->runs.len;
	if (pm_vec_push(&it->stat->runs,
			(struct pm_stat_run){ .begin_ns = it->began_ns }) < 0)
		return -ENOMEM;
	run = &it->stat->runs.data[it->run];
	run->exited = child->status_known && !it->options->targets;
	run->exit_code =
		run->exited && WIFEXITED(child->status) ? WEXITSTATUS(child->status) : -1;
	run->signal =
		run->exited && WIFSIGNALED(child->status) ? WTERMSIG(child->status) : 0;
	run->stopped = it->timed_out || child->interrupts > 0;
	run->values = pm_stat_values_new(it->stat->events.len);
	if (!run->values)
		return -ENOMEM;
	fill_tool_events(it, run->values);
	fill_clock(it, run->values);
	return pm_ptr_counts_finish(&it->ptr.counts, it->stat, run->values);
}

/* The document has one for all of its runs: that of the last. */
static int tell_costs(const struct engine *it)
{
	struct pm_stat *stat = it->stat;
	struct pm_stat_value *values = pm_stat_values_new(stat->events.len);

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < stat->events.len; i++) {
		const struct pm_stat_event *event = &stat->events.data[i];
		size_t column = i;

		if (strcmp(event->source, "tool") == 0)
			column = strcmp(event->name, "wall-time") == 0
					 ? it->options->specs_len
					 : SIZE_MAX;
		if (event->state != PM_STAT_OK)
			values[i].state = event->state;
		else if (column <= it->options->specs_len && it->costs_known)
			values[i] = (struct pm_stat_value){ .state = PM_STAT_OK,
							    .value = it->costs[column],
							    .raw = it->costs[column] };
	}
	free(stat->overhead);
	stat->overhead = values;
	stat->overhead_subtracted = it->costs_known && !it->options->keep_overhead;
	return it->costs_known ? 0
			       : warn(stat,
				      "what counting a call adds is not known, and not "
				      "subtracted: %s",
				      it->no_costs.text);
}

static int finish_calls(struct engine *it)
{
	bool subtract = it->costs_known && !it->options->keep_overhead;
	int ret = pm_ptr_callers_name(&it->ptr.callers, it->ptr.procs);

	if (ret == 0 && subtract)
		ret = pm_calls_set_visit_cost(it->calls,
					      it->costs + it->options->specs_len + 1);

	return ret < 0 ? ret
		       : pm_calls_finish(it->calls, it->stat, it->run,
					 subtract ? it->costs : NULL);
}

static int finish(struct engine *it, struct pm_error *err)
{
	int ret = fill_run(it);

	if (ret == 0)
		ret = tell_costs(it);
	if (ret == 0)
		ret = finish_calls(it);
	if (ret == 0)
		ret = tell_warnings(it);
	return ret < 0 ? pm_error_set(err, ret, "%s", strerror(-ret)) : 0;
}

/* ---- public -------------------------------------------------------------------------- */

static int measure(struct engine *it)
{
	size_t columns = it->options->specs_len + 1;

	it->costs = calloc(columns * 2, sizeof(*it->costs));
	if (!it->costs)
		return -ENOMEM;
	it->costs_known =
		pm_ptr_measure(it->options->specs, it->options->specs_len, it->costs,
			       it->costs + columns, &it->no_costs) == 0;
	return 0;
}

static int prepare(struct engine *it, struct pm_error *err)
{
	const struct pm_engine_options *options = it->options;
	struct pm_calls_options calls = { .regions = options->regions,
					  .events = options->specs_len,
					  .by_thread = options->by_thread,
					  .ended = options->live ? on_ended : NULL,
					  .name_caller = name_caller,
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
		ret = measure(it);
	return ret < 0 ? pm_error_set(err, ret, "%s", strerror(-ret)) : 0;
}

int pm_engine_ptrace_run(struct pm_stat *stat, const struct pm_engine_options *options,
			 struct pm_child *child, struct pm_error *err)
{
	struct engine it PM_CLEANUP(engine_release) = { .stat = stat,
							.options = options,
							.child = child,
							.deadline_ns = UINT64_MAX };
	int ret = pm_engine_ptrace_check(err);

	if (ret == 0)
		ret = prepare(&it, err);
	if (ret == 0)
		ret = options->targets ? attach(&it, err) : launch(&it, err);
	if (ret < 0)
		return ret;
	if (options->timeout_ns > 0)
		it.deadline_ns = it.begin_ns + options->timeout_ns;
	ret = go_on(&it, err);
	part(&it);
	return ret < 0 ? ret : finish(&it, err);
}

int pm_engine_ptrace_check(struct pm_error *err)
{
#if defined(__x86_64__)
	return 0;
#else
	return pm_error_set(err, -EOPNOTSUPP,
			    "breakpoints by ptrace are for x86-64 only, so far");
#endif
}
