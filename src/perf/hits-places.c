/* SPDX-License-Identifier: MIT */
/* Decides which places share an event of the kernel, and finds the place of a hit. */
#include "hits-state.h"

#include <string.h>

#define LOW(address) ((address) & (PM_HITS_PAGE - 1))

static bool is_spec_a_probe(const struct pm_event_spec *spec)
{
	return spec->kind == PM_EVENT_UPROBE;
}

/* Whether the place can be added to @event: the low bits of its address must be unique
 * there. */
static bool can_event_take_place(const struct pm_hits_event *event,
				 const struct pm_event_spec *spec, uint32_t class)
{
	return event->by_low && event->class == class &&
	       strcmp(event->spec.path, spec->path) == 0 &&
	       event->by_low[LOW(spec->config2)] == PM_HITS_NO_PLACE;
}

/* Lets the place share the event of an earlier one with the same address, which the
 * kernel would not accept twice. Returns false if there is none. */
static bool hits_share_address(struct pm_hits *hits, const struct pm_event_spec *specs,
			       uint32_t place)
{
	const struct pm_event_spec *spec = &specs[place];

	for (uint32_t i = 0; i < hits->events.len; i++) {
		const struct pm_hits_event *event = &hits->events.data[i];
		uint32_t there;

		if (!event->by_low || strcmp(event->spec.path, spec->path) != 0)
			continue;
		there = event->by_low[LOW(spec->config2)];
		if (there == PM_HITS_NO_PLACE || specs[there].config2 != spec->config2)
			continue;
		while (hits->places.data[there].same != PM_HITS_NO_PLACE)
			there = hits->places.data[there].same;
		hits->places.data[there].same = place;
		hits->places.data[place].event = i;
		return true;
	}
	return false;
}

static int hits_add_event(struct pm_hits *hits, const struct pm_event_spec *spec,
			  uint32_t class, bool with_stack)
{
	struct pm_hits_event event = { .spec = *spec, .class = class };

	if (is_spec_a_probe(spec)) {
		event.by_low = malloc(PM_HITS_PAGE * sizeof(*event.by_low));
		if (!event.by_low)
			return -ENOMEM;
		memset(event.by_low, 0xff, PM_HITS_PAGE * sizeof(*event.by_low));
	}
	if (pm_vec_reserve(&hits->event_stack, hits->event_stack.len + 1) < 0 ||
	    pm_vec_push(&hits->events, event) < 0) {
		free(event.by_low);
		return -ENOMEM;
	}
	hits->event_stack.data[hits->event_stack.len++] = with_stack;
	return 0;
}

static int hits_add_place(struct pm_hits *hits, const struct pm_hits_options *options,
			  uint32_t place)
{
	const struct pm_event_spec *spec = &options->places[place];
	uint32_t class = options->classes ? options->classes[place] : 0;
	bool stack = options->stack_bytes > 0 && options->with_stack &&
		     options->with_stack[place];
	uint32_t at = 0;

	hits->places.data[place].same = PM_HITS_NO_PLACE;
	if (is_spec_a_probe(spec) && hits_share_address(hits, options->places, place)) {
		hits->event_stack.data[hits->places.data[place].event] |= stack;
		return 0;
	}
	while (at < hits->events.len &&
	       !(is_spec_a_probe(spec) && hits->event_stack.data[at] == stack &&
		 can_event_take_place(&hits->events.data[at], spec, class)))
		at++;
	if (at == hits->events.len && hits_add_event(hits, spec, class, stack) < 0)
		return -ENOMEM;
	hits->places.data[place].event = at;
	if (is_spec_a_probe(spec))
		hits->events.data[at].by_low[LOW(spec->config2)] = place;
	else
		hits->events.data[at].place = place;
	return 0;
}

/* Creates the kernel's event for the places of @event. */
static int hits_make_event(struct pm_hits *hits, const struct pm_hits_options *options,
			   struct pm_hits_event *event, struct pm_error *err)
{
	PM_VEC(uint64_t) offsets = { 0 };
	int ret = 0;

	for (size_t i = 0; event->by_low && i < PM_HITS_PAGE && ret == 0; i++)
		if (event->by_low[i] != PM_HITS_NO_PLACE)
			ret = pm_vec_push(&offsets,
					  options->places[event->by_low[i]].config2);
	if (ret < 0)
		pm_error_set(err, ret, "no memory for the places");
	else if (event->by_low)
		ret = pm_hits_probes_add(&hits->probes, event->spec.path, offsets.data,
					 offsets.len, &event->spec.config, err);
	pm_vec_release(&offsets);
	if (ret < 0 || !event->by_low)
		return ret;
	event->spec.kind = PM_EVENT_TRACEPOINT;
	event->spec.type = PERF_TYPE_TRACEPOINT;
	event->spec.config1 = event->spec.config2 = 0;
	return 0;
}

int pm_hits_plan(struct pm_hits *hits, const struct pm_hits_options *options,
		 struct pm_error *err)
{
	for (size_t i = 0; i < options->places_len; i++)
		if (pm_vec_push(&hits->places, (struct pm_hits_place){ 0 }) < 0)
			return pm_error_set(err, -ENOMEM, "no memory for the places");
	for (size_t i = 0; i < options->places_len; i++)
		if (hits_add_place(hits, options, (uint32_t)i) < 0)
			return pm_error_set(err, -ENOMEM, "no memory for the places");
	if (hits->events.len > PM_HITS_EVENTS_MAX)
		return pm_error_set(
			err, -E2BIG,
			"%zu places need %zu events of the kernel, %d at most",
			options->places_len, hits->events.len, PM_HITS_EVENTS_MAX);
	for (size_t i = 0; i < hits->events.len; i++) {
		int ret = hits_make_event(hits, options, &hits->events.data[i], err);

		if (ret < 0)
			return ret;
	}
	return 0;
}

uint32_t pm_hits_place_at(const struct pm_hits_event *event, uint64_t ip)
{
	if (event->by_low)
		return event->by_low[LOW(ip)];
	return event->place;
}
