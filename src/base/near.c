/* SPDX-License-Identifier: MIT */
/* "Did you mean": finds names of functions and the like that are similar to an unknown
 * one. */
#include <string.h>

#include "pm/base.h"

/* Returns the length of @name without template arguments at its end: 2 for `f2<int>`. */
static size_t length_without_arguments(const char *name, size_t len)
{
	size_t depth = 0;

	if (len == 0 || name[len - 1] != '>')
		return len;
	for (size_t i = len; i-- > 0;) {
		/* The "->" of an operator is not a closing bracket. */
		depth += name[i] == '>' && !(i > 0 && name[i - 1] == '-');
		if (name[i] == '<' && --depth == 0)
			return i;
		if (depth == 0)
			break;
	}
	return len;
}

/* Returns how much of @name is compared: template arguments only if they were typed. */
static size_t bounded_name_length(const char *name, const char *wanted)
{
	size_t len = strlen(name);

	if (strchr(wanted, '<'))
		return len;
	return length_without_arguments(name, len);
}

bool pm_name_is_last_part(const char *name, const char *wanted)
{
	size_t len = bounded_name_length(name, wanted), want = strlen(wanted);

	return len > want + 2 && memcmp(name + len - want, wanted, want) == 0 &&
	       memcmp(name + len - want - 2, "::", 2) == 0;
}

/* Returns the edit distance between the last part of @name and @wanted. */
static size_t last_part_edit_distance(const char *name, const char *wanted)
{
	size_t len = bounded_name_length(name, wanted), from = len;
	PM_AUTO_FREE char *last = NULL;

	while (from > 2 && memcmp(name + from - 2, "::", 2) != 0)
		from--;
	if (from > 2)
		last = strndup(name + from, len - from);
	if (!last)
		return SIZE_MAX;
	return pm_name_distance(wanted, last);
}

static size_t name_edit_distance(const char *name, const char *wanted)
{
	size_t limit = 1 + strlen(wanted) / 4, distance, last;

	if (pm_name_is_last_part(name, wanted))
		return 1;
	distance = pm_name_distance(wanted, name);
	if (strstr(wanted, "::"))
		last = SIZE_MAX;
	else
		last = last_part_edit_distance(name, wanted);
	if (last <= limit && last < distance)
		return last + 1;
	if (distance <= limit)
		return distance;
	/* A name that contains the typed text is similar, too, if it is not much
	 * longer. */
	if (strlen(name) <= 2 * strlen(wanted) && strcasestr(name, wanted))
		return strlen(wanted);
	return SIZE_MAX;
}

void pm_near_names_add(struct pm_near_names *near, const char *name)
{
	size_t len = strlen(name), distance, at;

	if (len == 0 || strlen(near->wanted) < 2)
		return;
	if (len < PM_NEAR_NAMES_BYTES)
		distance = name_edit_distance(name, near->wanted);
	else
		distance = SIZE_MAX;
	if (distance == SIZE_MAX)
		return;
	for (size_t i = 0; i < near->len; i++)
		if (strcmp(near->list[i].name, name) == 0)
			return;
	for (at = near->len; at > 0 && near->list[at - 1].distance > distance; at--)
		if (at < PM_NEAR_NAMES_MAX)
			near->list[at] = near->list[at - 1];
	if (at == PM_NEAR_NAMES_MAX)
		return;
	near->list[at].distance = distance;
	memcpy(near->list[at].name, name, len + 1);
	near->len += near->len < PM_NEAR_NAMES_MAX;
}

void pm_near_names_tell(const struct pm_near_names *near, struct pm_error *err)
{
	struct pm_str text = { 0 };
	size_t len;

	if (!err)
		return;
	for (size_t i = 0; i < near->len; i++) {
		pm_str_puts(&text, i == 0 ? "; near names: " : ", ");
		pm_str_printable(&text, near->list[i].name, strlen(near->list[i].name));
	}
	len = strlen(err->text);
	if (text.len > 0 && !text.failed)
		snprintf(err->text + len, sizeof(err->text) - len, "%s", text.data);
	pm_str_release(&text);
}
