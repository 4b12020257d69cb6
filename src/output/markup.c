/* SPDX-License-Identifier: MIT */
/* Foreign text in HTML, XML and Markdown. */
#include "html-internal.h"

#include <string.h>

enum {
	TITLE_COLUMNS = 120
};

/* Neither may stand in XML 1.0 (§2.2), though both are UTF-8: U+FFFE and U+FFFF. */
static bool is_no_character(const char *text)
{
	return text[0] == '\xef' && text[1] == '\xbf' &&
	       (text[2] == '\xbe' || text[2] == '\xbf');
}

/*
 * Letters that turn the direction of what follows (U+202A to 202E, 2066 to 2069, 200E, 200F,
 * 061C) would reach beyond the name; so would U+2028 and U+2029 as ends of lines.
 */
static size_t reaches_beyond(const char *text)
{
	const unsigned char *c = (const unsigned char *)text;

	if (c[0] == 0xd8 && c[1] == 0x9c)
		return 2;
	if (c[0] != 0xe2)
		return 0;
	if (c[1] == 0x80)
		return c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xa8 && c[2] <= 0xae) ? 3
										      : 0;
	return c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9 ? 3 : 0;
}

void pm_put_plain(struct pm_str *str, const char *text)
{
	struct pm_str printable = { 0 };

	pm_str_printable(&printable, text, strlen(text));
	str->failed |= printable.failed;
	for (const char *c = printable.failed ? "" : printable.data; c && *c; c++) {
		size_t beyond = reaches_beyond(c);

		if (is_no_character(c) || beyond > 0) {
			pm_str_puts(str, "\xef\xbf\xbd"); /* U+FFFD */
			c += beyond > 0 ? beyond - 1 : 2;
		} else {
			pm_str_putc(str, *c);
		}
	}
	pm_str_release(&printable);
}

void pm_put_markup(struct pm_str *str, const char *text)
{
	struct pm_str plain = { 0 };

	pm_put_plain(&plain, text);
	str->failed |= plain.failed;
	for (const char *c = plain.failed ? "" : plain.data; c && *c; c++) {
		if (*c == '&')
			pm_str_puts(str, "&amp;");
		else if (*c == '<')
			pm_str_puts(str, "&lt;");
		else if (*c == '>')
			pm_str_puts(str, "&gt;");
		else if (*c == '"')
			pm_str_puts(str, "&quot;");
		else if (*c == '\'')
			pm_str_puts(str, "&#39;");
		else
			pm_str_putc(str, *c);
	}
	pm_str_release(&plain);
}

void pm_put_title(struct pm_str *str, const struct pm_profile *profile)
{
	struct pm_str command = { 0 };

	for (size_t i = 0; i < profile->command.len; i++) {
		if (i > 0)
			pm_str_putc(&command, ' ');
		pm_put_shell(&command, profile->command.data[i]);
	}
	if (profile->command.len == 0 && profile->target)
		pm_str_printf(&command, "pmrec %s", profile->target);
	str->failed |= command.failed;
	if (command.len > 0 && !command.failed)
		pm_put_cut(str, command.data, TITLE_COLUMNS, false, false);
	else
		pm_str_puts(str, "a recording of pmrec");
	pm_str_release(&command);
}
