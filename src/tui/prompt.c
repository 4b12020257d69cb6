/* SPDX-License-Identifier: MIT */
/* The line at the bottom where the user types a search text, the limit or a file name. */
#include "tui-internal.h"

#include <string.h>

enum {
	TYPED_MAX = 1024,
	CONTROL_U = 0x15,
	CONTROL_H = 0x08,
};

int tui_prompt(struct pm_tui *tui, enum prompt_kind kind, const char *typed)
{
	pm_str_clear(&tui->typed);
	pm_str_puts(&tui->typed, typed);
	if (tui->typed.failed)
		return -ENOMEM;
	tui->prompt = kind;
	return 0;
}

static void append_typed_character(struct pm_str *str, uint32_t c)
{
	if (str->len >= TYPED_MAX)
		return;
	if (c < 0x80) {
		pm_str_putc(str, (char)c);
		return;
	}
	if (c < 0x800) {
		pm_str_putc(str, (char)(0xc0 | c >> 6));
	} else {
		if (c < 0x10000) {
			pm_str_putc(str, (char)(0xe0 | c >> 12));
		} else {
			pm_str_putc(str, (char)(0xf0 | c >> 18));
			pm_str_putc(str, (char)(0x80 | (c >> 12 & 0x3f)));
		}
		pm_str_putc(str, (char)(0x80 | (c >> 6 & 0x3f)));
	}
	pm_str_putc(str, (char)(0x80 | (c & 0x3f)));
}

static void remove_last_character(struct pm_str *str)
{
	while (str->len > 0) {
		unsigned char last = (unsigned char)str->data[--str->len];

		str->data[str->len] = '\0';
		if ((last & 0xc0) != 0x80)
			return;
	}
}

static int set_typed_limit(struct pm_tui *tui, const char *text)
{
	char *end;
	double limit = strtod(text, &end);

	if (end > text && *end == '%')
		end++;
	if (end == text || *end != '\0' || !(limit >= 0) || limit > 100) {
		tui_warn(tui, "a limit is a percentage from 0 to 100");
		return 0;
	}
	tui->limit = limit;
	tui->generation++;
	return 0;
}

static int search_typed_text(struct pm_tui *tui, const char *text)
{
	/* An empty line repeats the last search. */
	if (text[0] != '\0') {
		pm_str_clear(&tui->pattern);
		pm_str_puts(&tui->pattern, text);
		if (tui->pattern.failed)
			return -ENOMEM;
	}
	if (tui->pattern.len > 0)
		return tui_search(tui, false);
	return 0;
}

static int accept_line(struct pm_tui *tui)
{
	enum prompt_kind kind = tui->prompt;
	const char *text = pm_str_text(&tui->typed);
	int ret = 0;

	tui->prompt = PROMPT_NONE;
	if (kind == PROMPT_SEARCH)
		ret = search_typed_text(tui, text);
	else if (kind == PROMPT_LIMIT)
		ret = set_typed_limit(tui, text);
	else if (text[0] != '\0')
		ret = tui_write(tui, text);
	if (ret < 0)
		return ret;
	return page_make(tui, tui_page(tui));
}

int tui_prompt_press(struct pm_tui *tui, uint32_t key)
{
	switch (key) {
	case PM_TUI_ESCAPE:
		tui->prompt = PROMPT_NONE;
		return 0;
	case PM_TUI_ENTER:
		return accept_line(tui);
	case PM_TUI_BACKSPACE:
	case CONTROL_H:
		if (tui->typed.len == 0)
			tui->prompt = PROMPT_NONE;
		remove_last_character(&tui->typed);
		return 0;
	case CONTROL_U:
		pm_str_clear(&tui->typed);
		return 0;
	default:
		if (key >= ' ' && key < PM_TUI_UP && !(key >= 0x7f && key < 0xa0) &&
		    !(key >= 0xd800 && key < 0xe000))
			append_typed_character(&tui->typed, key);
		if (tui->typed.failed)
			return -ENOMEM;
		return 0;
	}
}
