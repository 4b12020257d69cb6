/* SPDX-License-Identifier: MIT */
/* Lists of events, and groups in them. Each event is parsed by the file for its kind. */
#include "event-parser.h"

#include <linux/perf_event.h>
#include <string.h>

enum {
	EVENTS_MAX = 2048, /* each costs a descriptor on every CPU */
};

static const struct pm_event_sources sources_here = {
	.devices = "/sys/bus/event_source/devices",
	.tracefs = true,
	.libpfm = true,
};

/* ---- lists of specs -------------------------------------------------------------------------- */

void pm_event_specs_release(struct pm_event_specs *specs)
{
	pm_vec_release(&specs->list);
	for (size_t i = 0; i < specs->texts.len; i++)
		free(specs->texts.data[i]);
	pm_vec_release(&specs->texts);
}

const char *pm_event_specs_keep(struct pm_event_specs *specs, const char *text,
				size_t len)
{
	char *copy = strndup(text, len);

	if (copy && pm_vec_push(&specs->texts, copy) < 0) {
		free(copy);
		return NULL;
	}
	return copy;
}

int pm_event_specs_replace(struct pm_event_specs *specs, size_t at,
			   const struct pm_event_spec *with, size_t len)
{
	size_t behind = specs->list.len - at - 1;
	struct pm_event_spec *list;

	if (pm_vec_reserve(&specs->list, specs->list.len + len) < 0)
		return -ENOMEM;
	list = specs->list.data;
	for (size_t i = 0; i < specs->list.len; i++) {
		/* Members of a group led by the replaced event follow the first new
		 * one. */
		if (list[i].leader > at)
			list[i].leader += (uint32_t)len - 1;
	}
	memmove(&list[at + len], &list[at + 1], behind * sizeof(*list));
	for (size_t i = 0; i < len; i++) {
		struct pm_event_spec fresh = with[i];
		bool grouped = with[i].leader != at;

		for (size_t j = 0; j < behind; j++)
			grouped |= list[at + len + j].leader == at;
		if (grouped)
			fresh.leader = with[i].leader;
		else
			fresh.leader = (uint32_t)(at + i);
		list[at + i] = fresh;
	}
	specs->list.len += len - 1;
	return 0;
}

static int set_no_memory_for_events(struct pm_error *err)
{
	return pm_error_set(err, -ENOMEM, "no memory for the list of events");
}

/* Appends @fresh, which is then empty, to @specs. */
static int event_specs_append(struct pm_event_specs *specs, struct pm_event_specs *fresh,
			      struct pm_error *err)
{
	size_t before = specs->list.len;

	if (before + fresh->list.len > EVENTS_MAX)
		return pm_error_set(err, -EINVAL, "more than %d events", EVENTS_MAX);
	if (pm_vec_reserve(&specs->list, before + fresh->list.len) < 0 ||
	    pm_vec_reserve(&specs->texts, specs->texts.len + fresh->texts.len) < 0)
		return set_no_memory_for_events(err);
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

void pm_event_item_begin(const struct pm_event_item *item, struct pm_event_spec *out)
{
	memset(out, 0, sizeof(*out));
	memcpy(out->requested, item->text, item->len);
}

int pm_event_item_add(const struct pm_event_item *item, const struct pm_event_spec *spec,
		      struct pm_error *err)
{
	if (pm_vec_push(&item->specs->list, *spec) < 0)
		return set_no_memory_for_events(err);
	return 0;
}

int pm_event_unknown(const struct pm_event_sources *sources, const char *name,
		     struct pm_error *err)
{
	struct pm_str text PM_CLEANUP(pm_str_release) = { 0 };
	struct pm_pmu_names pmus PM_CLEANUP(pm_pmu_names_release) = { 0 };
	struct pm_near near = { .word = name };

	for (const char *const *known = pm_event_names(); *known; known++)
		pm_near_add(&near, *known);
	if (pm_pmu_names_read(sources, &pmus) < 0)
		return set_no_memory_for_events(err);
	for (size_t i = 0; i < pmus.list.len; i++) {
		struct pm_pmu_names events PM_CLEANUP(pm_pmu_names_release) = { 0 };
		struct pm_pmu pmu PM_CLEANUP(pm_pmu_release) = { .folder = -1 };

		if (pm_pmu_open(&pmu, sources, pmus.list.data[i]) < 0 ||
		    pm_pmu_names_of(&pmu, "events", &events) < 0)
			continue;
		for (size_t j = 0; j < events.list.len; j++)
			pm_near_add(&near, events.list.data[j]);
	}
	if (strcmp(name, "dummy") == 0 || strcmp(name, "bpf-output") == 0)
		return pm_error_set(err, -EINVAL,
				    "unknown event \"%s\": the kernel's event of this "
				    "name never gives a sample",
				    name);
	pm_str_printf(&text, "unknown event \"%s\"", name);
	if (near.len > 0) {
		pm_str_puts(&text, "; near names: ");
		pm_near_print(&near, PM_NEAR_MAX, &text);
	}
	pm_error_set(err, -EINVAL, "%s", pm_str_text_or(&text, "unknown event"));
	if (near.len == 0)
		pm_error_fix(err, "pmrec --list");
	return -EINVAL;
}

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
	return pm_event_specs_parse_from(&sources_here, text, specs, err);
}

bool pm_event_spec_fallback(const struct pm_event_spec *spec, int open_errno,
			    struct pm_event_spec *out)
{
	struct pm_event_spec substitute = *spec;

	/* Only the errors of kernels and hypervisors without a PMU: a refusal (EACCES) or
	 * a wrong attr (EINVAL) must not lead to another event. */
	if (open_errno != ENOENT && open_errno != ENXIO && open_errno != ENODEV &&
	    open_errno != EOPNOTSUPP)
		return false;
	if (spec->type != PERF_TYPE_HARDWARE || spec->config != PERF_COUNT_HW_CPU_CYCLES)
		return false;
	/* A clock can only measure the host. */
	if (spec->guest_only && !spec->host_only)
		return false;
	if (!pm_event_name_find("cpu-clock", strlen("cpu-clock"), &substitute))
		return false;
	substitute.precise = 0;
	substitute.precise_most = false;
	*out = substitute;
	return true;
}

/* Whether the event belongs to this PMU, which then sets @unit and @scale. */
static bool has_pmu_unit_of_event(const struct pm_event_sources *sources,
				  const char *pmu_name, const struct pm_event_spec *spec,
				  const char *event, char unit[PM_EVENT_UNIT_MAX],
				  double *scale)
{
	struct pm_pmu pmu PM_CLEANUP(pm_pmu_release) = { .folder = -1 };

	if (pm_pmu_open(&pmu, sources, pmu_name) < 0 || pmu.type != spec->type)
		return false;
	(void)pm_pmu_unit(&pmu, event, unit, PM_EVENT_UNIT_MAX, scale);
	return true;
}

void pm_event_spec_unit_from(const struct pm_event_sources *sources,
			     const struct pm_event_spec *spec,
			     char unit[PM_EVENT_UNIT_MAX], double *scale)
{
	struct pm_pmu_names names PM_CLEANUP(pm_pmu_names_release) = { 0 };
	const char *slash = strchr(spec->name, '/');
	char event[PM_EVENT_NAME_MAX];

	unit[0] = '\0';
	*scale = 1;
	if (spec->kind != PM_EVENT_PMU || pm_pmu_names_read(sources, &names) < 0)
		return;
	/* PMU/NAME/, whose first term is the name, or just the name. */
	snprintf(event, sizeof(event), "%s", slash ? slash + 1 : spec->name);
	event[strcspn(event, "/,")] = '\0';
	for (size_t i = 0; i < names.list.len; i++)
		if (has_pmu_unit_of_event(sources, names.list.data[i], spec, event, unit,
					  scale))
			return;
}

void pm_event_spec_unit(const struct pm_event_spec *spec, char unit[PM_EVENT_UNIT_MAX],
			double *scale)
{
	pm_event_spec_unit_from(&sources_here, spec, unit, scale);
}
