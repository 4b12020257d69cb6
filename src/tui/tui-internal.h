/* SPDX-License-Identifier: MIT */
/* What the files of the browser share. */
#pragma once

#include <regex.h>

#include "pm/tui.h"

enum {
	TREE_ROWS_MAX = 20000, /* that one key opens */
	SEARCH_STEPS_MAX = 200000, /* nodes of a tree that one search looks at */
	ZOOMS_MAX = 2,
};

/* ---- pages ---------------------------------------------------------------------------- */

enum page_kind {
	PAGE_TABLE,
	PAGE_TREE,
	PAGE_TEXT,
};

enum text_kind {
	TEXT_HELP,
	TEXT_INFORMATION, /* about the recording */
	TEXT_ANNOTATE, /* `function` */
};

struct page_row {
	uint32_t id; /* a row of the table, a node of the tree, or where a line begins */
	uint32_t indent; /* trees: levels */
};

/* One thing to look at: a list of rows of which one is selected. */
struct page {
	enum page_kind kind;
	enum pm_key key; /* tables */
	struct pm_table table;
	enum pm_tree_kind tree_kind; /* trees */
	struct pm_function_set only; /* trees: of these alone, empty: the whole tree */
	char *function; /* their name; or of the one to annotate */
	struct pm_tree *tree;
	PM_VEC(bool) open; /* by node: its children have rows */
	enum text_kind text_kind; /* texts */
	struct pm_str text; /* lines, each ends with a NUL */
	PM_VEC(struct page_row) rows;
	size_t hidden; /* tables: rows below the limit */
	size_t selected, top; /* in rows; texts: top only */
	size_t found; /* texts: the line that was searched for, plus 1; 0: none */
	uint64_t made; /* the generation it shows */
};

enum zoom_kind {
	ZOOM_THREAD,
	ZOOM_MODULE,
};

enum prompt_kind {
	PROMPT_NONE,
	PROMPT_SEARCH,
	PROMPT_LIMIT,
	PROMPT_FILE,
};

struct pm_tui {
	struct pm_report report; /* as asked at the start */
	const struct pm_profile *profile;
	unsigned rows, columns;
	/* What all pages show. Each change of it is a generation. */
	uint32_t event;
	struct pm_filter filter;
	struct pm_view *view;
	uint64_t generation;
	bool by_total;
	double limit;
	enum zoom_kind zooms[ZOOMS_MAX]; /* the last one goes first */
	size_t zooms_len;
	char *zoom_pid, *zoom_tid, *zoom_module; /* owned */
	/* How. */
	bool of_all; /* percent of all samples, not of those that pass the filter */
	bool modules; /* trees name them */
	enum pm_annotate_show annotate;
	PM_VEC(struct page) pages; /* the last one is seen */
	enum prompt_kind prompt;
	struct pm_str typed;
	struct pm_str pattern; /* of the last search */
	bool backwards;
	char message[256]; /* until the next key */
	bool warning;
	struct pm_tui_frame frame;
};

static inline struct page *tui_page(struct pm_tui *tui)
{
	return &tui->pages.data[tui->pages.len - 1];
}

void PM_PRINTF(2, 3) tui_say(struct pm_tui *tui, const char *format, ...);
void PM_PRINTF(2, 3) tui_warn(struct pm_tui *tui, const char *format, ...);

/* ---- what is shown ----------------------------------------------------------------------- */

/* These give 0 or -ENOMEM; where they cannot do what is asked they say so. */
int tui_set_event(struct pm_tui *tui, uint32_t event);
/* @pid or @module (a list) may be NULL. */
int tui_zoom_thread(struct pm_tui *tui, uint32_t pid, const uint32_t *tid);
int tui_zoom_module(struct pm_tui *tui, const char *list);
/* Undoes the last zoom, or that of one kind; false when there is none. */
bool tui_zoomed(const struct pm_tui *tui, enum zoom_kind kind);
int tui_zoom_out(struct pm_tui *tui, enum zoom_kind kind);

/* ---- pages, page.c ------------------------------------------------------------------------ */

void page_release(struct page *page);
/* Makes what the page shows if that is of an older generation; the selection stays. */
int page_make(struct pm_tui *tui, struct page *page);
/* Takes *page over, also when it fails. */
int tui_push(struct pm_tui *tui, struct page *page);
void tui_pop(struct pm_tui *tui);
/* Instead of all pages there are. */
int tui_show_table(struct pm_tui *tui, enum pm_key key);
int tui_show_tree(struct pm_tui *tui, enum pm_tree_kind kind);
/* Above them: who calls it, or what it calls. */
int tui_push_function(struct pm_tui *tui, uint32_t function, enum pm_tree_kind kind);
int tui_push_text(struct pm_tui *tui, enum text_kind kind);
void page_select(struct pm_tui *tui, struct page *page, size_t row);
unsigned tui_body_rows(const struct pm_tui *tui);
/* The function that the selected row is about, or PM_PROFILE_NONE. */
uint32_t page_function(const struct pm_tui *tui, const struct page *page);
/* Its module in *ret; false when a row is about none. */
bool page_module(const struct pm_tui *tui, const struct page *page, uint32_t *ret);
static inline const struct pm_row *page_table_row(const struct page *page, size_t row)
{
	return &page->table.rows.data[page->rows.data[row].id];
}
static inline const char *page_line(const struct page *page, size_t row)
{
	return page->text.data + page->rows.data[row].id;
}

/* ---- lines and instructions, annotate.c -------------------------------------------------- */

int tui_push_annotate(struct pm_tui *tui, const char *function);
int tui_annotate_lines(struct pm_tui *tui, struct page *page);
/* @width 0: with a heading, for a file. */
int tui_annotate_report(struct pm_tui *tui, const struct page *page, unsigned width,
			FILE *to, struct pm_error *err);
void tui_show_hottest(struct pm_tui *tui, struct page *page);
/* Whether @line begins with a percentage, and what that takes of it. */
bool line_percent(const char *line, double *ret, unsigned *columns);

/* ---- trees, tree-rows.c ---------------------------------------------------------------- */

/* Children that are not below the limit; the node is expanded for that. */
int tree_shown(const struct pm_tui *tui, struct page *page, uint32_t node, uint32_t *ret);
/* Opens down to where it branches. */
int tree_open(const struct pm_tui *tui, struct page *page, uint32_t node);
void tree_close(struct page *page, uint32_t node);
bool tree_is_open(const struct page *page, uint32_t node);
/* Everything below @node; *cut: only as much as one key opens. */
int tree_open_all(const struct pm_tui *tui, struct page *page, uint32_t node, bool *cut);
/* All that is open becomes rows; @node is selected. */
int tree_rows(struct pm_tui *tui, struct page *page, uint32_t node);
/* Opens what lies above @node and selects it. */
int tree_show(struct pm_tui *tui, struct page *page, uint32_t node);
/* The node after (or before) @node in reading order, whether or not it has a row; 0 beyond
 * the last (or first). */
int tree_step(const struct pm_tui *tui, struct page *page, uint32_t node, bool backwards,
	      uint32_t *ret);

/* ---- words ---------------------------------------------------------------------------- */

/* What a row of a table says, for searching: as it is, not printable. */
void row_words(const struct pm_tui *tui, const struct page *page, size_t row,
	       struct pm_str *str);
uint32_t row_place(const struct pm_profile *profile, enum pm_key key,
		   const struct pm_row *row);

/* ---- keys -------------------------------------------------------------------------------- */

int tui_search(struct pm_tui *tui, bool backwards);
int tui_write(struct pm_tui *tui, const char *path);
int tui_help_lines(struct pm_tui *tui, struct page *page);
/* Keys while a line is typed, and the beginning of it. */
int tui_prompt(struct pm_tui *tui, enum prompt_kind kind, const char *typed);
int tui_prompt_press(struct pm_tui *tui, uint32_t key);

/* ---- drawing ------------------------------------------------------------------------------- */

void frame_put(struct pm_tui_frame *frame, unsigned row, unsigned column, unsigned width,
	       enum pm_tui_style style, const char *text);
void frame_put_right(struct pm_tui_frame *frame, unsigned row, unsigned column,
		     unsigned width, enum pm_tui_style style, const char *text);
void draw_heading(struct pm_tui *tui);
void draw_columns(struct pm_tui *tui, unsigned at);
void draw_row(struct pm_tui *tui, const struct page *page, size_t row, unsigned at);
/* One row of a tree without a frame, its name whole. */
void put_tree_row(const struct pm_tui *tui, struct page *page, size_t row,
		  struct pm_str *str);

/* ---- the terminal -------------------------------------------------------------------------- */

/* Whether newterm() will know it, which leaks where it does not. */
bool tui_knows_terminal(FILE *to);
