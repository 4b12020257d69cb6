/* SPDX-License-Identifier: MIT */
/* A run of a whole program: what program.c lets run, and program-values.c writes down. */
#pragma once

#include "marks.h"
#include "pm/count.h"

enum {
	PM_PROGRAM_RINGS_MAX =
		512, /* that are waited for; the others are read with them */
};

struct pm_program {
	struct pm_stat *stat;
	const struct pm_count_options *options;
	struct pm_child *child;
	struct pm_counters *counters;
	struct pm_marks marks;
	struct pm_counters_values values,
		before; /* the last reading; that of an interval */
	size_t run; /* index in stat->runs */
	bool counting; /* no longer waiting for the delay */
	bool timed_out;
	bool looked_at; /* at what the command executed, once it was under way */
	bool hidden; /* it is not for us to see, and had counted so long by then: */
	uint64_t hidden_enabled_ns;
	uint64_t begin_ns, end_ns; /* of the counting, CLOCK_MONOTONIC */
	uint64_t interval_ns; /* when the last interval ended, since begin_ns */
	uint64_t deadline_ns, delay_until_ns, next_interval_ns; /* UINT64_MAX: none */
};

/* All of them 0 or -ENOMEM. */

/* What became of the events, and warnings that are not there yet. */
int pm_program_tell_events(struct pm_program *program);
/* How long the first event that is there was enabled, as of `values`. */
uint64_t pm_program_enabled_ns(const struct pm_program *program);
/* From `before` to `values`. */
int pm_program_add_interval(struct pm_program *program, uint64_t now_ns);
/* Values, rows, the end of the command, and what the values ask to be said. */
int pm_program_fill_run(struct pm_program *program);
void pm_program_drop_run(struct pm_program *program);
