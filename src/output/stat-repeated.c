/* SPDX-License-Identifier: MIT */
/* Several runs of one program: location and spread of its values. */
#include "stat-show.h"

#include <string.h>

#define DOUBTFUL_PERCENT 5.0 /* with more variation, a mean says little */

/* Doubts, collected while rows are made. */
struct doubts {
	struct pm_str varying, outliers;
};

static double percent_of_mean(const struct pm_stats_summary *summary)
{
	if (summary->mean == 0)
		return 0;
	return 100 * summary->sigma / fabs(summary->mean);
}

static void put_mean_cell(struct pm_grid *grid, const struct pm_stat_unit *unit,
			  const struct pm_stats_summary *summary)
{
	struct pm_str cell = { 0 };

	pm_put_stat_number(&cell, unit, summary->mean);
	if (unit->suffix[0])
		pm_str_printf(&cell, " %s", unit->suffix);
	pm_grid_put(grid, &cell);
	pm_str_release(&cell);
}

/* Instruction counts vary by less than a thousandth of a percent. */
static void put_variation(struct pm_str *str, const struct pm_stats_summary *summary)
{
	double percent = percent_of_mean(summary);

	if (isnan(percent))
		pm_str_putc(str, '-');
	else if (percent == 0)
		pm_str_puts(str, "0 %");
	else if (percent < 0.001)
		pm_str_puts(str, "<0.001 %");
	else
		pm_str_printf(str, "%.*f %%", percent < 0.1 ? 3 : 1, percent);
}

static void put_summary_cells(struct pm_grid *grid, const struct pm_stat_series *series,
			      const struct pm_stats_summary *summary, bool ascii)
{
	struct pm_stat_unit unit = pm_stat_unit_of(series->event, summary->mean, ascii);
	const double numbers[] = { summary->min, summary->median, summary->max };
	struct pm_str cell = { 0 };

	put_mean_cell(grid, &unit, summary);
	pm_str_puts(&cell, ascii ? "+- " : "± ");
	pm_put_stat_number(&cell, &unit, summary->sigma);
	pm_grid_put(grid, &cell);
	for (size_t i = 0; i < PM_ARRAY_LEN(numbers); i++) {
		pm_put_stat_number(&cell, &unit, numbers[i]);
		pm_grid_put(grid, &cell);
	}
	put_variation(&cell, summary);
	pm_grid_put(grid, &cell);
	pm_str_release(&cell);
}

static void put_doubts(struct doubts *doubts, const char *name,
		       const struct pm_stats_summary *summary)
{
	if (!isnan(summary->sigma) && percent_of_mean(summary) > DOUBTFUL_PERCENT) {
		pm_str_separate(&doubts->varying, ", ");
		pm_str_printable(&doubts->varying, name, strlen(name));
	}
	if (summary->outliers > 0) {
		pm_str_separate(&doubts->outliers, ", ");
		pm_str_printable(&doubts->outliers, name, strlen(name));
		pm_str_printf(&doubts->outliers, " (%zu of %zu)", summary->outliers,
			      summary->len);
	}
}

/* Whether variation is a reason for doubt. Calls, and events that are stable by nature,
 * do not vary by chance. */
static bool can_be_doubted(const struct pm_stat_series *series)
{
	return series->event && series->event->class == PM_STAT_NOISY;
}

static bool series_is_zero(const struct pm_stat_series *series)
{
	for (size_t i = 0; i < series->of[0].len; i++)
		if (series->of[0].data[i] != 0)
			return false;
	return true;
}

static int put_repeated_row(struct pm_grid *grid, const struct pm_stat_text *to,
			    const struct pm_stat_group *group, size_t event,
			    struct doubts *doubts)
{
	PM_CLEANUP(pm_stat_series_release) struct pm_stat_series series = { 0 };
	struct pm_stats_summary summary;
	struct pm_str cell = { 0 };
	const char *name;
	int ret = pm_stat_series_get(&series, to->stat, group, event);

	if (ret < 0)
		return ret;
	if (group && series.event &&
	    !pm_stat_says_something(series.event, series.of[0].len > 0,
				    series_is_zero(&series), series.state))
		return 0;
	if (series.event)
		name = pm_stat_event_shown(series.event);
	else
		name = "calls";
	pm_str_printable(&cell, name, strlen(name));
	pm_grid_put(grid, &cell);
	pm_str_release(&cell);
	if (series.of[0].len == 0) {
		pm_grid_puts(grid, pm_stat_state_words(series.state));
		for (size_t i = 0; i < 5; i++)
			pm_grid_puts(grid, "");
		return 0;
	}
	ret = pm_stats_summarize(series.of[0].data, series.of[0].len, &summary);
	if (ret < 0)
		return ret;
	put_summary_cells(grid, &series, &summary, to->report->ascii);
	if (can_be_doubted(&series))
		put_doubts(doubts, name, &summary);
	return 0;
}

static void print_doubts(const struct pm_stat_text *to, const struct doubts *doubts)
{
	struct pm_str line = { 0 };

	if (to->report->quiet)
		return;
	if (doubts->varying.len > 0) {
		pm_str_printf(&line,
			      "warning: runs differ by more than %.0f %%, their mean "
			      "says little: %s",
			      DOUBTFUL_PERCENT, doubts->varying.data);
		pm_stat_text_line(to, PM_COLOR_WARNING, 0, &line);
	}
	if (doubts->outliers.len > 0) {
		pm_str_printf(&line, "warning: outliers, the median says more: %s",
			      doubts->outliers.data);
		pm_stat_text_line(to, PM_COLOR_WARNING, 0, &line);
	}
	pm_str_release(&line);
}

int pm_stat_text_repeated(const struct pm_stat_text *to,
			  const struct pm_stat_group *group)
{
	static const char *const titles[] = { "event",  "mean", "σ", "min",
					      "median", "max",  "CV" };
	PM_CLEANUP(pm_grid_release) struct pm_grid grid = { .titled = true, .fixed = 1 };
	struct doubts doubts = { 0 };
	/* For functions, calls come first. */
	size_t events = to->stat->events.len;
	int ret = 0;

	for (size_t i = 0; i < PM_ARRAY_LEN(titles); i++)
		pm_grid_column(&grid, i == 0);
	for (size_t i = 0; i < PM_ARRAY_LEN(titles); i++)
		pm_grid_puts(&grid, to->report->ascii && i == 2 ? "sd" : titles[i]);
	if (group)
		ret = put_repeated_row(&grid, to, group, events, &doubts);
	for (size_t i = 0; ret == 0 && i < events; i++)
		ret = put_repeated_row(&grid, to, group, i, &doubts);
	if (ret == 0)
		ret = pm_grid_print(&grid, &to->text);
	if (ret == 0)
		print_doubts(to, &doubts);
	pm_str_release(&doubts.varying);
	pm_str_release(&doubts.outliers);
	return ret;
}
