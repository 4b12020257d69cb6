/* SPDX-License-Identifier: MIT */
/*
 * A browser for a profile in a terminal. Its state and its keys are independent of the
 * screen: a browser receives keys and a size, and draws frames of text; only pm_tui_run()
 * uses ncurses.
 */
#pragma once

#include "pm/base.h"
#include "pm/output.h"

/* Characters are their Unicode code points; other keys follow them. */
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

/* A piece of text at a position; columns beyond `width` are cut off. */
struct pm_tui_cell {
	unsigned row, column, width;
	enum pm_tui_style style;
	bool selected;
	size_t text; /* offset of its NUL-terminated text in the frame's text */
};

struct pm_tui_frame {
	unsigned rows, columns;
	PM_VEC(struct pm_tui_cell) cells; /* later cells cover earlier ones */
	struct pm_str text; /* printable, UTF-8 */
	bool cursor; /* in the last row, where a line is being typed */
	unsigned cursor_column;
};

enum {
	PM_TUI_ROWS_MIN = 10,
	PM_TUI_COLUMNS_MIN = 40,
};

struct pm_tui;

/*
 * Creates a browser that starts with the view that @report selects. The strings and the
 * profile of @report are borrowed until pm_tui_free(). Fails like pm_output_text(), and
 * also if the profile has no event.
 */
int pm_tui_new(struct pm_tui **out, const struct pm_report *report, struct pm_error *err);
void pm_tui_free(struct pm_tui *tui);
void pm_tui_resize(struct pm_tui *tui, unsigned rows, unsigned columns);
/* Returns 1 to continue, 0 if the user has quit, or -ENOMEM. */
int pm_tui_press(struct pm_tui *tui, uint32_t key);
/* The frame is valid until the next call with @tui. Returns 0 or -ENOMEM. */
int pm_tui_draw(struct pm_tui *tui, const struct pm_tui_frame **out);

/*
 * Lets the user browse @report on the terminal @screen, with keys read from the terminal
 * @keys. Returns 0 when the user quits or the terminal is gone. If a signal should end
 * the program, returns its number; the terminal has then been restored, and the caller
 * may raise the signal again. Returns -ENOTTY if either is not a terminal, or if @screen
 * has no cursor addressing; otherwise fails like pm_tui_new(). Only one call may run at a
 * time, because it takes over signal handling and ncurses.
 */
int pm_tui_run(const struct pm_report *report, FILE *keys, FILE *screen,
	       struct pm_error *err);
