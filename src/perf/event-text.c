/* SPDX-License-Identifier: MIT */
/* Quotes and brackets in specifications: C++ names contain commas, colons and braces. */
#include "event-parser.h"

#include <string.h>

/* Finds the bracket that closes the one at @text; NULL if there is none. A name has at
 * most PM_EVENT_NAME_MAX bytes, so the search stops there. */
static const char *find_closing_bracket(const char *text, const char *end, char open,
					char close)
{
	size_t depth = 0;

	if (end - text > PM_EVENT_NAME_MAX)
		end = text + PM_EVENT_NAME_MAX;
	for (const char *at = text; at < end; at++) {
		if (*at == open)
			depth++;
		else if (*at == close && --depth == 0)
			return at;
	}
	return NULL;
}

bool pm_event_begins(const char *at, size_t len, const char *prefix)
{
	size_t n = strlen(prefix);

	return len >= n && memcmp(at, prefix, n) == 0;
}

static bool does_text_end_with(const char *begin, const char *end, const char *suffix)
{
	size_t n = strlen(suffix);

	return (size_t)(end - begin) >= n && memcmp(end - n, suffix, n) == 0;
}

size_t pm_event_span(const char *begin, const char *text, const char *end)
{
	const char *close = NULL;

	switch (*text) {
	case '\'':
	case '"':
		close = memchr(text + 1, *text, (size_t)(end - text - 1));
		if (close)
			return (size_t)(close + 1 - text);
		return 0;
	case '(':
		close = find_closing_bracket(text, end, '(', ')');
		break;
	case '{':
		close = find_closing_bracket(text, end, '{', '}');
		break;
	case '<':
		if (!does_text_end_with(begin, text, "operator") &&
		    !does_text_end_with(begin, text, "operator<"))
			close = find_closing_bracket(text, end, '<', '>');
		break;
	default:
		break;
	}
	if (!close)
		return 1;
	return (size_t)(close + 1 - text);
}

void pm_event_unquote(const char *text, size_t len, char *out)
{
	size_t n = 0;
	char quote = '\0';

	for (size_t i = 0; i < len && n + 1 < PM_EVENT_NAME_MAX; i++) {
		if (quote == '\0' && (text[i] == '\'' || text[i] == '"'))
			quote = text[i];
		else if (quote && text[i] == quote)
			quote = '\0';
		else
			out[n++] = text[i];
	}
	out[n] = '\0';
}

void pm_event_split(const char *text, size_t len, struct pm_event_parts *out)
{
	const char *end = text + len, *begin = text;

	out->len = 0;
	for (const char *at = text;;) {
		if (at < end && *at == ':' && at + 1 < end && at[1] == ':') {
			at += 2;
		} else if (at == end || *at == ':') {
			if (out->len == PM_ARRAY_LEN(out->part)) {
				out->len++;
				return;
			}
			out->part[out->len].at = begin;
			out->part[out->len++].len = (size_t)(at - begin);
			if (at == end)
				return;
			begin = ++at;
		} else {
			size_t span = pm_event_span(begin, at, end);

			at += PM_MAX(span, 1);
		}
	}
}
