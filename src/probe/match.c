/* SPDX-License-Identifier: MIT */
/*
 * Compares names as users type them with names in symbol tables. Demangling half a
 * million names takes seconds. Therefore names are first searched for a substring that
 * every matching mangled name must contain.
 */
#include "probe-internal.h"

#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

#include "pm/symbol.h"

enum {
	NEEDLE_MIN = 2, /* shorter ones are in nearly every name */
};
/* A file can contain names that demangle to 16 KiB each. */
#define DEMANGLED_BYTES_MAX ((uint64_t)512 << 20)

/* ---- copies and parts of functions ------------------------------------------------------- */

static bool is_one_of_words(const char *text, size_t len, const char *const *words)
{
	for (; *words; words++)
		if (strlen(*words) == len && memcmp(text, *words, len) == 0)
			return true;
	return false;
}

size_t pm_probe_base_len(const char *name, enum pm_probe_copy *copy)
{
	/* Suffixes of GCC and Clang for a whole function, changed or renamed. */
	static const char *const whole[] = { "constprop", "isra",  "lto_priv",   "llvm",
					     "__uniq",    "local", "localalias", NULL };
	/* Suffixes for a part of its code, which runs more or less often than the
	 * rest. */
	static const char *const part[] = { "part",     "cold",    "hot",     "warm",
					    "resume",   "destroy", "cleanup", "actor",
					    "unlikely", "split",   "eh",      NULL };
	size_t len = strlen(name), end = len;

	*copy = PM_PROBE_WHOLE;
	while (end > 1) {
		const char *dot = memrchr(name + 1, '.', end - 1);
		size_t word_len;

		if (!dot)
			break;
		word_len = (size_t)(name + end - dot) - 1;
		end = (size_t)(dot - name);
		if (word_len > 0 && strspn(dot + 1, "0123456789") >= word_len)
			continue; /* the number belongs to the word before it */
		if (is_one_of_words(dot + 1, word_len, part))
			*copy = PM_PROBE_PART;
		else if (!is_one_of_words(dot + 1, word_len, whole))
			break;
		len = end;
	}
	return len;
}

/* ---- patterns ------------------------------------------------------------------------------- */

static bool is_name_character(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (c & 0x80);
}

/* Removes spaces, except those between two words: `f(int,char)` is `f(int, char)`. */
static void remove_needless_spaces(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		if (*from == ' ' && !(to > text && is_name_character(to[-1]) &&
				      is_name_character(from[1])))
			continue;
		*to++ = *from;
	}
	*to = '\0';
}

/* Words that demangling generates from something else. */
static bool is_demangler_word(const char *text, size_t len)
{
	static const char *const words[] = { "operator",
					     "anonymous",
					     "namespace",
					     "lambda",
					     "unnamed",
					     "type",
					     "vtable",
					     "typeinfo",
					     "guard",
					     "variable",
					     "thunk",
					     "const",
					     "unsigned",
					     "signed",
					     "int",
					     "char",
					     "long",
					     "short",
					     "bool",
					     "double",
					     "float",
					     "void",
					     "std",
					     "string",
					     "allocator",
					     "basic_string",
					     "istream",
					     "ostream",
					     "iostream",
					     "new",
					     "delete",
					     "impl",
					     "as",
					     "dyn",
					     "closure",
					     "basic_istream",
					     "basic_ostream",
					     "basic_iostream",
					     "shim",
					     "clone",
					     NULL };

	return is_one_of_words(text, len, words);
}

/* Returns the longest word before any parameters that the mangled name must contain
 * literally. */
static char *longest_literal_word(const char *text)
{
	size_t end = strcspn(text, "(<{"), best_len = 0;
	const char *best = NULL;

	for (size_t i = 0; i < end;) {
		size_t len = 0;

		if (text[i] == '[') { /* part of a glob or of an operator's name */
			while (i < end && text[i] != ']')
				i++;
			continue;
		}
		while (i + len < end && is_name_character(text[i + len]) &&
		       (unsigned char)text[i + len] < 0x80)
			len++;
		if (len >= NEEDLE_MIN && len > best_len &&
		    !is_demangler_word(text + i, len)) {
			best = text + i;
			best_len = len;
		}
		i += PM_MAX(len, 1);
	}
	if (!best)
		return NULL;
	return strndup(best, best_len);
}

int pm_probe_pattern_init(struct pm_probe_pattern *pattern, const char *text)
{
	*pattern =
		(struct pm_probe_pattern){ .text = strdup(text),
					   .is_glob = strpbrk(text, "*?[") != NULL,
					   .with_parameters = strchr(text, '(') != NULL,
					   .names_copy = strchr(text, '.') != NULL,
					   .budget = DEMANGLED_BYTES_MAX };
	if (!pattern->text)
		return -ENOMEM;
	remove_needless_spaces(pattern->text);
	pattern->needle = longest_literal_word(pattern->text);
	return 0;
}

void pm_probe_pattern_release(struct pm_probe_pattern *pattern)
{
	free(pattern->text);
	free(pattern->needle);
	*pattern = (struct pm_probe_pattern){ 0 };
}

static bool pattern_equals_name(const struct pm_probe_pattern *pattern, const char *name,
				enum pm_probe_comparison comparison)
{
	if (comparison == PM_PROBE_GLOB)
		return fnmatch(pattern->text, name, 0) == 0;
	return strcmp(pattern->text, name) == 0;
}

/*
 * Whether the `<` at @from, which follows @len bytes of @text, starts the arguments of a
 * template: `f<int>`, or `f::<u8>` in Rust. Names of operators contain such brackets, and
 * Rust puts types and `impl` blocks into some. Returns the number of bytes before it that
 * belong to the arguments, or -1.
 */
static int opens_template_arguments(const char *text, size_t len, const char *from)
{
	static const char operator[] = "operator";
	size_t own = strlen(operator);

	if (*from != '<' || len == 0)
		return -1;
	if (is_name_character(text[len - 1])) {
		if (len >= own && memcmp(text + len - own, operator, own) == 0)
			return -1;
		return 0;
	}
	if (len > 2 && memcmp(text + len - 2, "::", 2) == 0 &&
	    is_name_character(text[len - 3]) &&
	    strncmp(from, "<impl ", strlen("<impl ")) != 0)
		return 2;
	return -1;
}

static void strip_template_arguments(char *text)
{
	size_t depth = 0;
	char *to = text;

	for (const char *from = text; *from; from++) {
		int front = -1;

		if (depth == 0)
			front = opens_template_arguments(text, (size_t)(to - text), from);
		if (depth > 0) {
			depth += *from == '<';
			depth -= *from == '>' && from[-1] != '-';
		} else if (front >= 0) {
			to -= front;
			depth = 1;
		} else {
			*to++ = *from;
		}
	}
	/* Unbalanced brackets are not arguments. */
	if (depth == 0)
		*to = '\0';
	else
		text[0] = '\0';
}

/* Whether @name, cut off before its template arguments, matches: a pattern without
 * arguments matches every instance. */
static bool is_template_instance(const struct pm_probe_pattern *pattern, char *name)
{
	if (strpbrk(pattern->text, "<>(*?[") || !strchr(name, '<'))
		return false;
	strip_template_arguments(name);
	return strcmp(pattern->text, name) == 0;
}

/* `(anonymous namespace)::f` has parentheses, but not parameters. */
static bool matches_demangled(struct pm_probe_pattern *pattern, const char *name,
			      enum pm_probe_comparison comparison)
{
	for (int full = 0; full < 2; full++) {
		PM_AUTO_FREE char *pretty = NULL;

		if (full && !pattern->with_parameters && comparison != PM_PROBE_GLOB)
			break;
		if (full)
			pretty = pm_demangle_full(name);
		else
			pretty = pm_demangle(name);
		if (!pretty)
			return false;
		if (strlen(pretty) > pattern->budget) {
			pattern->exhausted = true;
			return false;
		}
		pattern->budget -= strlen(pretty);
		remove_needless_spaces(pretty);
		if (pattern_equals_name(pattern, pretty, comparison) ||
		    (!full && is_template_instance(pattern, pretty)))
			return true;
	}
	return false;
}

bool pm_probe_pattern_matches(struct pm_probe_pattern *pattern, const char *name,
			      enum pm_probe_comparison comparison)
{
	PM_AUTO_FREE char *base = NULL;
	enum pm_probe_copy copy;
	size_t len;

	if (pattern_equals_name(pattern, name, comparison))
		return true;
	len = pm_probe_base_len(name, &copy);
	if (name[len] != '\0') {
		base = strndup(name, len);
		if (!base)
			return false;
		name = base;
		if (pattern_equals_name(pattern, name, comparison))
			return true;
	}
	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R') ||
	    (pattern->needle && !strstr(name, pattern->needle)))
		return false;
	return matches_demangled(pattern, name, comparison);
}

char *pm_probe_pretty(const char *name)
{
	PM_AUTO_FREE char *base = NULL;
	struct pm_str str = { 0 };
	enum pm_probe_copy copy;
	size_t len = pm_probe_base_len(name, &copy);
	char *pretty;

	base = strndup(name, len);
	if (!base)
		return NULL;
	pretty = pm_demangle_full(base);
	if (pretty)
		pm_str_puts(&str, pretty);
	else
		pm_str_printable(&str, base, len);
	free(pretty);
	pm_str_printable(&str, name + len, strlen(name) - len);
	if (str.failed)
		pm_str_release(&str);
	return str.data;
}
