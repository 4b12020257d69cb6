/* SPDX-License-Identifier: MIT */
/* Lists of events, and groups in them. Each event is parsed by the file for its kind. */
#include "event-parser.h"

#include <string.h>

enum {
	EVENTS_MAX = 2048, /* each costs a descriptor on every CPU */
};

/* Appends @fresh, which is then empty, to @specs. */
static int event_specs_append(struct pm_event_specs *specs, struct pm_event_specs *fresh,
			      struct pm_error *err)
{
	size_t before = specs->list.len;

	if (before + fresh->list.len > EVENTS_MAX)
		return pm_error_set(err, -EINVAL, "more than %d events", EVENTS_MAX);
	if (pm_vec_reserve(&specs->list, before + fresh->list.len) < 0 ||
	    pm_vec_reserve(&specs->texts, specs->texts.len + fresh->texts.len) < 0)
		return pm_event_no_memory(err);
	for (size_t i = 0; i < fresh->list.len; i++) {
		specs->list.data[before + i] = fresh->list.data[i];
		specs->list.data[before + i].leader += (uint32_t)before;
	}
	specs->list.len += fresh->list.len;
	for (size_t i = 0; i < fresh->texts.len; i++)
		specs->texts.data[specs->texts.len++] = fresh->texts.data[i];
	pm_vec_clear(&fresh->list);
	pm_vec_clear(&fresh->texts);
	return 0;
}

/* ---- one event ------------------------------------------------------------------------------- */

/* [@text, @end), without surrounding spaces, is one event, or several if it is a glob. */
static int parse_event_item(struct pm_event_item *item, const char *text, const char *end,
			    struct pm_error *err)
{
	while (text < end && *text == ' ')
		text++;
	while (end > text && end[-1] == ' ')
		end--;
	item->len = (size_t)(end - text);
	if (item->len == 0)
		return pm_error_set(err, -EINVAL, "an event name is missing in the list");
	if (item->len >= sizeof(item->text))
		return pm_error_set(err, -EINVAL,
				    "event \"%.32s...\" is longer than %d bytes", text,
				    PM_EVENT_NAME_MAX - 1);
	memcpy(item->text, text, item->len);
	item->text[item->len] = '\0';
	if (pm_event_is_probe(item->text, item->len))
		return pm_event_parse_probe(item, err);
	if (pm_event_begins(item->text, item->len, "mem:"))
		return pm_event_parse_breakpoint(item, err);
	if (memchr(item->text, '/', item->len))
		return pm_event_parse_slashed(item, err);
	return pm_event_parse_word(item, err);
}

/* ---- the list --------------------------------------------------------------------------------- */

/* Finds the end of the item at @text: a comma or `}` of its own list. NULL: a quote is
 * not closed. */
static const char *find_event_item_end(const char *text, const char *end,
				       struct pm_error *err)
{
	const char *begin = text + strspn(text, " ");
	size_t len = (size_t)(end - begin);
	bool slashes =
		!pm_event_is_probe(begin, len) && !pm_event_begins(begin, len, "mem:");
	bool in_terms = false;

	for (text = begin; text < end;) {
		size_t span;

		if ((*text == ',' && !in_terms) || *text == '}')
			return text;
		if (*text == '/' && slashes)
			in_terms = !in_terms;
		span = pm_event_span(begin, text, end);
		if (span == 0) {
			pm_error_set(err, -EINVAL, "the quote is never closed in \"%s\"",
				     begin);
			return NULL;
		}
		text += span;
	}
	return text;
}

/* Parses items from *@at up to a `}` or the end, where *@at is left. */
static int parse_event_items(struct pm_event_item *item, const char **at, const char *end,
			     struct pm_error *err)
{
	for (;;) {
		const char *stop = find_event_item_end(*at, end, err);
		int ret;

		if (!stop)
			return -EINVAL;
		ret = parse_event_item(item, *at, stop, err);
		if (ret < 0)
			return ret;
		*at = stop;
		if (stop == end || *stop == '}')
			return 0;
		++*at;
	}
}

/* Finds the `}` of the group that starts at @text. */
static const char *find_event_group_end(const char *text, const char *end,
					struct pm_error *err)
{
	for (text++;; text++) {
		text = find_event_item_end(text, end, err);
		if (!text || *text == '}')
			return text;
		if (text == end) {
			pm_error_set(err, -EINVAL, "a group has no \"}\"");
			return NULL;
		}
	}
}

/* Parses "{a,b}:modifiers". *@at is left after it. */
static int parse_event_group(const struct pm_event_sources *sources,
			     struct pm_event_specs *fresh, const char **at,
			     const char *end, struct pm_error *err)
{
	struct pm_event_item item = { .sources = sources, .specs = fresh };
	const char *brace = find_event_group_end(*at, end, err), *first = *at + 1;
	char modifiers[PM_EVENT_MODIFIERS_MAX] = "";
	size_t leader = fresh->list.len, len;
	int ret;

	if (!brace)
		return -EINVAL;
	*at = brace + 1;
	if (**at == ':') {
		++*at;
		len = strcspn(*at, ", ");
		if (len >= sizeof(modifiers))
			return pm_error_set(err, -EINVAL,
					    "too many modifiers of a group");
		memcpy(modifiers, *at, len);
		*at += len;
	}
	*at += strspn(*at, " ");
	item.group_modifiers = modifiers;
	ret = parse_event_items(&item, &first, brace, err);
	for (size_t i = leader; ret == 0 && i < fresh->list.len; i++)
		fresh->list.data[i].leader = (uint32_t)leader;
	return ret;
}

static int parse_event_list(const struct pm_event_sources *sources, const char *text,
			    struct pm_event_specs *fresh, struct pm_error *err)
{
	const char *end = text + strlen(text);

	for (const char *at = text;; at++) {
		size_t first = fresh->list.len;
		int ret;

		at += strspn(at, " ");
		if (*at == '{') {
			ret = parse_event_group(sources, fresh, &at, end, err);
		} else {
			struct pm_event_item item = { .sources = sources,
						      .specs = fresh,
						      .group_modifiers = "" };
			const char *stop = find_event_item_end(at, end, err);

			if (stop)
				ret = parse_event_item(&item, at, stop, err);
			else
				ret = -EINVAL;
			at = stop;
			for (size_t i = first; ret == 0 && i < fresh->list.len; i++)
				fresh->list.data[i].leader = (uint32_t)i;
		}
		if (ret < 0)
			return ret;
		if (fresh->list.len > EVENTS_MAX)
			return pm_error_set(err, -EINVAL, "more than %d events",
					    EVENTS_MAX);
		if (*at == '\0')
			return 0;
		if (*at != ',')
			return pm_error_set(err, -EINVAL,
					    "a comma is missing before \"%.64s\"", at);
	}
}

int pm_event_specs_parse_from(const struct pm_event_sources *sources, const char *text,
			      struct pm_event_specs *specs, struct pm_error *err)
{
	struct pm_event_specs fresh PM_CLEANUP(pm_event_specs_release) = { 0 };
	int ret = parse_event_list(sources, text, &fresh, err);

	if (ret < 0)
		return ret;
	return event_specs_append(specs, &fresh, err);
}

int pm_event_specs_parse(const char *text, struct pm_event_specs *specs,
			 struct pm_error *err)
{
	return pm_event_specs_parse_from(&pm_event_sources_here, text, specs, err);
}
