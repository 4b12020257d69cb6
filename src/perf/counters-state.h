/* SPDX-License-Identifier: MIT */
/* State of counters, shared by the counters*.c files. */
#pragma once

#include "perf-state.h"
#include "pm/counters.h"

enum {
	PM_REFERENCE = -1, /* in place of an event's index: see pm_counter_place */
	PM_GUARD = -2, /* see counters_open_guard() */
};

struct pm_counter_place {
	int cpu; /* -1: all */
	pid_t task; /* PM_EVERY_TASK: all; 0: the task is gone */
	uint32_t row;
	bool uncore; /* for PMUs that cannot count tasks; the places of tasks exist, too */
	/*
	 * An event of a task on one CPU stays enabled while the task runs on another
	 * CPU, where it does not count. That is not multiplexing. This dummy event (an
	 * index in `fds`; -1: not needed) measures how long the task was on this CPU.
	 */
	int reference;
	int anchor; /* its ring receives the counts of ended threads; -1: none */
};

struct pm_counter_fd {
	int fd;
	uint32_t place;
	int event; /* index, PM_REFERENCE or PM_GUARD */
	bool leads; /* its read(2) also returns the `members` that follow it */
	uint32_t members;
	uint64_t id;
	struct pm_count_read last;
	uint64_t scaled; /* sum of the differences between readings, each scaled */
	bool told; /* reports its count for each thread that ends */
	uint64_t opened_ns;
};

/* By thread: tasks whose name is known. */
struct pm_counter_task {
	pid_t pid, tid;
	char comm[16];
};

/* The counts of an ended thread. All of its events were enabled for the same time, so a
 * record with a different time belongs to another thread. */
struct pm_counter_ended {
	pid_t pid, tid;
	uint32_t top; /* the row of the thread that it descends from */
	uint64_t enabled_ns;
	uint64_t on_ns; /* running time of the references */
	size_t reads; /* index of its first event in `ended_reads` */
	uint64_t seen,
		sum; /* of the descriptors that have reported: number, sum of indices */
};

/* By row: the descriptors that report each thread that descends from the row's thread. */
struct pm_counter_expected {
	uint64_t len, sum; /* sum: of their indices */
};

struct pm_counters {
	struct pm_counters_options options; /* its borrowed lists are not kept */
	PM_VEC(struct pm_counters_event) events;
	PM_VEC(struct pm_perf_event) asked; /* events as opened; source of the attrs */
	PM_VEC(bool) uncore; /* counted on the PMU's CPUs, whatever the target is */
	PM_VEC(struct pm_counter_place) places;
	PM_VEC(struct pm_counter_fd) fds;
	PM_VEC(struct pm_counters_row) rows;
	size_t own_rows; /* rows of places; those of ended threads follow */
	PM_VEC(struct pm_counter_expected) expected; /* by own row */
	PM_VEC(struct pm_counter_task) tasks;
	struct pm_index task_index; /* by tid */
	PM_VEC(struct pm_counter_ended) ended; /* by row, starting at own_rows */
	PM_VEC(struct pm_counter_ended) pending; /* some descriptors have not reported */
	PM_VEC(struct pm_count_read) ended_reads;
	PM_VEC(int) anchors; /* by ring */
	struct pm_merge merge;
	struct pm_event_ids ids; /* id → index in `fds` */
	uint64_t lost_rows;
	uint64_t ends; /* threads that ended and were not opened by us */
	bool told; /* any of them reported its counts */
	int cgroup_fd;
	bool tell_ended; /* there are rings, and PERF_RECORD_READ in them */
	bool can_read_groups; /* the kernel supports group reads of inherited events */
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

/* Whether a running task may create a thread while the members of a group are being
 * opened. */
static inline bool pm_counters_may_grow(const struct pm_counters *counters)
{
	return counters->options.target == PM_PERF_TASKS && !counters->options.no_inherit;
}

/* Whether groups are read at once. Ended threads report single events. If a thread
 * inherited only a part of a group, read(2) of the whole group fails with ECHILD. */
static inline bool pm_counters_read_groups(const struct pm_counters *counters)
{
	return counters->can_read_groups && !counters->tell_ended &&
	       !pm_counters_may_grow(counters);
}

/* Whether tasks need an event that their threads do not inherit: see counters_open_guard(). */
bool pm_counters_guarded(const struct pm_counters *counters);

/* Fills places and rows. */
int pm_counters_plan(struct pm_counters *counters,
		     const struct pm_counters_options *options, struct pm_error *err);
/* Adds a place for each CPU of the PMU of @event. */
int pm_counters_plan_uncore(struct pm_counters *counters, uint32_t event);
size_t pm_counters_fds_needed(const struct pm_counters *counters);
/* Plans places without CPUs, so that ended threads are not reported. Returns false if
 * that already is the plan. */
bool pm_counters_plan_fewer(struct pm_counters *counters,
			    const struct pm_counters_options *options);

/* ---- counters-open.c -------------------------------------------------------------------- */

/* Opens every event that can be opened; the others get a state that says why not. */
int pm_counters_open_all(struct pm_counters *counters, struct pm_error *err);
void pm_counters_close_all(struct pm_counters *counters);
enum pm_counters_switched {
	PM_SWITCH_ALL,
	PM_SWITCH_WIDE, /* events that do not wait for an exec */
};
/* Returns 0 or -errno. */
int pm_counters_switch(struct pm_counters *counters, bool on,
		       enum pm_counters_switched which);

/* ---- counters-threads.c ----------------------------------------------------------------- */

/* Maps a ring on each CPU for records about threads. Returns -EPERM or -ENOMEM if there
 * is no memory for the rings. */
int pm_counters_map_rings(struct pm_counters *counters, struct pm_error *err);
/* Computes which descriptors report each thread that ends, once all events are open. */
int pm_counters_expect(struct pm_counters *counters);
/* Names the target's threads before the first record. */
int pm_counters_name_rows(struct pm_counters *counters);
/* Updates those names of rows that no record reports. */
void pm_counters_refresh_names(struct pm_counters *counters);
