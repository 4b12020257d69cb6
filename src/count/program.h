/* SPDX-License-Identifier: MIT */
/* A run of a whole program: program.c drives it, and program-values.c records it. */
#pragma once

#include "marks.h"
#include "pm/count.h"

enum {
	PM_PROGRAM_RINGS_MAX =
		512, /* that are waited for; the others are read along with these */
};

struct pm_program {
	struct pm_stat *stat;
	const struct pm_count_options *options;
	struct pm_child *child;
	struct pm_counters *counters;
	struct pm_marks marks;
	struct pm_counters_values values,
		before; /* the last reading; the one at the start of the interval */
	size_t run; /* index in stat->runs */
	bool counting; /* the delay is over */
	bool timed_out;
	bool looked_at; /* the command's executable was checked after its exec */
	bool hidden; /* we may not see the executable; the enabled time up to then: */
	uint64_t hidden_enabled_ns;
	uint64_t begin_ns, end_ns; /* of the counting, CLOCK_MONOTONIC */
	uint64_t interval_ns; /* end of the last interval, relative to begin_ns */
	uint64_t deadline_ns, delay_until_ns, next_interval_ns; /* UINT64_MAX: none */
};

/* All return 0 or -ENOMEM. */

/* Fills in the events' states, and adds warnings that have not been added yet. */
int pm_program_tell_events(struct pm_program *program);
/* Returns the time for which the first available event was enabled, as of `values`. */
uint64_t pm_program_enabled_ns(const struct pm_program *program);
/* Adds an interval, from `before` to `values`. */
int pm_program_add_interval(struct pm_program *program, uint64_t now_ns);
/* Fills in values, rows, how the command ended, and warnings about the values. */
int pm_program_fill_run(struct pm_program *program);
void pm_program_drop_run(struct pm_program *program);
