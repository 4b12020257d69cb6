/* SPDX-License-Identifier: MIT */
/* Untrusted text in HTML, XML and Markdown. */
#include "html-internal.h"

#include <string.h>

#include "pm/base-text.h"

enum {
	TITLE_COLUMNS = 120
};

/* U+FFFE and U+FFFF are valid UTF-8, but not allowed in XML 1.0 (§2.2). */
static bool is_no_character(const char *text)
{
	return text[0] == '\xef' && text[1] == '\xbf' &&
	       (text[2] == '\xbe' || text[2] == '\xbf');
}

void pm_put_plain(struct pm_str *str, const char *text)
{
	struct pm_str printable = { 0 };

	pm_str_printable(&printable, text, strlen(text));
	str->failed |= printable.failed;
	for (const char *c = pm_str_complete_or(&printable, ""); *c; c++) {
		if (is_no_character(c)) {
			pm_str_puts(str, "\xef\xbf\xbd"); /* U+FFFD */
			c += 2;
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
	for (const char *c = pm_str_complete_or(&plain, ""); *c; c++) {
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

void pm_put_markup_str(struct pm_str *out, struct pm_str *str)
{
	out->failed |= str->failed;
	if (!str->failed && str->len > 0)
		pm_put_markup(out, str->data);
	pm_str_clear(str);
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
