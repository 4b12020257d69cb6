/* SPDX-License-Identifier: MIT */
/* The engine of uprobes: what its files share. */
#pragma once

#include <poll.h>

#include "passed.h"
#include "pm/count.h"
#include "pm/proc.h"

/* The places of all regions, as the kernel is asked for them. */
struct pm_up_places {
	PM_VEC(struct pm_event_spec) specs;
	/* Index in pm_regions.places, by pm_place_turn(). */
	PM_VEC(uint32_t) order;
	PM_VEC(uint32_t) classes;
	PM_VEC(bool) entries;
	PM_VEC(char *) paths;
	bool by_region; /* a class is of one region */
	/* Places where the kernel takes no probe, and a region that has one. */
	size_t refused;
	uint32_t refused_region;
	PM_VEC(uint32_t) short_regions; /* that are also entered there */
	/* Places whose probe is after instructions which may fault, and a region with
	 * one. */
	size_t behind;
	uint32_t behind_region;
	/* Conditional exits, where this kernel's hits do not tell the flags. */
	size_t unjudged;
	uint32_t unjudged_region;
};

/* What looking at a call costs, by event, and behind them elapsed time. */
struct pm_up_cost {
	bool known;
	/* By whether the kernel emulates the instruction at the entry, or steps over it: what is
	 * between entry and exit, and what each such place costs who has called. */
	uint64_t *call[2], *visit[2];
};

/* New threads that stand still until they are counted, where that is needed. */
struct pm_up_hold {
	struct pm_trace *trace; /* NULL: it is not, or was refused */
	bool holds; /* and not only lets go */
	bool more; /* to be asked again without waiting */
	struct pm_error why; /* of a refusal, or of the first of the refused */
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
	struct pm_callers *callers; /* NULL: nobody wants to know */
	PM_VEC(struct pollfd) poll_fds;
	PM_VEC(pid_t) descendants; /* processes that the command has made, and that run */
	uint32_t run;
	uint64_t began_ns; /* CLOCK_REALTIME */
	uint64_t begin_ns, end_ns, deadline_ns; /* UINT64_MAX: none */
	struct pm_passed passed;
	bool timed_out;
};

/* ---- engine-uprobe-places.c -------------------------------------------------------------- */

int pm_up_places_make(struct pm_up_places *places, const struct pm_regions *regions);
void pm_up_places_release(struct pm_up_places *places);
/* Of the hits of a region: true and a class, once for each @which from 0 on. */
bool pm_up_class(const struct pm_up_places *places, uint32_t region, uint32_t which,
		 uint32_t *ret);
/* Whether a region (or what it is the sum of) is entered at an instruction that the kernel
 * emulates. */
bool pm_up_entered_cheaply(const struct pm_regions *regions, uint32_t region);
/* Whether some of its calls are not seen, for they begin where no probe is taken. */
bool pm_up_is_short(const struct pm_up_places *places, uint32_t region);

/* ---- engine-uprobe-cost.c ---------------------------------------------------------------- */

/* Measures it on a function of our own in a child of ours. Unknown where that cannot be. */
int pm_up_cost_measure(struct pm_up_cost *cost, const struct pm_engine_options *options);
void pm_up_cost_release(struct pm_up_cost *cost);

/* ---- engine-uprobe-hold.c ---------------------------------------------------------------- */

/* Once hits are open, and before the command is let go. Also 0 where that cannot be: it is told
 * of when somebody was missed. */
int pm_up_hold_begin(struct pm_up_engine *it, struct pm_error *err);
/* The command is on its way to its exec: 0 when it has done that, or has ended. */
int pm_up_hold_until_exec(struct pm_up_engine *it, struct pm_error *err);
/* Takes what there is, after SIGCHLD; of a command also its end. */
int pm_up_hold_turn(struct pm_up_engine *it, struct pm_error *err);
/* Lets everybody go. */
void pm_up_hold_end(struct pm_up_engine *it);
void pm_up_hold_release(struct pm_up_hold *hold);
/* Whether calls of threads that began later may be missing. */
bool pm_up_hold_missed(const struct pm_up_engine *it);
int pm_up_hold_tell(const struct pm_up_engine *it); /* 0 or -ENOMEM */

/* ---- engine-uprobe.c --------------------------------------------------------------------- */

/* Takes what is in the rings; @final: all of it. */
int pm_up_drain(struct pm_up_engine *it, bool final, struct pm_error *err);

/* ---- engine-uprobe-tell.c ---------------------------------------------------------------- */

/* Once hits are open: what became of the events, which calls are told live by. 0 or -ENOMEM. */
int pm_up_fill_events(const struct pm_up_engine *it);
/* Appends the run, its scopes and all that is to be said of them to the document. */
int pm_up_tell(struct pm_up_engine *it, struct pm_error *err);
