/* SPDX-License-Identifier: MIT */
/* Counters while they are opened and read: shared by the files counters*.c. */
#pragma once

#include "perf-state.h"
#include "pm/counters.h"

enum {
	PM_REFERENCE = -1, /* in place of an event's index: see pm_counter_place */
	PM_GUARD = -2, /* see open_guard() */
};

struct pm_counter_place {
	int cpu; /* -1: all */
	pid_t task; /* PM_EVERY_TASK; 0: is gone */
	uint32_t row;
	bool uncore; /* of PMUs that count no tasks, beside the places of tasks */
	/*
	 * An event of a task on one CPU is enabled also while the task runs on another one,
	 * where it does not count: that is no multiplexing. A dummy, index in `fds`, tells how
	 * long the task was on this CPU. -1: none is needed.
	 */
	int reference;
	int anchor; /* whose ring hears of threads that end; -1: none */
};

struct pm_counter_fd {
	int fd;
	uint32_t place;
	int event; /* index, PM_REFERENCE or PM_GUARD */
	bool leads; /* its read(2) tells the `members` behind it, too */
	uint32_t members;
	uint64_t id;
	struct pm_count_read last;
	uint64_t scaled; /* sum of what was between the readings, each scaled */
	bool told; /* each thread that ends tells of it */
	uint64_t opened_ns;
};

/* By thread: who is known by a name. */
struct pm_counter_task {
	pid_t pid, tid;
	char comm[16];
};

/* What an ended thread had counted. All of its events were enabled for one and the same time,
 * so records with another one are not of this thread. */
struct pm_counter_ended {
	pid_t pid, tid;
	uint32_t top; /* the row of the thread that it came from */
	uint64_t enabled_ns;
	uint64_t on_ns; /* running time of the references */
	size_t reads; /* where its events are in `ended_reads` */
	uint64_t seen, sum; /* how many descriptors were told of, and which */
};

/* By row: the descriptors that tell of a thread which came from it. */
struct pm_counter_expected {
	uint64_t len, sum; /* of their indices */
};

struct pm_counters {
	struct pm_counters_options options; /* its borrowed lists are not kept */
	PM_VEC(struct pm_counters_event) events;
	PM_VEC(struct pm_perf_event) asked; /* what attrs are made of */
	PM_VEC(bool) uncore; /* counted on the PMU's CPUs, whatever the target is */
	PM_VEC(struct pm_counter_place) places;
	PM_VEC(struct pm_counter_fd) fds;
	PM_VEC(struct pm_counters_row) rows;
	size_t own_rows; /* the first ones: of places; those behind, of ended threads */
	PM_VEC(struct pm_counter_expected) expected; /* of own rows */
	PM_VEC(struct pm_counter_task) tasks;
	struct pm_index task_index; /* by tid */
	PM_VEC(struct pm_counter_ended) ended; /* by row, from own_rows on */
	PM_VEC(struct pm_counter_ended) pending; /* not all of it was told */
	PM_VEC(struct pm_count_read) ended_reads;
	PM_VEC(int) anchors; /* by ring */
	struct pm_merge merge;
	struct pm_event_ids ids; /* id → index in `fds` */
	uint64_t lost_rows;
	uint64_t ends; /* threads that ended, and were not opened */
	bool told; /* what any of them had counted */
	int cgroup_fd;
	bool tell_ended; /* rings, and PERF_RECORD_READ in them */
	bool can_read_groups; /* this kernel can, for inherited events */
	bool nofile_raised;
	struct pm_perf_notes notes;
	struct pm_perf_features features;
	struct pm_perf_env env;
};

/* ---- counters-value.c ------------------------------------------------------------------- */

uint64_t pm_count_add(uint64_t a, uint64_t b); /* saturates */
void pm_count_read_add(struct pm_count_read *sum, const struct pm_count_read *more);

/* ---- counters-plan.c -------------------------------------------------------------------- */

static inline bool pm_counters_wide(const struct pm_counters *counters)
{
	return counters->options.target == PM_PERF_CPUS ||
	       counters->options.target == PM_PERF_CGROUP;
}

/* Of a running task a thread may begin between two members of a group. */
static inline bool pm_counters_may_grow(const struct pm_counters *counters)
{
	return counters->options.target == PM_PERF_TASKS && !counters->options.no_inherit;
}

/* Ended threads tell of single events. Of one that inherited a part of a group alone, read(2)
 * of the whole gives ECHILD. */
static inline bool pm_counters_read_groups(const struct pm_counters *counters)
{
	return counters->can_read_groups && !counters->tell_ended &&
	       !pm_counters_may_grow(counters);
}

/* Whether tasks have an event that their threads do not inherit: see open_guard(). */
bool pm_counters_guarded(const struct pm_counters *counters);

/* Fills places and rows. */
int pm_counters_plan(struct pm_counters *counters,
		     const struct pm_counters_options *options, struct pm_error *err);
/* The CPUs of the PMU of @event become places. */
int pm_counters_plan_uncore(struct pm_counters *counters, uint32_t event);
size_t pm_counters_fds_needed(const struct pm_counters *counters);
/* Places without CPUs, so that ended threads tell nothing. False when it is so already. */
bool pm_counters_plan_fewer(struct pm_counters *counters,
			    const struct pm_counters_options *options);

/* ---- counters-open.c -------------------------------------------------------------------- */

/* Opens all that can be had; what cannot has its state then. */
int pm_counters_open_all(struct pm_counters *counters, struct pm_error *err);
void pm_counters_close_all(struct pm_counters *counters);
/* 0 or -errno; @only_wide: what does not wait for an exec. */
int pm_counters_switch(struct pm_counters *counters, bool on, bool only_wide);

/* ---- counters-threads.c ----------------------------------------------------------------- */

/* Rings on each CPU, for what is told of threads. -EPERM, -ENOMEM where there is no room. */
int pm_counters_map_rings(struct pm_counters *counters, struct pm_error *err);
/* What is to be told of each thread that ends, now that all events are open. */
int pm_counters_expect(struct pm_counters *counters);
/* Whom the target's threads are, before any record. */
int pm_counters_name_rows(struct pm_counters *counters);
/* Names of rows that no record tells of. */
void pm_counters_refresh_names(struct pm_counters *counters);
