/* SPDX-License-Identifier: MIT */
/* Reservations about the numbers of a counting run: what was left out, the cost of
 * counting, and why some values are missing. */
#include "stat-show.h"

#include <string.h>

static bool same_reason(const struct pm_stat_event *a, const struct pm_stat_event *b)
{
	if (a->state != b->state || !a->why != !b->why)
		return false;
	return !a->why || strcmp(a->why, b->why) == 0;
}

/* One line for each reason, with all events that it applies to. */
static void print_states(const struct pm_stat_text *to)
{
	const struct pm_stat_event *events = to->stat->events.data;
	struct pm_str line = { 0 };

	for (size_t i = 0; i < to->stat->events.len; i++) {
		bool told = events[i].state == PM_STAT_OK ||
			    (events[i].state == PM_STAT_MULTIPLEXED && !events[i].why);

		for (size_t j = 0; j < i && !told; j++)
			told = same_reason(&events[i], &events[j]);
		if (told)
			continue;
		pm_str_printf(&line, "%s: ", pm_stat_state_words(events[i].state));
		for (size_t j = i; j < to->stat->events.len; j++) {
			const char *name = pm_stat_event_shown(&events[j]);

			if (!same_reason(&events[i], &events[j]))
				continue;
			if (j > i)
				pm_str_puts(&line, ", ");
			pm_str_printable(&line, name, strlen(name));
		}
		if (events[i].why) {
			pm_str_puts(&line, to->report->ascii ? " - " : " – ");
			pm_str_printable(&line, events[i].why, strlen(events[i].why));
		}
		pm_stat_text_line(to, PM_COLOR_DIM, 0, &line);
	}
	pm_str_release(&line);
}

/* Events that the tool itself measures, such as wall time, have no kernel part. */
static bool has_kernel_part(const struct pm_stat_event *event)
{
	return event->state <= PM_STAT_MULTIPLEXED && !pm_stat_is_tools(event) &&
	       strcmp(event->source, "simulated") != 0;
}

static void print_user_only(const struct pm_stat_text *to)
{
	const struct pm_stat *stat = to->stat;
	struct pm_str line = { 0 };
	size_t all = 0, user = 0;

	for (size_t i = 0; i < stat->events.len; i++) {
		const struct pm_stat_event *event = &stat->events.data[i];
		const char *name = pm_stat_event_shown(event);

		all += has_kernel_part(event);
		if (!has_kernel_part(event) || !event->user_only)
			continue;
		pm_str_puts(&line, user++ == 0 ? "without the kernel: " : ", ");
		pm_str_printable(&line, name, strlen(name));
	}
	if (user > 1 && user == all) {
		pm_str_clear(&line);
		pm_str_puts(&line, "All events were counted without the kernel.");
	}
	pm_stat_text_line(to, PM_COLOR_DIM, 0, &line);
	pm_str_release(&line);
}

/* Prints shares of the time: tables of several runs and of functions have no room for
 * them. */
static void print_shares(const struct pm_stat_text *to)
{
	const struct pm_stat *stat = to->stat;
	struct pm_str line = { 0 };

	for (size_t i = 0; i < stat->events.len; i++) {
		const char *name = pm_stat_event_shown(&stat->events.data[i]);
		double least = INFINITY, share;

		for (size_t j = 0; stat->runs.len > 1 && j < stat->runs.len; j++) {
			share = pm_stat_share(&stat->runs.data[j].values[i]);
			least = PM_MIN(share, least);
		}
		for (size_t j = 0; j < stat->scopes.len; j++) {
			share = pm_stat_share(&stat->scopes.data[j].values[i]);
			least = PM_MIN(share, least);
		}
		if (isinf(least))
			continue;
		pm_str_puts(&line, line.len == 0
					   ? "counted a part of the time and scaled up: "
					   : ", ");
		pm_str_printable(&line, name, strlen(name));
		pm_str_printf(&line, " (%.1f %%)", least);
	}
	pm_stat_text_line(to, PM_COLOR_DIM, 0, &line);
	pm_str_release(&line);
}

/* Warns that means and medians are over fewer runs than the heading says. */
static void print_missing_runs(const struct pm_stat_text *to)
{
	const struct pm_stat *stat = to->stat;
	struct pm_str line = { 0 };

	for (size_t i = 0; i < stat->events.len; i++) {
		const char *name = pm_stat_event_shown(&stat->events.data[i]);
		size_t counted = 0;

		for (size_t j = 0; j < stat->runs.len; j++)
			counted += pm_stat_has_value(&stat->runs.data[j].values[i]);
		if (counted == 0 || counted == stat->runs.len)
			continue;
		pm_str_puts(&line,
			    line.len == 0 ? "warning: not counted in all runs: " : ", ");
		pm_str_printable(&line, name, strlen(name));
		pm_str_printf(&line, " (%zu of %zu)", counted, stat->runs.len);
	}
	pm_stat_text_line(to, PM_COLOR_WARNING, 0, &line);
	pm_str_release(&line);
}

/* Settings; their values are long, and the same in each run on a machine. */
static void print_settings(const struct pm_stat_text *to)
{
	struct pm_str line = { 0 };

	for (size_t i = 0; i < to->stat->settings.len; i++) {
		const struct pm_stat_setting *setting = &to->stat->settings.data[i];

		pm_str_puts(&line, i == 0 ? "settings: " : ", ");
		pm_str_printable(&line, setting->name, strlen(setting->name));
		if (to->report->verbose && setting->value) {
			pm_str_putc(&line, '=');
			pm_str_printable(&line, setting->value, strlen(setting->value));
		}
	}
	if (line.len > 0 && !to->report->verbose)
		pm_str_puts(&line, " (values: -v)");
	pm_stat_text_line(to, PM_COLOR_DIM, 0, &line);
	pm_str_release(&line);
}

/* Prints notes about rows of threads, CPUs and callers, which belong to one run. */
static void print_row_notes(const struct pm_stat_text *to)
{
	const struct pm_stat *stat = to->stat;
	struct pm_str line = { 0 };
	bool any = false;

	for (size_t i = 0; i < stat->runs.len; i++)
		any |= stat->runs.data[i].rows.len > 0;
	for (size_t i = 0; i < stat->scopes.len; i++)
		any |= stat->scopes.data[i].threads.len > 0 ||
		       stat->scopes.data[i].callers.len > 0;
	if (any && stat->runs.len > 1)
		pm_str_puts(&line,
			    "What threads, CPUs and callers did in each run is told "
			    "by --json and -x.");
	pm_stat_text_line(to, PM_COLOR_DIM, 0, &line);
	pm_str_release(&line);
}

/* Whether the time without the measurement's cost is less than that cost: then it shows
 * that calls are short, but hardly how short. */
static bool is_below_cost(const struct pm_stat *stat, const struct pm_stat_scope *scope)
{
	for (size_t i = 0; i < stat->events.len; i++) {
		const struct pm_stat_value *cost = &stat->overhead[i];
		const struct pm_stat_value *value = &scope->values[i];

		if (pm_stat_is_time(&stat->events.data[i]) && pm_stat_has_value(cost) &&
		    scope->calls > 0 &&
		    ((value->state == PM_STAT_NOT_KNOWN &&
		      value->raw / scope->calls < 2 * cost->value) ||
		     (pm_stat_has_value(value) &&
		      value->value / scope->calls < cost->value)))
			return true;
	}
	return false;
}

static void print_meaning_of_cost(const struct pm_stat *stat, struct pm_str *line)
{
	size_t below = 0, last = 0;

	if (!stat->overhead_subtracted)
		return;
	pm_str_puts(line, " The program's own numbers above include it.");
	for (size_t i = 0; i < stat->scopes.len; i++)
		if (is_below_cost(stat, &stat->scopes.data[i])) {
			below++;
			last = i;
		}
	if (below == 0)
		return;
	pm_str_puts(line, " Calls of ");
	if (below == 1)
		pm_str_printable(line, stat->scopes.data[last].name,
				 strlen(stat->scopes.data[last].name));
	else
		pm_str_printf(line, "%zu of the functions", below);
	pm_str_puts(line, " take less time than that: what is left of it is uncertain.");
}

/* Appends "5.400 µs of task-clock, 321 instructions": costs that are known and not 0.
 * Returns false if there are none. */
static bool put_visit_costs(const struct pm_stat_text *to, struct pm_str *line,
			    const char *before, const struct pm_stat_value *costs)
{
	bool any = false;

	for (size_t i = 0; costs && i < to->stat->events.len; i++) {
		const struct pm_stat_event *event = &to->stat->events.data[i];
		const char *name = pm_stat_event_shown(event);

		if (!pm_stat_has_value(&costs[i]) || costs[i].value == 0)
			continue;
		pm_str_puts(line, any ? ", " : before);
		pm_put_stat_count(line, event, &costs[i], to->report->ascii);
		pm_str_puts(line, pm_stat_is_time(event) ? " of " : " ");
		pm_str_printable(line, name, strlen(name));
		any = true;
	}
	return any;
}

/* Whether measured calls may have been inside other measured calls. */
static bool may_nest(const struct pm_stat *stat)
{
	size_t called = 0;

	for (size_t i = 0; i < stat->scopes.len; i++) {
		if (stat->scopes.data[i].nested > 0)
			return true;
		called += stat->scopes.data[i].run == 0 && stat->scopes.data[i].calls > 0;
	}
	return called > 1;
}

static void print_overhead(const struct pm_stat_text *to)
{
	const struct pm_stat *stat = to->stat;
	struct pm_str line = { 0 };
	bool any;

	any = put_visit_costs(to, &line, "Each call cost ", stat->overhead);
	if (any && may_nest(stat) &&
	    put_visit_costs(to, &line, " more, and a measured call around it ",
			    stat->overhead_inner))
		pm_str_puts(&line, stat->overhead_subtracted
					   ? "; each subtracted from its own."
					   : "; neither subtracted.");
	else if (any)
		pm_str_puts(&line, stat->overhead_subtracted ? " more; subtracted."
							     : " more; not subtracted.");
	if (any)
		print_meaning_of_cost(stat, &line);
	pm_stat_text_line(to, PM_COLOR_DIM, 0, &line);
	pm_str_release(&line);
}

void pm_stat_text_worth(const struct pm_stat_text *to)
{
	print_row_notes(to);
	print_overhead(to);
	print_shares(to);
	print_missing_runs(to);
	print_states(to);
	print_user_only(to);
	print_settings(to);
}
