/* SPDX-License-Identifier: MIT */
/* A counting run for people: the command, the numbers, and reservations about them. */
#include "stat-show.h"

#include <string.h>

enum {
	ENDS_MAX = 10, /* number of different ends that are reported */
};

/* ---- the command ----------------------------------------------------------------------- */

static void put_subject_command(struct pm_str *str, const struct pm_stat *stat,
				size_t variant)
{
	const struct pm_stat_subject *subject = NULL;

	if (variant < stat->subjects.len)
		subject = &stat->subjects.data[variant];
	for (size_t i = 0; subject && i < subject->argv.len; i++) {
		struct pm_str word = { 0 };

		pm_put_shell(&word, subject->argv.data[i]);
		if (i > 0)
			pm_str_puts(str, " ");
		if (word.data)
			pm_str_printable(str, word.data, word.len);
		str->failed |= word.failed;
		pm_str_release(&word);
	}
	if (subject && subject->argv.len > 0)
		return;
	if (stat->target)
		pm_str_printable(str, stat->target, strlen(stat->target));
	else
		pm_str_puts(str, "(no command)");
}

static size_t runs_of(const struct pm_stat *stat, size_t variant)
{
	size_t count = 0;

	for (size_t i = 0; i < stat->runs.len; i++)
		count += stat->runs.data[i].variant == variant;
	return count;
}

static void put_runs(struct pm_str *str, const struct pm_stat *stat)
{
	bool several = stat->subjects.len > 1;

	if (stat->runs.len == 1 && stat->warmups == 0 && !several)
		return;
	pm_put_count(str, runs_of(stat, 0));
	if (several && runs_of(stat, 1) != runs_of(stat, 0)) {
		pm_str_puts(str, " and ");
		pm_put_count(str, runs_of(stat, 1));
	}
	pm_str_puts(str, runs_of(stat, 0) == 1 && !several ? " run" : " runs");
	if (several)
		pm_str_puts(str, " each, in turn");
	if (stat->warmups > 0)
		pm_str_printf(str, ", after %u to warm up", stat->warmups);
}

static void print_heading(const struct pm_stat_text *to)
{
	const struct pm_stat *stat = to->stat;
	size_t subjects = PM_MAX(stat->subjects.len, 1);
	struct pm_str line = { 0 };

	for (size_t i = 0; i < subjects; i++) {
		if (subjects > 1)
			pm_str_printf(&line, "%c: ", (char)('A' + i % 26));
		put_subject_command(&line, stat, i);
		pm_stat_text_line(to, PM_COLOR_HEAD, 0, &line);
	}
	put_runs(&line, stat);
	if (strcmp(stat->engine, "count") != 0) {
		pm_str_puts(&line, line.len > 0 ? "   engine " : "engine ");
		pm_str_printable(&line, stat->engine, strlen(stat->engine));
	}
	pm_stat_text_line(to, PM_COLOR_PLAIN, 0, &line);
	fputc('\n', to->text.to);
	pm_str_release(&line);
}

/* ---- one run --------------------------------------------------------------------------- */

static int print_one_run(const struct pm_stat_text *to, const struct pm_stat_run *run)
{
	PM_CLEANUP(pm_grid_release) struct pm_grid grid = { 0 };
	const struct pm_stat *stat = to->stat;
	struct pm_str cell = { 0 };

	for (size_t i = 0; i < 4; i++)
		pm_grid_column(&grid, i > 0);
	grid.fixed = 2;
	for (uint32_t i = 0; i < stat->events.len; i++) {
		const struct pm_stat_event *event = &stat->events.data[i];
		const char *name = pm_stat_event_shown(event);
		double share = pm_stat_share(&run->values[i]);

		pm_put_stat_count(&cell, event, &run->values[i], to->report->ascii);
		pm_grid_put(&grid, &cell);
		pm_str_printable(&cell, name, strlen(name));
		pm_grid_put(&grid, &cell);
		pm_put_stat_metrics(&cell, stat, i, run->variant, -1);
		pm_grid_put(&grid, &cell);
		if (!isnan(share))
			pm_str_printf(&cell, "(%.1f %% of the time)", share);
		pm_grid_put(&grid, &cell);
	}
	pm_str_release(&cell);
	return pm_grid_print(&grid, &to->text);
}

static int rows_of(const struct pm_stat_text *to, const struct pm_stat_run *run)
{
	PM_CLEANUP(pm_grid_release) struct pm_grid grid = { .titled = true, .fixed = 1 };
	PM_CLEANUP(pm_stat_columns_release)
	struct pm_stat_columns columns = { .stat = to->stat };
	struct pm_str cell = { 0 };
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < run->rows.len; i++)
		ret = pm_stat_columns_add(&columns, run->rows.data[i].values);
	if (ret < 0 || run->rows.len == 0)
		return ret;
	pm_grid_column(&grid, true);
	pm_stat_grid_columns(&grid, &columns);
	pm_grid_puts(&grid, run->rows.data[0].cpu >= 0 ? "CPU" : "thread");
	pm_stat_grid_events(&grid, &columns);
	for (size_t i = 0; i < run->rows.len; i++) {
		const struct pm_stat_row *row = &run->rows.data[i];

		pm_put_stat_row_name(&cell, row->tid, row->comm, row->cpu);
		pm_grid_put(&grid, &cell);
		pm_stat_grid_values(&grid, &columns, row->values, to->report->ascii);
	}
	pm_str_release(&cell);
	fputc('\n', to->text.to);
	return pm_grid_print(&grid, &to->text);
}

static int intervals_of(const struct pm_stat_text *to, const struct pm_stat_run *run)
{
	struct pm_stat_run part = *run;
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < run->intervals.len; i++) {
		part.intervals.len = i + 1;
		ret = pm_output_stat_interval_text(to->report, &part, i == 0, to->text.to,
						   NULL);
	}
	if (run->intervals.len > 0)
		fputc('\n', to->text.to);
	return ret;
}

/* ---- the ends of runs ------------------------------------------------------------------ */

/* Appends how a run ended. Termination by a signal of ours, or by Ctrl-C, is not a
 * failure of the program. */
static void put_run_end(struct pm_str *str, const struct pm_stat_run *run, bool timed)
{
	if (run->stopped && timed)
		return;
	if (run->stopped)
		pm_str_puts(str, "counting was stopped before the end");
	if (run->stopped && run->exited && (run->signal > 0 || run->exit_code != 0))
		pm_str_puts(str, ", and then: ");
	if (run->exited && run->signal > 0)
		pm_str_printf(str, "killed by signal %d (%s)", run->signal,
			      strsignal(run->signal));
	else if (run->exited && run->exit_code != 0)
		pm_str_printf(str, "exit status %d", run->exit_code);
}

static bool same_end(const struct pm_stat_run *a, const struct pm_stat_run *b)
{
	return a->exited == b->exited && a->signal == b->signal &&
	       a->exit_code == b->exit_code && a->stopped == b->stopped;
}

static void print_left_out(const struct pm_stat_text *to)
{
	const struct pm_stat *stat = to->stat;
	uint32_t ended = pm_stat_variants_ended(stat);
	struct pm_str line = { 0 };
	size_t count = 0;

	for (size_t i = 0; i < stat->runs.len; i++)
		count += !pm_stat_is_summed(ended, &stat->runs.data[i]);
	if (count > 0 && stat->runs.len > 1)
		pm_str_printf(&line,
			      "Of %zu runs %zu did not end well: not in the numbers "
			      "above, but in --json and -x.",
			      stat->runs.len, count);
	pm_stat_text_line(to, PM_COLOR_WARNING, 0, &line);
	pm_str_release(&line);
}

static void print_ends(const struct pm_stat_text *to)
{
	const struct pm_stat_run *runs = to->stat->runs.data;
	const struct pm_stat_run *told[ENDS_MAX];
	size_t len = to->stat->runs.len, told_len = 0;
	struct pm_str line = { 0 };

	for (size_t i = 0; i < len && told_len < ENDS_MAX; i++) {
		size_t count = 0;
		bool again = false;

		for (size_t j = 0; j < told_len; j++)
			again |= same_end(&runs[i], told[j]);
		if (again)
			continue;
		told[told_len++] = &runs[i];
		put_run_end(&line, &runs[i], to->report->timed);
		for (size_t j = i; j < len; j++)
			count += same_end(&runs[i], &runs[j]);
		if (len > 1 && line.len > 0)
			pm_str_printf(&line, ": %zu of %zu runs", count, len);
		pm_stat_text_line(to, PM_COLOR_WARNING, 0, &line);
	}
	pm_str_release(&line);
}

static void print_stat_warnings(const struct pm_stat_text *to)
{
	struct pm_str line = { 0 };

	for (size_t i = 0; i < to->stat->warnings.len; i++) {
		const char *text = to->stat->warnings.data[i];

		pm_str_puts(&line, "warning: ");
		pm_str_printable(&line, text, strlen(text));
		pm_stat_text_line(to, PM_COLOR_WARNING, 0, &line);
	}
	pm_str_release(&line);
}

/* Metrics of the program that are not on the lines of a single run. */
static void print_program_metrics(const struct pm_stat_text *to)
{
	struct pm_str line = { 0 };

	for (uint32_t variant = 0; variant < 2; variant++) {
		struct pm_str some = { 0 };

		pm_put_stat_metrics(&some, to->stat, PM_STAT_ANY_EVENT, variant, -1);
		if (some.len > 0 && to->stat->subjects.len > 1)
			pm_str_puts(&line, variant == 0 ? "A: " : "B: ");
		if (some.len > 0 && !some.failed)
			pm_str_puts(&line, some.data);
		pm_str_release(&some);
		pm_stat_text_line(to, PM_COLOR_PLAIN, 0, &line);
	}
	pm_str_release(&line);
}

/* ---- the whole document ---------------------------------------------------------------- */

static int print_several_runs(const struct pm_stat_text *to)
{
	PM_CLEANUP(pm_stat_groups_release) struct pm_stat_groups groups = { 0 };
	int ret;

	if (to->stat->subjects.len > 1) {
		ret = pm_stat_text_compared(to);
	} else {
		ret = pm_stat_groups_find(&groups, to->stat);
		if (ret < 0)
			return ret;
		if (pm_stat_program_is_shown(to->stat))
			ret = pm_stat_text_repeated(to, NULL);
		for (size_t i = 0; ret == 0 && i < groups.list.len; i++) {
			if (i > 0 || pm_stat_program_is_shown(to->stat))
				fputc('\n', to->text.to);
			pm_stat_text_scope_name(to, groups.list.data[i].scope);
			ret = pm_stat_text_repeated(to, &groups.list.data[i]);
		}
	}
	if (ret == 0) {
		fputc('\n', to->text.to);
		print_program_metrics(to);
	}
	return ret;
}

static int print_numbers(const struct pm_stat_text *to)
{
	const struct pm_stat *stat = to->stat;
	int ret = 0;

	if (stat->runs.len != 1) {
		if (stat->runs.len == 0)
			return 0;
		return print_several_runs(to);
	}
	if (!to->report->intervals_told)
		ret = intervals_of(to, &stat->runs.data[0]);
	if (ret == 0 && pm_stat_program_is_shown(stat))
		ret = print_one_run(to, &stat->runs.data[0]);
	if (ret == 0)
		ret = rows_of(to, &stat->runs.data[0]);
	for (size_t i = 0; ret == 0 && i < stat->scopes.len; i++) {
		if (i > 0 || pm_stat_program_is_shown(stat))
			fputc('\n', to->text.to);
		ret = pm_stat_text_scope(to, &stat->scopes.data[i]);
	}
	if (!to->report->quiet)
		fputc('\n', to->text.to);
	return ret;
}

int pm_output_stat_text(const struct pm_stat_report *report, FILE *stream,
			struct pm_error *err)
{
	struct pm_stat_text to;
	int ret;

	pm_stat_text_init(&to, report, stream);
	if (!report->quiet)
		print_heading(&to);
	ret = print_numbers(&to);
	if (ret < 0)
		return pm_error_set(err, ret, "out of memory");
	if (report->quiet)
		return 0;
	pm_stat_text_worth(&to);
	print_stat_warnings(&to);
	print_ends(&to);
	print_left_out(&to);
	return 0;
}
