/* SPDX-License-Identifier: MIT */
/*
 * A comparison as Markdown for GitHub and GitLab: for job summaries and comments.
 * Untrusted names are in code spans, where nothing is a mention, a reference or markup;
 * in sentences, punctuation is escaped.
 */
#include "compare-show.h"

#include <ctype.h>
#include <string.h>

enum {
	LIMIT_BYTES = 65000, /* comments are limited to 65,536 */
	END_BYTES = 200, /* reserved for the number of omitted rows */
	NAME_COLUMNS = 100,
	PLACE_COLUMNS = 80,
	WHY_COLUMNS = 300,
	LINE_COLUMNS = 400, /* of warnings and differences */
	LINES_MAX = 20, /* number of warnings or differences */
};

struct markdown {
	const struct pm_compare_report *report;
	const struct pm_comparison *comparison;
	bool all;
	struct pm_compare_counts counts;
	size_t limit;
	size_t left_out; /* number of rows that were left out */
	size_t cases_left_out;
	struct pm_str out;
};

/* ---- untrusted text -------------------------------------------------------------------- */

/*
 * Makes text printable, without characters that change the text direction, and without a
 * backslash before a pipe, because parsers of tables disagree about its meaning.
 */
static void markdown_put_clean_text(struct pm_str *str, const char *text)
{
	struct pm_str markup = { 0 };

	pm_put_plain(&markup, text);
	str->failed |= markup.failed;
	for (const char *c = pm_text_if(!markup.failed, pm_str_text(&markup)); *c; c++)
		if (c[0] == '\\' && c[1] == '|')
			pm_str_puts(str, "＼");
		else
			pm_str_putc(str, *c);
	pm_str_release(&markup);
}

enum code_place {
	CODE_IN_TEXT,
	CODE_IN_TABLE, /* where "|" ends a cell */
};

/* Appends a code span. Its fence is longer than any run of backticks in the text
 * (CommonMark §6.1). */
static void markdown_put_code(struct pm_str *str, const char *text, enum code_place place)
{
	struct pm_str clean = { 0 };
	size_t run = 0, longest = 0;
	const char *words;
	bool pad;

	markdown_put_clean_text(&clean, text);
	str->failed |= clean.failed;
	words = pm_text_if(!clean.failed, pm_str_text(&clean));
	for (const char *c = words; *c; c++) {
		run = *c == '`' ? run + 1 : 0;
		longest = PM_MAX(run, longest);
	}
	pad = longest > 0 || words[0] == '\0';
	for (size_t i = 0; i <= longest; i++)
		pm_str_putc(str, '`');
	if (pad)
		pm_str_puts(str, " ");
	for (const char *c = words; *c; c++) {
		/* A pipe ends the cell of a table, even in code (GFM §4.10). */
		if (*c == '|' && place == CODE_IN_TABLE)
			pm_str_putc(str, '\\');
		pm_str_putc(str, *c);
	}
	if (pad)
		pm_str_puts(str, " ");
	for (size_t i = 0; i <= longest; i++)
		pm_str_putc(str, '`');
	pm_str_release(&clean);
}

/* Appends a sentence, escaped so that nothing in it is markup, a link, a mention or a
 * reference. */
static void markdown_put_words(struct pm_str *str, const char *text, size_t width)
{
	struct pm_str cut = { 0 }, clean = { 0 };

	pm_put_cut(&cut, text, width, false, false);
	if (!cut.failed && cut.data)
		markdown_put_clean_text(&clean, cut.data);
	str->failed |= cut.failed || clean.failed;
	for (const char *c = pm_text_if(!clean.failed, pm_str_text(&clean)); *c; c++) {
		bool links = (*c == ':' && c[1] == '/') ||
			     (*c == '.' && isalpha((unsigned char)c[1]));

		if (links || strchr("\\`*_[]<>~#@!$&|{}^", *c))
			pm_str_putc(str, '\\');
		pm_str_putc(str, *c);
		/* Mentions and references are recognized after escapes are removed; a
		 * zero-width space (U+200B) prevents that. */
		if (strchr("@#!~$%&", *c) && isalnum((unsigned char)c[1]))
			pm_str_puts(str, "\xe2\x80\x8b");
	}
	pm_str_release(&cut);
	pm_str_release(&clean);
}

static void markdown_put_code_str(struct pm_str *str, struct pm_str *code,
				  enum code_place place)
{
	str->failed |= code->failed;
	if (!code->failed && code->len > 0)
		markdown_put_code(str, code->data, place);
	pm_str_clear(code);
}

/* ---- heading --------------------------------------------------------------------------- */

static const char *markdown_mark_of_verdict(enum pm_verdict verdict)
{
	switch (verdict) {
	case PM_VERDICT_WORSE:
		return "❌";
	case PM_VERDICT_INCONCLUSIVE:
	case PM_VERDICT_UNKNOWN:
		return "❔";
	case PM_VERDICT_CHANGED:
	case PM_VERDICT_ACCEPTED:
	case PM_VERDICT_NEW:
	case PM_VERDICT_GONE:
		return "ℹ️";
	case PM_VERDICT_SAME:
	case PM_VERDICT_BETTER:
		break;
	}
	return "✅";
}

static void markdown_put_side(struct markdown *to, const char *title,
			      const struct pm_compare_of *of)
{
	struct pm_str side = { 0 };

	pm_put_compare_side(&side, of, false);
	pm_str_printf(&to->out, "%s: ", title);
	markdown_put_code_str(&to->out, &side, CODE_IN_TEXT);
	pm_str_release(&side);
}

static void markdown_put_lines(struct markdown *to, const char *title, char *const *lines,
			       size_t len)
{
	for (size_t i = 0; i < len && i < LINES_MAX; i++) {
		pm_str_printf(&to->out, "%s- %s: ", pm_text_if(i == 0, "\n"), title);
		markdown_put_words(&to->out, lines[i], LINE_COLUMNS);
		pm_str_putc(&to->out, '\n');
	}
	if (len > LINES_MAX)
		pm_str_printf(&to->out, "- … and %zu more\n", len - LINES_MAX);
}

static void markdown_put_heading(struct markdown *to)
{
	const struct pm_comparison *comparison = to->comparison;
	struct pm_str words = { 0 };

	pm_put_compare_verdict(&words, to->report);
	pm_str_printf(&to->out, "### %s pmdiff: ",
		      markdown_mark_of_verdict(pm_compare_verdict_of(to->report)));
	if (!words.failed && words.data)
		markdown_put_words(&to->out, words.data, 0);
	to->out.failed |= words.failed;
	pm_str_puts(&to->out, "\n\n");
	markdown_put_side(to, "Base", &comparison->base);
	pm_str_puts(&to->out, "  \n");
	markdown_put_side(to, "New", &comparison->new);
	pm_str_clear(&words);
	if (comparison->engine)
		pm_str_puts(&words, comparison->engine);
	if (comparison->cpu_model)
		pm_str_printf(&words, "%s%s", pm_text_if(words.len > 0, ", "),
			      comparison->cpu_model);
	if (words.len > 0 && !words.failed) {
		pm_str_puts(&to->out, "  \nEngine and CPU: ");
		markdown_put_code_str(&to->out, &words, CODE_IN_TEXT);
	}
	pm_str_clear(&words);
	pm_put_compare_deciding(&words, comparison);
	if (words.len > 0 && !words.failed) {
		pm_str_puts(&to->out, "  \n");
		markdown_put_words(&to->out, words.data, LINE_COLUMNS);
	}
	pm_str_putc(&to->out, '\n');
	markdown_put_lines(to, "Not the same", comparison->differences.data,
			   comparison->differences.len);
	markdown_put_lines(to, "Warning", comparison->warnings.data,
			   comparison->warnings.len);
	pm_str_release(&words);
}

/* ---- tables ---------------------------------------------------------------------------- */

static void markdown_put_name(struct pm_str *line, const struct pm_compare_row *row)
{
	const char *inlined = pm_compare_inlined_words(row);
	struct pm_str text = { 0 };

	pm_put_compare_row(&text, row, NAME_COLUMNS, false);
	markdown_put_code_str(line, &text, CODE_IN_TABLE);
	if (row->file) {
		pm_put_compare_place(&text, row, false);
		if (!text.failed && text.data) {
			struct pm_str place = { 0 };

			pm_put_cut(&place, text.data, PLACE_COLUMNS, true, false);
			pm_str_puts(line, " ");
			markdown_put_code_str(line, &place, CODE_IN_TABLE);
			pm_str_release(&place);
		}
	}
	if (inlined[0])
		pm_str_printf(line, " (%s)", inlined);
	line->failed |= text.failed;
	pm_str_release(&text);
}

/* Appends a cell of numbers and our own words. Their units may come from untrusted
 * documents. */
static void markdown_put_cell(struct pm_str *line, struct pm_str *cell)
{
	line->failed |= cell->failed;
	if (!cell->failed && cell->len > 0)
		markdown_put_words(line, cell->data, PLACE_COLUMNS);
	pm_str_puts(line, " | ");
	pm_str_clear(cell);
}

static void markdown_put_row(struct pm_str *line, const struct pm_compare_row *row)
{
	struct pm_str cell = { 0 };

	pm_str_puts(line, "| ");
	markdown_put_name(line, row);
	pm_str_puts(line, " | ");
	pm_put_compare_median(&cell, row, &row->base, false);
	markdown_put_cell(line, &cell);
	pm_put_compare_median(&cell, row, &row->new, false);
	markdown_put_cell(line, &cell);
	pm_put_compare_change(&cell, row);
	if (isfinite(row->low) && row->low != row->high) {
		pm_str_puts(&cell, " (");
		pm_put_compare_interval(&cell, row, false);
		pm_str_putc(&cell, ')');
	}
	markdown_put_cell(line, &cell);
	if (pm_compare_section_of(row) == PM_COMPARED_WITHIN)
		pm_str_puts(&cell, pm_compare_section_words(PM_COMPARED_WITHIN));
	else
		pm_str_puts(&cell, pm_verdict_name(row->verdict));
	markdown_put_cell(line, &cell);
	if (row->gated)
		pm_put_compare_gate(&cell, row, false);
	markdown_put_cell(line, &cell);
	pm_put_compare_method(&cell, row);
	line->failed |= cell.failed;
	if (cell.len > 0 && !cell.failed)
		markdown_put_words(line, cell.data, PLACE_COLUMNS);
	if (row->why) {
		pm_str_puts(line, ". ");
		markdown_put_words(line, row->why, WHY_COLUMNS);
	}
	pm_str_puts(line, " |\n");
	pm_str_release(&cell);
}

static const char table_head[] =
	"\n| number | base | new | change | verdict | gate | how |\n"
	"|---|---:|---:|---:|---|---|---|\n";

static bool markdown_has_room(const struct markdown *to, size_t more)
{
	return to->out.len + more + END_BYTES <= to->limit;
}

/* Appends a table of the sections from @first to @last, in this order. */
static void markdown_put_table(struct markdown *to, enum pm_compare_section first,
			       enum pm_compare_section last)
{
	struct pm_str line = { 0 };
	bool full = false;

	for (enum pm_compare_section section = first; section <= last; section++) {
		for (size_t i = 0; i < to->comparison->rows.len; i++) {
			const struct pm_compare_row *row = &to->comparison->rows.data[i];

			if (to->counts.of[section] == 0)
				break;
			if (pm_compare_section_of(row) != section)
				continue;
			if (!full)
				markdown_put_row(&line, row);
			to->out.failed |= line.failed;
			/* The first row that does not fit ends the table, because a
			 * lighter row must not appear while a heavier one is missing. */
			full |= !markdown_has_room(to, line.len);
			if (full)
				to->left_out++;
			else
				pm_str_append(&to->out, line.data, line.len);
			pm_str_clear(&line);
		}
	}
	pm_str_release(&line);
}

static size_t markdown_count_rows(const struct markdown *to,
				  enum pm_compare_section first,
				  enum pm_compare_section last)
{
	size_t count = 0;

	for (enum pm_compare_section section = first; section <= last; section++)
		count += to->counts.of[section];
	return count;
}

/* Appends a table that is collapsed at first. */
static void markdown_put_folded_table(struct markdown *to, const char *title,
				      enum pm_compare_section first,
				      enum pm_compare_section last)
{
	static const char end[] = "\n</details>\n";
	size_t len = markdown_count_rows(to, first, last);

	if (len == 0)
		return;
	if (!markdown_has_room(to, sizeof(table_head) + sizeof(end) + 100)) {
		to->left_out += len;
		return;
	}
	pm_str_printf(&to->out, "\n<details%s><summary>%zu %s</summary>\n",
		      pm_text_if(to->all, " open"), len, title);
	pm_str_puts(&to->out, table_head);
	to->limit -= sizeof(end);
	markdown_put_table(to, first, last);
	to->limit += sizeof(end);
	pm_str_puts(&to->out, end);
}

/* ---- where the additional cost is ------------------------------------------------------ */

static void markdown_put_hot_row(struct pm_str *line, const struct pm_hot *hot,
				 const struct pm_hot_row *row)
{
	const double numbers[] = { row->base, row->new, row->new - row->base };
	struct pm_str cell = { 0 };

	pm_str_puts(line, "| ");
	pm_put_hot_name(&cell, row, NAME_COLUMNS);
	markdown_put_code_str(line, &cell, CODE_IN_TABLE);
	pm_str_puts(line, " | ");
	pm_put_hot_place(&cell, row);
	markdown_put_code_str(line, &cell, CODE_IN_TABLE);
	pm_str_puts(line, " | ");
	for (size_t i = 0; i < PM_ARRAY_LEN(numbers); i++) {
		pm_put_hot_number(&cell, hot, numbers[i], i == 2);
		markdown_put_cell(line, &cell);
	}
	pm_str_puts(line, "\n");
	pm_str_release(&cell);
}

static void markdown_put_hot_list(struct pm_str *out, const struct pm_hot *hot,
				  const struct pm_hot_rows *rows, const char *title)
{
	pm_str_printf(out, "\n<details><summary>%s: %zu</summary>\n\n", title,
		      rows->list.len);
	pm_str_puts(out, "| function | where | base | new | added |\n"
			 "|---|---|---:|---:|---:|\n");
	for (size_t i = 0; i < rows->list.len; i++)
		markdown_put_hot_row(out, hot, &rows->list.data[i]);
	if (rows->more > 0)
		pm_str_printf(out, "\n%zu more cost more than before, too.\n",
			      rows->more);
	pm_str_puts(out, "\n</details>\n");
}

static void markdown_put_hot(struct markdown *to)
{
	const struct pm_hot *hot = to->comparison->hot;
	const struct pm_hot_rows *rows;
	struct pm_str out = { 0 }, words = { 0 };
	const char *title;

	if (!hot)
		return;
	pm_str_puts(&out, "\nWhere the added cost is (");
	pm_put_hot_source(&words, hot);
	pm_str_puts(&words, "): ");
	pm_put_hot_number(&words, hot, hot->all[0], false);
	pm_str_puts(&words, " → ");
	pm_put_hot_number(&words, hot, hot->all[1], false);
	if (!words.failed)
		markdown_put_words(&out, words.data, LINE_COLUMNS);
	if (hot->page) {
		pm_str_puts(&out, "; flame graph: ");
		markdown_put_code(&out, pm_basename(hot->page), CODE_IN_TEXT);
	}
	pm_str_puts(&out, "\n");
	for (size_t i = 0; (rows = pm_hot_list(hot, i, &title)); i++)
		if (rows->list.len > 0)
			markdown_put_hot_list(&out, hot, rows, title);
	to->out.failed |= out.failed || words.failed;
	if (!out.failed && markdown_has_room(to, out.len))
		pm_str_append(&to->out, out.data, out.len);
	else
		pm_str_puts(&to->out,
			    "\nWhere the added cost is, is left out here: there is "
			    "no room.\n");
	pm_str_release(&out);
	pm_str_release(&words);
}

/* Appends all rows, by section. */
static void markdown_put_rows(struct markdown *to)
{
	pm_compare_count(&to->counts, to->comparison);
	if (markdown_count_rows(to, PM_COMPARED_FAILED, PM_COMPARED_GONE) > 0 &&
	    markdown_has_room(to, sizeof(table_head))) {
		pm_str_puts(&to->out, table_head);
		markdown_put_table(to, PM_COMPARED_FAILED, PM_COMPARED_GONE);
	} else {
		to->left_out +=
			markdown_count_rows(to, PM_COMPARED_FAILED, PM_COMPARED_GONE);
	}
	markdown_put_hot(to);
	markdown_put_folded_table(to, "not decided or not known, without a gate",
				  PM_COMPARED_UNDECIDED, PM_COMPARED_UNKNOWN);
	markdown_put_folded_table(to, "within the gate", PM_COMPARED_WITHIN,
				  PM_COMPARED_WITHIN);
	markdown_put_folded_table(to, "unchanged", PM_COMPARED_SAME, PM_COMPARED_SAME);
}

/* ---- cases ----------------------------------------------------------------------------- */

/* Appends "| ❌ | `parse/64` | worse, … |". */
static void markdown_put_case_line(struct markdown *to, const struct pm_compare_case *one)
{
	struct pm_str line = { 0 }, words = { 0 };

	pm_put_compare_case(&words, to->report, one);
	pm_str_printf(&line, "| %s | ", markdown_mark_of_verdict(one->verdict));
	markdown_put_code(&line, one->name, CODE_IN_TABLE);
	pm_str_puts(&line, " | ");
	if (!words.failed && words.data)
		markdown_put_words(&line, words.data, WHY_COLUMNS);
	pm_str_puts(&line, " |\n");
	to->out.failed |= line.failed || words.failed;
	if (!line.failed && markdown_has_room(to, line.len))
		pm_str_append(&to->out, line.data, line.len);
	else
		to->cases_left_out++;
	pm_str_release(&line);
	pm_str_release(&words);
}

/* Whether a case has its own table; a case without interesting rows only has its line. */
static bool markdown_has_own_table(const struct markdown *to,
				   const struct pm_compare_case *one)
{
	return one->len > 0 && (to->all || one->verdict != PM_VERDICT_SAME);
}

static void markdown_put_case(struct markdown *to, const struct pm_compare_case *one)
{
	struct pm_comparison view = pm_compare_view(to->report->comparison, one);
	struct pm_str title = { 0 };

	pm_str_printf(&title, "\n#### %s ", markdown_mark_of_verdict(one->verdict));
	markdown_put_code(&title, one->name, CODE_IN_TEXT);
	pm_str_putc(&title, '\n');
	to->out.failed |= title.failed;
	if (title.failed || !markdown_has_room(to, title.len)) {
		to->left_out += one->len;
	} else {
		pm_str_append(&to->out, title.data, title.len);
		to->comparison = &view;
		markdown_put_rows(to);
		to->comparison = to->report->comparison;
	}
	pm_str_release(&title);
}

static void markdown_put_cases(struct markdown *to)
{
	const struct pm_comparison *all = to->report->comparison;

	pm_str_puts(&to->out, "\n| | case | what |\n|---|---|---|\n");
	for (size_t i = 0; i < all->cases.len; i++)
		markdown_put_case_line(to, &all->cases.data[i]);
	for (size_t i = 0; i < all->cases.len; i++)
		if (markdown_has_own_table(to, &all->cases.data[i]))
			markdown_put_case(to, &all->cases.data[i]);
}

int pm_output_compare_markdown(const struct pm_compare_report *report, FILE *to,
			       struct pm_error *err)
{
	struct markdown markdown = {
		.report = report,
		.comparison = report->comparison,
		.all = report->all,
		.limit = report->limit_bytes > 0 ? report->limit_bytes : LIMIT_BYTES,
	};

	pm_compare_count(&markdown.counts, report->comparison);
	markdown_put_heading(&markdown);
	if (report->comparison->cases.len > 0 && !report->failure)
		markdown_put_cases(&markdown);
	else
		markdown_put_rows(&markdown);
	if (markdown.cases_left_out > 0)
		pm_str_printf(&markdown.out,
			      "\n%zu more cases are left out here: there is no room.\n",
			      markdown.cases_left_out);
	if (markdown.left_out > 0)
		pm_str_printf(&markdown.out,
			      "\n%zu more numbers are left out here: there is no room.\n",
			      markdown.left_out);
	return pm_flush_all(&markdown.out, to, err);
}
