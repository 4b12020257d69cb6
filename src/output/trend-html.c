/* SPDX-License-Identifier: MIT */
/*
 * Trends as one HTML page: a plot for each series. Everything visible is generated here.
 * A script, whose hash is in the page's policy, filters and describes the point under the
 * pointer.
 */
#include "page.h"
#include "trend-show.h"

#include <string.h>

enum {
	PLOT_WIDTH = 1000, /* in coordinates of the paths, which are scaled */
	PLOT_HEIGHT = 100,
	PLOT_TOP = 16, /* pixels, for the numbers of the steps */
	PLOT_PIXELS = 120,
	SPARK_WIDTH = 220, /* pixels of the line for one series */
	SPARK_HEIGHT = 26,
	SPARK_EDGE = 4,
	SPARK_DOT = 3,
	SPARK_POINTS = 110, /* with more commits, points are means */
	SUBJECT_COLUMNS = 60,
	STEPS_OPEN = 8, /* more are collapsed, and have no numbers in the plot */
};

/* Minimum height of a plot, as a fraction of its level: noise should not look large. */
static const double plot_least = 0.02;
/* Margin above and below the values, as a fraction of the height. */
static const double plot_margin = 0.06;
/* Levels that differ from the accepted one by less than this
 * fraction are accepted, too. */
static const double ack_near = 0.0005;

/* ---- the frame ------------------------------------------------------------------------- */

static const char *const styles[] = { "plain.css.txt", "trend.css.txt" };
static const char script[] = "trend.js.txt";

static const struct pm_page_file *trend_html_find_file(const char *name)
{
	for (size_t i = 0; i < pm_page_files_len; i++)
		if (strcmp(pm_page_files[i].name, name) == 0)
			return &pm_page_files[i];
	return NULL;
}

static void trend_html_put_hash(struct pm_str *out, const char *name)
{
	const struct pm_page_file *file = trend_html_find_file(name);

	if (file)
		pm_str_printf(out, " 'sha256-%s'", file->sha256);
}

/* The policy's hashes cover the exact bytes between the tags. */
static void trend_html_put_page_file(struct pm_str *out, const char *tag,
				     const char *name)
{
	const struct pm_page_file *file = trend_html_find_file(name);

	if (!file)
		return;
	pm_str_printf(out, "<%s>", tag);
	pm_str_append(out, (const char *)file->bytes, file->len);
	pm_str_printf(out, "</%s>\n", tag);
}

static void trend_html_put_head(struct pm_str *out, const struct pm_trend_report *report)
{
	pm_str_puts(
		out,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\""
		"default-src 'none'; base-uri 'none'; form-action 'none'; style-src");
	for (size_t i = 0; i < PM_ARRAY_LEN(styles); i++)
		trend_html_put_hash(out, styles[i]);
	pm_str_puts(out, "; script-src");
	trend_html_put_hash(out, script);
	pm_str_puts(out, "\">\n<meta name=\"viewport\" content=\"width=device-width, "
			 "initial-scale=1\">\n<title>");
	if (report->title) {
		pm_put_markup(out, report->title);
		pm_str_puts(out, " – ");
	}
	pm_str_puts(out, "trends</title>\n");
	for (size_t i = 0; i < PM_ARRAY_LEN(styles); i++)
		trend_html_put_page_file(out, "style", styles[i]);
	pm_str_puts(out, "</head>\n<body>\n");
}

static void trend_html_put_commit(struct pm_str *out, const char *title,
				  const struct pm_trend_commit *commit)
{
	struct pm_str words = { 0 };

	pm_put_trend_commit(&words, commit, 0, false);
	pm_str_printf(out, "<dt>%s</dt><dd>", title);
	pm_put_markup_str(out, &words);
	if (commit->created) {
		pm_str_puts(out, " <small>measured ");
		pm_put_markup(out, commit->created);
		pm_str_puts(out, "</small>");
	}
	pm_str_puts(out, "</dd>\n");
	pm_str_release(&words);
}

/* ---- accepted steps -------------------------------------------------------------------- */

/* Returns the acceptance of this number, or NULL. */
static const struct pm_ack *find_ack_of_trend(const struct pm_trend_report *report,
					      const struct pm_trend *trend)
{
	PM_CLEANUP(pm_str_release) struct pm_str name = { 0 };
	struct pm_compare_row row;

	if (!report->acks || report->acks->list.len == 0)
		return NULL;
	pm_trend_row(&row, trend);
	pm_compare_row_name(&name, &row);
	if (name.failed)
		return NULL;
	return pm_acks_find(report->acks, name.data);
}

/* Whether @ack applies to this step: it names the commit, or its
 * level is that of the step. */
static bool is_step_accepted(const struct pm_ack *ack, const struct pm_trends *trends,
			     const struct pm_trend_step *step)
{
	const char *commit = trends->commits.data[step->at].commit;

	if (!ack || step->verdict != PM_VERDICT_WORSE)
		return false;
	if (ack->commit && commit && strcmp(ack->commit, commit) == 0)
		return true;
	return fabs(step->after - ack->to) <= ack_near * fabs(ack->to);
}

static const char *css_class_of_step(const struct pm_ack *ack,
				     const struct pm_trends *trends,
				     const struct pm_trend_step *step)
{
	if (is_step_accepted(ack, trends, step))
		return "accepted";
	return pm_verdict_name(step->verdict);
}

/* Writes the tooltip of a step: "worse +3.00 %: 3f2a1bc0  Make it slower". */
static void trend_html_put_step_title(struct pm_str *out, const struct pm_trends *trends,
				      const struct pm_trend *trend,
				      const struct pm_trend_step *step,
				      const struct pm_ack *ack)
{
	struct pm_compare_row row;
	struct pm_str words = { 0 };

	pm_trend_step_row(&row, trend, step);
	pm_str_printf(&words, "%s ", css_class_of_step(ack, trends, step));
	pm_put_compare_change(&words, &row);
	pm_str_puts(&words, ": ");
	pm_put_trend_commit(&words, &trends->commits.data[step->at], 0, false);
	if (is_step_accepted(ack, trends, step))
		pm_str_printf(&words, " (%s)", ack->reason);
	pm_str_puts(out, "<title>");
	pm_put_markup_str(out, &words);
	pm_str_puts(out, "</title>");
	pm_str_release(&words);
}

static void trend_html_put_summary(struct pm_str *out,
				   const struct pm_trend_report *report)
{
	const struct pm_trends *trends = report->trends;
	struct pm_str words = { 0 };

	pm_str_puts(out, "<h1>");
	pm_put_trend_verdict(&words, trends);
	pm_put_markup_str(out, &words);
	pm_str_puts(out, "</h1>\n<dl>\n");
	if (report->title) {
		pm_str_puts(out, "<dt>history</dt><dd>");
		pm_put_markup(out, report->title);
		pm_str_puts(out, "</dd>\n");
	}
	if (trends->commits.len > 0) {
		trend_html_put_commit(out, "from", &trends->commits.data[0]);
		trend_html_put_commit(out, "to",
				      &trends->commits.data[trends->commits.len - 1]);
	}
	pm_str_puts(out, "</dl>\n");
	for (size_t i = 0; i < trends->warnings.len; i++) {
		if (i == 0)
			pm_str_puts(out, "<ul>\n<li>");
		else
			pm_str_puts(out, "<li>");
		pm_put_markup(out, trends->warnings.data[i]);
		if (i + 1 == trends->warnings.len)
			pm_str_puts(out, "</li>\n</ul>\n");
		else
			pm_str_puts(out, "</li>\n");
	}
	if (trends->list.len > 0)
		pm_str_puts(
			out,
			"<p class=\"key\">The line joins the medians of the commits, the "
			"band reaches from the least to the largest run, dashes are "
			"levels. A vertical line or a dot is a step: it was better, "
			"worse, or accepted.</p>\n"
			"<div class=\"tools\" hidden><label for=\"filter\">Filter by "
			"name</label><input id=\"filter\" type=\"search\" "
			"autocomplete=\"off\" spellcheck=\"false\"><span id=\"count\" "
			"role=\"status\"></span></div>\n");
	pm_str_release(&words);
}

/* ---- plots ----------------------------------------------------------------------------- */

struct plot {
	const struct pm_trend *trend;
	double from, to; /* values at its lower and upper edge */
};

static void trend_plot_init(struct plot *plot, const struct pm_trend *trend)
{
	double low = INFINITY, high = -INFINITY, least, margin;

	for (size_t i = 0; i < trend->points.len; i++) {
		low = fmin(low, trend->points.data[i].min);
		high = fmax(high, trend->points.data[i].max);
	}
	least = plot_least * fmax(fabs(low), fabs(high));
	if (high - low < least) {
		low -= (least - (high - low)) / 2;
		high = low + least;
	}
	margin = plot_margin * (high - low);
	/* If no value is negative, the scale does not go below 0. */
	*plot = (struct plot){ .trend = trend,
			       .from = low >= 0 ? fmax(low - margin, 0) : low - margin,
			       .to = high + margin };
}

/* Returns the horizontal position, from 0 to @whole. */
static double trend_plot_x(const struct plot *plot, size_t commit, double whole)
{
	size_t last = plot->trend->points.len - 1;

	if (last > 0)
		return whole * (double)commit / (double)last;
	return whole / 2;
}

static double trend_plot_y(const struct plot *plot, double value)
{
	double height = plot->to - plot->from;

	if (height > 0)
		return PLOT_HEIGHT * (plot->to - value) / height;
	return PLOT_HEIGHT / 2.0;
}

static bool trend_plot_has_value(const struct plot *plot, size_t commit)
{
	return commit < plot->trend->points.len &&
	       isfinite(plot->trend->points.data[commit].median);
}

static void trend_html_put_point(struct pm_str *out, const struct plot *plot, char how,
				 size_t commit, double value)
{
	pm_str_printf(out, "%c%.1f %.2f", how, trend_plot_x(plot, commit, PLOT_WIDTH),
		      trend_plot_y(plot, value));
}

/* Draws the band, except over commits without a value. */
static void trend_html_put_band(struct pm_str *out, const struct plot *plot)
{
	const struct pm_trend_point *points = plot->trend->points.data;
	size_t len = plot->trend->points.len;

	pm_str_puts(out, "<path class=\"band\" d=\"");
	for (size_t begin = 0, end; begin < len; begin = end + 1) {
		end = begin;
		while (end < len && trend_plot_has_value(plot, end))
			end++;
		for (size_t i = begin; i < end; i++)
			trend_html_put_point(out, plot, i == begin ? 'M' : 'L', i,
					     points[i].max);
		for (size_t i = end; i > begin; i--)
			trend_html_put_point(out, plot, 'L', i - 1, points[i - 1].min);
		if (end > begin)
			pm_str_puts(out, "Z");
	}
	pm_str_puts(out, "\"/>");
}

static void trend_html_put_curve(struct pm_str *out, const struct plot *plot)
{
	const struct pm_trend_point *points = plot->trend->points.data;
	size_t len = plot->trend->points.len;

	pm_str_puts(out, "<path class=\"line\" d=\"");
	for (size_t i = 0; i < len; i++)
		if (trend_plot_has_value(plot, i))
			trend_html_put_point(
				out, plot,
				i > 0 && trend_plot_has_value(plot, i - 1) ? 'L' : 'M', i,
				points[i].median);
	/* An isolated point would be invisible in a line: draw it as a dot. */
	pm_str_puts(out, "\"/><path class=\"dots\" d=\"");
	for (size_t i = 0; i < len; i++) {
		bool left = i > 0 && trend_plot_has_value(plot, i - 1);

		if (!trend_plot_has_value(plot, i) || left ||
		    trend_plot_has_value(plot, i + 1))
			continue;
		trend_html_put_point(out, plot, 'M', i, points[i].median);
		pm_str_puts(out, "h0");
	}
	pm_str_puts(out, "\"/>");
}

static void trend_html_put_levels(struct pm_str *out, const struct plot *plot)
{
	const struct pm_trend *trend = plot->trend;

	if (trend->steps.len == 0)
		return;
	pm_str_puts(out, "<path class=\"level\" d=\"");
	for (size_t i = 0; i <= trend->steps.len; i++) {
		size_t begin = 0;
		bool last = i == trend->steps.len;
		double value = last ? trend->steps.data[i - 1].after
				    : trend->steps.data[i].before;

		if (i > 0)
			begin = trend->steps.data[i - 1].at;
		trend_html_put_point(out, plot, 'M', begin, value);
		pm_str_printf(out, "H%.1f",
			      trend_plot_x(plot,
					   last ? trend->points.len - 1
						: trend->steps.data[i].at,
					   PLOT_WIDTH));
	}
	pm_str_puts(out, "\"/>");
}

static void trend_html_put_marks(struct pm_str *out, const struct pm_trends *trends,
				 const struct plot *plot, const struct pm_ack *ack)
{
	const struct pm_trend *trend = plot->trend;

	for (size_t i = 0; i < trend->steps.len; i++) {
		const struct pm_trend_step *step = &trend->steps.data[i];
		double x = trend_plot_x(plot, step->at, 100);

		pm_str_printf(out,
			      "<line class=\"step %s\" x1=\"%.2f%%\" x2=\"%.2f%%\" "
			      "y1=\"%d\" y2=\"%d\">",
			      css_class_of_step(ack, trends, step), x, x, PLOT_TOP,
			      PLOT_TOP + PLOT_PIXELS);
		trend_html_put_step_title(out, trends, trend, step, ack);
		pm_str_puts(out, "</line>");
		if (trend->steps.len <= STEPS_OPEN)
			pm_str_printf(
				out,
				"<text class=\"%s\" x=\"%.2f%%\" y=\"12\">%zu</text>",
				css_class_of_step(ack, trends, step), x, i + 1);
	}
}

static void trend_html_put_scale(struct pm_str *out, const struct plot *plot)
{
	struct pm_str words = { 0 };

	pm_str_puts(out, "<div class=\"scale\"><span>");
	pm_put_trend_value(&words, plot->trend, plot->to, false);
	pm_put_markup_str(out, &words);
	pm_str_puts(out, "</span><span>");
	pm_put_trend_value(&words, plot->trend, plot->from, false);
	pm_put_markup_str(out, &words);
	pm_str_puts(out, "</span></div>");
	pm_str_release(&words);
}

static void trend_html_put_name(struct pm_str *out, const struct pm_trend *trend)
{
	struct pm_compare_row row;
	struct pm_str words = { 0 };

	pm_trend_row(&row, trend);
	pm_put_compare_name(&words, &row, 0, false);
	pm_put_markup_str(out, &words);
	pm_str_release(&words);
}

static void trend_html_put_plot(struct pm_str *out, const struct pm_trends *trends,
				const struct pm_trend *trend, const struct pm_ack *ack)
{
	struct plot plot;

	trend_plot_init(&plot, trend);
	pm_str_puts(out, "<div class=\"plot\">");
	trend_html_put_scale(out, &plot);
	pm_str_puts(out, "<svg tabindex=\"0\" role=\"img\" aria-label=\"");
	trend_html_put_name(out, trend);
	pm_str_printf(out,
		      " over %zu commits; arrow keys go from commit to commit\">"
		      "<svg x=\"0\" y=\"%d\" width=\"100%%\" height=\"%d\" "
		      "viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" "
		      "overflow=\"visible\">",
		      trend->points.len, PLOT_TOP, PLOT_PIXELS, PLOT_WIDTH, PLOT_HEIGHT);
	trend_html_put_band(out, &plot);
	trend_html_put_levels(out, &plot);
	trend_html_put_curve(out, &plot);
	pm_str_puts(out, "</svg>");
	trend_html_put_marks(out, trends, &plot, ack);
	pm_str_printf(out, "<line class=\"cursor\" y1=\"%d\" y2=\"%d\"/></svg></div>\n",
		      PLOT_TOP, PLOT_TOP + PLOT_PIXELS);
	pm_str_puts(out, "<output aria-live=\"polite\"></output>\n");
}

/* ---- series ---------------------------------------------------------------------------- */

static void trend_html_put_step(struct pm_str *out, const struct pm_trends *trends,
				const struct pm_trend *trend,
				const struct pm_trend_step *step,
				const struct pm_ack *ack)
{
	size_t gap = step->at - step->from - 1;
	struct pm_compare_row row;
	struct pm_str words = { 0 };

	pm_trend_step_row(&row, trend, step);
	pm_str_printf(out, "<li><b class=\"%s\">%s ",
		      css_class_of_step(ack, trends, step),
		      css_class_of_step(ack, trends, step));
	pm_put_compare_change(&words, &row);
	pm_put_markup_str(out, &words);
	pm_str_puts(out, "</b> ");
	pm_put_compare_median(&words, &row, &row.base, false);
	pm_str_puts(&words, " → ");
	pm_put_compare_median(&words, &row, &row.new, false);
	pm_put_markup_str(out, &words);
	pm_str_puts(out, ": <code>");
	pm_put_trend_commit(&words, &trends->commits.data[step->at], 0, false);
	pm_put_markup_str(out, &words);
	pm_str_puts(out, "</code>");
	if (gap > 0)
		pm_str_printf(out,
			      "<small>or one of the %zu commit%s before it, which %s no "
			      "value</small>",
			      gap, pm_plural_s(gap), pm_plural(gap, "has", "have"));
	if (is_step_accepted(ack, trends, step)) {
		pm_str_puts(out, "<small>accepted: ");
		pm_put_markup(out, ack->reason);
		pm_str_puts(out, "</small>");
	}
	pm_str_puts(out, "</li>\n");
	pm_str_release(&words);
}

static void trend_html_put_steps(struct pm_str *out, const struct pm_trends *trends,
				 const struct pm_trend *trend, const struct pm_ack *ack)
{
	bool folded = trend->steps.len > STEPS_OPEN;

	if (trend->steps.len == 0)
		return;
	if (folded)
		pm_str_printf(out, "<details><summary>%zu steps</summary>\n",
			      trend->steps.len);
	pm_str_puts(out, "<ol>\n");
	for (size_t i = 0; i < trend->steps.len; i++)
		trend_html_put_step(out, trends, trend, &trend->steps.data[i], ack);
	if (folded)
		pm_str_puts(out, "</ol></details>\n");
	else
		pm_str_puts(out, "</ol>\n");
}

static void trend_html_put_fact(struct pm_str *out, const char *text)
{
	if (!text)
		return;
	pm_str_puts(out, "<span>");
	pm_put_markup(out, text);
	pm_str_puts(out, "</span>");
}

static void trend_html_put_series(struct pm_str *out,
				  const struct pm_trend_report *report, size_t number)
{
	const struct pm_trends *trends = report->trends;
	const struct pm_trend *trend = &trends->list.data[number];
	const struct pm_ack *ack = find_ack_of_trend(report, trend);
	size_t last = pm_trend_last(trend);
	struct pm_str words = { 0 };

	pm_str_printf(out, "<section id=\"s%zu\" data-series=\"%zu\">\n<h3><code>",
		      number, number);
	trend_html_put_name(out, trend);
	pm_str_puts(out, "</code>");
	trend_html_put_fact(out, trend->module);
	trend_html_put_fact(out, trend->machine);
	pm_str_printf(out, "<span>%s</span><span>now ",
		      pm_compare_class_words(trend->class));
	pm_put_trend_value(&words, trend, trend->points.data[last].median, false);
	pm_put_markup_str(out, &words);
	pm_str_puts(out, "</span></h3>\n");
	trend_html_put_plot(out, trends, trend, ack);
	trend_html_put_steps(out, trends, trend, ack);
	pm_str_puts(out, "</section>\n");
	pm_str_release(&words);
}

/* ---- the table of all series ----------------------------------------------------------- */

static double spark_plot_x(const struct plot *plot, size_t commit)
{
	return SPARK_EDGE + trend_plot_x(plot, commit, SPARK_WIDTH - 2 * SPARK_EDGE);
}

static double spark_plot_y(const struct plot *plot, double value)
{
	return SPARK_EDGE +
	       trend_plot_y(plot, value) * (SPARK_HEIGHT - 2 * SPARK_EDGE) / PLOT_HEIGHT;
}

static void trend_html_put_spark(struct pm_str *out, const struct pm_trends *trends,
				 const struct pm_trend *trend, const struct pm_ack *ack)
{
	size_t len = trend->points.len, columns = PM_MIN(len, SPARK_POINTS);
	bool joined = false;
	struct plot plot;

	trend_plot_init(&plot, trend);
	pm_str_printf(out,
		      "<svg class=\"spark\" width=\"%d\" height=\"%d\">"
		      "<path class=\"line\" d=\"",
		      SPARK_WIDTH, SPARK_HEIGHT);
	for (size_t i = 0; i < columns; i++) {
		size_t begin = i * len / columns, end = (i + 1) * len / columns;
		double mean = pm_trend_mean(trend, begin, end);

		if (isfinite(mean))
			pm_str_printf(out, "%c%.1f %.1f", joined ? 'L' : 'M',
				      spark_plot_x(&plot, (begin + end - 1) / 2),
				      spark_plot_y(&plot, mean));
		joined = isfinite(mean);
	}
	pm_str_puts(out, "\"/>");
	for (size_t i = 0; i < trend->steps.len; i++) {
		const struct pm_trend_step *step = &trend->steps.data[i];

		pm_str_printf(out,
			      "<circle class=\"step %s\" cx=\"%.1f\" cy=\"%.1f\" "
			      "r=\"%d\">",
			      css_class_of_step(ack, trends, step),
			      spark_plot_x(&plot, step->at),
			      spark_plot_y(&plot, step->after), SPARK_DOT);
		trend_html_put_step_title(out, trends, trend, step, ack);
		pm_str_puts(out, "</circle>");
	}
	pm_str_puts(out, "</svg>");
}

static void trend_html_put_overview_row(struct pm_str *out,
					const struct pm_trend_report *report,
					size_t number)
{
	const struct pm_trends *trends = report->trends;
	const struct pm_trend *trend = &trends->list.data[number];
	const struct pm_ack *ack = find_ack_of_trend(report, trend);
	size_t last = pm_trend_last(trend);
	struct pm_str words = { 0 };

	pm_str_printf(out, "<tr data-line=\"%zu\"><td><a href=\"#s%zu\"><code>", number,
		      number);
	trend_html_put_name(out, trend);
	pm_str_puts(out, "</code></a>");
	trend_html_put_fact(out, trend->machine);
	pm_str_puts(out, "</td><td>");
	trend_html_put_spark(out, trends, trend, ack);
	pm_str_puts(out, "</td><td class=\"number\">");
	pm_put_trend_value(&words, trend, trend->points.data[last].median, false);
	pm_put_markup_str(out, &words);
	pm_str_puts(out, "</td><td>");
	if (trend->steps.len > 0) {
		const struct pm_trend_step *step =
			&trend->steps.data[trend->steps.len - 1];
		struct pm_compare_row row;

		pm_trend_step_row(&row, trend, step);
		pm_str_printf(out, "<b class=\"%s\">",
			      css_class_of_step(ack, trends, step));
		pm_put_compare_change(&words, &row);
		pm_put_markup_str(out, &words);
		pm_str_puts(out, "</b> <code>");
		pm_put_trend_commit(&words, &trends->commits.data[step->at],
				    SUBJECT_COLUMNS, false);
		pm_put_markup_str(out, &words);
		pm_str_puts(out, "</code>");
		if (is_step_accepted(ack, trends, step)) {
			pm_str_puts(out, "<small>accepted: ");
			pm_put_markup(out, ack->reason);
			pm_str_puts(out, "</small>");
		}
	}
	pm_str_puts(out, "</td></tr>\n");
	pm_str_release(&words);
}

static void trend_html_put_overview(struct pm_str *out,
				    const struct pm_trend_report *report, FILE *to)
{
	pm_str_puts(out, "<div class=\"wide\"><table class=\"lines\">\n<thead><tr>"
			 "<th>number</th><th>over the commits</th>"
			 "<th class=\"number\">now</th><th>last step</th></tr></thead>\n"
			 "<tbody>\n");
	for (size_t i = 0; i < report->trends->list.len; i++) {
		trend_html_put_overview_row(out, report, i);
		pm_flush_some(out, to);
	}
	pm_str_puts(out, "</tbody>\n</table></div>\n");
}

/* ---- data for the script --------------------------------------------------------------- */

/* Writes text in which nothing looks like a tag to an HTML parser. */
static void trend_html_put_json_text(struct pm_str *out, const char *text)
{
	struct pm_str json = { 0 };

	pm_str_json(&json, text);
	out->failed |= json.failed;
	for (const char *c = json.failed ? "" : json.data; *c; c++) {
		if (*c == '<')
			pm_str_puts(out, "\\u003c");
		else
			pm_str_putc(out, *c);
	}
	pm_str_release(&json);
}

static void trend_html_put_data_points(struct pm_str *out, const struct pm_trend *trend)
{
	pm_str_puts(out, "{\"unit\":");
	trend_html_put_json_text(out, trend->unit);
	pm_str_puts(out, ",\"points\":[");
	for (size_t i = 0; i < trend->points.len; i++) {
		const struct pm_trend_point *point = &trend->points.data[i];

		if (i > 0)
			pm_str_puts(out, ",");
		if (isfinite(point->median))
			pm_str_printf(out, "[%.15g,%.15g,%.15g,%zu]", point->median,
				      point->min, point->max, point->runs);
		else
			pm_str_putc(out, '0');
	}
	pm_str_puts(out, "]}");
}

static void trend_html_put_data(struct pm_str *out, const struct pm_trends *trends,
				FILE *to)
{
	pm_str_puts(out, "<script type=\"application/json\" id=\"pm-trends\">"
			 "{\"commits\":[");
	for (size_t i = 0; i < trends->commits.len; i++) {
		const struct pm_trend_commit *commit = &trends->commits.data[i];

		if (i > 0)
			pm_str_putc(out, ',');
		pm_str_putc(out, '[');
		trend_html_put_json_text(out, commit->commit);
		pm_str_putc(out, ',');
		trend_html_put_json_text(out, commit->subject);
		pm_str_putc(out, ',');
		trend_html_put_json_text(out, commit->created);
		pm_str_putc(out, ']');
	}
	pm_str_puts(out, "],\"series\":[");
	for (size_t i = 0; i < trends->list.len; i++) {
		if (i > 0)
			pm_str_puts(out, ",\n");
		trend_html_put_data_points(out, &trends->list.data[i]);
		pm_flush_some(out, to);
	}
	pm_str_puts(out, "]}</script>\n");
}

int pm_output_trend_html(const struct pm_trend_report *report, FILE *to,
			 struct pm_error *err)
{
	const struct pm_trends *trends = report->trends;
	size_t moved = pm_trends_moved(trends);
	struct pm_str out = { 0 };

	trend_html_put_head(&out, report);
	trend_html_put_summary(&out, report);
	if (trends->list.len > 0)
		trend_html_put_overview(&out, report, to);
	for (size_t i = 0; i < trends->list.len; i++) {
		if (i == 0 && moved > 0)
			pm_str_puts(&out, "<h2>moved</h2>\n");
		if (i == moved)
			pm_str_puts(&out, "<h2>without a step</h2>\n");
		trend_html_put_series(&out, report, i);
		pm_flush_some(&out, to);
	}
	if (trends->list.len > 0) {
		trend_html_put_data(&out, trends, to);
		trend_html_put_page_file(&out, "script", script);
	}
	pm_str_puts(&out, "</body>\n</html>\n");
	return pm_flush_all(&out, to, err);
}
