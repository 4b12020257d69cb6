/* SPDX-License-Identifier: MIT */
/* The letters after an event's last colon. Their meaning is that of perf-list(1). */
#include "event-parser.h"

#include <string.h>

#define LETTERS "ukhGHIpPSDe"
/* Further letters that perf accepts. */
#define LETTERS_ELSEWHERE "Wb"

bool pm_event_are_modifiers(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (!text[i] || !strchr(LETTERS LETTERS_ELSEWHERE, text[i]))
			return false;
	}
	return true;
}

static int set_unknown_modifier_error(const struct pm_event_spec *spec, char letter,
				      struct pm_error *err)
{
	if (letter == 'W')
		return pm_error_set(err, -EINVAL,
				    "modifier \"W\" (a weak group) in \"%s\": leave out "
				    "the braces when the events may be apart",
				    spec->requested);
	if (letter == 'b')
		return pm_error_set(
			err, -EINVAL,
			"modifier \"b\" (counters that BPF programs share) in "
			"\"%s\": leave it out, the count is the same",
			spec->requested);
	return pm_error_set(
		err, -EINVAL,
		"unknown modifier \"%c\" in \"%s\"; there are u (user space), "
		"k (kernel), h (hypervisor), H (host), G (guest), I (not "
		"idle), p, pp, ppp, P (precise), S (read the group), D "
		"(pinned), e (alone on the PMU)",
		letter, spec->requested);
}

/* Joins the event's own modifiers and those of its group that it does not have yet. */
static int join_event_modifiers(struct pm_event_spec *spec, const char *own,
				size_t own_len, const char *group, struct pm_error *err)
{
	size_t len = own_len, requested = strlen(spec->requested);

	if (len >= sizeof(spec->modifiers))
		return pm_error_set(err, -EINVAL, "too many modifiers in \"%s\"",
				    spec->requested);
	memcpy(spec->modifiers, own, own_len);
	for (; *group; group++) {
		if (*group != 'p' && memchr(spec->modifiers, *group, len))
			continue;
		if (len + 1 >= sizeof(spec->modifiers) ||
		    requested + 2 >= sizeof(spec->requested))
			return pm_error_set(err, -EINVAL, "too many modifiers in \"%s\"",
					    spec->requested);
		if (len == 0 && spec->requested[requested - 1] != '/' &&
		    spec->requested[requested - 1] != ':')
			spec->requested[requested++] = ':';
		spec->modifiers[len++] = *group;
		spec->requested[requested++] = *group;
	}
	spec->modifiers[len] = '\0';
	spec->requested[requested] = '\0';
	return 0;
}

static void set_levels_of_modifiers(struct pm_event_spec *spec)
{
	const char *letters = spec->modifiers;

	spec->explicit_kernel = strchr(letters, 'k');
	if (strpbrk(letters, "ukh")) {
		spec->user = strchr(letters, 'u');
		spec->kernel = spec->explicit_kernel;
		spec->hypervisor = strchr(letters, 'h');
	} else {
		spec->user = spec->kernel = spec->hypervisor = true;
	}
	spec->host_only = strchr(letters, 'H');
	spec->guest_only = strchr(letters, 'G');
	spec->no_idle = strchr(letters, 'I');
}

int pm_event_modifiers_set(struct pm_event_spec *spec, const char *own, size_t own_len,
			   const char *group, struct pm_error *err)
{
	unsigned int precise = 0;
	int ret = join_event_modifiers(spec, own, own_len, group, err);

	if (ret < 0)
		return ret;
	for (const char *at = spec->modifiers; *at; at++) {
		if (!strchr(LETTERS, *at))
			return set_unknown_modifier_error(spec, *at, err);
		if (*at == 'p')
			precise++;
		else if (strchr(at + 1, *at))
			return pm_error_set(err, -EINVAL,
					    "modifier \"%c\" is twice in \"%s\"", *at,
					    spec->requested);
	}
	if (precise > 3)
		return pm_error_set(err, -EINVAL,
				    "\"%s\" has %u times the modifier \"p\", more than 3",
				    spec->requested, precise);
	set_levels_of_modifiers(spec);
	spec->precise_most = strchr(spec->modifiers, 'P');
	if (spec->precise_most)
		spec->precise = 3;
	else
		spec->precise = (uint8_t)precise;
	spec->read_group = strchr(spec->modifiers, 'S');
	spec->pinned = strchr(spec->modifiers, 'D');
	spec->exclusive = strchr(spec->modifiers, 'e');
	if (spec->guest_only && !spec->host_only && spec->kind == PM_EVENT_SOFTWARE)
		return pm_error_set(err, -EINVAL,
				    "\"%s\": software events know no guests",
				    spec->requested);
	return 0;
}
