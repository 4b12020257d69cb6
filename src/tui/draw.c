/* SPDX-License-Identifier: MIT */
/*
 * Draws the frame around a page (the program, the quality of the data, the keys), the
 * rows of tables, trees and texts, and the column headings.
 */
#include "tui-internal.h"

#include <string.h>

enum {
	ROW_HEADING,
	ROW_QUALITY,
	ROW_PAGES,
	ROW_COLUMNS,
	ROW_BODY,
};
#define MUCH_PERCENT 5.0

/* ---- cells -------------------------------------------------------------------------------- */

static void frame_put_cell(struct pm_tui_frame *frame, struct pm_tui_cell cell,
			   const char *text)
{
	if (cell.row >= frame->rows || cell.column >= frame->columns)
		return;
	if (cell.width > frame->columns - cell.column)
		cell.width = frame->columns - cell.column;
	cell.text = frame->text.len;
	pm_str_append(&frame->text, text, strlen(text) + 1);
	if (cell.width > 0 && pm_vec_push(&frame->cells, cell) < 0)
		frame->text.failed = true;
}

static void frame_put(struct pm_tui_frame *frame, unsigned row, unsigned column,
		      unsigned width, enum pm_tui_style style, const char *text)
{
	struct pm_tui_cell cell = {
		.row = row, .column = column, .width = width, .style = style
	};

	if (text[0] != '\0')
		frame_put_cell(frame, cell, text);
}

static void frame_put_right(struct pm_tui_frame *frame, unsigned row, unsigned column,
			    unsigned width, enum pm_tui_style style, const char *text)
{
	unsigned columns = (unsigned)pm_columns(text);
	unsigned blank = PM_SUB_OR_0(width, columns);

	frame_put(frame, row, column + blank, width - blank, style, text);
}

/* ---- the heading --------------------------------------------------------------------------- */

static void append_command_line(const struct pm_tui *tui, struct pm_str *str)
{
	const struct pm_profile *profile = tui->profile;

	for (size_t i = 0; i < profile->command.len; i++) {
		if (i > 0)
			pm_str_putc(str, ' ');
		pm_str_puts(str, profile->command.data[i]);
	}
	if (profile->command.len == 0)
		pm_str_printf(str, "pmrec %s", pm_text_or_empty(profile->target));
}

static void append_event_and_rate(const struct pm_tui *tui, struct pm_str *str,
				  bool with_rate)
{
	const struct pm_profile_event *event = &tui->profile->events.data[tui->event];

	pm_put_event(str, tui->profile, tui->event);
	if (event->by_frequency && with_rate) {
		pm_str_puts(str, " @ ");
		pm_put_count(str, event->rate);
		pm_str_puts(str, " Hz");
	}
	if (tui->profile->events.len > 1)
		pm_str_printf(str, " (%u/%zu)", tui->event + 1, tui->profile->events.len);
}

static void append_sample_counts(const struct pm_tui *tui, struct pm_str *str)
{
	const struct pm_view *view = tui->view;

	if (view->total.samples != view->all.samples) {
		pm_put_count(str, view->total.samples);
		pm_str_puts(str, " of ");
	}
	pm_put_count(str, view->all.samples);
	pm_str_printf(str, " sample%s", pm_plural_s(view->all.samples));
}

/* Appends the last component of each path in a list. */
static void append_path_names(struct pm_str *str, const char *list)
{
	for (const char *c = list; *c;) {
		size_t len = strcspn(c, ",");
		const char *slash = memrchr(c, '/', len);
		size_t skip = 0;

		if (slash && slash + 1 < c + len)
			skip = (size_t)(slash + 1 - c);

		pm_str_append(str, c + skip, len - skip);
		c += len;
		if (*c == ',')
			pm_str_putc(str, *c++);
	}
}

static void append_active_filters(const struct pm_tui *tui, struct pm_str *str)
{
	const struct pm_filter *filter = &tui->filter;
	const struct {
		const char *name, *value;
	} parts[] = {
		{ "thread", filter->tid },
		{ "process", filter->tid ? NULL : filter->pid },
		{ "comm", filter->comm },
		{ "module", filter->module },
		{ "with", filter->symbol },
		{ "time", tui->report.time },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(parts); i++) {
		if (!parts[i].value)
			continue;
		pm_str_separate(str, "  ");
		pm_str_printf(str, "%s ", parts[i].name);
		append_path_names(str, parts[i].value);
	}
}

/* Appends one piece to a row as far as there is room, and returns the column of the next
 * piece. */
static unsigned draw_row_piece(struct pm_tui *tui, unsigned row, unsigned at,
			       enum pm_tui_style style, unsigned width,
			       struct pm_str *words)
{
	PM_CLEANUP(pm_str_release) struct pm_str shown = { 0 };
	unsigned room = tui_room(tui, at, 0);

	if (width < room)
		room = width;
	if (words->failed)
		tui->frame.text.failed = true;
	else if (words->len > 0 && room > 0)
		pm_put_cut(&shown, words->data, room, false, tui->report.ascii);
	pm_str_clear(words);
	if (!shown.data)
		return at;
	frame_put(&tui->frame, row, at, room, style, shown.data);
	return at + (unsigned)pm_columns(shown.data) + 2;
}

static unsigned text_columns(const struct pm_str *str)
{
	if (str->data && str->len > 0)
		return (unsigned)pm_columns(str->data) + 2;
	return 0;
}

/* Draws the line about the program. Filters take precedence over the rate, and the rate
 * over the command. */
static void draw_program(struct pm_tui *tui)
{
	PM_CLEANUP(pm_str_release) struct pm_str event = { 0 }, samples = { 0 };
	PM_CLEANUP(pm_str_release) struct pm_str filters = { 0 }, command = { 0 };
	unsigned used, least = tui->columns / 8, at = 0;

	append_command_line(tui, &command);
	append_event_and_rate(tui, &event, true);
	append_sample_counts(tui, &samples);
	append_active_filters(tui, &filters);
	used = text_columns(&samples) + text_columns(&filters);
	if (used + text_columns(&event) + least > tui->columns) {
		pm_str_clear(&event);
		append_event_and_rate(tui, &event, false);
	}
	used += text_columns(&event);
	at = draw_row_piece(tui, ROW_HEADING, at, PM_TUI_HEAD, tui_room(tui, used, least),
			    &command);
	at = draw_row_piece(tui, ROW_HEADING, at, PM_TUI_PLAIN, tui->columns, &event);
	at = draw_row_piece(tui, ROW_HEADING, at, PM_TUI_PLAIN, tui->columns, &samples);
	draw_row_piece(tui, ROW_HEADING, at, PM_TUI_WARM, tui->columns, &filters);
}

/* ---- quality of the data ------------------------------------------------------------------- */

/* Whether the requested event was not available and another one was measured. */
static bool is_substituted(const struct pm_profile_event *event)
{
	const char *colon = strchr(event->requested, ':');

	if (strncmp(event->requested, event->name, strlen(event->name)) == 0)
		return false;
	/* uprobe:libc:malloc, sched:*: the resolved names of these differ from the typed
	 * ones. */
	return !colon || strncmp(event->requested, event->actual,
				 (size_t)(colon - event->requested) + 1) != 0;
}

static bool append_lost_records(const struct pm_tui *tui, struct pm_str *str)
{
	const struct pm_profile *profile = tui->profile;
	const struct pm_profile_event *event = &profile->events.data[tui->event];
	bool known = event->lost_known || profile->events.len == 1;
	uint64_t lost = event->lost_known ? event->lost : profile->info.lost;

	pm_str_puts(str, "lost ");
	if (known)
		pm_put_count(str, lost);
	else
		pm_str_puts(str, "unknown");
	if (profile->info.cut)
		pm_str_puts(str, " or more");
	return profile->info.lost > 0 || profile->info.cut;
}

static bool append_quality_shares(const struct pm_tui *tui, struct pm_str *str)
{
	const struct pm_profile *profile = tui->profile;
	const struct pm_view *view = tui->view;
	struct pm_weight truncated = { 0 }, incomplete = { 0 };
	double shares[3];

	for (size_t i = 1; i < profile->stops.len; i++) {
		const char *stop = profile->stops.data[i];

		if (strcmp(stop, "truncated") == 0)
			pm_weight_add(&truncated, &view->stops[i]);
		else if (pm_stop_is_incomplete(stop))
			pm_weight_add(&incomplete, &view->stops[i]);
	}
	shares[0] = pm_weight_percent(&truncated, &view->total);
	shares[1] = pm_weight_percent(&incomplete, &view->total);
	shares[2] = pm_weight_percent(&view->unknown, &view->total);
	if (view->total.samples > 0)
		pm_str_printf(str,
			      "  truncated %.1f%%  incomplete %.1f%%  unknown %.1f%%",
			      shares[0], shares[1], shares[2]);
	return shares[0] > MUCH_PERCENT || shares[1] > MUCH_PERCENT ||
	       shares[2] > MUCH_PERCENT;
}

static void draw_quality(struct pm_tui *tui)
{
	const struct pm_profile_event *event = &tui->profile->events.data[tui->event];
	PM_CLEANUP(pm_str_release) struct pm_str words = { 0 };
	bool bad = is_substituted(event);

	if (bad)
		pm_str_printf(&words, "! %s not available  ", event->requested);
	bad |= append_lost_records(tui, &words);
	bad |= append_quality_shares(tui, &words);
	if (tui->profile->notes.len > 0)
		pm_str_printf(&words, "  %zu note%s (i)", tui->profile->notes.len,
			      pm_plural_s(tui->profile->notes.len));
	draw_row_piece(tui, ROW_QUALITY, 0, bad ? PM_TUI_WARNING : PM_TUI_DIM,
		       tui->columns, &words);
}

/* ---- page names ----------------------------------------------------------------------------- */

static void draw_pages(struct pm_tui *tui)
{
	static const char *const names[] = { "1 functions", "2 tree",     "3 bottom-up",
					     "4 modules",   "5 threads",  "6 procs",
					     "7 lines",     "8 addresses" };
	static const size_t of_key[] = {
		[PM_KEY_FUNCTION] = 0, [PM_KEY_MODULE] = 3, [PM_KEY_THREAD] = 4,
		[PM_KEY_PROCESS] = 5,  [PM_KEY_LINE] = 6,   [PM_KEY_ADDRESS] = 7,
	};
	const struct page *page = tui_page(tui);
	size_t current = PM_ARRAY_LEN(names);
	unsigned at = 0;

	if (page->kind == PAGE_TREE)
		current = page->tree_kind == PM_TREE_TOP_DOWN ? 1 : 2;
	else if (page->kind == PAGE_TABLE && page->key < PM_ARRAY_LEN(of_key))
		current = of_key[page->key];
	for (size_t i = 0; i < PM_ARRAY_LEN(names); i++) {
		unsigned len = (unsigned)strlen(names[i]);

		if (at + len > tui->columns)
			break;
		frame_put(&tui->frame, ROW_PAGES, at, len,
			  i == current ? PM_TUI_HEAD : PM_TUI_DIM, names[i]);
		if (i == current)
			tui->frame.cells.data[tui->frame.cells.len - 1].selected = true;
		at += len + 1;
	}
}

static void draw_title(struct pm_tui *tui)
{
	const struct page *page = tui_page(tui);
	PM_CLEANUP(pm_str_release) struct pm_str words = { 0 };
	struct pm_weight *weight;

	if (page->kind == PAGE_TEXT && page->text_kind == TEXT_ANNOTATE) {
		static const char *const parts[] = {
			[PM_ANNOTATE_BOTH] = "lines and instructions of ",
			[PM_ANNOTATE_SOURCE] = "lines of ",
			[PM_ANNOTATE_CODE] = "instructions of ",
		};

		pm_str_puts(&words, parts[tui->annotate]);
		pm_put_name(&words, page->function, tui->columns - words.len,
			    tui->report.ascii);
	} else if (page->kind == PAGE_TEXT) {
		pm_str_puts(&words,
			    page->text_kind == TEXT_HELP ? "keys" : "the recording");
	} else {
		unsigned at;

		if (page->tree_kind == PM_TREE_TOP_DOWN)
			pm_str_puts(&words, "what is called by");
		else
			pm_str_puts(&words, "callers of");
		at = draw_row_piece(tui, ROW_PAGES, 0, PM_TUI_PLAIN, tui->columns,
				    &words) -
		     1;
		pm_put_name(&words, page->function, tui->columns - at - 8,
			    tui->report.ascii);
		at = draw_row_piece(tui, ROW_PAGES, at, PM_TUI_HEAD, tui->columns,
				    &words);
		weight = &page->tree->nodes.data[0].total;
		pm_str_printf(&words, "%.1f%%",
			      pm_weight_percent(weight, tui_whole(tui)));
		draw_row_piece(tui, ROW_PAGES, at, PM_TUI_PLAIN, tui->columns, &words);
		return;
	}
	draw_row_piece(tui, ROW_PAGES, 0, PM_TUI_HEAD, tui->columns, &words);
}

/* ---- the last row --------------------------------------------------------------------------- */

static void draw_keys(struct pm_tui *tui)
{
	static const char *const hints[] = {
		[PAGE_TABLE] = "Enter open  < callers  > callees  a annotate  "
			       "/ search  t thread  h help  q quit",
		[PAGE_TREE] =
			"+ open/close  e all below  < callers  > callees  / search  "
			"h help  q back",
		[PAGE_TEXT] = "Up Down PgUp PgDn  / search  P write  q back",
	};
	const struct page *page = tui_page(tui);
	const char *words = hints[page->kind];
	PM_AUTO_FREE char *shown = NULL;
	size_t len;

	if (page->kind == PAGE_TEXT && page->text_kind == TEXT_ANNOTATE)
		words = "Up Down PgUp PgDn  s source or code  H hottest  / search  "
			"P write  q back";
	len = strlen(words);
	shown = strdup(words);
	if (!shown) {
		tui->frame.text.failed = true;
		return;
	}
	/* Show only whole hints. */
	while (len > tui->columns) {
		while (len > 0 && strncmp(words + len - 1, "  ", 2) != 0)
			len--;
		len -= len > 0;
	}
	shown[len] = '\0';
	frame_put(&tui->frame, tui->rows - 1, 0, tui->columns, PM_TUI_DIM, shown);
}

static void draw_prompt(struct pm_tui *tui)
{
	static const char *const questions[] = {
		[PROMPT_SEARCH] = "/",
		[PROMPT_LIMIT] = "leave out what is below, in percent: ",
		[PROMPT_FILE] = "write to: ",
	};
	PM_CLEANUP(pm_str_release) struct pm_str words = { 0 };
	const char *typed = pm_str_text(&tui->typed);
	unsigned at = (unsigned)strlen(questions[tui->prompt]);
	unsigned room = tui_room(tui, at + 1, 1);

	frame_put(&tui->frame, tui->rows - 1, 0, at, PM_TUI_HEAD, questions[tui->prompt]);
	pm_put_cut(&words, typed, room, true, tui->report.ascii);
	frame_put(&tui->frame, tui->rows - 1, at, room, PM_TUI_PLAIN,
		  pm_str_text(&words));
	tui->frame.cursor = true;
	tui->frame.cursor_column = at + (unsigned)pm_columns(pm_str_text(&words));
}

static void draw_last_row(struct pm_tui *tui)
{
	PM_CLEANUP(pm_str_release) struct pm_str words = { 0 };

	if (tui->prompt != PROMPT_NONE) {
		draw_prompt(tui);
	} else if (tui->message[0] != '\0') {
		pm_str_puts(&words, tui->message);
		draw_row_piece(tui, tui->rows - 1, 0,
			       tui->warning ? PM_TUI_WARNING : PM_TUI_HEAD, tui->columns,
			       &words);
	} else {
		draw_keys(tui);
	}
}

enum {
	PERCENT_COLUMNS = 7,
	COUNT_COLUMNS = 12,
	ID_COLUMNS = 8,
	NAME_AT = 18, /* column of the names in tables with self and total */
	WIDE = 60, /* columns that leave room for the source column */
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

/* Draws a row that is neither code nor a single thread: a thread name, a CPU or a
 * parallelism. */
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
	/* Half of the room is for names; nodes that are too deep for the other half show
	 * their depth as a number. */
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

static void draw_row(struct pm_tui *tui, const struct page *page, size_t row, unsigned at)
{
	size_t first = tui->frame.cells.len;
	bool selected = row == page->selected;

	if (page->kind == PAGE_TEXT)
		selected = row + 1 == page->found;

	if (selected) {
		/* The bar spans the full width: a blank pads its cell. */
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

/* Shows the position, and how much the limit hides. */
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

static void draw_columns(struct pm_tui *tui, unsigned at)
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

/* ---- the whole frame ------------------------------------------------------------------------ */

/* Returns the reason why a page has no rows. */
static const char *empty_page_text(const struct pm_tui *tui, const struct page *page)
{
	if (tui->view->total.samples == 0)
		return "no samples";
	if (page->hidden > 0)
		return "all of it is below the limit";
	return "no sample passes through it";
}

static int draw_page(struct pm_tui *tui)
{
	struct page *page = tui_page(tui);
	unsigned body = tui_body_rows(tui);

	draw_program(tui);
	draw_quality(tui);
	if (page->kind == PAGE_TEXT || page->function)
		draw_title(tui);
	else
		draw_pages(tui);
	draw_columns(tui, ROW_COLUMNS);
	for (unsigned i = 0; i < body && page->top + i < page->rows.len; i++) {
		uint32_t shown;
		int ret = 0;

		/* Expands the node to find out whether it can be opened. */
		if (page->kind == PAGE_TREE)
			ret = tree_shown(tui, page, page->rows.data[page->top + i].id,
					 &shown);
		if (ret < 0)
			return ret;
		draw_row(tui, page, page->top + i, ROW_BODY + i);
	}
	if (page->rows.len == 0)
		frame_put(&tui->frame, ROW_BODY, 2, tui->columns - 2, PM_TUI_WARNING,
			  empty_page_text(tui, page));
	draw_last_row(tui);
	return 0;
}

int pm_tui_draw(struct pm_tui *tui, const struct pm_tui_frame **out)
{
	struct pm_tui_frame *frame = &tui->frame;
	int ret = 0;

	frame->rows = tui->rows;
	frame->columns = tui->columns;
	frame->cursor = false;
	pm_vec_clear(&frame->cells);
	pm_str_clear(&frame->text);
	frame->text.failed = false;
	if (tui->rows < PM_TUI_ROWS_MIN || tui->columns < PM_TUI_COLUMNS_MIN) {
		char words[64];

		snprintf(words, sizeof(words), "%ux%u is too small:", tui->columns,
			 tui->rows);
		frame_put(frame, 0, 0, tui->columns, PM_TUI_WARNING, words);
		snprintf(words, sizeof(words), "%ux%u or more", PM_TUI_COLUMNS_MIN,
			 PM_TUI_ROWS_MIN);
		frame_put(frame, 1, 0, tui->columns, PM_TUI_WARNING, words);
	} else {
		ret = page_make(tui, tui_page(tui));
		if (ret == 0)
			ret = draw_page(tui);
	}
	if (ret == 0 && frame->text.failed)
		ret = -ENOMEM;
	if (ret == 0)
		*out = frame;
	return ret;
}
