/* SPDX-License-Identifier: MIT */
/* A comparison as text: the verdict, the rows that determine it, and then the other
 * rows. */
#include "compare-show.h"

#include <string.h>

enum {
	CELLS = 5, /* event, base, new, change, interval */
	INDENT = 2,
	GAP = 2,
	EVENT_LEAST = 12, /* columns */
	NAME_LEAST = 20,
	NAME_ROOM = 40, /* columns that a module must leave for the name */
	ROWS_MAX = 50, /* per section, unless all are requested */
	ROWS_ALONE = 5, /* of inconclusive rows, if nothing is gated */
};

struct text {
	const struct pm_compare_report *report;
	const struct pm_comparison *comparison;
	struct pm_compare_counts counts;
	struct pm_report shim; /* only for calls of pm_text() */
	struct pm_text text;
	size_t widths[CELLS];
	bool failed;
};

static void compare_text_init(struct text *to, const struct pm_compare_report *report,
			      FILE *stream)
{
	*to = (struct text){ .report = report, .comparison = report->comparison };
	to->shim = (struct pm_report){ .quiet = report->quiet,
				       .color = report->color,
				       .ascii = report->ascii,
				       .width = report->width };
	to->text = (struct pm_text){ .report = &to->shim, .to = stream };
	pm_compare_count(&to->counts, report->comparison);
}

/* Writes one line, wrapped at blanks. */
static void compare_text_put_line(struct text *to, enum pm_color color, unsigned indent,
				  struct pm_str *line)
{
	char blanks[16];

	snprintf(blanks, sizeof(blanks), "%*s", (int)indent, "");
	to->failed |= line->failed;
	if (!line->failed && line->len > 0)
		pm_text_wrap(&to->text, color, blanks, indent + 2, 1, line->data);
	pm_str_clear(line);
}

static void compare_text_put_foreign(struct text *to, enum pm_color color,
				     unsigned indent, const char *before,
				     const char *words)
{
	struct pm_str line = { 0 };

	pm_str_puts(&line, before);
	pm_str_printable(&line, words, strlen(words));
	compare_text_put_line(to, color, indent, &line);
	pm_str_release(&line);
}

/* ---- heading --------------------------------------------------------------------------- */

static enum pm_color color_of_verdict(enum pm_verdict verdict)
{
	switch (verdict) {
	case PM_VERDICT_WORSE:
		return PM_COLOR_HOT;
	case PM_VERDICT_INCONCLUSIVE:
	case PM_VERDICT_UNKNOWN:
		return PM_COLOR_WARNING;
	case PM_VERDICT_BETTER:
		return PM_COLOR_WARM;
	case PM_VERDICT_SAME:
	case PM_VERDICT_CHANGED:
	case PM_VERDICT_ACCEPTED:
	case PM_VERDICT_NEW:
	case PM_VERDICT_GONE:
		break;
	}
	return PM_COLOR_HEAD;
}

static void compare_text_put_machine(struct text *to)
{
	const struct pm_comparison *comparison = to->comparison;
	struct pm_str line = { 0 };

	if (comparison->engine && strcmp(comparison->engine, "count") != 0) {
		pm_str_puts(&line, "engine ");
		pm_str_printable(&line, comparison->engine, strlen(comparison->engine));
	}
	if (comparison->cpu_model) {
		if (line.len > 0)
			pm_str_puts(&line, "  CPU ");
		else
			pm_str_puts(&line, "CPU ");
		pm_str_printable(&line, comparison->cpu_model,
				 strlen(comparison->cpu_model));
	}
	compare_text_put_line(to, PM_COLOR_DIM, 0, &line);
	pm_str_release(&line);
}

static void compare_text_put_heading(struct text *to)
{
	const struct pm_comparison *comparison = to->comparison;
	struct pm_str line = { 0 };

	pm_put_compare_verdict(&line, to->report);
	compare_text_put_line(to, color_of_verdict(pm_compare_verdict_of(to->report)), 0,
			      &line);
	if (!to->report->quiet) {
		fputc('\n', to->text.to);
		pm_str_puts(&line, "base  ");
		pm_put_compare_side(&line, &comparison->base, to->report->ascii);
		compare_text_put_line(to, PM_COLOR_PLAIN, 0, &line);
		pm_str_puts(&line, "new   ");
		pm_put_compare_side(&line, &comparison->new, to->report->ascii);
		compare_text_put_line(to, PM_COLOR_PLAIN, 0, &line);
		compare_text_put_machine(to);
		pm_put_compare_deciding(&line, comparison);
		compare_text_put_line(to, PM_COLOR_DIM, 0, &line);
	}
	pm_str_release(&line);
	for (size_t i = 0; i < comparison->differences.len; i++)
		compare_text_put_foreign(to, PM_COLOR_WARNING, 0, "not the same: ",
					 comparison->differences.data[i]);
	for (size_t i = 0; i < comparison->warnings.len && !to->report->quiet; i++)
		compare_text_put_foreign(to, PM_COLOR_WARNING, 0,
					 "warning: ", comparison->warnings.data[i]);
}

/* ---- rows ------------------------------------------------------------------------------ */

struct cells {
	struct pm_str of[CELLS];
};

static void row_cells_release(struct cells *cells)
{
	for (size_t i = 0; i < CELLS; i++)
		pm_str_release(&cells->of[i]);
}

static void row_cells_make(const struct text *to, const struct pm_compare_row *row,
			   struct cells *cells)
{
	bool ascii = to->report->ascii;

	pm_str_printable(&cells->of[0], row->event, strlen(row->event));
	pm_put_compare_median(&cells->of[1], row, &row->base, ascii);
	pm_put_compare_median(&cells->of[2], row, &row->new, ascii);
	pm_put_compare_change(&cells->of[3], row);
	pm_put_compare_interval(&cells->of[4], row, ascii);
}

static void compare_text_measure_row(struct text *to, const struct pm_compare_row *row)
{
	PM_CLEANUP(row_cells_release) struct cells cells = { 0 };

	row_cells_make(to, row, &cells);
	for (size_t i = 0; i < CELLS; i++) {
		size_t columns = 0;

		if (cells.of[i].len > 0)
			columns = pm_columns(cells.of[i].data);
		to->widths[i] = PM_MAX(columns, to->widths[i]);
		to->failed |= cells.of[i].failed;
	}
}

/* If space is short, long names of events are truncated in favour of the numbers. */
static void compare_text_fit_width(struct text *to)
{
	size_t sum = 2 * INDENT, width = to->report->width, over;

	for (size_t i = 0; i < CELLS; i++)
		sum += to->widths[i] + (i > 0 ? GAP : 0);
	if (width == 0 || sum <= width)
		return;
	over = sum - width;
	if (to->widths[0] > over + EVENT_LEAST)
		to->widths[0] -= over;
	else if (to->widths[0] > EVENT_LEAST)
		to->widths[0] = EVENT_LEAST;
}

/* Prints a cell. @blanks is the number of blanks that are due after the previous cells.
 * Returns the number that is due now: no line ends with blanks. */
static size_t compare_text_put_cell(const struct text *to, enum pm_color color,
				    const char *cell, size_t width, bool left,
				    size_t blanks)
{
	size_t columns = pm_columns(cell), rest = PM_SUB_OR_0(width, columns);

	if (cell[0] == '\0')
		return blanks + width;
	fprintf(to->text.to, "%*s", (int)(blanks + (left ? 0 : rest)), "");
	pm_text_put(&to->text, color, cell);
	if (left)
		return rest;
	return 0;
}

static void compare_text_put_numbers(struct text *to, const struct pm_compare_row *row,
				     enum pm_color color)
{
	PM_CLEANUP(row_cells_release) struct cells cells = { 0 };
	size_t blanks = (size_t)2 * INDENT;

	row_cells_make(to, row, &cells);
	pm_str_clear(&cells.of[0]);
	pm_put_cut(&cells.of[0], row->event, to->widths[0], false, to->report->ascii);
	for (size_t i = 0; i < CELLS; i++) {
		to->failed |= cells.of[i].failed;
		if (cells.of[i].failed)
			return;
		blanks = compare_text_put_cell(to, i == 3 ? color : PM_COLOR_PLAIN,
					       pm_str_text(&cells.of[i]), to->widths[i],
					       i == 0 || i == 4, blanks) +
			 GAP;
	}
	fputc('\n', to->text.to);
}

/* Stores the location, with the module only if there is space beside the name. */
static void compare_text_put_location(const struct text *to,
				      const struct pm_compare_row *row,
				      struct pm_str *place)
{
	const char *inlined = pm_compare_inlined_words(row);
	size_t width = to->report->width, used = NAME_ROOM + 2 * GAP;

	pm_put_compare_place(place, row, false);
	if (place->len > 0)
		used += pm_columns(place->data);
	if (row->module && (width == 0 || used + pm_columns(row->module) <= width)) {
		if (place->len > 0)
			pm_str_puts(place, "  ");
		pm_str_printable(place, row->module, strlen(row->module));
	}
	if (inlined[0])
		pm_str_printf(place, "%s(%s)", pm_text_if(place->len > 0, "  "), inlined);
}

/* Writes the subject of the rows below. */
static void compare_text_put_subject(struct text *to, const struct pm_compare_row *row)
{
	size_t width = to->report->width, used;
	struct pm_str name = { 0 }, place = { 0 };

	compare_text_put_location(to, row, &place);
	used = INDENT;
	if (place.len > 0)
		used += pm_columns(place.data) + GAP;
	if (width > 0)
		width = PM_MAX(PM_SUB_OR_0(width, used), NAME_LEAST);
	if (row->scope)
		pm_put_name(&name, row->scope, width, to->report->ascii);
	else
		pm_str_puts(&name, "the program");
	to->failed |= name.failed || place.failed;
	if (!to->failed) {
		fprintf(to->text.to, "%*s", INDENT, "");
		pm_text_put(&to->text, PM_COLOR_HEAD, name.data);
		if (place.len > 0) {
			fprintf(to->text.to, "%*s", GAP, "");
			pm_text_put(&to->text, PM_COLOR_DIM, place.data);
		}
		fputc('\n', to->text.to);
	}
	pm_str_release(&name);
	pm_str_release(&place);
}

static bool are_row_texts_equal(const char *a, const char *b)
{
	if (a && b)
		return strcmp(a, b) == 0;
	return a == b;
}

static bool have_rows_same_subject(const struct pm_compare_row *a,
				   const struct pm_compare_row *b)
{
	return a && are_row_texts_equal(a->scope, b->scope) &&
	       are_row_texts_equal(a->module, b->module) && a->line == b->line;
}

/* Writes the gate and the method, and the reason for the verdict. */
static void compare_text_put_reason(struct text *to, const struct pm_compare_row *row)
{
	struct pm_str line = { 0 };

	if (row->gated) {
		pm_str_puts(&line, "gate ");
		pm_put_compare_gate(&line, row, to->report->ascii);
		pm_str_puts(&line, "; ");
	}
	pm_put_compare_method(&line, row);
	compare_text_put_line(to, PM_COLOR_DIM, 3 * INDENT, &line);
	pm_str_release(&line);
	if (row->why)
		compare_text_put_foreign(to, PM_COLOR_PLAIN, 3 * INDENT, "", row->why);
}

static enum pm_color color_of_section(enum pm_compare_section section)
{
	static const enum pm_color colors[PM_COMPARED_SECTIONS] = {
		[PM_COMPARED_FAILED] = PM_COLOR_HOT,
		[PM_COMPARED_ACCEPTED] = PM_COLOR_WARNING,
		[PM_COMPARED_OPEN] = PM_COLOR_WARNING,
		[PM_COMPARED_WORSE] = PM_COLOR_WARNING,
		[PM_COMPARED_BETTER] = PM_COLOR_WARM,
	};

	return colors[section]; /* the others are PM_COLOR_PLAIN, which is 0 */
}

/* ---- sections -------------------------------------------------------------------------- */

static size_t compare_text_rows_shown(const struct text *to,
				      enum pm_compare_section section)
{
	if (to->report->all)
		return SIZE_MAX;
	if (section == PM_COMPARED_SAME || section == PM_COMPARED_UNKNOWN)
		return 0;
	if (section == PM_COMPARED_UNDECIDED)
		return ROWS_ALONE;
	return ROWS_MAX;
}

static void compare_text_put_section(struct text *to, enum pm_compare_section section)
{
	size_t shown = compare_text_rows_shown(to, section), seen = 0,
	       len = to->counts.of[section];
	const struct pm_compare_row *last = NULL;

	if (len == 0 || shown == 0)
		return;
	if (!to->report->quiet)
		fputc('\n', to->text.to);
	pm_text_put(&to->text, color_of_section(section),
		    pm_compare_section_words(section));
	fputc('\n', to->text.to);
	for (size_t i = 0; i < to->comparison->rows.len && seen < shown; i++) {
		const struct pm_compare_row *row = &to->comparison->rows.data[i];

		if (pm_compare_section_of(row) != section)
			continue;
		seen++;
		if (!have_rows_same_subject(last, row))
			compare_text_put_subject(to, row);
		compare_text_put_numbers(to, row, color_of_section(section));
		if (section != PM_COMPARED_SAME && section != PM_COMPARED_NEW &&
		    section != PM_COMPARED_GONE)
			compare_text_put_reason(to, row);
		last = row;
	}
	if (seen < len)
		fprintf(to->text.to, "%*s%s and %zu more (--all)\n", INDENT, "",
			pm_text_ellipsis(&to->text), len - seen);
}

static void compare_text_measure_sections(struct text *to)
{
	size_t seen[PM_COMPARED_SECTIONS] = { 0 };

	for (size_t i = 0; i < to->comparison->rows.len; i++) {
		const struct pm_compare_row *row = &to->comparison->rows.data[i];
		enum pm_compare_section section = pm_compare_section_of(row);

		if (seen[section]++ < compare_text_rows_shown(to, section))
			compare_text_measure_row(to, row);
	}
	compare_text_fit_width(to);
}

enum {
	REASONS_MAX = 8, /* different reasons */
};

/* Writes one line for each reason, with all numbers that have it. */
static void compare_text_put_unknown(struct text *to)
{
	const struct pm_compare_row *first[REASONS_MAX] = { 0 };
	struct pm_str lines[REASONS_MAX] = { 0 };
	size_t len = 0, more = 0;

	for (size_t i = 0; i < to->comparison->rows.len; i++) {
		const struct pm_compare_row *row = &to->comparison->rows.data[i];
		size_t at = 0;

		if (pm_compare_section_of(row) != PM_COMPARED_UNKNOWN)
			continue;
		while (at < len && !are_row_texts_equal(first[at]->why, row->why))
			at++;
		if (at == REASONS_MAX) {
			more++;
			continue;
		}
		if (at == len)
			first[len++] = row;
		if (lines[at].len > 0)
			pm_str_puts(&lines[at], ", ");
		else
			pm_str_puts(&lines[at], "unknown: ");
		pm_put_compare_row(&lines[at], row, 0, to->report->ascii);
	}
	for (size_t i = 0; i < len; i++) {
		if (first[i]->why) {
			if (to->report->ascii)
				pm_str_puts(&lines[i], " - ");
			else
				pm_str_puts(&lines[i], " – ");
			pm_str_printable(&lines[i], first[i]->why, strlen(first[i]->why));
		}
		compare_text_put_line(to, PM_COLOR_DIM, 0, &lines[i]);
		pm_str_release(&lines[i]);
	}
	if (more > 0)
		fprintf(to->text.to, "unknown for other reasons: %zu more (--all)\n",
			more);
}

static void compare_text_put_rest(struct text *to)
{
	size_t same = to->counts.of[PM_COMPARED_SAME];

	if (to->report->all || to->report->quiet)
		return;
	if (to->counts.of[PM_COMPARED_UNKNOWN] + same > 0)
		fputc('\n', to->text.to);
	compare_text_put_unknown(to);
	if (same > 0)
		fprintf(to->text.to, "unchanged: %zu number%s (--all shows %s)\n", same,
			pm_plural_s(same), pm_plural(same, "it", "them"));
}

static const char *words_of_hot_list(size_t number)
{
	switch (number) {
	case 0:
		return "itself";
	case 1:
		return "with what it calls";
	default:
		return "this line";
	}
}

/* Writes the first row of each list; the other documents contain all of them. */
static void compare_text_put_hot(struct text *to)
{
	const struct pm_hot *hot = to->comparison->hot;
	const struct pm_hot_rows *rows;
	struct pm_str line = { 0 };
	const char *title;

	if (!hot || to->report->quiet)
		return;
	fprintf(to->text.to, "\nadded cost by ");
	pm_put_hot_source(&line, hot);
	compare_text_put_line(to, PM_COLOR_PLAIN, 0, &line);
	for (size_t i = 0; (rows = pm_hot_list(hot, i, &title)); i++) {
		const struct pm_hot_row *row = rows->list.data;

		if (rows->list.len == 0)
			continue;
		pm_put_hot_number(&line, hot, row->new - row->base, true);
		pm_str_puts(&line, " in ");
		pm_put_hot_name(&line, row, 0);
		if (row->file) {
			pm_str_puts(&line, ", ");
			pm_put_hot_place(&line, row);
		}
		pm_str_printf(&line, " (%s)", words_of_hot_list(i));
		compare_text_put_line(to, PM_COLOR_PLAIN, INDENT, &line);
	}
	if (hot->page)
		compare_text_put_foreign(to, PM_COLOR_PLAIN, INDENT,
					 "flame graph: ", hot->page);
	pm_str_release(&line);
}

static void compare_text_put_rows(struct text *to)
{
	compare_text_measure_sections(to);
	for (enum pm_compare_section section = 0; section < PM_COMPARED_SECTIONS;
	     section++)
		compare_text_put_section(to, section);
	compare_text_put_hot(to);
	compare_text_put_rest(to);
}

/* ---- cases ----------------------------------------------------------------------------- */

static void compare_text_put_case_line(struct text *to, const struct pm_compare_case *one)
{
	struct pm_str line = { 0 };

	pm_str_printable(&line, one->name, strlen(one->name));
	pm_str_puts(&line, ": ");
	pm_put_compare_case(&line, to->report, one);
	compare_text_put_line(to, color_of_verdict(one->verdict), 0, &line);
	pm_str_release(&line);
}

/* Prints the rows of a case. A case without a change only has its line. */
static void compare_text_put_case(const struct pm_compare_report *report,
				  const struct pm_compare_case *one, FILE *stream,
				  bool *failed)
{
	struct pm_comparison view = pm_compare_view(report->comparison, one);
	struct pm_compare_report of = *report;
	struct text text;

	of.comparison = &view;
	compare_text_init(&text, &of, stream);
	if (!report->quiet)
		fputc('\n', stream);
	text.report = report;
	compare_text_put_case_line(&text, one);
	text.report = &of;
	if (one->len > 0 && (report->all || one->verdict != PM_VERDICT_SAME))
		compare_text_put_rows(&text);
	*failed = *failed || text.failed;
}

int pm_output_compare_text(const struct pm_compare_report *report, FILE *to,
			   struct pm_error *err)
{
	const struct pm_comparison *comparison = report->comparison;
	struct text text;

	compare_text_init(&text, report, to);
	compare_text_put_heading(&text);
	if (comparison->cases.len == 0)
		compare_text_put_rows(&text);
	for (size_t i = 0; i < comparison->cases.len; i++)
		compare_text_put_case(report, &comparison->cases.data[i], to,
				      &text.failed);
	if (text.failed)
		return pm_error_no_memory(err);
	return 0;
}
