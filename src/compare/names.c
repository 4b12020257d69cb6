/* SPDX-License-Identifier: MIT */
/* Compares names that differ only in parts that compilers, builds and people append. */
#include "compare-internal.h"

#include <string.h>

size_t pm_event_modifiers_len(const char *event, size_t len)
{
	static const char letters[] = "ukhGHpPSDWeI";
	size_t at = len;

	while (at > 0 && strchr(letters, event[at - 1]))
		at--;
	if (at > 1 && at < len && event[at - 1] == ':' && event[at - 2] != ':')
		return len - at;
	return 0;
}

int pm_event_shown(char **out, const struct pm_stat_event *event)
{
	const char *name = event->name, *requested = event->requested;
	size_t len = strlen(requested),
	       modifiers = pm_event_modifiers_len(requested, len);
	const char *slash = strrchr(requested, '/');
	size_t own = strlen(name);

	if (modifiers == 0 && slash && slash[1] && requested[0] != '/' &&
	    strspn(slash + 1, "ukhGHpPSDWeI") == strlen(slash + 1))
		modifiers = strlen(slash + 1);
	/* The name has the modifiers itself, or ends with something that looks like
	 * them. */
	if (modifiers > 0 && own > modifiers &&
	    strcmp(name + own - modifiers, requested + len - modifiers) == 0 &&
	    (name[own - modifiers - 1] == ':' || name[own - modifiers - 1] == '/'))
		modifiers = 0;
	if (asprintf(out, "%s%s%s", name, pm_text_if(modifiers > 0, ":"),
		     requested + len - modifiers) < 0)
		return -ENOMEM;
	return 0;
}

/* ---- functions ---------------------------------------------------------------------- */

/* The words that GCC, clang and LTO append for copies and parts of a function. */
static bool is_clone(const char *text, size_t len)
{
	static const char *const words[] = { "part",       "cold",     "isra",
					     "constprop",  "lto_priv", "llvm",
					     "localalias", "clone",    "warm",
					     "hot" };

	for (size_t i = 0; i < PM_ARRAY_LEN(words); i++)
		if (strlen(words[i]) == len && memcmp(words[i], text, len) == 0)
			return true;
	return false;
}

/* Returns the length without ".isra.0", ".cold" and others, also several of them. */
static size_t without_clones(const char *name, size_t len)
{
	size_t end = len;

	while (end > 0) {
		size_t at = end, word;

		while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9')
			at--;
		if (at < end && at > 0 && name[at - 1] == '.')
			word = at - 1;
		else
			word = end;
		at = word;
		while (at > 0 && name[at - 1] != '.')
			at--;
		if (at < 2 || !is_clone(name + at, word - at))
			break;
		end = at - 1;
	}
	return end;
}

/* Returns the length without " [clone .isra.0]", the form that demanglers write. */
static size_t without_brackets(const char *name, size_t len)
{
	static const char open[] = " [clone ";

	while (len > 0 && name[len - 1] == ']') {
		size_t at = len;

		while (at > 0 && name[at - 1] != '[')
			at--;
		if (at < 3 || strncmp(name + at - 2, open, strlen(open)) != 0)
			break;
		len = at - 2;
	}
	return len;
}

/* Returns the length without "::h" and 16 hexadecimal digits: Rust's hash of everything
 * that a function depends on. */
static size_t without_hash(const char *name, size_t len)
{
	enum {
		HASH_LEN = 19
	};
	const char *at = name + len - HASH_LEN;

	if (len <= HASH_LEN || strncmp(at, "::h", 3) != 0 ||
	    strspn(at + 3, "0123456789abcdef") < HASH_LEN - 3)
		return len;
	return len - HASH_LEN;
}

size_t pm_base_name_len(const char *name)
{
	size_t len = without_brackets(name, strlen(name));

	return without_hash(name, without_clones(name, len));
}

static size_t digits_at(const char *text, const char *end)
{
	size_t len = 0;

	while (text + len < end && text[len] >= '0' && text[len] <= '9')
		len++;
	return len;
}

/* Whether this is the line or column of an unnamed thing: `{lambda FILE:7:25}`, `{unnamed
 * FILE:7:25}`, as our DWARF reader writes them. */
static bool is_place(const char *begin, const char *at, const char *end, size_t len)
{
	static const char *const kinds[] = { "lambda ", "unnamed " };
	const char *behind = at + len, *open = at;

	if (len == 0 || at == begin || at[-1] != ':')
		return false;
	if (behind < end && *behind == ':')
		behind += 1 + digits_at(behind + 1, end);
	if (behind >= end || *behind != '}')
		return false;
	while (open > begin && open[-1] != '{' && open[-1] != '}')
		open--;
	for (size_t i = 0; open > begin && open[-1] == '{' && i < PM_ARRAY_LEN(kinds);
	     i++)
		if (strncmp(open, kinds[i], strlen(kinds[i])) == 0)
			return true;
	return false;
}

/* Whether the number of an unnamed thing is at @at, between @begin and @end: GCC and Rust
 * write "#1}", clang "$_0", LLVM's demangler "'lambda0'", and "'lambda'" for the first
 * one. */
static bool is_number(const char *begin, const char *at, const char *end, size_t *ret_len)
{
	static const char *const before[] = { "'lambda", "'unnamed" };
	size_t len = digits_at(at, end), behind = (size_t)(at - begin);
	char next = at + len < end ? at[len] : '\0';

	*ret_len = len;
	if (len > 0 && behind >= 1 && at[-1] == '#')
		return next == '}';
	if (len > 0 && behind >= 2 && at[-2] == '$' && at[-1] == '_')
		return true;
	if (is_place(begin, at, end, len))
		return true;
	for (size_t i = 0; next == '\'' && i < PM_ARRAY_LEN(before); i++) {
		size_t word = strlen(before[i]);

		if (behind >= word && memcmp(at - word, before[i], word) == 0)
			return true;
	}
	return false;
}

int pm_name_without_numbers(char **out, const char *name, size_t len)
{
	struct pm_str masked = { 0 };
	const char *end = name + len;
	bool found = false;

	for (const char *at = name; at < end;) {
		size_t number;

		if (is_number(name, at, end, &number)) {
			found = true;
			pm_str_puts(&masked, "*");
			at += number;
			if (at == end)
				break;
		}
		pm_str_printf(&masked, "%c", *at++);
	}
	if (!found || masked.failed)
		pm_str_release(&masked);
	*out = found ? masked.data : NULL;
	if (found && !*out)
		return -ENOMEM;
	return 0;
}

size_t pm_bare_name_len(const char *name)
{
	size_t len = pm_base_name_len(name), end = len, depth = 0;

	while (end > 0 && name[end - 1] != ')')
		end--;
	for (size_t i = end; i-- > 0;) {
		if (name[i] == ')')
			depth++;
		else if (name[i] == '(' && --depth == 0) {
			if (i > 0)
				return i;
			return len;
		}
	}
	return len;
}

/* ---- modules ------------------------------------------------------------------------ */

const char *pm_module_name(const char *path, size_t *ret_len)
{
	const char *name = pm_path_name(pm_text_or_empty(path));
	const char *version = strstr(name, ".so.");

	if (version)
		*ret_len = (size_t)(version - name) + strlen(".so");
	else
		*ret_len = strlen(name);
	return name;
}
