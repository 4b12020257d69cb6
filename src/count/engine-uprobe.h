/* SPDX-License-Identifier: MIT */
/* The engine that uses uprobes: definitions that its files share. */
#pragma once

#include <poll.h>

#include "passed.h"
#include "pm/count.h"
#include "pm/proc.h"

/* The places of all regions, as events for the kernel. */
struct pm_up_places {
	PM_VEC(struct pm_event_spec) specs;
	/* Index in pm_regions.places, by pm_place_turn(). */
	PM_VEC(uint32_t) order;
	PM_VEC(uint32_t) classes;
	PM_VEC(bool) entries;
	PM_VEC(char *) paths;
	bool by_region; /* each class belongs to one region */
	/* Number of places that the kernel refuses to probe, and a region with such a
	 * place. */
	size_t refused;
	uint32_t refused_region;
	PM_VEC(uint32_t) short_regions; /* that are also entered at such a place */
	/* Number of places whose probe comes after instructions that may fault, and a
	 * region with such a place. */
	size_t behind;
	uint32_t behind_region;
	/* Number of conditional exits that cannot be judged, since this kernel's hits
	 * lack the flags, and a region with such an exit. */
	size_t unjudged;
	uint32_t unjudged_region;
};

/* The cost of observing a call, by event and then elapsed time. */
struct pm_up_cost {
	bool known;
	/* Index: whether the kernel emulates the instruction at the entry (1) or steps
	 * over it (0). `call` is the cost between entry and exit, `visit` the cost that
	 * each such place adds to the caller. */
	uint64_t *call[2], *visit[2];
};

/* Holds new threads until their counters are open, where that is necessary. */
struct pm_up_hold {
	struct pm_trace *trace; /* NULL: not necessary, or refused */
	bool holds; /* false: threads are only released */
	bool more; /* call uprobe_hold_turn() again without waiting */
	struct pm_error why; /* of a refusal, or of the first refused thread */
	size_t refused; /* threads that could not be counted */
	uint64_t privileged;
};

struct pm_up_engine {
	const struct pm_engine_options *options;
	struct pm_stat *stat;
	struct pm_child *child;
	struct pm_up_places places;
	struct pm_up_cost cost;
	struct pm_hits *hits;
	struct pm_up_hold hold;
	struct pm_calls *calls;
	struct pm_callers *callers; /* NULL: callers were not requested */
	PM_VEC(struct pollfd) poll_fds;
	PM_VEC(pid_t) descendants; /* running processes that the command has created */
	uint32_t run;
	uint64_t began_ns; /* CLOCK_REALTIME */
	uint64_t begin_ns, end_ns, deadline_ns; /* UINT64_MAX: none */
	struct pm_passed passed;
	bool timed_out;
};

/* ---- engine-uprobe-places.c -------------------------------------------------------------- */

int pm_up_places_make(struct pm_up_places *places, const struct pm_regions *regions);
void pm_up_places_release(struct pm_up_places *places);
/* Gets the classes of a region's hits: called with @which from 0 on, returns true and a
 * class as long as there are any, then false. */
bool pm_up_class(const struct pm_up_places *places, uint32_t region, uint32_t which,
		 uint32_t *out);
/* Whether a region (or a part of it, if it is a sum) is entered at an instruction that
 * the kernel emulates. */
bool pm_up_entered_cheaply(const struct pm_regions *regions, uint32_t region);
/* Whether some of the region's calls are missing, because they begin where no probe is
 * possible. */
bool pm_up_is_short(const struct pm_up_places *places, uint32_t region);

/* ---- engine-uprobe-cost.c ---------------------------------------------------------------- */

/* Measures the cost with a function of ours in a child process. The cost is unknown if
 * that is impossible. */
int pm_up_cost_measure(struct pm_up_cost *cost, const struct pm_engine_options *options);
void pm_up_cost_release(struct pm_up_cost *cost);

/* ---- engine-uprobe-tell.c ---------------------------------------------------------------- */

/* Reports that there is no memory for the calls; returns -ENOMEM. */
int pm_up_no_memory(struct pm_error *err);
/* To be called once the hits are open: fills in the events' states, which --live needs.
 * Returns 0 or -ENOMEM. */
int pm_up_fill_events(const struct pm_up_engine *it);
/* Appends the run, its scopes and all reports about them to the document. */
int pm_up_tell(struct pm_up_engine *it, struct pm_error *err);
