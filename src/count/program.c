/* SPDX-License-Identifier: MIT */
/* One run of a whole program, or an observation of running processes. */
#include "pm/count.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "program.h"

#define MS_NS    1000000u
#define SECOND   1000000000u
#define GRACE_NS 2000000000u /* for the command to end after SIGTERM */

enum {
	TICK_MS = 50, /* between two checks, if no descriptor reports signals */
	LOOK_MS = 1, /* between two checks of what the command executes */
	LOOKS_MS = 5, /* after which an exec is complete */
};

/* ---- opening --------------------------------------------------------------------------- */

static int program_open_counters(struct pm_program *program, struct pm_error *err)
{
	const struct pm_count_options *options = program->options;
	struct pm_counters_options counters = {
		.specs = options->specs->list.data,
		.specs_len = options->specs->list.len,
		.target = PM_PERF_COMMAND,
		.pid = program->child->launch.pid,
		.cgroup_fd = -1,
		.no_inherit = options->no_inherit,
		/* Running targets are counted as long as the command runs. */
		.begin_disabled = options->delay_ms > 0 || options->marked ||
				  (options->targets && options->command),
		.weak_groups = true,
		.by = options->by,
	};

	if (options->targets) {
		counters.target = options->targets->kind;
		counters.tids = options->targets->tids.data;
		counters.tids_len = options->targets->tids.len;
		counters.cgroup_fd = options->targets->cgroup_fd;
		counters.cpus = options->targets->cpus;
	}
	return pm_counters_open(&program->counters, &counters, err);
}

/* Counting other processes is useless if no event is permitted. */
static int check_any_event_counted(const struct pm_program *program, struct pm_error *err)
{
	size_t len;
	const struct pm_counters_event *events =
		pm_counters_events(program->counters, &len);
	const struct pm_counters_event *denied = NULL;

	for (size_t i = 0; i < len; i++) {
		if (events[i].state == PM_STAT_OK)
			return 0;
		if (events[i].state == PM_STAT_NOT_PERMITTED)
			denied = &events[i];
	}
	if (!denied || !program->options->targets)
		return 0;
	if (err)
		*err = denied->why;
	return denied->why.code;
}

static int program_start(struct pm_program *program, struct pm_error *err)
{
	const struct pm_count_options *options = program->options;
	int ret = 0;

	if (options->marked)
		ret = pm_marks_open(&program->marks, err);
	if (ret == 0 && options->command)
		ret = pm_child_prepare(program->child, options->command, options->user,
				       options->data_on_stdout, err);
	pm_marks_give(&program->marks);
	if (ret == 0)
		ret = program_open_counters(program, err);
	if (ret == 0)
		ret = check_any_event_counted(program, err);
	if (ret == 0 && options->targets)
		ret = pm_targets_begin(options->targets, err);
	if (ret == 0 && pm_program_tell_events(program) < 0)
		ret = pm_error_set(err, -ENOMEM, "no memory for the events");
	if (ret == 0 && options->targets && options->command && options->delay_ms == 0 &&
	    pm_counters_enable(program->counters) < 0)
		ret = pm_error_set(err, -EIO, "an event cannot be enabled");
	/* Taken before the exec, after which a short command may be over at once. */
	program->begin_ns = pm_now_ns();
	if (ret == 0 && options->command)
		return pm_child_go(program->child, err);
	return ret;
}

/* ---- while it runs --------------------------------------------------------------------- */

static int program_add_interval(struct pm_program *program, struct pm_error *err)
{
	struct pm_counters_values before;
	int ret = pm_counters_read(program->counters, &program->values, err);

	if (ret < 0)
		return ret;
	ret = pm_program_add_interval(program, pm_now_ns());
	if (ret < 0)
		return pm_error_set(err, ret, "no memory for the intervals");
	before = program->before;
	program->before = program->values;
	program->values = before;
	if (program->options->interval)
		program->options->interval(program->options->user_data, program->stat,
					   &program->stat->runs.data[program->run]);
	return 0;
}

static bool child_is_over(struct pm_program *program)
{
	pm_child_signals(program->child);
	pm_child_reap(program->child);
	pm_child_give_up_stuck(program->child, "pmstat");
	return !program->child->running;
}

/* If there are targets, the command only sets the duration. */
static bool program_is_over(struct pm_program *program)
{
	struct pm_targets *targets = program->options->targets;
	bool child_over = child_is_over(program);

	if (program->options->command && child_over)
		return true;
	return targets && (program->child->interrupts > 0 || pm_targets_ended(targets));
}

/* Returns the time of the next action; UINT64_MAX: none. */
static uint64_t next_time(const struct pm_program *program)
{
	uint64_t next = program->deadline_ns;

	if (program->delay_until_ns < next)
		next = program->delay_until_ns;
	return PM_MIN(program->next_interval_ns, next);
}

/*
 * The exec of a program that has more privileges than its user, or that may not be read,
 * removes all events from the task (begin_new_exec() in the kernel's fs/exec.c). The
 * counters then merely look as if nothing had happened since. By the same rule, however,
 * /proc hides the executable. It is also hidden for other reasons (PR_SET_DUMPABLE), and
 * therefore both are required: hidden, and no enabled time since.
 */
static int check_command_exec(struct pm_program *program, struct pm_error *err)
{
	bool here = !program->options->targets && program->child->running;
	bool known = program->hidden && program->looked_at;
	char path[64], target[8];
	int ret;

	program->looked_at |= pm_now_ns() >= program->begin_ns + LOOKS_MS * MS_NS;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)program->child->launch.pid);
	if (!here || known || readlink(path, target, sizeof(target)) >= 0 ||
	    errno != EACCES)
		return 0;
	ret = pm_counters_read(program->counters, &program->values, err);
	program->hidden = ret == 0;
	if (ret == 0)
		program->hidden_enabled_ns = pm_program_enabled_ns(program);
	else
		program->hidden_enabled_ns = 0;
	return ret;
}

static void wait_for_events(struct pm_program *program)
{
	size_t rings;
	const int *ring_fds = pm_counters_poll_fds(program->counters, &rings);
	struct pollfd fds[3 + PM_PROGRAM_RINGS_MAX];
	uint64_t now = pm_now_ns(), next = next_time(program);
	struct timespec timeout = { 0 };

	if (rings > PM_PROGRAM_RINGS_MAX)
		rings = PM_PROGRAM_RINGS_MAX;
	fds[0] = (struct pollfd){ .fd = program->child->signal_fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = program->options->targets
						? program->options->targets->ends_fd
						: -1,
				  .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = program->marks.fd, .events = POLLIN };
	for (size_t i = 0; i < rings; i++)
		fds[3 + i] = (struct pollfd){ .fd = ring_fds[i], .events = POLLIN };
	if (next > now) {
		uint64_t left = next - now;

		/* Notices ends that no descriptor reports. */
		if (left > SECOND)
			left = SECOND;
		/* The command was asked to end, but may be stuck. */
		if ((program->child->interrupts > 0 || program->child->ending) &&
		    left > TICK_MS * MS_NS)
			left = TICK_MS * MS_NS;
		if (!program->looked_at && left > LOOK_MS * MS_NS)
			left = LOOK_MS * MS_NS;
		if (program->child->signal_fd < 0 && left > TICK_MS * MS_NS)
			left = TICK_MS * MS_NS;
		timeout.tv_sec = (time_t)(left / SECOND);
		timeout.tv_nsec = (long)(left % SECOND);
	}
	(void)ppoll(fds, 3 + rings, &timeout, NULL);
	if (rings > 0)
		pm_counters_drain(program->counters);
}

static int enable_late(struct pm_program *program, struct pm_error *err)
{
	int ret = pm_counters_enable(program->counters);

	program->delay_until_ns = UINT64_MAX;
	program->counting = true;
	/* The time up to here was not counted, and does not belong to the run either. */
	program->begin_ns = pm_now_ns();
	if (program->options->interval_ns > 0)
		program->next_interval_ns =
			program->begin_ns + program->options->interval_ns;
	if (ret < 0)
		return pm_error_set(err, ret, "an event cannot be enabled: %s",
				    strerror(-ret));
	return 0;
}

/* Handles the marks of the command, which waits until the counters are on or off. */
static int handle_marks(struct pm_program *program, struct pm_error *err)
{
	struct pm_marks *marks = &program->marks;
	char mark;
	int ret = 0;

	while (ret == 0 && pm_marks_next(marks, &mark) > 0) {
		bool begin = mark == '+';

		if (begin && !marks->on) {
			marks->begin_ns = pm_now_ns();
			marks->parts++;
			ret = pm_counters_enable(program->counters);
		} else if (!begin && marks->on) {
			ret = pm_counters_disable(program->counters);
			marks->ns += pm_now_ns() - marks->begin_ns;
		}
		marks->on = begin;
		pm_marks_answer(marks, mark);
	}
	if (ret < 0 && ret != -ESRCH)
		return pm_error_set(err, ret, "an event cannot be switched: %s",
				    strerror(-ret));
	return 0;
}

static int program_follow_run(struct pm_program *program, struct pm_error *err)
{
	uint64_t step = program->options->interval_ns;

	while (!program_is_over(program)) {
		uint64_t now = pm_now_ns();
		int ret = check_command_exec(program, err);

		if (ret == 0)
			ret = handle_marks(program, err);
		if (ret < 0)
			return ret;
		if (now >= program->deadline_ns) {
			program->timed_out = true;
			return 0;
		}
		if (now >= program->delay_until_ns)
			ret = enable_late(program, err);
		if (ret == 0 && now >= program->next_interval_ns) {
			if (program->counting)
				ret = program_add_interval(program, err);
			/* A missed interval is not made up for. */
			program->next_interval_ns +=
				((now - program->next_interval_ns) / step + 1) * step;
		}
		if (ret < 0)
			return ret;
		wait_for_events(program);
	}
	return 0;
}

/* ---- the end --------------------------------------------------------------------------- */

/* Ends the command with SIGTERM, then SIGKILL: after --timeout, or when the targets whose
 * observation it limits have ended. */
static void end_child(struct pm_program *program)
{
	struct pm_child *child = program->child;
	uint64_t until = pm_now_ns() + GRACE_NS;

	if (!child->running)
		return;
	kill(child->launch.pid, SIGTERM);
	child->ending = true;
	program->deadline_ns = program->delay_until_ns = program->next_interval_ns =
		UINT64_MAX;
	while (!child_is_over(program)) {
		if (pm_now_ns() >= until) {
			kill(child->launch.pid, SIGKILL);
			until = UINT64_MAX;
		}
		program->deadline_ns = until;
		wait_for_events(program);
	}
}

static int program_finish_run(struct pm_program *program, struct pm_error *err)
{
	int ret;

	program->end_ns = pm_now_ns();
	ret = handle_marks(program, err);
	if (ret < 0)
		return ret;
	if (program->marks.on)
		program->marks.ns += program->end_ns - program->marks.begin_ns;
	ret = pm_counters_disable(program->counters);
	/* A task that has ended has nothing to disable. */
	if (ret < 0 && ret != -ESRCH)
		return pm_error_set(err, ret, "an event cannot be disabled: %s",
				    strerror(-ret));
	ret = pm_counters_read(program->counters, &program->values, err);
	if (ret < 0)
		return ret;
	end_child(program);
	ret = 0;
	if (program->options->interval_ns > 0 && program->counting) {
		ret = pm_program_add_interval(program, program->end_ns);
		if (ret == 0 && program->options->interval)
			program->options->interval(
				program->options->user_data, program->stat,
				&program->stat->runs.data[program->run]);
	}
	if (ret == 0 && program->options->marked && program->marks.parts == 0 &&
	    program->child->status_known && program->child->status == 0)
		return pm_marks_none(program->options->command[0], NULL, NULL, err);
	if (ret == 0)
		ret = pm_program_fill_run(program);
	if (ret < 0)
		return pm_error_set(err, ret, "no memory for the values");
	return 0;
}

static int begin_run(struct pm_program *program, struct pm_error *err)
{
	const struct pm_count_options *options = program->options;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	program->run = program->stat->runs.len;
	if (pm_vec_push(&program->stat->runs,
			(struct pm_stat_run){ .variant = options->variant,
					      .begin_ns = (uint64_t)now.tv_sec * SECOND +
							  (uint64_t)now.tv_nsec,
					      .exit_code = -1 }) < 0)
		return pm_error_set(err, -ENOMEM, "no memory for the run");
	program->counting = options->delay_ms == 0;
	/* Root may see everything. */
	program->looked_at = options->targets || geteuid() == 0;
	if (program->counting)
		program->delay_until_ns = UINT64_MAX;
	else
		program->delay_until_ns = program->begin_ns + options->delay_ms * MS_NS;
	if (options->timeout_ns > 0)
		program->deadline_ns = program->begin_ns + options->timeout_ns;
	else
		program->deadline_ns = UINT64_MAX;
	if (options->interval_ns > 0)
		program->next_interval_ns = program->begin_ns + options->interval_ns;
	else
		program->next_interval_ns = UINT64_MAX;
	return 0;
}

/* The command runs on and is waited for; its end belongs to no run. */
static void program_give_up(struct pm_program *program)
{
	struct pm_stat *stat = program->stat;

	program->deadline_ns = program->delay_until_ns = program->next_interval_ns =
		UINT64_MAX;
	while (!child_is_over(program))
		wait_for_events(program);
	if (program->run < stat->runs.len)
		pm_program_drop_run(program);
}

int pm_count_run(struct pm_stat *stat, const struct pm_count_options *options,
		 struct pm_child *child, struct pm_error *err)
{
	struct pm_program program = {
		.stat = stat,
		.options = options,
		.child = child,
		.run = SIZE_MAX,
		.marks = { .fd = -1, .theirs = -1 },
	};
	int ret = program_start(&program, err);

	if (ret == 0) {
		ret = begin_run(&program, err);
		if (ret == 0)
			ret = program_follow_run(&program, err);
		if (ret == 0)
			ret = program_finish_run(&program, err);
		if (ret < 0)
			program_give_up(&program);
	}
	pm_marks_close(&program.marks);
	pm_counters_free(program.counters);
	pm_counters_values_release(&program.values);
	pm_counters_values_release(&program.before);
	return ret;
}
