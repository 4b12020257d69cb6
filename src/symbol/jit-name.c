/* SPDX-License-Identifier: MIT */
/*
 * Splits source locations off the names of generated code.
 *
 * V8 (CodeEventLogger in src/logging/log.cc): `TAG:MARK` and, for code of scripts,
 * `FUNCTION FILE:LINE:COLUMN`; up to Node.js 18 without `:COLUMN`. MARK is ~ interpreted,
 * ^ baseline, + or * optimised. FUNCTION may be empty or contain blanks (`get x`), and
 * FILE may contain blanks, too. CPython (Python/perf_trampoline.c): `py::QUALNAME:FILE`.
 */
#include "jit-internal.h"

#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Cuts `:NUMBER` off the end of [text, text + *len). */
static bool cut_trailing_number(const char *text, size_t *len, uint32_t *out)
{
	size_t at = *len;
	uint64_t value = 0;

	while (at > 0 && is_digit(text[at - 1]) && *len - at < 9)
		at--;
	if (at == *len || at == 0 || text[at - 1] != ':')
		return false;
	for (size_t i = at; i < *len; i++)
		value = value * 10 + (uint64_t)(text[i] - '0');
	*len = at - 1;
	*out = (uint32_t)value;
	return true;
}

/* Returns the length of the tag and mark if the code is from a script, otherwise 0. */
static size_t v8_prefix(const char *name, size_t len)
{
	static const char *const tags[] = { "JS:", "Function:", "LazyCompile:", "Script:",
					    "Eval:" };

	for (size_t i = 0; i < PM_ARRAY_LEN(tags); i++) {
		size_t tag = strlen(tags[i]);

		if (len <= tag || memcmp(name, tags[i], tag) != 0)
			continue;
		if (strchr("~^+*", name[tag]) && name[tag])
			return tag + 1;
		return 0;
	}
	return 0;
}

/* Returns the start of the file in `FUNCTION FILE`: after the only blank, or else after
 * the first blank that an absolute file name follows. */
static const char *v8_file(const char *text, size_t len)
{
	static const char *const begins[] = { " /", " node:", " file://" };
	const char *blank = memchr(text, ' ', len), *found = NULL;

	if (!blank)
		return NULL;
	if (!memchr(blank + 1, ' ', len - (size_t)(blank + 1 - text)))
		return blank + 1;
	for (size_t i = 0; i < PM_ARRAY_LEN(begins); i++) {
		const char *at = memmem(text, len, begins[i], strlen(begins[i]));

		if (at && (!found || at + 1 < found))
			found = at + 1;
	}
	return found;
}

static void split_v8(const char *name, size_t len, struct pm_jit_split *out)
{
	size_t prefix = v8_prefix(name, len);
	uint32_t line, column;
	const char *file;

	if (prefix == 0 || !cut_trailing_number(name, &len, &column))
		return;
	if (!cut_trailing_number(name, &len, &line))
		line = column; /* there is no column */
	if (len <= prefix)
		return;
	file = v8_file(name + prefix, len - prefix);
	if (!file || file == name + len)
		return;
	out->file = file;
	out->file_len = (size_t)(name + len - file);
	out->line = line;
}

static void split_cpython(const char *name, size_t len, struct pm_jit_split *out)
{
	const char *colon;

	if (len < 4 || memcmp(name, "py::", 4) != 0)
		return;
	colon = memchr(name + 4, ':', len - 4);
	if (!colon || colon == name + 4 || colon + 1 == name + len)
		return;
	out->file = colon + 1;
	out->file_len = (size_t)(name + len - out->file);
}

void pm_jit_name_split(const char *name, size_t len, struct pm_jit_split *out)
{
	*out = (struct pm_jit_split){ 0 };
	split_v8(name, len, out);
	if (!out->file)
		split_cpython(name, len, out);
}
