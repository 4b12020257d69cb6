/* SPDX-License-Identifier: MIT */
/* Numbers and names as people read them, in a given width. */
#include "output-internal.h"

#include <ctype.h>
#include <string.h>

enum {
	PROCESS_NAMES = 3, /* shown of one process */
	TAIL_THIRDS = 2, /* of a name cut in the middle, how much the end gets */
};

size_t pm_columns(const char *text)
{
	size_t columns = 0;

	for (; *text; text++)
		columns += ((unsigned char)*text & 0xc0) != 0x80;
	return columns;
}

void pm_put_count(struct pm_str *str, uint64_t count)
{
	struct pm_str digits = { 0 };

	pm_str_u64(&digits, count);
	for (size_t i = 0; i < digits.len; i++) {
		if (i > 0 && (digits.len - i) % 3 == 0)
			pm_str_putc(str, ',');
		pm_str_putc(str, digits.data[i]);
	}
	pm_str_release(&digits);
}

void pm_put_duration(struct pm_str *str, uint64_t ns)
{
	uint64_t seconds = ns / 1000000000;

	if (ns > 0 && ns < 1000)
		pm_str_printf(str, "%llu ns", (unsigned long long)ns);
	else if (ns < 10000000)
		pm_str_printf(str, "%.3g ms", (double)ns / 1e6);
	else if (seconds < 1)
		pm_str_printf(str, "%llu ms", (unsigned long long)(ns / 1000000));
	else if (seconds < 100)
		pm_str_printf(str, "%.2f s", (double)ns / 1e9);
	else if (seconds < 3600)
		pm_str_printf(str, "%llu min %02llu s",
			      (unsigned long long)(seconds / 60),
			      (unsigned long long)(seconds % 60));
	else
		pm_str_printf(str, "%llu h %02llu min",
			      (unsigned long long)(seconds / 3600),
			      (unsigned long long)(seconds / 60 % 60));
}

/* ---- names --------------------------------------------------------------------------- */

static const char *ellipsis(bool ascii)
{
	return ascii ? "..." : "…";
}

/* How many of the characters of operator<, operator->, operator() … @at begins with. */
static size_t operator_len(const char *text, size_t at)
{
	/* Those with characters of brackets, longest first: operator-<int> is a minus. */
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

/* Empties the outermost pairs of @open and @close: f(int, char) becomes f(…). */
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
					pm_str_puts(str, ellipsis(ascii));
				pm_str_putc(str, close);
			}
		} else if (depth == 0) {
			pm_str_putc(str, text[i]);
		}
	}
	if (depth > 0) /* not balanced: what it hides is cut off */
		pm_str_puts(str, ellipsis(ascii));
}

/* Where the bracket at text[0] is closed, or NULL. */
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

/* Where " as " stands between the type and the trait of Rust's <type as trait>, or NULL. */
static const char *as_trait(const char *text, const char *end)
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
 * <core::hash::sip::Hasher<S> as core::hash::Hasher>::write becomes <…Hasher<…> as …>::write,
 * or with less room <…Hasher<…>…>::write: the type says more than the trait or the paths.
 */
static bool fold_qualified(struct pm_str *str, const char *text, size_t width, bool ascii)
{
	const char *end = text[0] == '<' ? closing_bracket(text) : NULL;
	const char *as = end ? as_trait(text, end) : NULL;
	struct pm_str type = { 0 }, folded = { 0 };
	size_t before_trait;
	const char *last;

	if (!end)
		return false;
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
			pm_str_puts(str, ellipsis(ascii));
		pm_str_puts(str, last);
		before_trait = str->len;
		if (as)
			pm_str_printf(str, " as %s", ellipsis(ascii));
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

/* The byte where column @column of @text begins. */
static size_t byte_of_column(const char *text, size_t column)
{
	size_t i = 0, seen = 0;

	for (; text[i] != '\0'; i++)
		if (((unsigned char)text[i] & 0xc0) != 0x80 && seen++ == column)
			break;
	return i;
}

/* @head columns from the beginning, and from the end as many as still fit. */
static void cut(struct pm_str *str, const char *text, size_t width, size_t head,
		bool ascii)
{
	size_t columns = pm_columns(text), mark = pm_columns(ellipsis(ascii)), tail;

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
	pm_str_puts(str, ellipsis(ascii));
	pm_str_puts(str, text + byte_of_column(text, columns - tail));
}

/* The longest end of a::b::c that begins with :: and has at most @width columns, or NULL. */
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

void pm_put_name(struct pm_str *str, const char *name, size_t width, bool ascii)
{
	struct pm_str whole = { 0 }, args = { 0 }, templates = { 0 };
	size_t mark = pm_columns(ellipsis(ascii));
	const char *end = NULL;
	const char *best;

	pm_str_printable(&whole, name, strlen(name));
	best = whole.data ? whole.data : "";
	if (width > 0 && pm_columns(best) > width) {
		fold_pairs(&args, best, '(', ')', ascii);
		best = args.data ? args.data : "";
	}
	if (width > 0 && pm_columns(best) > width) {
		if (!fold_qualified(&templates, best, width, ascii))
			fold_pairs(&templates, best, '<', '>', ascii);
		best = templates.data ? templates.data : "";
	}
	if (width > mark && pm_columns(best) > width)
		end = without_scope(best, width - mark);
	if (end)
		pm_str_puts(str, ellipsis(ascii));
	if (whole.failed || args.failed || templates.failed)
		str->failed = true;
	else if (width == 0 || end)
		pm_str_puts(str, end ? end : best);
	else
		/* What counts is at the end of a name with a scope. */
		cut(str, best, width,
		    strstr(best, "::") ? 0 : width - width * TAIL_THIRDS / 3, ascii);
	pm_str_release(&whole);
	pm_str_release(&args);
	pm_str_release(&templates);
}

void pm_put_cut(struct pm_str *str, const char *text, size_t width, bool keep_end,
		bool ascii)
{
	struct pm_str whole = { 0 };

	pm_str_printable(&whole, text, strlen(text));
	if (whole.failed)
		str->failed = true;
	else if (whole.len > 0)
		cut(str, whole.data, width == 0 ? SIZE_MAX : width,
		    keep_end ? 0 : SIZE_MAX, ascii);
	pm_str_release(&whole);
}

void pm_put_function(struct pm_str *str, const struct pm_profile *profile,
		     uint32_t function, size_t width, bool ascii)
{
	const struct pm_profile_function *f = &profile->functions.data[function];

	if (f->unknown && f->module != PM_PROFILE_NONE) {
		struct pm_str name = { 0 };

		pm_str_printf(&name, "%s in %s", f->name,
			      profile->modules.data[f->module].name);
		pm_put_cut(str, name.failed ? f->name : name.data, width, false, ascii);
		pm_str_release(&name);
	} else {
		pm_put_name(str, f->name, width, ascii);
	}
}

void pm_put_event(struct pm_str *str, const struct pm_profile *profile, uint32_t event)
{
	const struct pm_profile_event *events = profile->events.data;

	pm_str_puts(str, events[event].actual);
	/* Two may have become one and the same: cycles and cpu-clock where there is no PMU. */
	for (size_t i = 0; i < profile->events.len; i++) {
		if (i == event || strcmp(events[i].actual, events[event].actual) != 0 ||
		    strcmp(events[event].actual, events[event].requested) == 0)
			continue;
		pm_str_printf(str, " (for %s)", events[event].requested);
		return;
	}
}

bool pm_event_is_time(const struct pm_profile_event *event)
{
	return !event->by_frequency && event->rate == 1 && strcmp(event->unit, "ns") == 0;
}

void pm_put_process_names(struct pm_str *str, const struct pm_view *view,
			  uint32_t process, bool ascii)
{
	const struct pm_profile *profile = view->profile;
	const char *names[PROCESS_NAMES];
	size_t len = 0, more = 0;

	for (size_t i = 0; i < view->cells.len; i++) {
		const struct pm_profile_thread *thread =
			&profile->threads
				 .data[profile->cells.data[view->cells.data[i]].thread];
		bool have = false;

		if (thread->process != process || thread->pid != thread->tid)
			continue;
		for (size_t n = 0; n < len; n++)
			have |= names[n] == thread->comm;
		if (!have && len < PROCESS_NAMES)
			names[len++] = thread->comm;
		else if (!have)
			more++;
	}
	if (len == 0)
		names[len++] = profile->processes.data[process].comm;
	for (size_t n = 0; n < len; n++)
		pm_str_printf(str, "%s%s", n > 0 ? ", " : "", names[n]);
	if (more > 0)
		pm_str_printf(str, ", %s", ellipsis(ascii));
}

void pm_put_source(struct pm_str *str, const struct pm_profile_place *place)
{
	if (!place->file)
		return;
	pm_str_puts(str, pm_basename(place->file));
	if (place->line > 0)
		pm_str_printf(str, ":%u", place->line);
}

void pm_put_shell(struct pm_str *str, const char *word)
{
	static const char plain[] = "_./:@%+=,-";
	bool quote = word[0] == '\0';

	for (const char *c = word; *c; c++)
		quote |= !isalnum((unsigned char)*c) && !strchr(plain, *c);
	if (!quote) {
		pm_str_puts(str, word);
		return;
	}
	pm_str_putc(str, '\'');
	for (const char *c = word; *c; c++) {
		if (*c == '\'')
			pm_str_puts(str, "'\\''");
		else
			pm_str_putc(str, *c);
	}
	pm_str_putc(str, '\'');
}

/* ---- the stream ------------------------------------------------------------------------- */

void pm_text_color(const struct pm_text *text, enum pm_color color)
{
	static const char *const codes[] = {
		[PM_COLOR_PLAIN] = "\033[0m",  [PM_COLOR_HEAD] = "\033[1m",
		[PM_COLOR_HOT] = "\033[1;31m", [PM_COLOR_WARM] = "\033[32m",
		[PM_COLOR_DIM] = "\033[2m",    [PM_COLOR_WARNING] = "\033[33m",
	};

	if (text->report->color)
		fputs(codes[color], text->to);
}

void pm_text_put(const struct pm_text *text, enum pm_color color, const char *words)
{
	bool plain = color == PM_COLOR_PLAIN || words[0] == '\0';

	if (!plain)
		pm_text_color(text, color);
	fputs(words, text->to);
	if (!plain)
		pm_text_color(text, PM_COLOR_PLAIN);
}

void pm_text_percent(const struct pm_text *text, double percent)
{
	char digits[16];

	snprintf(digits, sizeof(digits), "%5.1f%%", percent);
	pm_text_put(text,
		    percent >= 5.0   ? PM_COLOR_HOT
		    : percent >= 0.5 ? PM_COLOR_WARM
				     : PM_COLOR_PLAIN,
		    digits);
}

/* Length of @words up to the next run of at least @gap blanks, or to the end. */
static size_t piece_len(const char *words, size_t gap)
{
	size_t len = 0;

	while (words[len] != '\0') {
		size_t blanks = strspn(words + len, " ");

		if (blanks >= gap)
			break;
		len += blanks > 0 ? blanks : 1;
	}
	return len;
}

void pm_text_wrap(const struct pm_text *text, enum pm_color color, const char *first,
		  unsigned indent, size_t gap, const char *words)
{
	size_t at = pm_columns(first), width = text->report->width, blanks = 0;

	if (color != PM_COLOR_PLAIN)
		pm_text_color(text, color);
	fputs(first, text->to);
	while (*words) {
		size_t len = piece_len(words, gap), columns;
		PM_AUTO_FREE char *piece = strndup(words, len);

		if (!piece)
			return;
		columns = pm_columns(piece);
		/* A piece that fits on no line gets one, and sticks out. */
		if (width > 0 && blanks > 0 && at + blanks + columns > width) {
			fprintf(text->to, "\n%*s", (int)indent, "");
			at = indent;
			blanks = 0;
		}
		fprintf(text->to, "%*s%s", (int)blanks, "", piece);
		at += blanks + columns;
		words += len;
		blanks = strspn(words, " ");
		words += blanks;
	}
	if (color != PM_COLOR_PLAIN)
		pm_text_color(text, PM_COLOR_PLAIN);
	fputc('\n', text->to);
}

const char *pm_text_ellipsis(const struct pm_text *text)
{
	return ellipsis(text->report->ascii);
}

const char *pm_text_arrow(const struct pm_text *text, bool back)
{
	if (text->report->ascii)
		return back ? " < " : " > ";
	return back ? " ← " : " → ";
}
