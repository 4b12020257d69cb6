/* SPDX-License-Identifier: MIT */
/* Two programs side by side, and in words whether they differ. */
#include "stat-show.h"

#include <string.h>

enum {
	/* Fewer a side never give p < 0.002, which correction for some rows asks for. */
	RUNS_LEAST = 7,
	BOOTSTRAP_SEED = 1,
	WORDS_COLUMN = 4,
};
#define CONFIDENCE 0.95

/* A row before it is printed: all are corrected for one another. */
struct row {
	size_t group; /* 0: the program, else index + 1 */
	struct pm_stat_series series;
	bool tested;
	double p;
	struct pm_stats_shift shift;
};

struct rows {
	PM_VEC(struct row) list;
};

static void rows_release(struct rows *rows)
{
	for (size_t i = 0; i < rows->list.len; i++)
		pm_stat_series_release(&rows->list.data[i].series);
	pm_vec_release(&rows->list);
}

static const double *of(const struct row *row, size_t variant, size_t *len)
{
	*len = row->series.of[variant].len;
	return row->series.of[variant].data;
}

static bool are_equal(const double *values, size_t len)
{
	for (size_t i = 1; i < len; i++)
		if (values[i] != values[0])
			return false;
	return len > 0;
}

/* Neither side varies: what is seen is all there is to see. */
static bool is_steady(const struct row *row)
{
	size_t a_len, b_len;
	const double *a = of(row, 0, &a_len), *b = of(row, 1, &b_len);

	return are_equal(a, a_len) && are_equal(b, b_len);
}

static bool is_exact(const struct row *row)
{
	return !row->series.event || row->series.event->class == PM_STAT_EXACT;
}

/* ---- making rows ----------------------------------------------------------------------- */

static int add_row(struct rows *rows, const struct pm_stat_text *to,
		   const struct pm_stat_groups *groups, size_t group, size_t event)
{
	struct row row = { .group = group, .p = NAN };
	const double *a, *b;
	size_t a_len, b_len;
	int r = pm_stat_series_get(&row.series, to->stat,
				   group > 0 ? &groups->list.data[group - 1] : NULL,
				   event);

	a = of(&row, 0, &a_len);
	b = of(&row, 1, &b_len);
	if (r == 0 && group > 0 && a_len + b_len == 0 &&
	    pm_stat_is_tools(row.series.event))
		return 0;
	if (r == 0)
		r = pm_stats_shift(a, a_len, b, b_len, CONFIDENCE, BOOTSTRAP_SEED,
				   &row.shift);
	row.tested = a_len >= RUNS_LEAST && b_len >= RUNS_LEAST;
	if (r == 0 && row.tested)
		r = pm_stats_mann_whitney(a, a_len, b, b_len, &row.p);
	if (r == 0)
		r = pm_vec_push(&rows->list, row);
	if (r < 0)
		pm_stat_series_release(&row.series);
	return r;
}

static int make_rows(struct rows *rows, const struct pm_stat_text *to,
		     const struct pm_stat_groups *groups)
{
	size_t events = to->stat->events.len;
	int r = 0;

	for (size_t g = !pm_stat_program_is_shown(to->stat); g <= groups->list.len; g++) {
		if (g > 0)
			r = add_row(rows, to, groups, g, events);
		for (size_t i = 0; r == 0 && i < events; i++)
			r = add_row(rows, to, groups, g, i);
		if (r < 0)
			return r;
	}
	return 0;
}

static int correct(struct rows *rows)
{
	PM_AUTO_FREE double *p = calloc(rows->list.len + 1, sizeof(*p));
	size_t len = 0;
	int r;

	if (!p)
		return -ENOMEM;
	for (size_t i = 0; i < rows->list.len; i++)
		if (rows->list.data[i].tested)
			p[len++] = rows->list.data[i].p;
	r = pm_stats_holm(p, len);
	for (size_t i = rows->list.len; r == 0 && i-- > 0;)
		if (rows->list.data[i].tested)
			rows->list.data[i].p = p[--len];
	return r;
}

/* ---- words ----------------------------------------------------------------------------- */

static const char *word_of(const struct row *row, bool more)
{
	const struct pm_stat_event *event = row->series.event;

	if (event && pm_stat_is_time(event))
		return more ? "slower" : "faster";
	return more ? "more" : "less";
}

static const char *verb_of(const struct row *row)
{
	const struct pm_stat_event *event = row->series.event;

	return event && pm_stat_is_time(event) ? "is" : "has";
}

/* Two digits of a percentage are enough, and leave the line room. */
static int percent_decimals(double percent)
{
	return percent < 1 ? 2 : percent < 10 ? 1 : 0;
}

/* By how much, seen from its own side: a shift down has its ends the other way round. */
static void put_range(struct pm_str *str, double middle, double low, double high,
		      const struct pm_stat_unit *unit, bool steady, const char *word,
		      bool ascii)
{
	bool down = middle < 0;

	pm_put_stat_number(str, unit, fabs(middle));
	pm_str_printf(str, " %s%s%s", unit->suffix, unit->suffix[0] ? " " : "", word);
	if (steady || isnan(low))
		return;
	pm_str_puts(str, " (");
	pm_put_stat_number(str, unit, down ? -high : low);
	pm_str_puts(str, ascii ? " .. " : " … ");
	pm_put_stat_number(str, unit, down ? -low : high);
	pm_str_printf(str, "%s%s)", unit->suffix[0] ? " " : "", unit->suffix);
}

static void put_difference(struct pm_str *str, const struct row *row, bool ascii)
{
	const struct pm_stats_shift *shift = &row->shift;
	bool steady = is_steady(row);
	struct pm_stat_unit unit;
	double percent = 100 * (shift->ratio - 1);

	pm_str_printf(str, "B %s ", verb_of(row));
	if (isnan(percent) || percent == 0 || (!steady && isnan(shift->ratio_low))) {
		unit = pm_stat_unit_of(row->series.event, shift->shift, ascii);
		put_range(str, shift->shift, shift->low, shift->high, &unit, steady,
			  word_of(row, shift->shift > 0), ascii);
		return;
	}
	unit = (struct pm_stat_unit){ 1, percent_decimals(fabs(percent)), "%" };
	put_range(str, percent, 100 * (shift->ratio_low - 1),
		  100 * (shift->ratio_high - 1), &unit, steady, word_of(row, percent > 0),
		  ascii);
}

/* Whether all that the data allow is on one side of nothing. */
static bool is_apart(const struct row *row)
{
	const struct pm_stats_shift *shift = &row->shift;
	bool up = shift->low > 0, down = shift->high < 0;

	if (!isnan(shift->ratio_low) && shift->ratio != 1) {
		up = up && shift->ratio_low > 1;
		down = down && shift->ratio_high < 1;
	}
	return up || down;
}

static void put_words(struct pm_str *str, const struct row *row, bool ascii)
{
	size_t a_len, b_len;
	const double *a = of(row, 0, &a_len), *b = of(row, 1, &b_len);
	bool steady = is_steady(row);

	if (a_len == 0 || b_len == 0) {
		pm_str_puts(str, pm_stat_state_words(row->series.state));
	} else if (steady && a[0] == b[0]) {
		pm_str_puts(str, "equal in all runs");
	} else if ((is_exact(row) && steady) ||
		   (row->tested && row->p < 1 - CONFIDENCE && is_apart(row))) {
		put_difference(str, row, ascii);
	} else if (!row->tested) {
		pm_str_printf(str, "too few runs to say (needs %d a side)", RUNS_LEAST);
	} else {
		pm_str_puts(str, "no difference seen");
	}
}

/* ---- printing -------------------------------------------------------------------------- */

static void put_median(struct pm_grid *grid, const struct row *row, size_t variant,
		       const struct pm_stat_unit *unit)
{
	struct pm_str cell = { 0 };
	struct pm_stats_summary summary = { .median = NAN };
	size_t len;
	const double *values = of(row, variant, &len);

	if (len > 0 && pm_stats_summarize(values, len, &summary) < 0)
		grid->failed = true;
	pm_put_stat_number(&cell, unit, summary.median);
	if (len > 0 && unit->suffix[0])
		pm_str_printf(&cell, " %s", unit->suffix);
	pm_grid_put(grid, &cell);
	pm_str_release(&cell);
}

static double larger_median(const struct row *row)
{
	double largest = 0;

	for (size_t variant = 0; variant < 2; variant++) {
		struct pm_stats_summary summary;
		size_t len;
		const double *values = of(row, variant, &len);

		if (len > 0 && pm_stats_summarize(values, len, &summary) == 0)
			largest = fmax(largest, summary.median);
	}
	return largest;
}

static void put_row(struct pm_grid *grid, const struct row *row, bool ascii)
{
	const struct pm_stat_event *event = row->series.event;
	struct pm_stat_unit unit = pm_stat_unit_of(event, larger_median(row), ascii);
	const char *name = event ? pm_stat_event_shown(event) : "calls";
	struct pm_str cell = { 0 };

	pm_str_printable(&cell, name, strlen(name));
	pm_grid_put(grid, &cell);
	put_median(grid, row, 0, &unit);
	put_median(grid, row, 1, &unit);
	if (!row->tested)
		pm_str_putc(&cell, '-');
	else if (row->p < 0.0005)
		pm_str_printf(&cell, "%.0e", row->p);
	else
		pm_str_printf(&cell, "%.3f", row->p);
	pm_grid_put(grid, &cell);
	put_words(&cell, row, ascii);
	pm_grid_put(grid, &cell);
	pm_str_release(&cell);
}

/* Of the rows of one group, from *at on. */
static int print_group(const struct pm_stat_text *to, const struct rows *rows, size_t *at)
{
	static const char *const titles[] = { "event", "median A", "median B", "p", "" };
	PM_CLEANUP(pm_grid_release) struct pm_grid grid = { .titled = true, .fixed = 1 };
	size_t group = rows->list.data[*at].group;

	for (size_t i = 0; i < PM_ARRAY_LEN(titles); i++)
		pm_grid_column(&grid, i == 0 || i == WORDS_COLUMN);
	for (size_t i = 0; i < PM_ARRAY_LEN(titles); i++)
		pm_grid_puts(&grid, titles[i]);
	for (; *at < rows->list.len && rows->list.data[*at].group == group; (*at)++)
		put_row(&grid, &rows->list.data[*at], to->report->ascii);
	return pm_grid_print(&grid, &to->text);
}

static void explain(const struct pm_stat_text *to, const struct rows *rows)
{
	struct pm_str line = { 0 };
	bool any = false;

	for (size_t i = 0; i < rows->list.len; i++)
		any |= rows->list.data[i].tested;
	if (to->report->quiet || !any)
		return;
	pm_str_printf(&line,
		      "In brackets: the %.0f %% interval of the difference. "
		      "p: Mann-Whitney, Holm-corrected over all rows.",
		      100 * CONFIDENCE);
	pm_stat_text_line(to, PM_COLOR_DIM, 0, &line);
	pm_str_release(&line);
}

int pm_stat_text_compared(const struct pm_stat_text *to,
			  const struct pm_stat_groups *groups)
{
	PM_CLEANUP(rows_release) struct rows rows = { 0 };
	int r = make_rows(&rows, to, groups);

	if (r == 0)
		r = correct(&rows);
	for (size_t at = 0; r == 0 && at < rows.list.len;) {
		size_t group = rows.list.data[at].group;

		if (at > 0)
			fputc('\n', to->text.to);
		if (group > 0)
			pm_stat_text_scope_name(to, groups->list.data[group - 1].scope);
		r = print_group(to, &rows, &at);
	}
	if (r == 0)
		explain(to, &rows);
	return r;
}
