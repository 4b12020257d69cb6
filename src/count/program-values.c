/* SPDX-License-Identifier: MIT */
#include "program.h"
#include "tell.h"

#include <fcntl.h>
#include <string.h>

/* Warns if the default set lacks hardware events because the machine has none. */
static int warn_of_missing_hardware(struct pm_program *program)
{
	const struct pm_event_specs *specs = program->options->specs;
	const struct pm_stat *stat = program->stat;
	size_t first = stat->events.len - PM_COUNT_TOOL_EVENTS - specs->list.len;

	if (specs->list.len == 0 || !stat->events.data[first].default_set)
		return 0;
	for (size_t i = 0; i < specs->list.len; i++)
		if (specs->list.data[i].kind == PM_EVENT_HARDWARE)
			return 0;
	return pm_tell_warning(
		program->stat,
		"%s: cycles, instructions, branches and misses are left out (--engine "
		"callgrind simulates instructions).",
		/* If no event is permitted, it is not known which ones exist. */
		stat->events.data[first].state == PM_STAT_NOT_PERMITTED
			? "whether this machine has hardware counters is not known, for events "
			  "are not permitted"
			: "this machine offers no hardware counters, as is usual in virtual "
			  "machines");
}

/* Warns about the watchdog: it uses up one counter, and a group that needs all of them
 * never fits. */
static int warn_of_watchdog(struct pm_program *program)
{
	int fd PM_AUTO_CLOSE =
		open("/proc/sys/kernel/nmi_watchdog", O_RDONLY | O_CLOEXEC);
	const struct pm_stat_run *run = &program->stat->runs.data[program->run];
	char value = '0';

	if (fd < 0 || read(fd, &value, 1) != 1 || value != '1')
		return 0;
	for (size_t i = 0; i < program->stat->events.len; i++) {
		const struct pm_stat_event *event = &program->stat->events.data[i];
		enum pm_stat_state state = run->values[i].state;

		if ((strcmp(event->source, "hardware") == 0 ||
		     strcmp(event->source, "cache") == 0 ||
		     strcmp(event->source, "raw") == 0) &&
		    (state == PM_STAT_MULTIPLEXED || state == PM_STAT_NOT_COUNTED))
			return pm_tell_warning(
				program->stat,
				"the kernel's NMI watchdog keeps a hardware counter for "
				"itself (sudo sysctl kernel.nmi_watchdog=0 frees it).");
	}
	return 0;
}

/* ---- events ---------------------------------------------------------------------------- */

static size_t first_event_of_specs(const struct pm_program *program)
{
	return program->stat->events.len - PM_COUNT_TOOL_EVENTS -
	       program->options->specs->list.len;
}

static int event_set_refused(struct pm_stat_event *event, enum pm_stat_state state,
			     const char *why)
{
	event->state = state;
	if (event->why)
		return 0;
	return pm_stat_text(&event->why, why);
}

/* Gives the tool's own events that are unknown a state that says why. wait4(2) reports
 * only on whole processes, and only if they are our children. */
static int warn_of_tool_events(struct pm_program *program)
{
	struct pm_stat_event *tools =
		&program->stat->events
			 .data[program->stat->events.len - PM_COUNT_TOOL_EVENTS];
	int ret = 0;

	for (size_t i = 1;
	     i < PM_COUNT_TOOL_EVENTS && ret == 0 && program->options->marked; i++)
		ret = event_set_refused(
			&tools[i], PM_STAT_NOT_SUPPORTED,
			"it is known of whole commands, not of the part that is marked");
	if (ret < 0 || !program->options->targets)
		return ret;
	for (size_t i = 1; i < PM_COUNT_TOOL_EVENTS && ret == 0; i++)
		ret = event_set_refused(
			&tools[i], PM_STAT_NOT_SUPPORTED,
			"it is known of commands that were run, not of processes that "
			"run already");
	return ret;
}

static int warn_of_late_threads(struct pm_program *program)
{
	const struct pm_targets *targets = program->options->targets;
	size_t late = 0;

	if (targets)
		late = targets->late.len;
	if (late == 0)
		return 0;
	return pm_tell_warning(program->stat,
			       "%zu %s while the events were being opened: not counted.",
			       late, pm_plural(late, "thread began", "threads began"));
}

int pm_program_tell_events(struct pm_program *program)
{
	const struct pm_perf_notes *notes = pm_counters_notes(program->counters);
	size_t len, first = first_event_of_specs(program);
	const struct pm_counters_event *events =
		pm_counters_events(program->counters, &len);
	int ret = warn_of_tool_events(program);

	for (size_t i = 0; i < len && ret == 0; i++) {
		struct pm_stat_event *event = &program->stat->events.data[first + i];

		event->user_only |= events[i].kernel_dropped;
		if (events[i].group_broken)
			event->group = -1;
		if (events[i].state != PM_STAT_OK)
			ret = event_set_refused(event, events[i].state,
						events[i].why.text);
	}
	for (size_t i = 0; i < notes->texts.len && ret == 0; i++)
		ret = pm_tell_warning(program->stat, "%s", notes->texts.data[i]);
	if (ret == 0)
		ret = warn_of_missing_hardware(program);
	if (ret == 0)
		return warn_of_late_threads(program);
	return ret;
}

/* ---- values ---------------------------------------------------------------------------- */

static struct pm_stat_value exact_value(uint64_t value)
{
	return (struct pm_stat_value){ .value = value, .raw = value };
}

uint64_t pm_program_enabled_ns(const struct pm_program *program)
{
	size_t len;
	const struct pm_counters_event *events =
		pm_counters_events(program->counters, &len);

	for (size_t i = 0; i < len; i++)
		if (events[i].state == PM_STAT_OK)
			return pm_counters_total(program->counters, NULL,
						 &program->values, i)
				.enabled_ns;
	return 0;
}

static bool program_is_hidden(const struct pm_program *program)
{
	return program->hidden &&
	       pm_program_enabled_ns(program) <= program->hidden_enabled_ns;
}

/* @row SIZE_MAX: the total of all rows. */
static struct pm_stat_value *count_values(const struct pm_program *program,
					  const struct pm_counters_values *before,
					  size_t row)
{
	struct pm_stat_value *ret = pm_stat_values_new(program->stat->events.len);
	size_t first = first_event_of_specs(program),
	       len = program->options->specs->list.len;
	bool hidden = program_is_hidden(program);

	/* Before the delay of -D is over there are no values, not even 0. */
	for (size_t i = 0; ret && program->counting && i < len; i++) {
		struct pm_count count;

		if (row == SIZE_MAX)
			count = pm_counters_total(program->counters, before,
						  &program->values, i);
		else
			count = pm_counters_row_count(program->counters, before,
						      &program->values, row, i);
		/* The counts are from before the exec. */
		if (hidden && count.state <= PM_STAT_NOT_COUNTED)
			ret[first + i].state = PM_STAT_NOT_PERMITTED;
		else
			ret[first + i] = pm_tell_value(&count);
	}
	/* An event that is unavailable on this machine or to this user has no value in
	 * any row. */
	for (size_t i = 0; ret && i < program->stat->events.len; i++)
		if (program->stat->events.data[i].state > PM_STAT_NOT_COUNTED)
			ret[i].state = program->stat->events.data[i].state;
	return ret;
}

static void release_row(struct pm_stat_row *row)
{
	free(row->comm);
	free(row->values);
}

static int push_row(struct pm_stat_row **rows, size_t *len, size_t *cap,
		    struct pm_stat_row row)
{
	struct pm_stat_row *grown = pm_vec_grow(*rows, cap, sizeof(row), *len + 1);

	if (!grown)
		return -ENOMEM;
	*rows = grown;
	grown[(*len)++] = row;
	return 0;
}

/* Fills the rows of a run or of an interval, which are vectors of the same type. */
static int program_fill_rows(const struct pm_program *program,
			     const struct pm_counters_values *before,
			     struct pm_stat_row **rows, size_t *len, size_t *cap)
{
	if (program->options->by == PM_COUNTERS_SUM)
		return 0;
	for (size_t i = 0; i < program->values.rows.len; i++) {
		const struct pm_counters_row *from = &program->values.rows.data[i];
		struct pm_stat_row row = { .pid = from->pid,
					   .tid = from->tid,
					   .cpu = from->cpu };

		row.values = count_values(program, before, i);
		if (!row.values ||
		    (from->tid > 0 && pm_stat_text(&row.comm, from->comm) < 0) ||
		    push_row(rows, len, cap, row) < 0) {
			release_row(&row);
			return -ENOMEM;
		}
	}
	return 0;
}

int pm_program_add_interval(struct pm_program *program, uint64_t now_ns)
{
	struct pm_stat_run *run = &program->stat->runs.data[program->run];
	size_t wall = program->stat->events.len - PM_COUNT_TOOL_EVENTS;
	struct pm_stat_interval interval = { .at_ns = now_ns - program->begin_ns };
	int ret;

	interval.values = count_values(program, &program->before, SIZE_MAX);
	if (!interval.values)
		return -ENOMEM;
	interval.values[wall] = exact_value(interval.at_ns - program->interval_ns);
	ret = program_fill_rows(program, &program->before, &interval.rows.data,
				&interval.rows.len, &interval.rows.cap);
	if (ret == 0)
		ret = pm_vec_push(&run->intervals, interval);
	if (ret < 0) {
		for (size_t i = 0; i < interval.rows.len; i++)
			release_row(&interval.rows.data[i]);
		free(interval.rows.data);
		free(interval.values);
		return ret;
	}
	program->interval_ns = interval.at_ns;
	return 0;
}

/* ---- the run --------------------------------------------------------------------------- */

static void fill_tools(const struct pm_program *program, struct pm_stat_value *values)
{
	const struct pm_child *child = program->child;
	struct pm_stat_value *tools =
		&values[program->stat->events.len - PM_COUNT_TOOL_EVENTS];

	if (program->counting)
		tools[0] = exact_value(program->options->marked
					       ? program->marks.ns
					       : program->end_ns - program->begin_ns);
	for (size_t i = 1; i < PM_COUNT_TOOL_EVENTS && program->options->marked; i++)
		tools[i].state = PM_STAT_NOT_SUPPORTED;
	if (program->options->targets || program->options->marked || !child->status_known)
		return;
	tools[1] = exact_value(pm_tell_ns(&child->usage.ru_utime));
	tools[2] = exact_value(pm_tell_ns(&child->usage.ru_stime));
	tools[3] = exact_value((uint64_t)child->usage.ru_maxrss * 1024);
}

static void program_fill_end(const struct pm_program *program, struct pm_stat_run *run)
{
	const struct pm_child *child = program->child;

	run->stopped = program->timed_out || child->interrupts > 0;
	run->exited = !program->options->targets && child->status_known;
	if (run->exited)
		pm_tell_status(run, child->status);
}

static int warn_of_lost_rows(struct pm_program *program)
{
	uint64_t lost = pm_counters_lost_rows(program->counters);

	if (lost == 0)
		return 0;
	if (pm_counters_ends_untold(program->counters))
		return pm_tell_warning(
			program->stat,
			"%llu threads have no row of their own: this kernel does not tell what "
			"a thread had counted when it ends (most of Linux 5.13 to 6.18); their "
			"counts are in the row of the thread that they came from.",
			(unsigned long long)lost);
	return pm_tell_warning(
		program->stat,
		"up to %llu threads have no row of their own, because others ended at "
		"the same moment: their counts are in the row of the thread that "
		"they came from.",
		(unsigned long long)lost);
}

int pm_program_fill_run(struct pm_program *program)
{
	struct pm_stat_run *run = &program->stat->runs.data[program->run];
	int ret;

	run->values = count_values(program, NULL, SIZE_MAX);
	if (!run->values)
		return -ENOMEM;
	fill_tools(program, run->values);
	program_fill_end(program, run);
	ret = program_fill_rows(program, NULL, &run->rows.data, &run->rows.len,
				&run->rows.cap);
	if (ret == 0)
		ret = warn_of_lost_rows(program);
	if (ret == 0 && program_is_hidden(program))
		ret = pm_tell_warning(
			program->stat,
			"the command has executed a program that has more rights than "
			"this user (setuid), or that this user may not read: the "
			"kernel does not let it be counted%s.",
			geteuid() == 0 ? "" : " (sudo)");
	if (ret == 0 && !program->counting)
		ret = pm_tell_warning(program->stat,
				      "it ended before the delay did: nothing was "
				      "counted.");
	if (ret == 0)
		return warn_of_watchdog(program);
	return ret;
}

void pm_program_drop_run(struct pm_program *program)
{
	struct pm_stat_run *run = &program->stat->runs.data[--program->stat->runs.len];

	for (size_t i = 0; i < run->rows.len; i++)
		release_row(&run->rows.data[i]);
	free(run->rows.data);
	for (size_t i = 0; i < run->intervals.len; i++) {
		struct pm_stat_interval *interval = &run->intervals.data[i];

		for (size_t k = 0; k < interval->rows.len; k++)
			release_row(&interval->rows.data[k]);
		free(interval->rows.data);
		free(interval->values);
	}
	free(run->intervals.data);
	free(run->values);
}
