/* SPDX-License-Identifier: MIT */
/* An annotated function for people. */
#include "annotate-internal.h"

#include <string.h>

#include "pm/base-text.h"

enum {
	NUMBER_MIN = 5,
	TAB_WIDE = 8,
	TAB_NARROW = 4,
	WIDE_COLUMNS = 100, /* minimum width for full indentation */
	MNEMONIC_COLUMNS = 7,
	OTHERS_MAX = 4, /* other modules with the same name, in the heading */
};
#define LIMIT_PERCENT 0.5 /* smaller shares are hidden by default */

struct page {
	struct pm_text *text;
	const struct pm_annotation *a;
	const struct pm_annotation_rows *rows;
	size_t number; /* width of line numbers and addresses */
	bool totals; /* functions that it calls have samples */
};

/* ---- the heading ------------------------------------------------------------------------- */

static void put_sample_share(struct pm_str *str, const struct page *page,
			     const struct pm_weight *weight, const char *what)
{
	pm_put_count(str, weight->samples);
	pm_str_printf(str, " %s %s, %.1f%%",
		      pm_plural(weight->samples, "sample", "samples"), what,
		      pm_weight_percent(weight, &page->a->section->view->total));
}

static void print_other_functions(const struct page *page)
{
	const struct pm_section *section = page->a->section;
	const struct pm_profile *profile = section->report->profile;
	struct pm_str line = { 0 };
	size_t len = section->choices.rows.len;

	for (size_t i = 1; i < len && i <= OTHERS_MAX; i++) {
		const struct pm_annotate_choice *choice = &section->choices.rows.data[i];
		const char *module = pm_profile_module_name(
			profile, profile->functions.data[choice->function].module);

		pm_str_puts(&line, i == 1 ? "another of this name is in " : ", in ");
		pm_put_cut(&line, module, 0, false, page->text->report->ascii);
		pm_str_printf(&line, " (%.1f%% total)",
			      pm_weight_percent(&choice->total, &section->view->total));
	}
	if (len > OTHERS_MAX + 1)
		pm_str_printf(&line, ", and in %zu more", len - OTHERS_MAX - 1);
	if (line.len > 0 && !line.failed)
		pm_text_wrap(page->text, PM_COLOR_PLAIN, "", 2, 1, line.data);
	pm_str_release(&line);
}

static void page_put_warning(const struct page *page, const char *first,
			     const struct pm_error *err)
{
	struct pm_str line = { 0 };

	pm_str_puts(&line, first);
	pm_put_error(&line, err, true);
	if (!line.failed)
		pm_text_wrap(page->text, PM_COLOR_WARNING, "! ", 2, 1, line.data);
	pm_str_release(&line);
}

static void print_file_warnings(const struct page *page)
{
	const struct pm_annotation *a = page->a;
	struct pm_error err = { .offset = -1 };

	if (a->no_code.code != 0)
		page_put_warning(page, "no instructions: ", &a->no_code);
	if (a->has_code && a->code.unverified) {
		pm_error_set(&err, 0,
			     "the recording knows no build-id of it: that it is "
			     "the recorded file is only likely from its age");
		pm_error_where(&err, a->code.path, -1);
		page_put_warning(page, "", &err);
	}
	if (a->lines.files.len == 0 && a->own.samples > 0) {
		pm_error_set(&err, 0,
			     "no line of it is known: there was no debug "
			     "information when it was recorded");
		page_put_warning(page, "", &err);
	}
	for (size_t i = 0; i < a->lines.files.len; i++) {
		const struct pm_annotation_source *source = &a->sources[i];

		if (!source->readable || !source->source.newer || (!page->rows->by_line))
			continue;
		pm_error_set(&err, 0,
			     "changed since the recording began: its lines may "
			     "be others now");
		pm_error_where(&err, source->source.path, -1);
		page_put_warning(page, "", &err);
	}
}

static void print_annotation_heading(const struct page *page)
{
	const struct pm_annotation *a = page->a;
	const struct pm_profile *profile = a->section->report->profile;
	const struct pm_report *report = page->text->report;
	struct pm_str name = { 0 }, line = { 0 };

	pm_put_function(&name, profile, a->function, report->width, report->ascii);
	if (!name.failed)
		pm_text_put(page->text, PM_COLOR_HEAD, pm_str_text(&name));
	fputs("  ", page->text->to);
	pm_put_cut(&line,
		   pm_profile_module_name(profile,
					  profile->functions.data[a->function].module),
		   0, false, report->ascii);
	fprintf(page->text->to, "%s\n", pm_str_complete_or(&line, ""));
	pm_str_clear(&line);
	put_sample_share(&line, page, &a->own, "taken in it");
	if (a->lines.inlined.samples > 0)
		pm_str_printf(
			&line, " (%.1f%% in functions inlined into it)",
			pm_weight_percent(&a->lines.inlined, &a->section->view->total));
	if (page->totals) {
		pm_str_puts(&line, ";   ");
		put_sample_share(&line, page, &a->lines.total, "with it on the stack");
	}
	if (!line.failed)
		pm_text_wrap(page->text, PM_COLOR_PLAIN, "", 2, 3, line.data);
	pm_str_release(&name);
	pm_str_release(&line);
	print_other_functions(page);
	print_file_warnings(page);
}

/* ---- columns ------------------------------------------------------------------------------ */

static void page_put_percent(const struct page *page, const struct pm_weight *part,
			     const struct pm_weight *whole)
{
	if (part->samples > 0)
		pm_text_percent(page->text, pm_weight_percent(part, whole));
	else
		fputs("      ", page->text->to);
}

static size_t columns_before(const struct page *page)
{
	size_t columns = 6 + 2 + page->number + 3;

	if (page->totals)
		columns += 8;
	return columns;
}

/* Prints the columns before the text of a row. @number is already padded to its
 * column. */
static void put_columns(const struct page *page, size_t index, const char *number,
			enum pm_color color)
{
	const struct pm_annotation_row *row = &page->rows->rows.data[index];
	struct pm_str gutter = { 0 };

	page_put_percent(page, &row->self, &page->a->own);
	if (page->totals) {
		fputs("  ", page->text->to);
		page_put_percent(page, &row->total, &page->a->lines.total);
	}
	fputs("  ", page->text->to);
	pm_text_put(page->text, color, number);
	fputs(page->text->report->ascii ? " | " : " │ ", page->text->to);
	pm_gutter_put(&gutter, page->rows, index, page->text->report->ascii);
	if (gutter.len > 0 && !gutter.failed)
		pm_text_put(page->text, PM_COLOR_DIM, gutter.data);
	pm_str_release(&gutter);
}

/* Returns the width available for the text of a row; 0: unlimited. */
static size_t page_text_room(const struct page *page)
{
	size_t before = columns_before(page);
	size_t width = page->text->report->width;

	if (page->rows->lanes > 0)
		before += page->rows->lanes + 2;

	if (width == 0)
		return 0;
	if (width > before + 10)
		return width - before;
	return 10;
}

/* Appends source text with its tabs expanded. Call this before characters that move a
 * cursor are made visible. */
static void put_source_text(struct pm_str *str, const char *text, size_t len,
			    size_t tab_width)
{
	size_t column = 0;

	for (size_t i = 0; i < len; i++) {
		if (text[i] != '\t') {
			column += ((unsigned char)text[i] & 0xc0) != 0x80;
			pm_str_putc(str, text[i]);
			continue;
		}
		do
			pm_str_putc(str, ' ');
		while (++column % tab_width != 0);
	}
}

static void put_row_words(const struct page *page, const struct pm_str *words,
			  enum pm_color color)
{
	struct pm_str shown = { 0 };

	if (words->len > 0 && !words->failed)
		pm_put_cut(&shown, words->data, page_text_room(page), false,
			   page->text->report->ascii);
	if (shown.len > 0 && !shown.failed)
		pm_text_put(page->text, color, shown.data);
	fputc('\n', page->text->to);
	page->text->failed |= words->failed || shown.failed;
	pm_str_release(&shown);
}

/* ---- rows --------------------------------------------------------------------------------- */

static void put_file_row(const struct page *page, const struct pm_annotation_row *row)
{
	const struct pm_annotation_source *source = &page->a->sources[row->id];
	const struct pm_report *report = page->text->report;
	struct pm_str line = { 0 };

	pm_put_cut(&line, page->a->lines.files.data[row->id].path, report->width, true,
		   report->ascii);
	if (!line.failed)
		pm_text_put(page->text, PM_COLOR_HEAD, line.data);
	fputc('\n', page->text->to);
	pm_str_clear(&line);
	if (source->readable) {
		pm_str_release(&line);
		return;
	}
	pm_str_puts(&line, source->why.text);
	if (source->why.fix[0] != '\0')
		pm_str_printf(&line, "; try %s", source->why.fix);
	if (!line.failed)
		pm_text_wrap(page->text, PM_COLOR_WARNING, "! ", 2, 1, line.data);
	pm_str_release(&line);
}

static void put_line_row(const struct page *page, size_t index)
{
	const struct pm_annotation_row *row = &page->rows->rows.data[index];
	unsigned width = page->text->report->width;
	struct pm_str words = { 0 };
	char number[24];
	const char *bytes = NULL;
	size_t len, tab = TAB_WIDE;

	if (row->line > 0)
		snprintf(number, sizeof(number), "%*u", (int)page->number, row->line);
	else
		snprintf(number, sizeof(number), "%*s", (int)page->number, "?");
	if (width > 0 && width < WIDE_COLUMNS)
		tab = TAB_NARROW;
	if (row->line == 0) {
		pm_str_puts(&words, "(line unknown)");
	} else if (page->a->sources[row->file].readable) {
		bytes = pm_source_line(&page->a->sources[row->file].source, row->line,
				       &len, NULL);
		if (bytes)
			put_source_text(&words, bytes, len, tab);
		else
			pm_str_puts(&words, "(the file has no such line)");
	}
	put_columns(page, index, number, PM_COLOR_PLAIN);
	put_row_words(page, &words, bytes ? PM_COLOR_PLAIN : PM_COLOR_DIM);
	pm_str_release(&words);
}

static void put_inlined_row(const struct page *page, size_t index)
{
	const struct pm_profile *profile = page->a->section->report->profile;
	uint32_t id = page->rows->rows.data[index].id;
	const struct pm_profile_place *place =
		&profile->places.data[page->a->lines.inlineds.data[id].place];
	bool ascii = page->text->report->ascii;
	struct pm_str words = { 0 }, source = { 0 };
	size_t all = page_text_room(page), name_columns = 0;
	char number[24];

	pm_put_source(&source, place);
	pm_str_puts(&words, ascii ? "  > " : "  ↳ ");
	if (all > 0)
		name_columns = 6;
	if (all > source.len + 22)
		name_columns = all - source.len - 16;
	pm_put_name(&words, profile->functions.data[place->function].name, name_columns,
		    ascii);
	pm_str_puts(&words, " (inlined) ");
	if (source.len > 0 && !source.failed)
		pm_str_puts(&words, source.data);
	snprintf(number, sizeof(number), "%*s", (int)page->number, "");
	put_columns(page, index, number, PM_COLOR_PLAIN);
	put_row_words(page, &words, PM_COLOR_PLAIN);
	pm_str_release(&words);
	pm_str_release(&source);
}

/* Appends the origin of an instruction, unless the rows around it make it obvious. */
static void put_remark(struct pm_str *str, const struct page *page, uint32_t id)
{
	const struct pm_annotate_insn *insns = page->a->code.insns.data;
	const struct pm_annotate_insn *insn = &insns[id], *before = NULL;
	bool same;

	if (!page->rows->by_line && id > 0)
		before = &insns[id - 1];
	if (insn->inlined) {
		same = before && before->inlined == insn->inlined &&
		       before->inlined_file == insn->inlined_file &&
		       before->inlined_line == insn->inlined_line;
		if (same)
			return;
		pm_str_printf(str, "  ; %s", insn->inlined);
		if (insn->inlined_line > 0)
			pm_str_printf(str, " %s:%u", pm_basename(insn->inlined_file),
				      insn->inlined_line);
		return;
	}
	same = before && !before->inlined && before->file == insn->file &&
	       before->line == insn->line;
	if (!page->rows->by_line && insn->line > 0 && !same)
		pm_str_printf(str, "  ; %s:%u", pm_basename(insn->file), insn->line);
}

static void put_insn_row(const struct page *page, size_t index)
{
	uint32_t id = page->rows->rows.data[index].id;
	const struct pm_annotate_insn *insn = &page->a->code.insns.data[id];
	struct pm_str words = { 0 };
	char number[24], address[24];

	pm_str_printf(&words, "%-*s %s", MNEMONIC_COLUMNS, insn->mnemonic,
		      insn->operands);
	while (words.len > 0 && !words.failed && words.data[words.len - 1] == ' ')
		words.data[--words.len] = '\0';
	if (insn->target_name)
		pm_str_printf(&words, " <%s>", insn->target_name);
	put_remark(&words, page, id);
	/* The colon distinguishes it from a line number. */
	snprintf(address, sizeof(address), "%llx:", (unsigned long long)insn->address);
	snprintf(number, sizeof(number), "%*s", (int)page->number, address);
	put_columns(page, index, number, PM_COLOR_DIM);
	put_row_words(page, &words, PM_COLOR_PLAIN);
	pm_str_release(&words);
}

static void put_part_row(const struct page *page, const struct pm_annotation_row *row)
{
	const struct pm_annotate_part *part = &page->a->code.parts.data[row->id];
	const struct pm_report *report = page->text->report;
	struct pm_str line = { 0 };

	if (part->symbol)
		pm_put_name(&line, part->symbol,
			    report->width > 40 ? report->width - 40 : report->width,
			    report->ascii);
	else
		pm_str_printf(&line, "[%#llx]", (unsigned long long)part->start);
	pm_str_printf(&line, ":%s", part->is_container ? "  (it is inlined here)" : "");
	if (part->bytes_left > 0)
		pm_str_printf(&line, "  (the last %llu bytes are not shown)",
			      (unsigned long long)part->bytes_left);
	if (!line.failed)
		pm_text_put(page->text, PM_COLOR_HEAD, line.data);
	fputc('\n', page->text->to);
	pm_str_release(&line);
}

static void put_gap_row(const struct page *page, size_t index)
{
	const struct pm_annotation_row *row = &page->rows->rows.data[index];
	struct pm_str words = { 0 }, number = { 0 };
	const char *mark = pm_text_ellipsis(page->text);
	size_t columns = pm_columns(mark);

	for (size_t i = columns; i < page->number; i++)
		pm_str_putc(&number, ' ');
	pm_str_puts(&number, mark);
	if (!page->rows->by_line)
		pm_str_printf(&words, "(%u instructions of the function around it)",
			      row->left_out);
	put_columns(page, index, pm_str_complete_or(&number, ""), PM_COLOR_DIM);
	put_row_words(page, &words, PM_COLOR_DIM);
	pm_str_release(&number);
	pm_str_release(&words);
}

static void page_put_row(const struct page *page, size_t index)
{
	const struct pm_annotation_row *row = &page->rows->rows.data[index];

	switch (row->kind) {
	case PM_ROW_FILE:
		put_file_row(page, row);
		break;
	case PM_ROW_LINE:
		put_line_row(page, index);
		break;
	case PM_ROW_INLINED:
		put_inlined_row(page, index);
		break;
	case PM_ROW_INSN:
		put_insn_row(page, index);
		break;
	case PM_ROW_PART:
		put_part_row(page, row);
		break;
	case PM_ROW_GAP:
		put_gap_row(page, index);
		break;
	}
}

/* ---- the end ------------------------------------------------------------------------------ */

static void print_sum(const struct page *page)
{
	const struct pm_annotation *a = page->a;
	struct pm_weight hidden = { 0 };
	const struct pm_weight *other = &a->code.elsewhere;
	const char *shown = "are on the instructions shown";
	const char *missing = "in code that cannot be shown";
	struct pm_str line = { 0 };

	if (page->rows->by_line) {
		other = &a->lines.unknown;
		shown = "are on the lines shown";
		missing = "on no line that is known";
	}

	if (a->own.samples == 0) {
		pm_str_puts(&line, "no sample was taken in the function itself: what it "
				   "calls has them");
	} else {
		hidden.period = a->own.period - page->rows->shown.period - other->period;
		hidden.samples =
			a->own.samples - page->rows->shown.samples - other->samples;
		pm_str_printf(&line, "%.1f%% of the samples taken in it %s",
			      pm_weight_percent(&page->rows->shown, &a->own), shown);
		if (hidden.samples > 0)
			pm_str_printf(&line, ", %.1f%% on others",
				      pm_weight_percent(&hidden, &a->own));
		if (other->samples > 0)
			pm_str_printf(&line, ", %.1f%% %s",
				      pm_weight_percent(other, &a->own), missing);
	}
	if (!line.failed)
		pm_text_wrap(page->text, PM_COLOR_DIM, "", 2, 1, line.data);
	pm_str_release(&line);
}

static void page_measure_columns(struct page *page)
{
	/* A few samples in an interrupt do not justify a second column. */
	page->totals = pm_weight_percent(&page->a->own, &page->a->lines.total) <
		       100 - LIMIT_PERCENT;
	page->number = NUMBER_MIN;
	for (size_t i = 0; i < page->rows->rows.len; i++) {
		const struct pm_annotation_row *row = &page->rows->rows.data[i];
		char number[24];
		int len = 0;

		if (row->kind == PM_ROW_LINE)
			len = snprintf(number, sizeof(number), "%u", row->line);
		else if (row->kind == PM_ROW_INSN)
			len = snprintf(
				number, sizeof(number), "%llx:",
				(unsigned long long)page->a->code.insns.data[row->id]
					.address);
		if ((size_t)len > page->number)
			page->number = (size_t)len;
	}
}

static int put_page(struct pm_text *text, const struct pm_annotation *a)
{
	PM_CLEANUP(pm_annotation_rows_release) struct pm_annotation_rows rows = { 0 };
	struct page page = { .text = text, .a = a, .rows = &rows };
	double limit = text->report->limit < 0 ? LIMIT_PERCENT : text->report->limit;
	bool quiet = text->report->quiet;
	int ret = pm_annotation_rows_init(&rows, a, limit);

	if (ret < 0)
		return ret;
	page_measure_columns(&page);
	if (!quiet) {
		struct pm_str title = { 0 };

		print_annotation_heading(&page);
		pm_str_puts(&title, "\n  self");
		if (page.totals)
			pm_str_puts(&title, "   total");
		pm_str_printf(&title, "  %*s", (int)page.number,
			      rows.by_line ? "line" : "addr");
		if (!title.failed)
			pm_text_put(text, PM_COLOR_HEAD, title.data);
		fputc('\n', text->to);
		pm_str_release(&title);
	}
	for (size_t i = 0; i < rows.rows.len; i++)
		page_put_row(&page, i);
	if (!quiet) {
		fputc('\n', text->to);
		print_sum(&page);
	}
	if (text->failed)
		return -ENOMEM;
	return 0;
}

int pm_text_annotate(struct pm_text *text, const struct pm_section *section)
{
	PM_CLEANUP(pm_annotation_release) struct pm_annotation annotation = { 0 };
	int ret;

	if (section->choices.rows.len == 0) {
		fputs("no sample of this event has it on the stack\n", text->to);
		return 0;
	}
	ret = pm_annotation_init(&annotation, section);
	if (ret < 0)
		return ret;
	return put_page(text, &annotation);
}
