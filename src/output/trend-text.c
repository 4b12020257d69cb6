/* SPDX-License-Identifier: MIT */
/* Trends as text: which numbers have moved, when, and by which commit. */
#include "trend-show.h"

#include <string.h>

enum {
	INDENT = 2,
	GAP = 2,
	CELLS = 4, /* verdict, change, before, after */
	SERIES_MAX = 50, /* series shown, unless all are requested */
	STEPS_MAX = 8, /* steps shown of a series: the latest */
	SPARK_MAX = 48, /* columns */
	SPARK_LEVELS = 8,
	SUBJECT_LEAST = 20,
};

/* Minimum height of a sparkline, as a fraction of the level: noise should not look
 * large. */
static const double spark_least = 0.02;

struct text {
	const struct pm_trend_report *report;
	const struct pm_trends *trends;
	struct pm_report shim; /* only for calls of pm_text functions */
	struct pm_text text;
	bool failed;
};

static void trend_text_put_line(struct text *to, enum pm_color color, const char *before,
				struct pm_str *line)
{
	to->failed |= line->failed;
	if (!line->failed && line->len > 0)
		pm_text_wrap(&to->text, color, before, INDENT, 1, line->data);
	pm_str_clear(line);
}

/* ---- sparkline ------------------------------------------------------------------------- */

static void trend_text_put_spark(struct pm_str *str, const struct pm_trend *trend,
				 bool ascii)
{
	static const char *const blocks[SPARK_LEVELS] = { "▁", "▂", "▃", "▄",
							  "▅", "▆", "▇", "█" };
	static const char *const signs[SPARK_LEVELS] = { "_", "_", ".", "-",
							 "-", "=", "^", "^" };
	size_t len = trend->points.len, columns = PM_MIN(len, SPARK_MAX);
	double low = INFINITY, high = -INFINITY, least;

	for (size_t i = 0; i < columns; i++) {
		double mean =
			pm_trend_mean(trend, i * len / columns, (i + 1) * len / columns);

		low = fmin(low, mean);
		high = fmax(high, mean);
	}
	least = spark_least * fmax(fabs(low), fabs(high));
	if (high - low < least) {
		low -= (least - (high - low)) / 2;
		high = low + least;
	}
	for (size_t i = 0; i < columns; i++) {
		double mean =
			pm_trend_mean(trend, i * len / columns, (i + 1) * len / columns);
		double part = 0;
		size_t level = 0;

		if (high > low)
			part = (mean - low) / (high - low);
		if (!isnan(part))
			level = (size_t)(part * (SPARK_LEVELS - 0.01));
		if (!isfinite(mean))
			pm_str_putc(str, ' ');
		else
			pm_str_puts(str, ascii ? signs[level] : blocks[level]);
	}
}

/* ---- series ---------------------------------------------------------------------------- */

static void trend_text_put_heading(struct text *to, const struct pm_trend *trend)
{
	bool ascii = to->report->ascii;
	struct pm_compare_row row;
	struct pm_str line = { 0 };
	size_t last = pm_trend_last(trend);

	pm_trend_row(&row, trend);
	fputc('\n', to->text.to);
	pm_put_compare_name(&line, &row, to->report->width, ascii);
	if (trend->module) {
		pm_str_puts(&line, "  in ");
		pm_str_printable(&line, trend->module, strlen(trend->module));
	}
	if (trend->machine) {
		pm_str_puts(&line, "  (");
		pm_str_printable(&line, trend->machine, strlen(trend->machine));
		pm_str_putc(&line, ')');
	}
	trend_text_put_line(to, PM_COLOR_HEAD, "", &line);
	trend_text_put_spark(&line, trend, ascii);
	if (last < trend->points.len) {
		pm_str_puts(&line, "  ");
		pm_put_trend_value(&line, trend, trend->points.data[last].median, ascii);
		pm_str_puts(&line, " now");
	}
	to->failed |= line.failed;
	if (!line.failed)
		fprintf(to->text.to, "%*s%s\n", INDENT, "", line.data);
	pm_str_release(&line);
}

struct cells {
	struct pm_str of[CELLS];
};

static void step_cells_release(struct cells *cells)
{
	for (size_t i = 0; i < CELLS; i++)
		pm_str_release(&cells->of[i]);
}

static void step_cells_make(const struct text *to, const struct pm_trend *trend,
			    const struct pm_trend_step *step, struct cells *cells)
{
	struct pm_compare_row row;

	pm_trend_step_row(&row, trend, step);
	pm_str_puts(&cells->of[0], pm_verdict_name(step->verdict));
	pm_put_compare_change(&cells->of[1], &row);
	pm_put_compare_median(&cells->of[2], &row, &row.base, to->report->ascii);
	pm_put_compare_median(&cells->of[3], &row, &row.new, to->report->ascii);
	for (size_t i = 0; i < CELLS; i++)
		cells->of[0].failed |= cells->of[i].failed;
}

static enum pm_color color_of_step(enum pm_verdict verdict)
{
	if (verdict == PM_VERDICT_WORSE)
		return PM_COLOR_HOT;
	if (verdict == PM_VERDICT_BETTER)
		return PM_COLOR_WARM;
	return PM_COLOR_PLAIN;
}

static int blanks_before_cell(const struct pm_str *cell, size_t width)
{
	size_t columns = pm_columns(cell->data);

	if (width > columns)
		return (int)(width - columns);
	return 0;
}

static void trend_text_put_step(struct text *to, const struct pm_trend *trend,
				const struct pm_trend_step *step, const size_t *widths)
{
	PM_CLEANUP(step_cells_release) struct cells cells = { 0 };
	const struct pm_trends *trends = to->trends;
	FILE *stream = to->text.to;
	size_t used = (size_t)INDENT + 3 * GAP + 4, width = to->report->width, gap;
	struct pm_str commit = { 0 };

	step_cells_make(to, trend, step, &cells);
	for (size_t i = 0; i < CELLS; i++)
		used += widths[i];
	used += 10; /* short hash and gap */
	if (width > 0)
		width = PM_MAX(PM_SUB_OR_0(width, used), SUBJECT_LEAST);
	pm_put_trend_commit(&commit, &trends->commits.data[step->at], width,
			    to->report->ascii);
	to->failed |= cells.of[0].failed || commit.failed;
	if (to->failed) {
		pm_str_release(&commit);
		return;
	}
	fprintf(stream, "%*s", INDENT, "");
	pm_text_put(&to->text, color_of_step(step->verdict), cells.of[0].data);
	fprintf(stream, "%*s%*s", blanks_before_cell(&cells.of[0], widths[0]), "",
		GAP + blanks_before_cell(&cells.of[1], widths[1]), "");
	pm_text_put(&to->text, color_of_step(step->verdict), cells.of[1].data);
	fprintf(stream, "%*s%s %s %s", GAP + blanks_before_cell(&cells.of[2], widths[2]),
		"", cells.of[2].data, to->report->ascii ? "->" : "→", cells.of[3].data);
	fprintf(stream, "%*s%s\n", GAP + blanks_before_cell(&cells.of[3], widths[3]), "",
		commit.data);
	pm_str_release(&commit);
	gap = step->at - step->from - 1;
	if (gap > 0)
		fprintf(stream,
			"%*sor by one of the %zu commit%s before it, which %s no value\n",
			2 * INDENT, "", gap, pm_plural_s(gap),
			pm_plural(gap, "has", "have"));
}

static void trend_text_put_steps(struct text *to, const struct pm_trend *trend)
{
	size_t len = trend->steps.len, first = 0, widths[CELLS] = { 0 };

	if (!to->report->all && len > STEPS_MAX)
		first = len - STEPS_MAX;
	for (size_t i = first; i < len; i++) {
		PM_CLEANUP(step_cells_release) struct cells cells = { 0 };

		step_cells_make(to, trend, &trend->steps.data[i], &cells);
		to->failed |= cells.of[0].failed;
		for (size_t j = 0; j < CELLS && !to->failed; j++) {
			size_t columns = pm_columns(cells.of[j].data);

			widths[j] = PM_MAX(columns, widths[j]);
		}
	}
	if (first > 0)
		fprintf(to->text.to, "%*s%zu earlier step%s\n", INDENT, "", first,
			pm_plural_s(first));
	for (size_t i = first; i < len && !to->failed; i++)
		trend_text_put_step(to, trend, &trend->steps.data[i], widths);
}

/* ---- the whole report ------------------------------------------------------------------ */

static void trend_text_put_summary(struct text *to)
{
	const struct pm_trends *trends = to->trends;
	struct pm_str line = { 0 };

	pm_put_trend_verdict(&line, trends);
	trend_text_put_line(to, PM_COLOR_HEAD, "", &line);
	if (!to->report->quiet && trends->commits.len > 0) {
		size_t last = trends->commits.len - 1;

		pm_str_puts(&line, "from  ");
		pm_put_trend_commit(&line, &trends->commits.data[0], to->report->width,
				    to->report->ascii);
		trend_text_put_line(to, PM_COLOR_PLAIN, "", &line);
		pm_str_puts(&line, "to    ");
		pm_put_trend_commit(&line, &trends->commits.data[last], to->report->width,
				    to->report->ascii);
		trend_text_put_line(to, PM_COLOR_PLAIN, "", &line);
	}
	for (size_t i = 0; i < trends->warnings.len; i++) {
		pm_str_printable(&line, trends->warnings.data[i],
				 strlen(trends->warnings.data[i]));
		trend_text_put_line(to, PM_COLOR_WARNING, "warning: ", &line);
	}
	pm_str_release(&line);
}

int pm_output_trend_text(const struct pm_trend_report *report, FILE *to,
			 struct pm_error *err)
{
	const struct pm_trends *trends = report->trends;
	struct text text = {
		.report = report,
		.trends = trends,
		.shim = { .quiet = report->quiet,
			  .color = report->color,
			  .ascii = report->ascii,
			  .width = report->width },
	};
	size_t moved = pm_trends_moved(trends), shown = PM_MIN(moved, SERIES_MAX);

	if (report->all)
		shown = trends->list.len;
	text.text = (struct pm_text){ .report = &text.shim, .to = to };
	trend_text_put_summary(&text);
	for (size_t i = 0; i < shown && !text.failed; i++) {
		trend_text_put_heading(&text, &trends->list.data[i]);
		trend_text_put_steps(&text, &trends->list.data[i]);
	}
	if (moved > shown)
		fprintf(to, "\n%zu more have moved (--all)\n", moved - shown);
	if (!report->quiet && !report->all && trends->list.len > moved)
		fprintf(to, "\n%zu without a step (--all)\n", trends->list.len - moved);
	if (text.failed || text.text.failed)
		return pm_error_no_memory(err);
	return 0;
}
