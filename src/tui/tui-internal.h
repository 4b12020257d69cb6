/* SPDX-License-Identifier: MIT */
/* Shared by the files of the browser. */
#pragma once

#include <regex.h>

#include "pm/tui.h"

enum {
	TREE_ROWS_MAX = 20000, /* most rows that one key opens */
	SEARCH_STEPS_MAX = 200000, /* most nodes of a tree that one search visits */
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
	uint32_t id; /* index in the table, node of the tree, or offset of a line */
	uint32_t indent; /* trees: depth */
};

/* A page on the screen: a list of rows, one of which is selected. */
struct page {
	enum page_kind kind;
	enum pm_key key; /* tables */
	struct pm_table table;
	enum pm_tree_kind tree_kind; /* trees */
	/* Trees: only these functions; empty: the whole tree. */
	struct pm_function_set only;
	char *function; /* the name of these functions, or of the function to annotate */
	struct pm_tree *tree;
	PM_VEC(bool) open; /* by node: its children have rows */
	enum text_kind text_kind; /* texts */
	struct pm_str text; /* lines, each ended by a NUL */
	PM_VEC(struct page_row) rows;
	size_t hidden; /* tables: rows below the limit */
	size_t selected, top; /* in rows; texts only use top */
	size_t found; /* texts: line of the last search result, plus 1; 0: none */
	uint64_t made; /* the generation of the view that it shows */
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
	struct pm_report report; /* as passed at the start */
	const struct pm_profile *profile;
	unsigned rows, columns;
	/* Common to all pages. Each change starts a new generation. */
	uint32_t event;
	struct pm_filter filter;
	struct pm_view *view;
	uint64_t generation;
	bool by_total;
	double limit;
	enum zoom_kind zooms[ZOOMS_MAX]; /* the last one is undone first */
	size_t zooms_len;
	char *zoom_pid, *zoom_tid, *zoom_module; /* owned */
	/* Display options: */
	bool of_all; /* percent of all samples, not only of those that pass the filter */
	bool modules; /* trees also show modules */
	enum pm_annotate_show annotate;
	PM_VEC(struct page) pages; /* the last one is visible */
	enum prompt_kind prompt;
	struct pm_str typed;
	struct pm_str pattern; /* of the last search */
	bool backwards;
	char message[256]; /* shown until the next key */
	bool warning;
	struct pm_tui_frame frame;
};

static inline struct page *tui_page(struct pm_tui *tui)
{
	return &tui->pages.data[tui->pages.len - 1];
}

/* Returns the weight that is 100 %. */
static inline const struct pm_weight *tui_whole(const struct pm_tui *tui)
{
	if (tui->of_all)
		return &tui->view->all;
	return &tui->view->total;
}

/* Returns the number of columns from @at to the right edge, but at least @least. */
static inline unsigned tui_room(const struct pm_tui *tui, unsigned at, unsigned least)
{
	unsigned room = PM_SUB_OR_0(tui->columns, at);

	return PM_MAX(room, least);
}

void PM_PRINTF(2, 3) tui_say(struct pm_tui *tui, const char *format, ...);
void PM_PRINTF(2, 3) tui_warn(struct pm_tui *tui, const char *format, ...);

/* ---- what is shown ----------------------------------------------------------------------- */

/* These functions return 0 or -ENOMEM. If a request cannot be fulfilled, they show a
 * message. */
int tui_set_event(struct pm_tui *tui, uint32_t event);
/* @pid or @module (a list) may be NULL. */
int tui_zoom_thread(struct pm_tui *tui, uint32_t pid, const uint32_t *tid);
int tui_zoom_module(struct pm_tui *tui, const char *list);
/* tui_zoom_out() undoes the zoom of one kind; tui_zoomed() returns whether there is
 * one. */
bool tui_zoomed(const struct pm_tui *tui, enum zoom_kind kind);
int tui_zoom_out(struct pm_tui *tui, enum zoom_kind kind);

/* ---- pages, page.c ------------------------------------------------------------------------ */

void page_release(struct page *page);
/* Computes the page if it shows an older generation; keeps the selection. */
int page_make(struct pm_tui *tui, struct page *page);
/* Takes ownership of the contents of @page, even on failure. */
int tui_push(struct pm_tui *tui, struct page *page);
void tui_pop(struct pm_tui *tui);
/* These replace all pages. */
int tui_show_table(struct pm_tui *tui, enum pm_key key);
int tui_show_tree(struct pm_tui *tui, enum pm_tree_kind kind);
/* Pushes a page with the callers or the callees of a function. */
int tui_push_function(struct pm_tui *tui, uint32_t function, enum pm_tree_kind kind);
int tui_push_text(struct pm_tui *tui, enum text_kind kind);
void page_select(struct pm_tui *tui, struct page *page, size_t row);
unsigned tui_body_rows(const struct pm_tui *tui);
/* Returns the function of the selected row, or PM_PROFILE_NONE. */
uint32_t page_function(const struct pm_tui *tui, const struct page *page);
/* Sets *out to the module of the selected row. Returns false if the row has none. */
bool page_module(const struct pm_tui *tui, const struct page *page, uint32_t *out);
static inline const struct pm_row *page_table_row(const struct page *page, size_t row)
{
	return &page->table.rows.data[page->rows.data[row].id];
}
static inline const char *page_line(const struct page *page, size_t row)
{
	return page->text.data + page->rows.data[row].id;
}

/* ---- lines and instructions -------------------------------------------------------------- */

int tui_push_annotate(struct pm_tui *tui, const char *function);
/* Writes the report of an annotated function. @width 0 is for a file, with a heading. */
int tui_annotate_report(struct pm_tui *tui, const struct page *page, unsigned width,
			FILE *to, struct pm_error *err);
void tui_show_hottest(struct pm_tui *tui, struct page *page);
/* Returns whether @line starts with a percentage. If so, sets @out to it and @columns to
 * the columns that it takes. */
bool line_percent(const char *line, double *out, unsigned *columns);

/* ---- trees ------------------------------------------------------------------------------- */

/* Expands the node, and counts the children that are not below the limit. */
int tree_shown(const struct pm_tui *tui, struct page *page, uint32_t node, uint32_t *out);
/* Opens the node, and its descendants down to the first branching. */
int tree_open(const struct pm_tui *tui, struct page *page, uint32_t node);
void tree_close(struct page *page, uint32_t node);
bool tree_is_open(const struct page *page, uint32_t node);
/* Opens everything below @node. Sets *cut if TREE_ROWS_MAX was reached. */
int tree_open_all(const struct pm_tui *tui, struct page *page, uint32_t node, bool *cut);
/* Makes rows of all open nodes and selects @node. */
int tree_rows(struct pm_tui *tui, struct page *page, uint32_t node);
/* Opens all parents of @node and selects it. */
int tree_show(struct pm_tui *tui, struct page *page, uint32_t node);
/* Sets *out to the node after (or before) @node in reading order, whether or not it has a
 * row; 0 after the last (or before the first) one. */
int tree_step(const struct pm_tui *tui, struct page *page, uint32_t node, bool backwards,
	      uint32_t *out);

/* ---- words ---------------------------------------------------------------------------- */

/* Appends the words of a table row, for searching; they are not made printable. */
void row_words(const struct pm_tui *tui, const struct page *page, size_t row,
	       struct pm_str *str);
uint32_t row_place(const struct pm_profile *profile, enum pm_key key,
		   const struct pm_row *row);

/* ---- keys -------------------------------------------------------------------------------- */

int tui_search(struct pm_tui *tui, bool backwards);
int tui_write(struct pm_tui *tui, const char *path);
int tui_help_lines(struct pm_tui *tui, struct page *page);
/* tui_prompt() opens the line at the bottom, with @typed as its initial text;
 * tui_prompt_press() handles the keys until it is closed. */
int tui_prompt(struct pm_tui *tui, enum prompt_kind kind, const char *typed);
int tui_prompt_press(struct pm_tui *tui, uint32_t key);

/* ---- drawing ------------------------------------------------------------------------------- */

void draw_heading(struct pm_tui *tui);
/* Appends one row of a tree as a line of text, with the full name. */
void put_tree_row(const struct pm_tui *tui, struct page *page, size_t row,
		  struct pm_str *str);

/* ---- the terminal -------------------------------------------------------------------------- */

/* Whether newterm() will succeed. It must not be called if not, because it would leak
 * memory. */
bool tui_knows_terminal(FILE *to);
