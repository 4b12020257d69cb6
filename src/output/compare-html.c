/* SPDX-License-Identifier: MIT */
/*
 * A comparison as one HTML page: the verdict, and for each number all runs of both sides,
 * so that a reader sees the noise. It has no scripts and loads nothing.
 */
#include "compare-show.h"
#include "page.h"

#include <string.h>

enum {
	PLOT_WIDTH = 220, /* pixels */
	PLOT_HEIGHT = 36,
	PLOT_EDGE = 6,
	LANE_BASE = 10,
	LANE_NEW = 26,
	DOTS_MAX = 200, /* per side */
	JITTER = 5, /* rows of dots, so that equal values do not overlap */
	NAME_COLUMNS = 300,
};

/* ---- the frame ------------------------------------------------------------------------- */

static const struct pm_page_file *compare_html_find_style(void)
{
	for (size_t i = 0; i < pm_page_files_len; i++)
		if (strcmp(pm_page_files[i].name, "plain.css.txt") == 0)
			return &pm_page_files[i];
	return NULL;
}

void pm_put_plain_page(struct pm_str *out, const char *title)
{
	const struct pm_page_file *style = compare_html_find_style();

	pm_str_puts(
		out,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\""
		"default-src 'none'; base-uri 'none'; form-action 'none'");
	if (style)
		pm_str_printf(out, "; style-src 'sha256-%s'", style->sha256);
	pm_str_puts(out, "\">\n<meta name=\"viewport\" content=\"width=device-width, "
			 "initial-scale=1\">\n<title>");
	pm_put_markup(out, title);
	pm_str_puts(out, "</title>\n");
	if (style) {
		/* The hash in the policy covers the exact bytes between the tags. */
		pm_str_puts(out, "<style>");
		pm_str_append(out, (const char *)style->bytes, style->len);
		pm_str_puts(out, "</style>\n");
	}
	pm_str_puts(out, "</head>\n<body>\n");
}

static void compare_html_put_side(struct pm_str *out, const char *title,
				  const struct pm_compare_of *of)
{
	struct pm_str side = { 0 };

	pm_put_compare_side(&side, of, false);
	pm_str_printf(out, "<dt>%s</dt><dd>", title);
	pm_put_markup_str(out, &side);
	if (of->created) {
		pm_str_puts(out, " <small>");
		pm_put_markup(out, of->created);
		pm_str_puts(out, "</small>");
	}
	pm_str_puts(out, "</dd>\n");
	pm_str_release(&side);
}

static void compare_html_put_fact(struct pm_str *out, const char *title, const char *text)
{
	if (!text)
		return;
	pm_str_printf(out, "<dt>%s</dt><dd>", title);
	pm_put_markup(out, text);
	pm_str_puts(out, "</dd>\n");
}

static void compare_html_put_text_list(struct pm_str *out, const char *title,
				       char *const *lines, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		pm_str_printf(out, "%s<li>%s: ", pm_text_if(i == 0, "<ul>\n"), title);
		pm_put_markup(out, lines[i]);
		if (i + 1 == len)
			pm_str_puts(out, "</li>\n</ul>\n");
		else
			pm_str_puts(out, "</li>\n");
	}
}

static void compare_html_put_heading(struct pm_str *out,
				     const struct pm_compare_report *report)
{
	const struct pm_comparison *comparison = report->comparison;
	struct pm_str words = { 0 };

	pm_str_printf(out, "<h1 class=\"%s\">",
		      pm_verdict_name(pm_compare_verdict_of(report)));
	pm_put_compare_verdict(&words, report);
	pm_put_markup_str(out, &words);
	pm_str_puts(out, "</h1>\n<dl>\n");
	compare_html_put_side(out, "base", &comparison->base);
	compare_html_put_side(out, "new", &comparison->new);
	compare_html_put_fact(out, "command", comparison->new.command);
	compare_html_put_fact(out, "engine", comparison->engine);
	compare_html_put_fact(out, "CPU", comparison->cpu_model);
	pm_put_compare_deciding(&words, comparison);
	if (words.len > 0 && !words.failed)
		compare_html_put_fact(out, "gates", words.data);
	pm_str_clear(&words);
	pm_str_puts(out, "</dl>\n");
	compare_html_put_text_list(out, "not the same", comparison->differences.data,
				   comparison->differences.len);
	compare_html_put_text_list(out, "warning", comparison->warnings.data,
				   comparison->warnings.len);
	if (comparison->rows.len > 0 && !comparison->recordings)
		pm_str_puts(out,
			    "<p class=\"key\">In the plots a dot is a run of "
			    "<b class=\"base\">base (above)</b> or "
			    "<b class=\"new\">new (below)</b>, a bar the median, the "
			    "dashed line the gate. Below a change: its 95 % "
			    "interval.</p>\n");
	pm_str_release(&words);
}

/* ---- plots ----------------------------------------------------------------------------- */

struct plot {
	double from, to; /* values at the edges of the plot */
};

static void plot_include_side(struct plot *plot, const struct pm_compare_side *side)
{
	for (size_t i = 0; side->known && i < side->len; i++) {
		if (!isfinite(side->values[i]))
			continue;
		plot->from = fmin(plot->from, side->values[i]);
		plot->to = fmax(plot->to, side->values[i]);
	}
}

static double plot_x_of_value(const struct plot *plot, double value)
{
	double span = plot->to - plot->from;
	double part = 0.5;

	if (span > 0)
		part = (value - plot->from) / span;
	return PLOT_EDGE + part * (PLOT_WIDTH - 2 * PLOT_EDGE);
}

static void compare_html_put_dots(struct pm_str *out, const struct plot *plot,
				  const struct pm_compare_side *side, const char *class,
				  int lane)
{
	size_t shown = PM_MIN(side->len, DOTS_MAX);

	if (!side->known)
		return;
	for (size_t i = 0; i < shown; i++) {
		if (!isfinite(side->values[i]))
			continue;
		pm_str_printf(out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%d\" r=\"2\"/>",
			      class, plot_x_of_value(plot, side->values[i]),
			      lane + (int)(i * 2 % JITTER) - JITTER / 2);
	}
	if (isfinite(side->median))
		pm_str_printf(out,
			      "<line class=\"%s median\" x1=\"%.1f\" x2=\"%.1f\" "
			      "y1=\"%d\" y2=\"%d\"/>",
			      class, plot_x_of_value(plot, side->median),
			      plot_x_of_value(plot, side->median), lane - 7, lane + 7);
}

static void compare_html_put_gate(struct pm_str *out, const struct plot *plot,
				  double value)
{
	if (!(value >= plot->from && value <= plot->to))
		return;
	pm_str_printf(
		out, "<line class=\"gate\" x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%d\"/>",
		plot_x_of_value(plot, value), plot_x_of_value(plot, value), PLOT_HEIGHT);
}

static void compare_html_put_plot_title(struct pm_str *out,
					const struct pm_compare_row *row)
{
	struct pm_str words = { 0 };

	if (row->base.known && row->new.known) {
		pm_str_printf(&words, "base %.6g to %.6g, new %.6g to %.6g ",
			      row->base.min, row->base.max, row->new.min, row->new.max);
		pm_str_puts(&words, row->unit);
	}
	if (row->base.len > DOTS_MAX || row->new.len > DOTS_MAX)
		pm_str_printf(&words, " (the first %d runs are shown)", DOTS_MAX);
	pm_str_puts(out, "<title>");
	pm_put_markup_str(out, &words);
	pm_str_puts(out, "</title>");
	pm_str_release(&words);
}

static void compare_html_put_plot(struct pm_str *out, const struct pm_compare_row *row)
{
	struct plot plot = { INFINITY, -INFINITY };

	plot_include_side(&plot, &row->base);
	plot_include_side(&plot, &row->new);
	if (plot.from > plot.to)
		return;
	pm_str_printf(out, "<svg width=\"%d\" height=\"%d\" role=\"img\">", PLOT_WIDTH,
		      PLOT_HEIGHT);
	compare_html_put_plot_title(out, row);
	pm_str_printf(out,
		      "<line class=\"axis\" x1=\"0\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>",
		      PLOT_WIDTH, PLOT_HEIGHT / 2, PLOT_HEIGHT / 2);
	if (row->gated && row->base.known && isfinite(row->gate)) {
		if (row->better <= 0 || row->both)
			compare_html_put_gate(out, &plot,
					      row->base.median * (1 + row->gate));
		if (row->better >= 0 || row->both)
			compare_html_put_gate(out, &plot,
					      row->base.median * (1 - row->gate));
	}
	compare_html_put_dots(out, &plot, &row->base, "base", LANE_BASE);
	compare_html_put_dots(out, &plot, &row->new, "new", LANE_NEW);
	pm_str_puts(out, "</svg>");
}

/* ---- tables ---------------------------------------------------------------------------- */

static void compare_html_put_name(struct pm_str *out, const struct pm_compare_row *row)
{
	const char *inlined = pm_compare_inlined_words(row);
	struct pm_str text = { 0 };

	pm_put_compare_row(&text, row, NAME_COLUMNS, false);
	pm_str_puts(out, "<tr><td><code>");
	pm_put_markup_str(out, &text);
	pm_str_puts(out, "</code>");
	pm_put_compare_place(&text, row, true);
	if (row->module) {
		if (text.len > 0)
			pm_str_puts(&text, " in ");
		pm_str_puts(&text, row->module);
	}
	if (inlined[0])
		pm_str_printf(&text, "%s%s", pm_text_if(text.len > 0, ", "), inlined);
	if (text.len > 0) {
		pm_str_puts(out, "<small>");
		pm_put_markup_str(out, &text);
		pm_str_puts(out, "</small>");
	}
	pm_str_puts(out, "</td>");
	pm_str_release(&text);
}

static void compare_html_put_numbers(struct pm_str *out, const struct pm_compare_row *row)
{
	struct pm_str cell = { 0 };

	for (int side = 0; side < 2; side++) {
		pm_put_compare_median(&cell, row, side == 0 ? &row->base : &row->new,
				      false);
		pm_str_puts(out, "<td class=\"number\">");
		pm_put_markup_str(out, &cell);
		pm_str_puts(out, "</td>");
	}
	pm_put_compare_change(&cell, row);
	pm_str_printf(out, "<td class=\"number %s\">", pm_verdict_name(row->verdict));
	pm_put_markup_str(out, &cell);
	pm_put_compare_interval(&cell, row, false);
	if (cell.len > 0) {
		pm_str_puts(out, "<small>");
		pm_put_markup_str(out, &cell);
		pm_str_puts(out, "</small>");
	}
	pm_str_puts(out, "</td>");
	pm_str_release(&cell);
}

static void compare_html_put_verdict(struct pm_str *out, const struct pm_compare_row *row)
{
	struct pm_str cell = { 0 };

	pm_str_printf(out, "<td><b class=\"%s\">%s</b><small>",
		      pm_verdict_name(row->verdict), pm_verdict_name(row->verdict));
	if (row->gated) {
		pm_str_puts(&cell, "gate ");
		pm_put_compare_gate(&cell, row, false);
		pm_str_puts(&cell, "; ");
	}
	pm_put_compare_method(&cell, row);
	pm_put_markup_str(out, &cell);
	pm_str_puts(out, "</small>");
	if (row->why) {
		pm_str_puts(out, "<small>");
		pm_put_markup(out, row->why);
		pm_str_puts(out, "</small>");
	}
	pm_str_puts(out, "</td>");
	pm_str_release(&cell);
}

static void compare_html_put_table(struct pm_str *out,
				   const struct pm_comparison *comparison,
				   enum pm_compare_section section, FILE *to)
{
	pm_str_puts(out, "<div class=\"wide\"><table>\n<thead><tr><th>number</th>"
			 "<th class=\"number\">base</th><th class=\"number\">new</th>"
			 "<th class=\"number\">change</th>");
	if (!comparison->recordings)
		pm_str_puts(out, "<th class=\"runs\">runs</th>");
	pm_str_puts(out, "<th>verdict</th></tr></thead>\n<tbody>\n");
	for (size_t i = 0; i < comparison->rows.len; i++) {
		const struct pm_compare_row *row = &comparison->rows.data[i];

		if (pm_compare_section_of(row) != section)
			continue;
		compare_html_put_name(out, row);
		compare_html_put_numbers(out, row);
		if (!comparison->recordings) {
			pm_str_puts(out, "<td>");
			compare_html_put_plot(out, row);
			pm_str_puts(out, "</td>");
		}
		compare_html_put_verdict(out, row);
		pm_str_puts(out, "</tr>\n");
		pm_flush_some(out, to);
	}
	pm_str_puts(out, "</tbody>\n</table></div>\n");
}

static void compare_html_put_section(struct pm_str *out,
				     const struct pm_compare_report *report,
				     enum pm_compare_section section, size_t len,
				     FILE *to)
{
	bool folded = section >= PM_COMPARED_UNKNOWN;

	if (folded)
		pm_str_printf(out, "<details%s><summary>%s: %zu</summary>\n",
			      pm_text_if(report->all, " open"),
			      pm_compare_section_words(section), len);
	else
		pm_str_printf(out, "<h2>%s: %zu</h2>\n",
			      pm_compare_section_words(section), len);
	compare_html_put_table(out, report->comparison, section, to);
	if (folded)
		pm_str_puts(out, "</details>\n");
}

/* ---- where the additional cost is ------------------------------------------------------ */

static void compare_html_put_hot_row(struct pm_str *out, const struct pm_hot *hot,
				     const struct pm_hot_row *row)
{
	const double numbers[] = { row->base, row->new, row->new - row->base };
	struct pm_str cell = { 0 };

	pm_put_hot_name(&cell, row, NAME_COLUMNS);
	pm_str_puts(out, "<tr><td><code>");
	pm_put_markup_str(out, &cell);
	pm_str_puts(out, "</code>");
	pm_put_hot_place(&cell, row);
	if (cell.len > 0) {
		pm_str_puts(out, "<small>");
		pm_put_markup_str(out, &cell);
		pm_str_puts(out, "</small>");
	}
	pm_str_puts(out, "</td>");
	for (size_t i = 0; i < PM_ARRAY_LEN(numbers); i++) {
		pm_put_hot_number(&cell, hot, numbers[i], i == 2);
		pm_str_puts(out, "<td class=\"number\">");
		pm_put_markup_str(out, &cell);
		pm_str_puts(out, "</td>");
	}
	pm_str_puts(out, "</tr>\n");
	pm_str_release(&cell);
}

static void compare_html_put_hot(struct pm_str *out, const struct pm_hot *hot)
{
	const struct pm_hot_rows *rows;
	struct pm_str words = { 0 };
	const char *title;

	if (!hot)
		return;
	pm_put_hot_source(&words, hot);
	pm_str_puts(out, "<h2>where the added cost is</h2>\n<p>");
	pm_put_markup_str(out, &words);
	if (hot->page) {
		pm_str_puts(out, "; <a href=\"");
		pm_put_markup(out, pm_basename(hot->page));
		pm_str_puts(out, "\">flame graph of both sides</a>");
	}
	pm_str_puts(out, "</p>\n");
	for (size_t i = 0; (rows = pm_hot_list(hot, i, &title)); i++) {
		if (rows->list.len == 0)
			continue;
		pm_str_printf(out,
			      "<details open><summary>%s: %zu</summary>\n<div><table>\n"
			      "<thead><tr><th>function</th><th>base</th><th>new</th>"
			      "<th>added</th></tr></thead>\n<tbody>\n",
			      title, rows->list.len);
		for (size_t j = 0; j < rows->list.len; j++)
			compare_html_put_hot_row(out, hot, &rows->list.data[j]);
		pm_str_puts(out, "</tbody>\n</table></div>\n</details>\n");
		if (rows->more > 0)
			pm_str_printf(out,
				      "<p>%zu more cost more than before, too.</p>\n",
				      rows->more);
	}
	pm_str_release(&words);
}

static void compare_html_put_rows(struct pm_str *out,
				  const struct pm_compare_report *report, FILE *to)
{
	struct pm_compare_counts counts;

	compare_html_put_hot(out, report->comparison->hot);

	pm_compare_count(&counts, report->comparison);
	for (enum pm_compare_section section = 0; section < PM_COMPARED_SECTIONS;
	     section++)
		if (counts.of[section] > 0)
			compare_html_put_section(out, report, section, counts.of[section],
						 to);
}

static void compare_html_put_case(struct pm_str *out,
				  const struct pm_compare_report *report,
				  const struct pm_compare_case *one, FILE *to)
{
	struct pm_comparison view = pm_compare_view(report->comparison, one);
	struct pm_compare_report of = *report;
	struct pm_str words = { 0 };

	of.comparison = &view;
	pm_str_printf(out, "<h1 class=\"%s\">", pm_verdict_name(one->verdict));
	pm_put_markup(out, one->name);
	pm_str_puts(out, "</h1>\n<p>");
	pm_put_compare_case(&words, report, one);
	pm_put_markup_str(out, &words);
	pm_str_puts(out, "</p>\n");
	compare_html_put_rows(out, &of, to);
	pm_str_release(&words);
}

int pm_output_compare_html(const struct pm_compare_report *report, FILE *to,
			   struct pm_error *err)
{
	const struct pm_comparison *comparison = report->comparison;
	struct pm_str out = { 0 }, title = { 0 };

	pm_str_printf(&title, "%s: %s against %s – pmdiff",
		      pm_verdict_name(pm_compare_verdict_of(report)),
		      pm_text_or(comparison->new.name, "?"),
		      pm_text_or(comparison->base.name, "?"));
	out.failed |= title.failed;
	pm_put_plain_page(&out, pm_str_text(&title));
	pm_str_release(&title);
	compare_html_put_heading(&out, report);
	if (comparison->cases.len == 0)
		compare_html_put_rows(&out, report, to);
	for (size_t i = 0; i < comparison->cases.len; i++)
		compare_html_put_case(&out, report, &comparison->cases.data[i], to);
	pm_str_printf(&out, "<p class=\"key\">pmdiff %s</p>\n</body>\n</html>\n",
		      PM_VERSION);
	return pm_flush_all(&out, to, err);
}
