/* SPDX-License-Identifier: MIT */
/* Prints two programs side by side, and states in words whether they differ, as
 * pm_compare_ab() found. */
#include "stat-show.h"

#include <string.h>

enum {
	WORDS_COLUMN = 4,
};

/* A row: the difference, and its event. */
struct row {
	const struct pm_stat_difference *of;
	const struct pm_stat_event *event; /* NULL: calls */
};

static struct row row_at(const struct pm_stat *stat, size_t index)
{
	const struct pm_stat_difference *of = &stat->differences.data[index];

	return (struct row){ of, of->event < stat->events.len
					 ? &stat->events.data[of->event]
					 : NULL };
}

static const char *compared_row_name(const struct row *row)
{
	if (row->event)
		return pm_stat_event_shown(row->event);
	return "calls";
}

static bool compared_row_is_shown(const struct row *row)
{
	bool known = row->of->outcome != PM_STAT_UNKNOWN;
	bool zero = row->of->outcome == PM_STAT_EQUAL && row->of->median[0] == 0;

	return row->of->scope < 0 || !row->event ||
	       pm_stat_says_something(row->event, known, zero, row->of->state);
}

/* ---- words ----------------------------------------------------------------------------- */

static const char *word_of(const struct row *row, bool more)
{
	if (row->event && pm_stat_is_time(row->event)) {
		if (more)
			return "slower";
		return "faster";
	}
	if (more)
		return "more";
	return "less";
}

static const char *verb_of(const struct row *row)
{
	if (row->event && pm_stat_is_time(row->event))
		return "is";
	return "has";
}

/* Two digits of a percentage are enough, and save space in the line. */
static int percent_decimals(double percent)
{
	if (percent < 1)
		return 2;
	if (percent < 10)
		return 1;
	return 0;
}

static void put_compared_interval(struct pm_str *str, double low, double high,
				  const struct pm_stat_unit *unit, bool ascii)
{
	pm_str_puts(str, " (");
	pm_put_stat_number(str, unit, low);
	pm_str_puts(str, ascii ? " .. " : " … ");
	pm_put_stat_number(str, unit, high);
	if (unit->suffix[0])
		pm_str_puts(str, " ");
	pm_str_printf(str, "%s)", unit->suffix);
}

/* Appends the amount without its sign: for a decrease, the ends of the interval are
 * swapped. */
static void put_range(struct pm_str *str, double middle, double low, double high,
		      const struct pm_stat_unit *unit, const char *word, bool ascii)
{
	pm_put_stat_number(str, unit, fabs(middle));
	pm_str_printf(str, " %s", unit->suffix);
	if (unit->suffix[0])
		pm_str_puts(str, " ");
	pm_str_puts(str, word);
	if (low < high && middle < 0)
		put_compared_interval(str, -high, -low, unit, ascii);
	else if (low < high)
		put_compared_interval(str, low, high, unit, ascii);
}

static void put_compared_difference(struct pm_str *str, const struct row *row, bool ascii)
{
	const struct pm_stat_difference *of = row->of;
	double percent = 100 * of->change;
	struct pm_stat_unit unit;

	pm_str_printf(str, "B %s ", verb_of(row));
	if (!isfinite(percent) || percent == 0) {
		unit = pm_stat_unit_of(row->event, of->by, ascii);
		put_range(str, of->by, of->by_low, of->by_high, &unit,
			  word_of(row, of->by > 0), ascii);
		return;
	}
	unit = (struct pm_stat_unit){ 1, percent_decimals(fabs(percent)), "%" };
	put_range(str, percent, 100 * of->change_low, 100 * of->change_high, &unit,
		  word_of(row, percent > 0), ascii);
}

/* Appends only the interval: a number in front of it might be due to chance. */
static void put_undecided(struct pm_str *str, const struct row *row, bool ascii)
{
	double low = 100 * row->of->change_low, high = 100 * row->of->change_high;
	struct pm_stat_unit unit = { 1, percent_decimals(fmax(fabs(low), fabs(high))),
				     "%" };

	/* The interval may exclude 0 at the 5 % level, while a difference is reported
	 * only below 0.2 %. */
	pm_str_puts(str, low > 0 || high < 0 ? "unsure" : "no difference");
	if (isfinite(low) && isfinite(high) && low < high)
		put_compared_interval(str, low, high, &unit, ascii);
}

static void put_compared_words(struct pm_str *str, const struct row *row, bool ascii)
{
	switch (row->of->outcome) {
	case PM_STAT_UNKNOWN:
		pm_str_puts(str, pm_stat_state_words(row->of->state));
		break;
	case PM_STAT_EQUAL:
		pm_str_puts(str, "equal in all runs");
		break;
	case PM_STAT_LESS:
	case PM_STAT_MORE:
		put_compared_difference(str, row, ascii);
		break;
	case PM_STAT_UNDECIDED:
		put_undecided(str, row, ascii);
		break;
	case PM_STAT_TOO_FEW:
		/* These are the runs that have a value, possibly not all runs. */
		pm_str_printf(str, "too few runs to say (A %zu, B %zu; needs %zu)",
			      row->of->runs[0], row->of->runs[1], row->of->runs_needed);
		break;
	}
}

/* ---- printing -------------------------------------------------------------------------- */

static void put_median(struct pm_grid *grid, double median,
		       const struct pm_stat_unit *unit)
{
	struct pm_str cell = { 0 };

	pm_put_stat_number(&cell, unit, median);
	if (!isnan(median) && unit->suffix[0])
		pm_str_printf(&cell, " %s", unit->suffix);
	pm_grid_put(grid, &cell);
	pm_str_release(&cell);
}

static void put_compared_row(struct pm_grid *grid, const struct row *row, bool ascii)
{
	const double *median = row->of->median;
	struct pm_stat_unit unit =
		pm_stat_unit_of(row->event, fmax(0, fmax(median[0], median[1])), ascii);
	double p = row->of->p_corrected;
	struct pm_str cell = { 0 };

	pm_str_printable(&cell, compared_row_name(row), strlen(compared_row_name(row)));
	pm_grid_put(grid, &cell);
	put_median(grid, median[0], &unit);
	put_median(grid, median[1], &unit);
	if (isnan(p))
		pm_str_putc(&cell, '-');
	else if (p < 0.0005)
		pm_str_printf(&cell, "%.0e", p);
	else
		pm_str_printf(&cell, "%.3f", p);
	pm_grid_put(grid, &cell);
	put_compared_words(&cell, row, ascii);
	pm_grid_put(grid, &cell);
	pm_str_release(&cell);
}

/* Prints the rows of one scope, from *at on. */
static int print_scope(const struct pm_stat_text *to, size_t *at)
{
	static const char *const titles[] = { "event", "median A", "median B", "p", "" };
	PM_CLEANUP(pm_grid_release) struct pm_grid grid = { .titled = true, .fixed = 1 };
	const struct pm_stat *stat = to->stat;
	int32_t scope = stat->differences.data[*at].scope;

	for (size_t i = 0; i < PM_ARRAY_LEN(titles); i++)
		pm_grid_column(&grid, i == 0 || i == WORDS_COLUMN);
	for (size_t i = 0; i < PM_ARRAY_LEN(titles); i++)
		pm_grid_puts(&grid, titles[i]);
	for (; *at < stat->differences.len && stat->differences.data[*at].scope == scope;
	     (*at)++) {
		struct row row = row_at(stat, *at);

		if (compared_row_is_shown(&row))
			put_compared_row(&grid, &row, to->report->ascii);
	}
	return pm_grid_print(&grid, &to->text);
}

/* Prints the result first: the rows that decide the verdict. */
static void print_verdict(const struct pm_stat_text *to)
{
	struct pm_str line = { 0 };
	bool any = false;

	for (size_t i = 0; i < to->stat->differences.len; i++) {
		struct row row = row_at(to->stat, i);
		bool differs = row.of->outcome == PM_STAT_LESS ||
			       row.of->outcome == PM_STAT_MORE;

		if (!row.of->decides || row.of->scope >= 0)
			continue;
		pm_str_printable(&line, compared_row_name(&row),
				 strlen(compared_row_name(&row)));
		pm_str_puts(&line, " decides: ");
		put_compared_words(&line, &row, to->report->ascii);
		pm_stat_text_line(to, differs ? PM_COLOR_HEAD : PM_COLOR_PLAIN, 0, &line);
		any = true;
	}
	if (any)
		fputc('\n', to->text.to);
	pm_str_release(&line);
}

/* Counts of tested rows: those that decide the verdict or not, and those with paired runs
 * or not. */
struct tested {
	size_t decide, other, paired, single;
};

static struct tested count_tested(const struct pm_stat *stat)
{
	struct tested ret = { 0 };

	for (size_t i = 0; i < stat->differences.len; i++) {
		const struct pm_stat_difference *of = &stat->differences.data[i];

		/* Values that are equal in all runs were not tested. */
		if (isnan(of->p) || of->by_low == of->by_high)
			continue;
		ret.decide += of->decides;
		ret.other += !of->decides;
		ret.paired += of->paired;
		ret.single += !of->paired;
	}
	return ret;
}

static void print_explanation(const struct pm_stat_text *to)
{
	struct tested tested = count_tested(to->stat);
	struct pm_str line = { 0 };

	if (to->report->quiet || tested.decide + tested.other == 0)
		return;
	pm_str_printf(&line,
		      "In brackets: the 95 %% interval of the difference. p: %s; a "
		      "difference is reported below 0.002.",
		      tested.paired > 0 ? "Wilcoxon's test of neighbouring runs"
					: "Mann-Whitney's test");
	if (tested.decide > 1)
		pm_str_printf(&line, " %zu rows decide: their p is Holm-corrected.",
			      tested.decide);
	if (tested.other > 0)
		pm_str_puts(&line, tested.decide > 0
					   ? " The others are secondary: not corrected, "
					     "and they decide nothing."
					   : " All rows are secondary: not corrected, "
					     "and none of them decides.");
	pm_stat_text_line(to, PM_COLOR_DIM, 0, &line);
	pm_str_release(&line);
}

int pm_stat_text_compared(const struct pm_stat_text *to)
{
	const struct pm_stat *stat = to->stat;
	int ret = 0;

	print_verdict(to);
	for (size_t at = 0; ret == 0 && at < stat->differences.len;) {
		int32_t scope = stat->differences.data[at].scope;

		if (at > 0)
			fputc('\n', to->text.to);
		if (scope >= 0)
			pm_stat_text_scope_name(to, &stat->scopes.data[scope]);
		ret = print_scope(to, &at);
	}
	if (ret == 0)
		print_explanation(to);
	return ret;
}
