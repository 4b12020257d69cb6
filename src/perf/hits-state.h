/* SPDX-License-Identifier: MIT */
/* State of hits, shared by the hits*.c files. */
#pragma once

#include "perf-state.h"
#include "pm/counters.h"

#define PM_HITS_NO_PLACE UINT32_MAX

enum {
	/* Whole pages are mapped, so this part of an address is the same in file and
	 * memory. */
	PM_HITS_PAGE = 4096,
	PM_HITS_EVENTS_MAX = 256, /* each costs a descriptor on every CPU */
};

/* One event of the kernel. Several places of a file may share it. */
struct pm_hits_event {
	struct pm_event_spec spec;
	uint32_t class;
	uint64_t given; /* hits passed to the caller */
	/* Place by the lowest bits of the address, which differ among the places of an
	 * event. NULL: there is only one, `place`. */
	uint32_t *by_low;
	uint32_t place;
};

struct pm_hits_member {
	int fd;
	uint64_t id;
	uint32_t group;
	int32_t counter, event; /* index, or -1; both -1: the leader */
};

/*
 * A group has a leader, then the counters, then the events of places; all groups contain
 * the same events in the same order. It belongs to a CPU and a task with all that it
 * starts, or to one task on all CPUs, with a ring of its own.
 */
struct pm_hits_group {
	int cpu; /* -1: of one task */
	pid_t tid;
	uint32_t first, len; /* range in `members` */
	bool ended;
};

/* The counts of a thread at its last record in each group. */
struct pm_hits_seen {
	uint32_t group;
	uint64_t running_ns;
	uint64_t counts[PM_HITS_COUNTERS_MAX];
};

struct pm_hits_thread {
	pid_t tid; /* 0: the row is unused */
	uint32_t current; /* index in `seen` */
	/* Sums over all groups except the current one. */
	uint64_t running_ns;
	uint64_t counts[PM_HITS_COUNTERS_MAX];
	PM_VEC(struct pm_hits_seen) seen;
};

struct pm_hits_threads {
	struct pm_index by_tid;
	PM_VEC(struct pm_hits_thread) rows;
	PM_VEC(uint32_t) unused;
};

/* Places in files as tracefs events, because events of the uprobe PMU cannot be
 * inherited. */
struct pm_hits_probes {
	int tracefs; /* -1: not yet opened */
	char system[64];
	size_t first, len; /* range of the numbers of its events */
};

/* The total counts of a group. */
struct pm_hits_sums {
	uint64_t *events; /* by event: number of hits of its places */
	struct pm_count_read *counters; /* by counter */
};

struct pm_hits {
	struct pm_hits_options options; /* its pointers are not kept */
	PM_VEC(struct pm_counters_event) counters;
	PM_VEC(struct pm_hits_event) events;
	/* By place: its event, and the next place at the same address. */
	PM_VEC(struct pm_hits_place { uint32_t event, same; }) places;
	PM_VEC(bool) event_stack; /* by event: whether to copy the stack */
	struct pm_hits_probes probes;
	bool by_task; /* one group per task instead of per CPU */
	bool software_only; /* no other event can displace a counter of the group */
	bool crowded; /* a counter was displaced */
	bool enabled;
	PM_VEC(struct pm_hits_group) groups;
	PM_VEC(struct pm_hits_member) members;
	PM_VEC(int) anchors; /* by CPU: the events whose rings are shared */
	PM_VEC(int) poll_fds;
	PM_VEC(pid_t) late; /* new tasks, to be opened before the next round */
	struct pm_event_ids ids;
	struct pm_merge merge;
	struct pm_hits_threads threads;
	struct pm_hits_sums closed; /* sums of the groups that have been closed */
	struct pm_perf_notes notes;
	struct pm_perf_features features;
	struct pm_attr_shape shape;
	struct pm_perf_env env;
	size_t ring_pages;
	bool nofile_raised, missed, missed_noted;
	bool few_fds; /* the reason for by_task */
	uint64_t lost_records;
	/* The next place at the address of the last sample; PM_HITS_NO_PLACE: none. */
	uint32_t pending;
	struct pm_hit last; /* the hit of that sample, while one is pending */
};

/* ---- hits-probes.c ----------------------------------------------------------------------- */

/* Whether this user can create events. */
int pm_hits_probes_check(struct pm_error *err);
void pm_hits_probes_init(struct pm_hits_probes *probes);
/*
 * Creates one event for all @len places of @path, whose lowest bits must differ. @config:
 * the value for perf_event_attr.config.
 */
int pm_hits_probes_add(struct pm_hits_probes *probes, const char *path,
		       const uint64_t *offsets, size_t len, uint64_t *config,
		       struct pm_error *err);
/* To be called when all descriptors of the events are closed. */
void pm_hits_probes_release(struct pm_hits_probes *probes);

/* ---- hits-places.c ----------------------------------------------------------------------- */

/* Creates the events of all places. */
int pm_hits_plan(struct pm_hits *hits, const struct pm_hits_options *options,
		 struct pm_error *err);
/* Returns the place of @event that is at @ip. */
uint32_t pm_hits_place_at(const struct pm_hits_event *event, uint64_t ip);

/* ---- hits-open.c ------------------------------------------------------------------------- */

int pm_hits_open_all(struct pm_hits *hits, const struct pm_hits_options *options,
		     struct pm_error *err);
/* If each task has a group, opens one for another task. */
int pm_hits_open_task(struct pm_hits *hits, pid_t tid, struct pm_error *err);
/* Whether the task has a group already, if each task has one. */
bool pm_hits_has_task(const struct pm_hits *hits, pid_t tid);
/* Closes the groups of tasks that have ended. Not allowed in the middle of a round. */
void pm_hits_close_ended(struct pm_hits *hits);
void pm_hits_close_all(struct pm_hits *hits);
/* Adds the counts of @group to @sums. Returns 0, or a negative error with nothing
 * added. */
int pm_hits_read_group(const struct pm_hits *hits, const struct pm_hits_group *group,
		       const struct pm_hits_sums *sums);

/* ---- hits-threads.c ---------------------------------------------------------------------- */

/* Returns the row of @tid, which is created if needed, or NULL if out of memory. */
struct pm_hits_thread *pm_hits_thread(struct pm_hits_threads *threads, pid_t tid);
void pm_hits_thread_forget(struct pm_hits_threads *threads, pid_t tid);
/* Records the current counts of the thread in @group. Returns 0 or -ENOMEM. */
int pm_hits_thread_seen(struct pm_hits_thread *thread, uint32_t group,
			const uint64_t *counts, size_t len, uint64_t running_ns);
void pm_hits_threads_release(struct pm_hits_threads *threads);
