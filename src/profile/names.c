/* SPDX-License-Identifier: MIT */
/* Finds the functions or events that a typed name means. */
#include "profile-internal.h"

#include <regex.h>
#include <string.h>

/* ---- functions --------------------------------------------------------------------------- */

/* Returns the length of "ns::f" in "ns::f(int) const": everything before the last
 * parameter list. Returns @len if there is none. */
static size_t length_without_parameters(const char *name, size_t len)
{
	size_t end = len, depth = 0;

	/* Qualifiers and clone marks may follow: " const", " [clone .isra.0]". */
	while (end > 0 && name[end - 1] != ')')
		end--;
	for (size_t i = end; i-- > 0;) {
		if (name[i] == ')')
			depth++;
		else if (name[i] == '(' && --depth == 0 && i > 0)
			return i;
	}
	return len;
}

enum closeness {
	SAME_NAME,
	SAME_BUT_PARAMETERS,
	SAME_BUT_SCOPE,
	SAME_BUT_ELIDED, /* the pattern is elided, as in reports: vector<…>::push_back */
	NOT_SAME,
};

/* Whether the first @len bytes of @name are @pattern, or a scope followed by @pattern. */
static bool ends_with_scoped_name(const char *name, size_t len, const char *pattern,
				  size_t pattern_len)
{
	size_t before = len - pattern_len;

	if (len < pattern_len || memcmp(name + before, pattern, pattern_len) != 0)
		return false;
	return before == 0 || (before >= 2 && memcmp(name + before - 2, "::", 2) == 0);
}

/* Returns the length of the ellipsis at @text, in either character set that reports use,
 * or 0. */
static size_t ellipsis_len(const char *text)
{
	if (strncmp(text, "…", 3) == 0 || strncmp(text, "...", 3) == 0)
		return 3;
	return 0;
}

static const char *find_ellipsis(const char *text)
{
	while (*text && ellipsis_len(text) == 0)
		text++;
	if (*text == '\0')
		return NULL;
	return text;
}

/*
 * Whether a report could show the first @len bytes of @name as @pattern, whose ellipses
 * stand for any text. Each piece is matched at its first occurrence, except the last
 * piece, which must be at the end.
 */
static bool matches_elided_name(const char *name, size_t len, const char *pattern)
{
	const char *at = name, *end = name + len;

	for (bool first = true;; first = false) {
		const char *gap = find_ellipsis(pattern);
		size_t piece = gap ? (size_t)(gap - pattern) : strlen(pattern);
		const char *found = at;

		if ((size_t)(end - at) < piece)
			return false;
		if (!gap)
			return memcmp(end - piece, pattern, piece) == 0;
		if (!first && piece > 0)
			found = memmem(at, (size_t)(end - at), pattern, piece);
		if (!found || memcmp(found, pattern, piece) != 0)
			return false;
		at = found + piece;
		pattern = gap + ellipsis_len(gap);
	}
}

/* Returns the length of "f::{lambda a.cc:1:2}" in "f::{lambda a.cc:1:2}::operator()", as
 * reports shorten it. Returns @len if it is not a lambda. */
static size_t length_without_call(const char *name, size_t len)
{
	static const char ending[] = "}::operator()";
	size_t ending_len = sizeof(ending) - 1;

	if (len > ending_len && memcmp(name + len - ending_len, ending, ending_len) == 0)
		return len - ending_len + 1;
	return len;
}

static enum closeness match_function_name(const char *name, const char *pattern,
					  size_t pattern_len)
{
	size_t len = strlen(name), bare = length_without_parameters(name, len);
	size_t lambda = length_without_call(name, len);

	if (len == pattern_len && memcmp(name, pattern, len) == 0)
		return SAME_NAME;
	if (bare == pattern_len && memcmp(name, pattern, bare) == 0)
		return SAME_BUT_PARAMETERS;
	if (ends_with_scoped_name(name, bare, pattern, pattern_len) ||
	    ends_with_scoped_name(name, len, pattern, pattern_len) ||
	    ends_with_scoped_name(name, lambda, pattern, pattern_len))
		return SAME_BUT_SCOPE;
	if (find_ellipsis(pattern) && (matches_elided_name(name, len, pattern) ||
				       matches_elided_name(name, bare, pattern) ||
				       matches_elided_name(name, lambda, pattern)))
		return SAME_BUT_ELIDED;
	return NOT_SAME;
}

/* Whether the pattern is a stand-in that reports print if a name is missing, such as
 * [0x1160] or [unknown]. It must not be used as an expression, which would match any of
 * its characters. */
static bool is_stand_in_pattern(const char *pattern)
{
	size_t digits;

	if (strcmp(pattern, "[unknown]") == 0 || strcmp(pattern, PM_NO_STACK) == 0)
		return true;
	if (strncmp(pattern, "[0x", 3) != 0)
		return false;
	digits = strspn(pattern + 3, "0123456789abcdef");
	return digits > 0 && strcmp(pattern + 3 + digits, "]") == 0;
}

static int match_expression(struct pm_function_set *set, const struct pm_profile *profile,
			    const char *pattern, struct pm_error *err)
{
	regex_t regex;
	int ret = regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB);

	if (ret != 0) {
		char why[128];

		regerror(ret, &regex, why, sizeof(why));
		return pm_error_set(
			err, -EINVAL,
			"no function is called '%s', and as an expression: %s", pattern,
			why);
	}
	for (size_t i = 0; i < profile->functions.len; i++) {
		set->set[i] =
			regexec(&regex, profile->functions.data[i].name, 0, NULL, 0) == 0;
		set->len += set->set[i];
	}
	regfree(&regex);
	return 0;
}

static int set_no_function_error(const struct pm_profile *profile, const char *pattern,
				 struct pm_error *err)
{
	struct pm_near_names near = { .wanted = pattern };
	struct pm_str text = { 0 };

	for (size_t i = 0; i < profile->functions.len; i++) {
		const char *name = profile->functions.data[i].name;
		size_t len = length_without_parameters(name, strlen(name));
		PM_AUTO_FREE char *bare = strndup(name, len);

		if (bare)
			pm_near_names_add(&near, bare);
	}
	pm_error_set(err, -ENOENT, "no function of this recording matches '%s'", pattern);
	for (size_t i = 0; i < near.len; i++) {
		pm_str_separate(&text, ", ");
		pm_str_puts(&text, near.list[i].name);
	}
	if (text.len > 0 && !text.failed)
		pm_error_fix(err, "%s", text.data);
	pm_str_release(&text);
	return -ENOENT;
}

static int compare_name_pointers(const void *a, const void *b)
{
	uintptr_t left = (uintptr_t) * (const char *const *)a;
	uintptr_t right = (uintptr_t) * (const char *const *)b;

	return PM_COMPARE(left, right);
}

/* Counts the different names in @set. Names are pooled: different pointers are different
 * names. */
static int count_names(struct pm_function_set *set, const struct pm_profile *profile)
{
	PM_AUTO_FREE const char **names = calloc(set->len + 1, sizeof(*names));
	size_t len = 0;

	if (!names)
		return -ENOMEM;
	for (size_t i = 0; i < profile->functions.len; i++)
		if (set->set[i])
			names[len++] = profile->functions.data[i].name;
	qsort(names, len, sizeof(*names), compare_name_pointers);
	set->names = 0;
	for (size_t i = 0; i < len; i++)
		set->names += i == 0 || names[i] != names[i - 1];
	return 0;
}

int pm_function_set_init(struct pm_function_set *out, const struct pm_profile *profile,
			 const char *pattern, struct pm_error *err)
{
	PM_CLEANUP(pm_function_set_release) struct pm_function_set set = { 0 };
	enum closeness closest = NOT_SAME;
	size_t pattern_len = strlen(pattern);
	PM_AUTO_FREE uint8_t *close = calloc(profile->functions.len + 1, 1);
	int ret = 0;

	set.set = calloc(profile->functions.len + 1, sizeof(*set.set));
	if (!set.set || !close)
		return pm_error_set(err, -ENOMEM, "out of memory");
	if (pattern_len == 0)
		return pm_error_set(err, -EINVAL, "the name of a function is empty");
	for (size_t i = 0; i < profile->functions.len; i++) {
		enum closeness how = match_function_name(profile->functions.data[i].name,
							 pattern, pattern_len);

		close[i] = (uint8_t)how;
		if (how < closest)
			closest = how;
	}
	if (closest != NOT_SAME) {
		for (size_t i = 0; i < profile->functions.len; i++) {
			set.set[i] = close[i] == closest;
			set.len += set.set[i];
		}
	} else if (!is_stand_in_pattern(pattern)) {
		ret = match_expression(&set, profile, pattern, err);
	}
	if (ret < 0)
		return ret;
	if (set.len == 0)
		return set_no_function_error(profile, pattern, err);
	if (count_names(&set, profile) < 0)
		return pm_error_set(err, -ENOMEM, "out of memory");
	/* The user cannot type the part that a report left out, so all functions are
	 * meant that the pattern may stand for. */
	if (closest == SAME_BUT_ELIDED)
		set.names = 1;
	*out = set;
	set.set = NULL;
	return 0;
}

void pm_function_set_release(struct pm_function_set *set)
{
	free(set->set);
	*set = (struct pm_function_set){ 0 };
}

/* ---- events ---------------------------------------------------------------------------- */

uint32_t pm_profile_find_event(const struct pm_profile *profile, const char *name,
			       struct pm_error *err)
{
	struct pm_str names = { 0 };

	/* Compare the exact spelling first: cycles:u and cycles:k are two events with the
	 * same name. */
	for (int pass = 0; pass < 3; pass++) {
		for (size_t i = 0; i < profile->events.len; i++) {
			const struct pm_profile_event *event = &profile->events.data[i];
			const char *has[] = { event->actual, event->name,
					      event->requested };

			if (strcmp(has[pass], name) == 0)
				return (uint32_t)i;
		}
	}
	for (size_t i = 0; i < profile->events.len; i++) {
		pm_str_separate(&names, ", ");
		pm_str_puts(&names, profile->events.data[i].actual);
	}
	pm_error_set(err, -ENOENT, "event '%s' was not recorded", name);
	if (names.len > 0 && !names.failed)
		pm_error_fix(err, "--event with one of: %s", names.data);
	pm_str_release(&names);
	return PM_PROFILE_NONE;
}
