/* SPDX-License-Identifier: MIT */
/* Names of the events that callgrind simulates
 * (valgrind.org/docs/manual/cl-manual.html). */
#include "pm/count.h"

#include <string.h>

#define ACCESSES                  \
	{ "Ir", 1 }, { "Dr", 1 }, \
	{                         \
		"Dw", 1           \
	}
#define L1_MISSES(weight)                       \
	{ "I1mr", weight }, { "D1mr", weight }, \
	{                                       \
		"D1mw", weight                  \
	}
#define LL_MISSES(weight)                       \
	{ "ILmr", weight }, { "DLmr", weight }, \
	{                                       \
		"DLmw", weight                  \
	}
#define TERMS(...) ((const struct pm_sim_term[]){ __VA_ARGS__, { NULL, 0 } })

/* An access that hits the first-level cache counts as one cycle, the last level as 5,
 * memory as 35: the weights of iai and its successors, which makes numbers comparable. */
static const struct sim_event {
	const char *name;
	enum pm_stat_class class;
	const struct pm_sim_term *terms; /* NULL: counted directly */
} sim_events[] = {
	{ "sim.Ir", PM_STAT_EXACT },
	{ "sim.Dr", PM_STAT_EXACT },
	{ "sim.Dw", PM_STAT_EXACT },
	/* Cache events depend on addresses, which vary with the size of the environment
	 * and the like. */
	{ "sim.I1mr", PM_STAT_LOW_NOISE },
	{ "sim.D1mr", PM_STAT_LOW_NOISE },
	{ "sim.D1mw", PM_STAT_LOW_NOISE },
	{ "sim.ILmr", PM_STAT_LOW_NOISE },
	{ "sim.DLmr", PM_STAT_LOW_NOISE },
	{ "sim.DLmw", PM_STAT_LOW_NOISE },
	{ "sim.Bc", PM_STAT_EXACT },
	{ "sim.Bcm", PM_STAT_LOW_NOISE },
	{ "sim.Bi", PM_STAT_EXACT },
	{ "sim.Bim", PM_STAT_LOW_NOISE },
	{ "sim.L1hits", PM_STAT_LOW_NOISE, TERMS(ACCESSES, L1_MISSES(-1)) },
	{ "sim.LLhits", PM_STAT_LOW_NOISE, TERMS(L1_MISSES(1), LL_MISSES(-1)) },
	{ "sim.RAMhits", PM_STAT_LOW_NOISE, TERMS(LL_MISSES(1)) },
	{ "sim.cycles", PM_STAT_LOW_NOISE,
	  TERMS(ACCESSES, L1_MISSES(5 - 1), LL_MISSES(35 - 5)) },
};

/* The events of "sim.costs". */
static const char *const costs[] = { "sim.Ir",      "sim.L1hits", "sim.LLhits",
				     "sim.RAMhits", "sim.cycles", "sim.Bc",
				     "sim.Bcm",     "sim.Bi",     "sim.Bim" };

const char *pm_sim_cost_name(size_t index)
{
	if (index < PM_ARRAY_LEN(costs))
		return costs[index];
	return NULL;
}

const struct pm_sim_term *pm_sim_event_terms(const char *name)
{
	for (size_t i = 0; i < PM_ARRAY_LEN(sim_events); i++)
		if (strcmp(sim_events[i].name, name) == 0)
			return sim_events[i].terms;
	return NULL;
}

const char *pm_sim_event_name(size_t index)
{
	if (index < PM_ARRAY_LEN(sim_events))
		return sim_events[index].name;
	return NULL;
}

bool pm_sim_event_is(const char *word)
{
	return strncmp(word, "sim.", 4) == 0;
}

/* Suggests a name that differs by one or two characters, or mostly by case. */
static int refuse_unknown_event(const char *name, struct pm_error *err)
{
	size_t best = 3;
	const char *near = NULL;

	for (size_t i = 0; i < PM_ARRAY_LEN(sim_events); i++) {
		size_t distance = pm_name_distance(name, sim_events[i].name);

		if (distance < best) {
			best = distance;
			near = sim_events[i].name;
		}
	}
	pm_error_set(err, -ENOENT, "no simulated event has this name");
	pm_error_where(err, name, -1);
	pm_error_fix(err, "%s", pm_text_or(near, "sim.Ir"));
	return -ENOENT;
}

int pm_sim_event_describe(struct pm_stat *stat, const char *name, bool default_set,
			  struct pm_error *err)
{
	const struct sim_event *found = NULL;
	struct pm_stat_event event = { .scale = 1,
				       .better = -1,
				       .group = -1,
				       .user_only = true,
				       .default_set = default_set };

	for (size_t i = 0; i < PM_ARRAY_LEN(sim_events) && !found; i++)
		if (strcasecmp(name, sim_events[i].name) == 0)
			found = &sim_events[i];
	if (!found)
		return refuse_unknown_event(name, err);
	event.class = found->class;
	if (pm_stat_text(&event.name, found->name) < 0 ||
	    pm_stat_text(&event.requested, name) < 0 ||
	    pm_stat_text(&event.unit, "") < 0 ||
	    pm_stat_text(&event.source, "simulated") < 0 ||
	    pm_vec_push(&stat->events, event) < 0) {
		free(event.name);
		free(event.requested);
		free(event.unit);
		free(event.source);
		return pm_error_set(err, -ENOMEM, "%s", strerror(ENOMEM));
	}
	return 0;
}
