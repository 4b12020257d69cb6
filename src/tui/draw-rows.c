/* SPDX-License-Identifier: MIT */
/* Draws rows of tables, trees and texts, and the column headings. */
#include "tui-internal.h"

#include <string.h>

enum {
	PERCENT_COLUMNS = 7,
	COUNT_COLUMNS = 12,
	ID_COLUMNS = 8,
	NAME_AT = 18, /* in tables with self and total */
	WIDE = 60, /* enough room for the source column */
	ADDRESS_COLUMNS = 18,
};
#define HOT_PERCENT  5.0
#define WARM_PERCENT 0.5

static enum pm_tui_style percent_style(double percent)
{
	if (percent >= HOT_PERCENT)
		return PM_TUI_HOT;
	if (percent >= WARM_PERCENT)
		return PM_TUI_WARM;
	return PM_TUI_PLAIN;
}

static void draw_percent(struct pm_tui *tui, unsigned row, unsigned column,
			 const struct pm_weight *weight)
{
	double percent = pm_weight_percent(weight, tui_whole(tui));
	char digits[16];

	snprintf(digits, sizeof(digits), "%.1f%%", percent);
	frame_put_right(&tui->frame, row, column, PERCENT_COLUMNS, percent_style(percent),
			digits);
}

static void frame_take_words(struct pm_tui *tui, unsigned row, unsigned column,
			     unsigned width, enum pm_tui_style style,
			     struct pm_str *words)
{
	if (words->failed)
		tui->frame.text.failed = true;
	else if (words->data)
		frame_put(&tui->frame, row, column, width, style, words->data);
	pm_str_release(words);
}

/* ---- tables ------------------------------------------------------------------------------- */

/* Position and width of the text columns; width 0: not shown. */
struct span {
	unsigned at, width;
};
struct layout {
	struct span first; /* address or line */
	struct span name, module, source;
};

static struct layout lay_out_table_columns(const struct pm_tui *tui, enum pm_key key)
{
	unsigned left = NAME_AT, right = tui->columns;
	struct layout layout = { 0 };

	if (key == PM_KEY_ADDRESS || key == PM_KEY_LINE) {
		unsigned width = tui->columns / 4;

		if (key == PM_KEY_ADDRESS)
			width = ADDRESS_COLUMNS;

		layout.first = (struct span){ left, width };
		left += width + 2;
	}
	if (tui->columns >= WIDE && (key == PM_KEY_FUNCTION || key == PM_KEY_ADDRESS)) {
		unsigned width = tui->columns / 6;

		layout.source = (struct span){ right - width, width };
		right -= width + 2;
	}
	if (key != PM_KEY_MODULE && left + ID_COLUMNS * 2 < right) {
		unsigned width = tui->columns / 6;

		layout.module = (struct span){ right - width, width };
		right -= width + 2;
	}
	layout.name = (struct span){ left, PM_SUB_OR_0(right, left) };
	return layout;
}

static void draw_ids(struct pm_tui *tui, const struct page *page,
		     const struct pm_row *row, unsigned at)
{
	const struct pm_profile *profile = tui->profile;
	unsigned column = PERCENT_COLUMNS + 2;
	struct pm_str words = { 0 };
	uint32_t ids[2];
	int ids_len = 0;
	const char *comm;

	if (page->key == PM_KEY_THREAD) {
		const struct pm_profile_thread *thread = &profile->threads.data[row->id];

		ids[ids_len++] = thread->pid;
		ids[ids_len++] = thread->tid;
		comm = thread->comm;
	} else {
		ids[ids_len++] = profile->processes.data[row->id].pid;
		comm = profile->processes.data[row->id].comm;
	}
	draw_percent(tui, at, 0, &row->self);
	pm_put_count(&words, row->self.samples);
	if (words.data)
		frame_put_right(&tui->frame, at, column, COUNT_COLUMNS, PM_TUI_PLAIN,
				words.data);
	pm_str_release(&words);
	column += COUNT_COLUMNS + 2;
	for (int i = 0; i < ids_len; i++) {
		char digits[16] = "?";

		if (ids[i] != PM_FILE_NONE)
			snprintf(digits, sizeof(digits), "%u", ids[i]);
		frame_put_right(&tui->frame, at, column, ID_COLUMNS, PM_TUI_PLAIN,
				digits);
		column += ID_COLUMNS + 2;
	}
	pm_put_cut(&words, comm, tui->columns - column, false, tui->report.ascii);
	frame_take_words(tui, at, column, tui->columns - column, PM_TUI_PLAIN, &words);
}

static void draw_function(struct pm_tui *tui, const struct pm_row *row, uint32_t function,
			  struct span span, unsigned at)
{
	const char *mark = row->inlined ? " (inlined)" : "";
	size_t room = span.width;
	struct pm_str words = { 0 };

	if (room > strlen(mark))
		room -= strlen(mark);

	pm_put_name(&words, tui->profile->functions.data[function].name, room,
		    tui->report.ascii);
	pm_str_puts(&words, mark);
	frame_take_words(tui, at, span.at, span.width, PM_TUI_PLAIN, &words);
}

static void draw_source(struct pm_tui *tui, uint32_t place, struct span span, unsigned at)
{
	struct pm_str source = { 0 }, words = { 0 };

	if (span.width == 0 || place == PM_PROFILE_NONE)
		return;
	pm_put_source(&source, &tui->profile->places.data[place]);
	if (source.failed)
		tui->frame.text.failed = true;
	else
		pm_put_cut(&words, source.len > 0 ? source.data : "?", span.width, true,
			   tui->report.ascii);
	pm_str_release(&source);
	frame_take_words(tui, at, span.at, span.width, PM_TUI_DIM, &words);
}

static void draw_module(struct pm_tui *tui, uint32_t module, struct span span,
			unsigned at)
{
	struct pm_str words = { 0 };

	if (span.width == 0)
		return;
	pm_put_cut(&words, pm_profile_module_name(tui->profile, module), span.width,
		   false, tui->report.ascii);
	frame_take_words(tui, at, span.at, span.width, PM_TUI_PLAIN, &words);
}

/* Rows that are neither code nor a single thread: thread names, CPUs, parallelism. */
static void draw_other(struct pm_tui *tui, enum pm_key key, uint32_t id, struct span span,
		       unsigned at)
{
	struct pm_str words = { 0 };

	if (key == PM_KEY_COMM)
		pm_put_cut(&words, tui->profile->threads.data[id].comm, span.width, false,
			   tui->report.ascii);
	else if (id == PM_FILE_NONE || (key == PM_KEY_PARALLELISM && id == 0))
		pm_str_putc(&words, '?');
	else
		pm_str_u64(&words, id);
	frame_take_words(tui, at, span.at, span.width, PM_TUI_PLAIN, &words);
}

static bool is_plain_column(enum pm_key key)
{
	return key == PM_KEY_COMM || key == PM_KEY_CPU || key == PM_KEY_PARALLELISM;
}

static void draw_table_row(struct pm_tui *tui, const struct page *page,
			   const struct pm_row *row, unsigned at)
{
	const struct pm_profile *profile = tui->profile;
	struct layout layout = lay_out_table_columns(tui, page->key);
	uint32_t place, function;
	struct pm_str words = { 0 };

	if (page->key == PM_KEY_THREAD || page->key == PM_KEY_PROCESS) {
		draw_ids(tui, page, row, at);
		return;
	}
	draw_percent(tui, at, 0, &row->self);
	draw_percent(tui, at, PERCENT_COLUMNS + 2, &row->total);
	if (page->key == PM_KEY_MODULE) {
		draw_module(tui, row->id, layout.name, at);
		return;
	}
	if (is_plain_column(page->key)) {
		draw_other(tui, page->key, row->id, layout.name, at);
		return;
	}
	place = row_place(profile, page->key, row);
	if (page->key == PM_KEY_FUNCTION)
		function = row->id;
	else
		function = profile->places.data[place].function;
	if (page->key == PM_KEY_ADDRESS) {
		pm_str_hex(&words, profile->frames.data[row->id].address);
		frame_take_words(tui, at, layout.first.at, layout.first.width,
				 PM_TUI_PLAIN, &words);
	}
	if (page->key == PM_KEY_LINE)
		draw_source(tui, place, layout.first, at);
	draw_function(tui, row, function, layout.name, at);
	draw_module(tui, profile->functions.data[function].module, layout.module, at);
	draw_source(tui, place, layout.source, at);
}

/* ---- trees -------------------------------------------------------------------------------- */

static char tree_node_mark(const struct pm_tui *tui, const struct page *page, uint32_t id)
{
	const struct pm_tree_node *nodes = page->tree->nodes.data, *node = &nodes[id];

	/* If all children are below the limit, the node cannot be opened. */
	if (!node->expanded || node->children == 0 ||
	    pm_weight_percent(&nodes[node->first_child].total, &tui->view->total) <
		    tui->limit)
		return ' ';
	if (tree_is_open(page, id))
		return '-';
	return '+';
}

static void append_tree_node_name(const struct pm_tui *tui, const struct page *page,
				  const struct pm_tree_node *node, size_t room,
				  struct pm_str *str)
{
	const char *marks = "";

	if (node->inlined)
		marks = " (inlined)";
	else if (node->recursive)
		marks = " (recursive)";
	if (room > strlen(marks))
		room -= strlen(marks);
	pm_put_function(str, tui->profile, node->function, room, tui->report.ascii);
	pm_str_puts(str, marks);
	if (tui->modules && !tui->profile->functions.data[node->function].unknown) {
		pm_str_puts(str, "  ");
		pm_put_cut(str,
			   pm_profile_module_name(
				   tui->profile,
				   tui->profile->functions.data[node->function].module),
			   0, false, tui->report.ascii);
	}
}

void put_tree_row(const struct pm_tui *tui, struct page *page, size_t row,
		  struct pm_str *str)
{
	const struct page_row *at = &page->rows.data[row];
	const struct pm_tree_node *node = &page->tree->nodes.data[at->id];
	const struct pm_weight *whole = tui_whole(tui);

	pm_str_printf(str, "%6.1f%%  ", pm_weight_percent(&node->total, whole));
	if (page->tree_kind == PM_TREE_TOP_DOWN)
		pm_str_printf(str, "%6.1f%%  ", pm_weight_percent(&node->self, whole));
	for (uint32_t i = 0; i < at->indent; i++)
		pm_str_puts(str, "  ");
	append_tree_node_name(tui, page, node, 0, str);
}

static void draw_tree_row(struct pm_tui *tui, const struct page *page,
			  const struct page_row *row, unsigned at)
{
	const struct pm_tree_node *node = &page->tree->nodes.data[row->id];
	bool top_down = page->tree_kind == PM_TREE_TOP_DOWN;
	unsigned column = (PERCENT_COLUMNS + 2) * (top_down ? 2 : 1);
	/* Half of the room is for names; deeper nodes show their depth as a number. */
	unsigned most = (tui->columns - column) / 2, indent = row->indent * 2;
	struct pm_str words = { 0 };

	draw_percent(tui, at, 0, &node->total);
	if (top_down)
		draw_percent(tui, at, PERCENT_COLUMNS + 2, &node->self);
	if (row->indent > most / 2) {
		pm_str_printf(&words, "%u", row->indent);
		if (words.data)
			frame_put_right(&tui->frame, at, column, most - 1, PM_TUI_DIM,
					words.data);
		pm_str_release(&words);
		indent = most;
	}
	column += indent;
	pm_str_printf(&words, "%c ", tree_node_mark(tui, page, row->id));
	append_tree_node_name(tui, page, node, tui_room(tui, column + 2, 1), &words);
	frame_take_words(tui, at, column, tui_room(tui, column, 0), PM_TUI_PLAIN, &words);
}

/* ---- texts -------------------------------------------------------------------------------- */

static void draw_line(struct pm_tui *tui, const struct page *page, const char *line,
		      unsigned at)
{
	enum pm_tui_style style = PM_TUI_PLAIN;
	struct pm_str words = { 0 };
	unsigned columns;
	double percent;

	pm_put_cut(&words, line, tui->columns - 1, false, tui->report.ascii);
	if (strncmp(line, "! ", 2) == 0)
		style = PM_TUI_WARNING;
	frame_take_words(tui, at, 0, tui->columns, style, &words);
	if (page->text_kind != TEXT_ANNOTATE || !line_percent(line, &percent, &columns))
		return;
	pm_str_append(&words, line, columns);
	frame_take_words(tui, at, 0, columns, percent_style(percent), &words);
}

/* ---- any row ------------------------------------------------------------------------------- */

void draw_row(struct pm_tui *tui, const struct page *page, size_t row, unsigned at)
{
	size_t first = tui->frame.cells.len;
	bool selected = row == page->selected;

	if (page->kind == PAGE_TEXT)
		selected = row + 1 == page->found;

	if (selected) {
		/* The bar spans the full width: a blank text fills its cell. */
		frame_put(&tui->frame, at, 0, tui->columns, PM_TUI_PLAIN, " ");
	}
	switch (page->kind) {
	case PAGE_TABLE:
		draw_table_row(tui, page, page_table_row(page, row), at);
		break;
	case PAGE_TREE:
		draw_tree_row(tui, page, &page->rows.data[row], at);
		break;
	case PAGE_TEXT:
		draw_line(tui, page, page_line(page, row), at);
		break;
	}
	for (size_t i = first; selected && i < tui->frame.cells.len; i++)
		tui->frame.cells.data[i].selected = true;
}

static const char *name_column_head(enum pm_key key)
{
	if (key == PM_KEY_COMM)
		return "name";
	if (key == PM_KEY_CPU)
		return "CPU";
	if (key == PM_KEY_PARALLELISM)
		return "parallelism";
	if (key == PM_KEY_MODULE)
		return "module";
	return "function";
}

static void draw_table_heads(struct pm_tui *tui, const struct page *page, unsigned at)
{
	struct layout layout = lay_out_table_columns(tui, page->key);
	struct pm_tui_frame *frame = &tui->frame;
	const char *self = "self*", *total = "total";
	unsigned second = PERCENT_COLUMNS + 2;

	if (page->key == PM_KEY_THREAD || page->key == PM_KEY_PROCESS) {
		frame_put_right(frame, at, 0, PERCENT_COLUMNS, PM_TUI_HEAD, "share");
		frame_put_right(frame, at, second, COUNT_COLUMNS, PM_TUI_HEAD, "samples");
		second += COUNT_COLUMNS + 2;
		frame_put_right(frame, at, second, ID_COLUMNS, PM_TUI_HEAD, "pid");
		second += ID_COLUMNS + 2;
		if (page->key == PM_KEY_THREAD) {
			frame_put_right(frame, at, second, ID_COLUMNS, PM_TUI_HEAD,
					"tid");
			second += ID_COLUMNS + 2;
		}
		frame_put(frame, at, second, 4, PM_TUI_HEAD, "name");
		return;
	}
	if (tui->by_total) {
		self = "self";
		total = "total*";
	}
	frame_put_right(frame, at, 0, PERCENT_COLUMNS, PM_TUI_HEAD, self);
	frame_put_right(frame, at, second, PERCENT_COLUMNS, PM_TUI_HEAD, total);
	if (!is_plain_column(page->key))
		frame_put(frame, at, layout.first.at, layout.first.width, PM_TUI_HEAD,
			  page->key == PM_KEY_LINE ? "source" : "address");
	frame_put(frame, at, layout.name.at, layout.name.width, PM_TUI_HEAD,
		  name_column_head(page->key));
	if (is_plain_column(page->key))
		return;

	frame_put(frame, at, layout.module.at, layout.module.width, PM_TUI_HEAD,
		  "module");
	frame_put(frame, at, layout.source.at, layout.source.width, PM_TUI_HEAD,
		  "source");
}

/* Shows the position, and what the limit hides. */
static void draw_position(struct pm_tui *tui, const struct page *page, unsigned at)
{
	char words[96];

	if (page->rows.len == 0)
		return;
	if (page->hidden > 0)
		snprintf(words, sizeof(words), " %zu/%zu, %zu below %g%%",
			 page->selected + 1, page->rows.len, page->hidden, tui->limit);
	else if (page->kind == PAGE_TREE && tui->limit > 0)
		snprintf(words, sizeof(words), " %zu/%zu, limit %g%%", page->selected + 1,
			 page->rows.len, tui->limit);
	else
		snprintf(words, sizeof(words), " %zu/%zu", page->selected + 1,
			 page->rows.len);
	if (strlen(words) < tui->columns)
		frame_put(&tui->frame, at, tui->columns - (unsigned)strlen(words),
			  (unsigned)strlen(words), PM_TUI_DIM, words);
}

void draw_columns(struct pm_tui *tui, unsigned at)
{
	const struct page *page = tui_page(tui);
	struct pm_tui_frame *frame = &tui->frame;
	unsigned second = PERCENT_COLUMNS + 2;

	if (page->kind == PAGE_TABLE) {
		draw_table_heads(tui, page, at);
	} else if (page->kind == PAGE_TREE) {
		unsigned function_at = second + 2;

		if (page->tree_kind == PM_TREE_TOP_DOWN) {
			frame_put_right(frame, at, 0, PERCENT_COLUMNS, PM_TUI_HEAD,
					"total");
			frame_put_right(frame, at, second, PERCENT_COLUMNS, PM_TUI_HEAD,
					"self");
			function_at += second;
		} else {
			frame_put_right(frame, at, 0, PERCENT_COLUMNS, PM_TUI_HEAD,
					"share");
		}
		frame_put(frame, at, function_at, 8, PM_TUI_HEAD, "function");
	}
	draw_position(tui, page, at);
}
