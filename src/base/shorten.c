/* SPDX-License-Identifier: MIT */
/* Shortens names and other strings to a given width. */
#include <ctype.h>
#include <string.h>

#include "pm/base.h"

enum {
	TAIL_THIRDS = 2, /* thirds for the end, if a name is cut in the middle */
};

size_t pm_columns(const char *text)
{
	size_t columns = 0;

	for (; *text; text++)
		columns += ((unsigned char)*text & 0xc0) != 0x80;
	return columns;
}

const char *pm_ellipsis(bool ascii)
{
	if (ascii)
		return "...";
	return "…";
}

/* Returns the length of operator<, operator->, operator() … at @at, or 0 if there is
 * none. */
static size_t operator_len(const char *text, size_t at)
{
	/* Operators that contain brackets, longest first. In operator-<int> the minus is
	 * the operator. */
	static const char *const symbols[] = { "<<=", ">>=", "<=>", "->*", "<<",
					       ">>",  "<=",  ">=",  "->",  "()",
					       "<",   ">",   "-" };
	static const char word[] = "operator";
	size_t len = sizeof(word) - 1, n = len;

	if (strncmp(text + at, word, len) != 0 ||
	    (at > 0 && (isalnum((unsigned char)text[at - 1]) || text[at - 1] == '_')))
		return 0;
	for (size_t i = 0; i < PM_ARRAY_LEN(symbols); i++) {
		size_t symbol_len = strlen(symbols[i]);

		if (strncmp(text + at + n, symbols[i], symbol_len) == 0)
			return n + symbol_len;
	}
	return n;
}

/* Replaces the contents of the outermost pairs of @open and @close: f(int, char) becomes
 * f(…). */
static void fold_pairs(struct pm_str *str, const char *text, char open, char close,
		       bool ascii)
{
	static const char anonymous[] = "(anonymous namespace)";
	size_t depth = 0, start = 0;

	for (size_t i = 0; text[i] != '\0'; i++) {
		size_t skip = operator_len(text, i);

		if (strncmp(text + i, anonymous, sizeof(anonymous) - 1) == 0)
			skip = sizeof(anonymous) - 1;
		if (skip > 0) {
			if (depth == 0)
				pm_str_append(str, text + i, skip);
			i += skip - 1;
		} else if (text[i] == open) {
			if (depth++ == 0) {
				pm_str_putc(str, open);
				start = i + 1;
			}
		} else if (text[i] == close && depth > 0 &&
			   (i == 0 || text[i - 1] != '-')) {
			if (--depth == 0) {
				if (i > start)
					pm_str_puts(str, pm_ellipsis(ascii));
				pm_str_putc(str, close);
			}
		} else if (depth == 0) {
			pm_str_putc(str, text[i]);
		}
	}
	if (depth > 0) /* unbalanced: what follows the bracket is cut off */
		pm_str_puts(str, pm_ellipsis(ascii));
}

/* Returns the bracket that closes the one at text[0], or NULL. */
static const char *closing_bracket(const char *text)
{
	size_t depth = 0;

	for (const char *c = text; *c; c++) {
		if (*c == '<')
			depth++;
		else if (*c == '>' && c > text && c[-1] != '-' && --depth == 0)
			return c;
	}
	return NULL;
}

/* Returns the position of " as " between the type and the trait of Rust's <type as
 * trait>, or NULL. */
static const char *find_impl_trait_name(const char *text, const char *end)
{
	size_t depth = 0;

	for (const char *c = text + 1; c < end; c++) {
		if (*c == '<')
			depth++;
		else if (*c == '>' && c[-1] != '-' && depth > 0)
			depth--;
		else if (depth == 0 && strncmp(c, " as ", 4) == 0)
			return c;
	}
	return NULL;
}

/*
 * <core::hash::sip::Hasher<S> as core::hash::Hasher>::write becomes <…Hasher<…> as
 * …>::write, or with less room <…Hasher<…>…>::write: the type is more informative than
 * the trait and the paths.
 */
static bool fold_qualified(struct pm_str *str, const char *text, size_t width, bool ascii)
{
	const char *end = NULL, *as = NULL;
	struct pm_str type = { 0 }, folded = { 0 };
	size_t before_trait;
	const char *last;

	if (text[0] == '<')
		end = closing_bracket(text);
	if (!end)
		return false;
	as = find_impl_trait_name(text, end);
	pm_str_append(&type, text + 1, (size_t)((as ? as : end) - text - 1));
	if (!type.failed)
		fold_pairs(&folded, type.data, '<', '>', ascii);
	if (type.failed || folded.failed || !folded.data) {
		str->failed = true;
	} else {
		last = folded.data + folded.len;
		while (last > folded.data && last[-1] != ':')
			last--;
		pm_str_putc(str, '<');
		if (last > folded.data)
			pm_str_puts(str, pm_ellipsis(ascii));
		pm_str_puts(str, last);
		before_trait = str->len;
		if (as)
			pm_str_printf(str, " as %s", pm_ellipsis(ascii));
		pm_str_putc(str, '>');
		fold_pairs(str, end + 1, '<', '>', ascii);
		if (as && !str->failed && pm_columns(str->data) > width) {
			static const size_t as_len = sizeof(" as ") - 1;

			memmove(str->data + before_trait,
				str->data + before_trait + as_len,
				str->len - before_trait - as_len + 1);
			str->len -= as_len;
		}
	}
	pm_str_release(&type);
	pm_str_release(&folded);
	return true;
}

/* Returns the byte offset of column @column of @text. */
static size_t byte_of_column(const char *text, size_t column)
{
	size_t i = 0, seen = 0;

	for (; text[i] != '\0'; i++)
		if (((unsigned char)text[i] & 0xc0) != 0x80 && seen++ == column)
			break;
	return i;
}

/* Keeps @head columns from the start, and as many as still fit from the end. */
static void append_cut_to_width(struct pm_str *str, const char *text, size_t width,
				size_t head, bool ascii)
{
	size_t columns = pm_columns(text), mark = pm_columns(pm_ellipsis(ascii)), tail;

	if (columns <= width) {
		pm_str_puts(str, text);
		return;
	}
	if (width <= mark) {
		pm_str_append(str, text, byte_of_column(text, width));
		return;
	}
	if (head > width - mark)
		head = width - mark;
	tail = width - mark - head;
	pm_str_append(str, text, byte_of_column(text, head));
	pm_str_puts(str, pm_ellipsis(ascii));
	pm_str_puts(str, text + byte_of_column(text, columns - tail));
}

/* Returns the longest suffix of a::b::c that starts with :: and has at most @width
 * columns, or NULL. */
static const char *without_scope(const char *name, size_t width)
{
	size_t depth = 0, columns = pm_columns(name);

	for (const char *c = name; *c; c++) {
		if (*c == '<' || *c == '(')
			depth++;
		else if ((*c == '>' || *c == ')') && depth > 0)
			depth--;
		else if (depth == 0 && c > name && c[0] == ':' && c[1] == ':' &&
			 columns <= width)
			return c;
		columns -= ((unsigned char)*c & 0xc0) != 0x80;
	}
	return NULL;
}

/* Drops the operator() of a lambda: it says nothing, because the part before it
 * identifies the lambda. */
static void drop_call_of_lambda(struct pm_str *name)
{
	static const char ending[] = "}::operator()";
	size_t len = sizeof(ending) - 1;

	if (name->len <= len || strcmp(name->data + name->len - len, ending) != 0)
		return;
	name->len -= len - 1;
	name->data[name->len] = '\0';
}

void pm_put_name(struct pm_str *str, const char *name, size_t width, bool ascii)
{
	struct pm_str whole = { 0 }, args = { 0 }, templates = { 0 };
	size_t mark = pm_columns(pm_ellipsis(ascii));
	const char *end = NULL;
	const char *best;

	pm_str_printable(&whole, name, strlen(name));
	if (width > 0 && whole.data && pm_columns(whole.data) > width)
		drop_call_of_lambda(&whole);
	best = pm_str_text(&whole);
	if (width > 0 && pm_columns(best) > width) {
		fold_pairs(&args, best, '(', ')', ascii);
		best = pm_str_text(&args);
	}
	if (width > 0 && pm_columns(best) > width) {
		if (!fold_qualified(&templates, best, width, ascii))
			fold_pairs(&templates, best, '<', '>', ascii);
		best = pm_str_text(&templates);
	}
	if (width > mark && pm_columns(best) > width)
		end = without_scope(best, width - mark);
	if (end)
		pm_str_puts(str, pm_ellipsis(ascii));
	if (whole.failed || args.failed || templates.failed)
		str->failed = true;
	else if (end)
		pm_str_puts(str, end);
	else if (width == 0)
		pm_str_puts(str, best);
	else if (strstr(best, "::"))
		/* The important part of a name with a scope is its end. */
		append_cut_to_width(str, best, width, 0, ascii);
	else
		append_cut_to_width(str, best, width, width - width * TAIL_THIRDS / 3,
				    ascii);
	pm_str_release(&whole);
	pm_str_release(&args);
	pm_str_release(&templates);
}

void pm_put_cut(struct pm_str *str, const char *text, size_t width, bool keep_end,
		bool ascii)
{
	struct pm_str whole = { 0 };

	if (width == 0)
		width = SIZE_MAX;
	pm_str_printable(&whole, text, strlen(text));
	if (whole.failed)
		str->failed = true;
	else if (whole.len > 0)
		append_cut_to_width(str, whole.data, width, keep_end ? 0 : SIZE_MAX,
				    ascii);
	pm_str_release(&whole);
}
