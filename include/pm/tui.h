/* SPDX-License-Identifier: MIT */
/*
 * A profile browsed in a terminal. What is shown and what a key does is apart from the
 * screen: a browser takes keys and a size, and draws frames of text; only pm_tui_run()
 * knows ncurses.
 */
#pragma once

#include "pm/base.h"
#include "pm/output.h"

/* Characters are their Unicode code points; what is none follows them. */
enum pm_tui_key {
	PM_TUI_ESCAPE = 0x1b,
	PM_TUI_ENTER = '\n',
	PM_TUI_TAB = '\t',
	PM_TUI_BACKSPACE = 0x7f,
	PM_TUI_UP = 0x110000,
	PM_TUI_DOWN,
	PM_TUI_LEFT,
	PM_TUI_RIGHT,
	PM_TUI_PAGE_UP,
	PM_TUI_PAGE_DOWN,
	PM_TUI_HOME,
	PM_TUI_END,
	PM_TUI_BACK_TAB,
	PM_TUI_F1,
};

enum pm_tui_style {
	PM_TUI_PLAIN,
	PM_TUI_HEAD,
	PM_TUI_HOT,
	PM_TUI_WARM,
	PM_TUI_DIM,
	PM_TUI_WARNING,
};

/* A piece of text at a place; what is wider than `width` columns is cut off. */
struct pm_tui_cell {
	unsigned row, column, width;
	enum pm_tui_style style;
	bool selected;
	size_t text; /* where it begins in the frame's text; it ends with a NUL */
};

struct pm_tui_frame {
	unsigned rows, columns;
	PM_VEC(struct pm_tui_cell) cells; /* later ones lie above earlier ones */
	struct pm_str text; /* printable, UTF-8 */
	bool cursor; /* in the last row, where a line is typed */
	unsigned cursor_column;
};

enum {
	PM_TUI_ROWS_MIN = 10,
	PM_TUI_COLUMNS_MIN = 40,
};

struct pm_tui;

/*
 * Begins with what @report asks for; its texts and its profile are borrowed until
 * pm_tui_free(). -ENOENT and the like as of pm_output_text(); also for a profile without any
 * event.
 */
int pm_tui_new(struct pm_tui **ret, const struct pm_report *report, struct pm_error *err);
void pm_tui_free(struct pm_tui *tui);
void pm_tui_resize(struct pm_tui *tui, unsigned rows, unsigned columns);
/* 1: goes on, 0: that was the end, or -ENOMEM. */
int pm_tui_press(struct pm_tui *tui, uint32_t key);
/* Valid until the next call with @tui. 0 or -ENOMEM. */
int pm_tui_draw(struct pm_tui *tui, const struct pm_tui_frame **ret);

/*
 * Browses on the terminal @screen with keys from the terminal @keys until the user ends it or
 * the terminal is gone: 0. The number of a signal that should end the program: the terminal
 * is as before, the caller may raise it again. -ENOTTY: not a terminal, or one that has no
 * cursor; and what pm_tui_new() gives. One at a time: signals and ncurses belong to it while it
 * runs.
 */
int pm_tui_run(const struct pm_report *report, FILE *keys, FILE *screen,
	       struct pm_error *err);
