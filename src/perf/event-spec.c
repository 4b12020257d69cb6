/* SPDX-License-Identifier: MIT */
#include "event-names.h"

#include <ctype.h>
#include <linux/perf_event.h>
#include <string.h>

#include "perf-internal.h"

enum {
	EVENTS_MAX = 256, /* each costs a descriptor on every CPU */
	NEAR_MAX = 3,
	SUBSTRING_MIN = 3,
	SUBSTRING_SCORE = 2, /* "dcache" is as near to its names as two typing errors */
};

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

/* The same beginning, but for a letter or two: "L1-dcachex" and "L1-dcache-loads". */
static bool begins_alike(const char *word, const char *name)
{
	size_t same = 0;

	while (word[same] &&
	       tolower((unsigned char)word[same]) == tolower((unsigned char)name[same]))
		same++;
	return same >= SUBSTRING_MIN && strlen(word) - same <= SUBSTRING_SCORE;
}

/* Distances beyond half of the word are no help to anybody. */
static size_t nearness(const char *word, const char *name)
{
	size_t score = pm_name_distance(word, name), len = strlen(word);

	if (len >= SUBSTRING_MIN && score > SUBSTRING_SCORE &&
	    (strcasestr(name, word) || begins_alike(word, name)))
		return SUBSTRING_SCORE;
	return score <= (len < 4 ? 1 : len / 2) ? score : SIZE_MAX;
}

void pm_event_names_near(const char *word, bool (*wanted)(const char *name), size_t max,
			 struct pm_str *ret)
{
	const char *const *names = pm_event_names();
	const char *near[NEAR_MAX];
	size_t score[NEAR_MAX], len = 0;

	if (max > NEAR_MAX)
		max = NEAR_MAX;
	for (size_t i = 0; names[i]; i++) {
		size_t this = nearness(word, names[i]), at = len;

		if (this == SIZE_MAX)
			continue;
		while (at > 0 && score[at - 1] > this)
			at--;
		if (at >= max || (wanted && !wanted(names[i])))
			continue;
		if (len < max)
			len++;
		for (size_t move = len - 1; move > at; move--) {
			near[move] = near[move - 1];
			score[move] = score[move - 1];
		}
		near[at] = names[i];
		score[at] = this;
	}
	for (size_t i = 0; i < len; i++)
		pm_str_printf(ret, "%s%s", i ? ", " : "", near[i]);
}

static int unknown_event(const char *part, struct pm_error *err)
{
	struct pm_str near PM_CLEANUP(pm_str_release) = { 0 };

	pm_event_names_near(part, NULL, NEAR_MAX, &near);
	if (near.len == 0 || near.failed)
		return pm_error_set(err, -EINVAL, "unknown event \"%s\"", part);
	return pm_error_set(err, -EINVAL, "unknown event \"%s\"; near names: %s", part,
			    near.data);
}

static int parse_modifiers(struct pm_event_spec *spec, struct pm_error *err)
{
	bool user = false, kernel = false;

	for (const char *at = spec->modifiers; *at; at++) {
		bool *which = *at == 'u' ? &user : *at == 'k' ? &kernel : NULL;

		if (!which)
			return pm_error_set(
				err, -EINVAL,
				"unknown modifier \"%c\" in \"%s\"; supported are :u "
				"(user space), :k (kernel) and :uk (both)",
				*at, spec->requested);
		if (*which)
			return pm_error_set(err, -EINVAL,
					    "modifier \"%c\" is twice in \"%s\"", *at,
					    spec->requested);
		*which = true;
	}
	spec->explicit_kernel = kernel;
	spec->user = user || !kernel;
	spec->kernel = kernel || !user;
	return 0;
}

static int parse_one(const char *text, size_t len, struct pm_event_spec *ret,
		     struct pm_error *err)
{
	struct pm_event_spec spec = { 0 };
	const char *colon, *modifiers;
	size_t name_len;

	while (len > 0 && *text == ' ') {
		text++;
		len--;
	}
	while (len > 0 && text[len - 1] == ' ')
		len--;
	if (len == 0)
		return pm_error_set(err, -EINVAL, "an event name is missing in the list");
	if (len >= sizeof(spec.requested))
		return pm_error_set(err, -EINVAL,
				    "event \"%.32s...\" is longer than %d bytes", text,
				    PM_EVENT_NAME_MAX - 1);
	memcpy(spec.requested, text, len);
	colon = strchr(spec.requested, ':');
	modifiers = colon ? colon + 1 : "";
	name_len = colon ? (size_t)(colon - spec.requested) : len;
	if (!pm_event_name_find(spec.requested, name_len, &spec)) {
		/* A tracepoint's name has a colon, too: show it whole. */
		if (colon && strspn(modifiers, "ukhpGHSDWI") == strlen(modifiers))
			spec.requested[name_len] = '\0';
		return unknown_event(spec.requested, err);
	}
	if (strlen(modifiers) >= sizeof(spec.modifiers))
		return pm_error_set(err, -EINVAL, "too many modifiers in \"%s\"",
				    spec.requested);
	memcpy(spec.modifiers, modifiers, strlen(modifiers));
	if (parse_modifiers(&spec, err) < 0)
		return -EINVAL;
	*ret = spec;
	return 0;
}

int pm_event_specs_parse(const char *text, struct pm_event_specs *specs,
			 struct pm_error *err)
{
	struct pm_event_specs fresh PM_CLEANUP(pm_event_specs_release) = { 0 };
	int r;

	for (;;) {
		size_t len = strcspn(text, ",");
		struct pm_event_spec spec;

		if (specs->list.len + fresh.list.len >= EVENTS_MAX)
			return pm_error_set(err, -EINVAL, "more than %d events",
					    EVENTS_MAX);
		r = parse_one(text, len, &spec, err);
		if (r < 0)
			return r;
		r = pm_vec_push(&fresh.list, spec);
		if (r < 0)
			return pm_error_set(err, r, "no memory for the list of events");
		if (text[len] == '\0')
			break;
		text += len + 1;
	}
	r = pm_vec_reserve(&specs->list, specs->list.len + fresh.list.len);
	if (r < 0)
		return pm_error_set(err, r, "no memory for the list of events");
	for (size_t i = 0; i < fresh.list.len; i++)
		specs->list.data[specs->list.len++] = fresh.list.data[i];
	return 0;
}

bool pm_event_spec_fallback(const struct pm_event_spec *spec, int open_errno,
			    struct pm_event_spec *ret)
{
	struct pm_event_spec substitute = *spec;

	/* What kernels and hypervisors answer where there is no PMU, and nothing else: a
	 * refusal (EACCES) or a wrong attr (EINVAL) must not turn into another event. */
	if (open_errno != ENOENT && open_errno != ENXIO && open_errno != ENODEV &&
	    open_errno != EOPNOTSUPP)
		return false;
	if (spec->type != PERF_TYPE_HARDWARE || spec->config != PERF_COUNT_HW_CPU_CYCLES)
		return false;
	if (!pm_event_name_find("cpu-clock", strlen("cpu-clock"), &substitute))
		return false;
	*ret = substitute;
	return true;
}
