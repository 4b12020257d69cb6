/* SPDX-License-Identifier: MIT */
/* Numbers and names for people. */
#include "output-internal.h"

#include <ctype.h>
#include <string.h>

#include "pm/base-text.h"

enum {
	PROCESS_NAMES = 3, /* shown of one process */
};

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

const char *pm_function_known_name(const struct pm_profile_function *function)
{
	if (function->unknown)
		return NULL;
	return function->name;
}

const char *pm_module_known_name(const struct pm_profile *profile, uint32_t id)
{
	if (id == PM_PROFILE_NONE)
		return NULL;
	return profile->modules.data[id].name;
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

void pm_put_function(struct pm_str *str, const struct pm_profile *profile,
		     uint32_t function, size_t width, bool ascii)
{
	const struct pm_profile_function *f = &profile->functions.data[function];

	if (f->unknown && f->module != PM_PROFILE_NONE) {
		struct pm_str name = { 0 };

		pm_str_printf(&name, "%s in %s", f->name,
			      profile->modules.data[f->module].name);
		pm_put_cut(str, pm_str_complete_or(&name, f->name), width, false, ascii);
		pm_str_release(&name);
	} else {
		pm_put_name(str, f->name, width, ascii);
	}
}

void pm_put_event(struct pm_str *str, const struct pm_profile *profile, uint32_t event)
{
	const struct pm_profile_event *events = profile->events.data;

	pm_str_puts(str, events[event].actual);
	/* Two events may have been replaced by the same one: cycles and cpu-clock if
	 * there is no PMU. */
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
	const char *title = profile->processes.data[process].title;
	size_t len = 0, more = 0;

	if (title) {
		pm_str_puts(str, title);
		return;
	}
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
	for (size_t n = 0; n < len; n++) {
		if (n > 0)
			pm_str_puts(str, ", ");
		pm_str_puts(str, names[n]);
	}
	if (more > 0)
		pm_str_printf(str, ", %s", pm_ellipsis(ascii));
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

/* Appends text without control sequences. Line ends and tabs are data. Other characters
 * that move a cursor are escaped: names are untrusted and must not control the terminal
 * of a user who reads the output. */
static void put_tame(struct pm_str *out, const char *text)
{
	for (size_t len; *text; text += len) {
		len = strcspn(text, "\t\n");
		pm_str_printable(out, text, len);
		if (text[len] != '\0')
			pm_str_putc(out, text[len++]);
	}
}

/* Quotes the field as in RFC 4180 §2. */
void pm_put_field(struct pm_str *str, const char *text, const char *separator)
{
	struct pm_str tame = { 0 };

	put_tame(&tame, text);
	text = pm_str_complete_or(&tame, "");
	if (!strpbrk(text, "\"\n") && !strstr(text, separator)) {
		pm_str_puts(str, text);
	} else {
		pm_str_putc(str, '"');
		for (const char *c = text; *c; c++) {
			if (*c == '"')
				pm_str_putc(str, '"');
			pm_str_putc(str, *c);
		}
		pm_str_putc(str, '"');
	}
	str->failed |= tame.failed;
	pm_str_release(&tame);
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

enum pm_color pm_percent_color(double percent)
{
	if (percent >= 5.0)
		return PM_COLOR_HOT;
	if (percent >= 0.5)
		return PM_COLOR_WARM;
	return PM_COLOR_PLAIN;
}

void pm_text_percent(const struct pm_text *text, double percent)
{
	char digits[16];

	snprintf(digits, sizeof(digits), "%5.1f%%", percent);
	pm_text_put(text, pm_percent_color(percent), digits);
}

/* Returns the length of @words up to the next run of at least @gap blanks, or to the
 * end. */
static size_t piece_len(const char *words, size_t gap)
{
	size_t len = 0;

	while (words[len] != '\0') {
		size_t blanks = strspn(words + len, " ");

		if (blanks >= gap)
			break;
		if (blanks > 0)
			len += blanks;
		else
			len++;
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
		/* A piece that is too long for any line gets its own. */
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
	return pm_ellipsis(text->report->ascii);
}

const char *pm_text_arrow(const struct pm_text *text, bool back)
{
	if (text->report->ascii) {
		if (back)
			return " < ";
		return " > ";
	}
	if (back)
		return " ← ";
	return " → ";
}
