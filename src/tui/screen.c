/* SPDX-License-Identifier: MIT */
/* Connects the terminal: reads keys, draws frames, and restores the terminal at the
 * end. */
#include "tui-internal.h"

#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <wchar.h>

enum {
	/* time for the remaining bytes of a key, which may come over a network */
	ESCAPE_MS = 100,
	PAIR_HOT = 1,
	PAIR_WARM,
	PAIR_WARNING,
	CONTROL_L = 0x0c,
	CONTROL_C = 0x03,
};

struct screen {
	SCREEN *curses;
	int fd; /* source of keys */
	bool color, ascii;
	bool lost; /* the terminal is gone */
};

/* ---- signals ------------------------------------------------------------------------------- */

static volatile sig_atomic_t caught;

static void remember_signal(int signal)
{
	caught = signal;
}

/* The signals that are blocked except while we wait. ncurses handles the last two:
 * changes of the window's size, and being stopped. */
static const int our_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP };
enum {
	ENDING_SIGNALS = 4,
};

struct signals {
	struct sigaction before[PM_ARRAY_LEN(our_signals)];
	sigset_t mask; /* the original mask, used while waiting */
};

/*
 * Signals are only delivered while we wait. Drawing is therefore never interrupted, and
 * no signal can arrive between checking `caught` and waiting. Must be called before
 * ncurses starts, which does not replace existing handlers.
 */
static void catch_signals(struct signals *signals)
{
	struct sigaction action = { .sa_handler = remember_signal };
	sigset_t block;

	caught = 0;
	sigemptyset(&block);
	for (size_t i = 0; i < PM_ARRAY_LEN(our_signals); i++) {
		sigaction(our_signals[i], NULL, &signals->before[i]);
		sigaddset(&block, our_signals[i]);
		/* Ignored signals (nohup) stay ignored. */
		if (i < ENDING_SIGNALS && signals->before[i].sa_handler != SIG_IGN)
			sigaction(our_signals[i], &action, NULL);
	}
	sigprocmask(SIG_BLOCK, &block, &signals->mask);
}

static void release_signals(const struct signals *signals)
{
	for (size_t i = 0; i < PM_ARRAY_LEN(our_signals); i++)
		sigaction(our_signals[i], &signals->before[i], NULL);
	sigprocmask(SIG_SETMASK, &signals->mask, NULL);
}

/* ---- drawing ------------------------------------------------------------------------------- */

static attr_t cell_attributes(const struct screen *screen, const struct pm_tui_cell *cell)
{
	static const struct {
		attr_t with_color, without;
		short pair;
	} styles[] = {
		[PM_TUI_PLAIN] = { A_NORMAL, A_NORMAL, 0 },
		[PM_TUI_HEAD] = { A_BOLD, A_BOLD, 0 },
		[PM_TUI_HOT] = { A_BOLD, A_BOLD, PAIR_HOT },
		[PM_TUI_WARM] = { A_NORMAL, A_NORMAL, PAIR_WARM },
		[PM_TUI_DIM] = { A_DIM, A_NORMAL, 0 },
		[PM_TUI_WARNING] = { A_BOLD, A_BOLD, PAIR_WARNING },
	};
	attr_t attr = styles[cell->style].without;

	if (screen->color)
		attr = styles[cell->style].with_color |
		       (attr_t)COLOR_PAIR(styles[cell->style].pair);

	/* On many terminals, dim text on a bar is unreadable. */
	if (cell->selected)
		return (attr & ~(attr_t)A_DIM) | A_REVERSE;
	return attr;
}

/* Stores one character of @text in *out and returns its length in bytes; ? replaces
 * characters that take no column. */
static size_t next_printable_character(const struct screen *screen, const char *text,
				       wchar_t *out, unsigned *columns)
{
	mbstate_t state = { 0 };
	size_t len = pm_utf8_char(text, strnlen(text, 4));
	wchar_t wide = L'?';
	int width = 1;

	if (len == 0)
		len = 1;
	else if (len == 1)
		wide = (unsigned char)text[0];
	else if (!screen->ascii && mbrtowc(&wide, text, len, &state) == len)
		width = wcwidth(wide);
	/* These are combining marks, and characters that change the writing direction. */
	if (width < 1 || wide < L' ') {
		wide = L'?';
		width = 1;
	}
	*out = wide;
	*columns = (unsigned)width;
	return len;
}

static void draw_cell(const struct screen *screen, const struct pm_tui_frame *frame,
		      const struct pm_tui_cell *cell)
{
	const char *text = frame->text.data + cell->text;
	unsigned used = 0, columns;
	bool fill = strcmp(text, " ") == 0;

	if (cell->row >= frame->rows || cell->column >= frame->columns)
		return;
	attrset((int)cell_attributes(screen, cell));
	move((int)cell->row, (int)cell->column);
	while (*text) {
		wchar_t wide;
		size_t len = next_printable_character(screen, text, &wide, &columns);

		if (used + columns > cell->width ||
		    cell->column + used + columns > frame->columns)
			break;
		addnwstr(&wide, 1);
		used += columns;
		text += len;
	}
	for (; fill && used < cell->width && cell->column + used < frame->columns; used++)
		addch(' ');
}

static int draw_screen(struct screen *screen, struct pm_tui *tui)
{
	const struct pm_tui_frame *frame;
	int ret = pm_tui_draw(tui, &frame);

	if (ret < 0)
		return ret;
	erase();
	for (size_t i = 0; i < frame->cells.len; i++)
		draw_cell(screen, frame, &frame->cells.data[i]);
	attrset(A_NORMAL);
	curs_set(frame->cursor ? 1 : 0);
	if (frame->cursor)
		move((int)frame->rows - 1, (int)frame->cursor_column);
	refresh();
	return 0;
}

/* ---- keys ----------------------------------------------------------------------------------- */

static uint32_t function_key(wint_t key)
{
	static const struct {
		wint_t curses;
		uint32_t key;
	} keys[] = {
		{ KEY_UP, PM_TUI_UP },         { KEY_DOWN, PM_TUI_DOWN },
		{ KEY_LEFT, PM_TUI_LEFT },     { KEY_RIGHT, PM_TUI_RIGHT },
		{ KEY_PPAGE, PM_TUI_PAGE_UP }, { KEY_NPAGE, PM_TUI_PAGE_DOWN },
		{ KEY_HOME, PM_TUI_HOME },     { KEY_END, PM_TUI_END },
		{ KEY_BTAB, PM_TUI_BACK_TAB }, { KEY_F(1), PM_TUI_F1 },
		{ KEY_ENTER, PM_TUI_ENTER },   { KEY_BACKSPACE, PM_TUI_BACKSPACE },
		{ KEY_DC, PM_TUI_BACKSPACE },  { KEY_A1, PM_TUI_HOME },
		{ KEY_C1, PM_TUI_END },        { KEY_A3, PM_TUI_PAGE_UP },
		{ KEY_C3, PM_TUI_PAGE_DOWN },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(keys); i++)
		if (keys[i].curses == key)
			return keys[i].key;
	return 0;
}

/* Handles all keys that are available. Returns 1 to continue, 0 at the end. */
static int screen_take_keys(struct screen *screen, struct pm_tui *tui, size_t *taken)
{
	wint_t key;
	int kind;

	for (*taken = 0; (kind = get_wch(&key)) != ERR; (*taken)++) {
		uint32_t what = key;
		int ret;

		if (kind == KEY_CODE_YES && key == KEY_RESIZE) {
			pm_tui_resize(tui, (unsigned)LINES, (unsigned)COLS);
			continue;
		}
		if (kind == KEY_CODE_YES)
			what = function_key(key);
		else if (key == '\r')
			what = PM_TUI_ENTER;
		else if (key == CONTROL_C)
			return 0;
		else if (key == CONTROL_L)
			clearok(curscr, TRUE);
		if (what == 0 || (kind != KEY_CODE_YES && key == CONTROL_L))
			continue;
		ret = pm_tui_press(tui, what);
		if (ret <= 0)
			return ret;
	}
	return 1;
}

/* Whether the terminal is gone: it is readable, but there is nothing to read. */
static bool is_terminal_gone(const struct screen *screen, short events)
{
	int waiting = 0;

	if (events & (POLLHUP | POLLERR | POLLNVAL))
		return true;
	return (events & POLLIN) &&
	       (ioctl(screen->fd, FIONREAD, &waiting) < 0 || waiting == 0);
}

/* Waits for keys, a signal or an error. Returns 1 if keys were handled, 0 at the end, or
 * a negative errno. */
static int screen_wait_for_keys(struct screen *screen, struct pm_tui *tui,
				const struct signals *signals)
{
	struct pollfd poll_keys = { .fd = screen->fd, .events = POLLIN };
	size_t taken;
	int n = ppoll(&poll_keys, 1, NULL, &signals->mask);

	if (caught)
		return 0;
	if (n < 0 && errno != EINTR)
		return -errno;
	if (n > 0 && is_terminal_gone(screen, poll_keys.revents)) {
		screen->lost = true;
		return 0;
	}
	return screen_take_keys(screen, tui, &taken);
}

/* ---- start and end --------------------------------------------------------------------------- */

static int set_no_screen_error(struct pm_error *err, const char *what)
{
	pm_error_set(err, -ENOTTY, "%s is not a terminal: there is nothing to browse on",
		     what);
	pm_error_fix(err, "without --tui");
	return -ENOTTY;
}

static void close_screen(struct screen *screen)
{
	endwin();
	delscreen(screen->curses);
}

static int open_screen(struct screen *out, const struct pm_report *report, FILE *keys,
		       FILE *to, struct pm_error *err)
{
	struct screen screen = { .fd = fileno(keys), .ascii = report->ascii };
	const char *term = getenv("TERM");

	if (!isatty(fileno(keys)))
		return set_no_screen_error(err, "the input");
	if (!isatty(fileno(to)))
		return set_no_screen_error(err, "the output");
	if (tui_knows_terminal(to))
		screen.curses = newterm(NULL, to, keys);
	if (screen.curses && !tigetstr("cup")) {
		close_screen(&screen);
		screen.curses = NULL;
	}
	if (!screen.curses) {
		pm_error_set(err, -ENOTTY, "a terminal of type '%s' cannot be drawn on",
			     pm_text_or_empty(term));
		pm_error_fix(err, "TERM=xterm, if that is what it is like");
		return -ENOTTY;
	}
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	if (report->color && has_colors()) {
		screen.color = true;
		start_color();
		use_default_colors();
		init_pair(PAIR_HOT, COLOR_RED, -1);
		init_pair(PAIR_WARM, COLOR_GREEN, -1);
		init_pair(PAIR_WARNING, COLOR_YELLOW, -1);
	}
	*out = screen;
	return 0;
}

int pm_tui_run(const struct pm_report *report, FILE *keys, FILE *to, struct pm_error *err)
{
	struct signals signals;
	struct screen screen;
	struct pm_tui *tui;
	int ret = pm_tui_new(&tui, report, err);

	if (ret < 0)
		return ret;
	catch_signals(&signals);
	ret = open_screen(&screen, report, keys, to, err);
	if (ret < 0) {
		release_signals(&signals);
		pm_tui_free(tui);
		return ret;
	}
	pm_tui_resize(tui, (unsigned)LINES, (unsigned)COLS);
	do
		ret = draw_screen(&screen, tui);
	while (ret == 0 && (ret = screen_wait_for_keys(&screen, tui, &signals)) > 0);
	close_screen(&screen);
	release_signals(&signals);
	pm_tui_free(tui);
	if (ret == -ENOMEM)
		return pm_error_set(err, ret, "out of memory");
	if (ret < 0)
		return pm_error_set(err, ret, "%s", strerror(-ret));
	/* Ctrl-C is a normal way to end. If the terminal is gone, there is no one to
	 * report to. */
	if (caught == SIGINT || screen.lost)
		return 0;
	return caught;
}
