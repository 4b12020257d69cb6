/* SPDX-License-Identifier: MIT */
/* A recording while it is being opened: shared by the files that open, degrade and size. */
#pragma once

#include "perf-internal.h"
#include "tree-filter.h"

#include <sys/syscall.h>

enum {
	PM_EVERY_TASK = -1,
	PM_SIDE_BAND =
		-1, /* in place of an event's index: tells of processes, no samples */
};

/* Where a ring is: a CPU, or, when file descriptors are scarce, one task on all CPUs. */
struct pm_perf_place {
	int cpu; /* -1: a task's */
	pid_t task; /* of cpu -1 */
	bool sampled; /* else only what is told of processes */
	bool offline;
	/*
	 * The rings belong to these, dummy events of our own task on that CPU: they outlive
	 * the target's tasks (whose events report POLLHUP for ever, perf_poll()) and a CPU
	 * that goes off and comes back, which the events of a CPU do not.
	 */
	int anchor, backward;
	/* A dummy of the CPU for every task: its time stands still when the CPU has been off. */
	int watch;
	uint64_t watched_ns,
		enabled_ns; /* when last looked at, 0: never; and its time then */
};

struct pm_perf_fd {
	int fd;
	uint32_t place;
	int event; /* index, or PM_SIDE_BAND */
	pid_t task; /* or PM_EVERY_TASK */
	uint64_t id; /* 0: side band */
};

/* What read(2) of events says. */
struct pm_perf_sums {
	uint64_t counted, lost;
};

struct pm_perf {
	struct pm_perf_options options; /* its tids and cgroup are ours, below */
	PM_VEC(struct pm_perf_event) events;
	PM_VEC(struct pm_perf_sums)
	before; /* of each event, by descriptors that are closed */
	PM_VEC(struct pm_perf_place) places;
	PM_VEC(struct pm_perf_fd) fds;
	PM_VEC(pid_t) tasks; /* to be followed; 0: is gone */
	int cgroup_fd;
	struct pm_tree_filter *filter; /* NULL: no events of CPUs for tasks */
	bool no_filter; /* it was tried */
	bool side_band_wide; /* of every task, though tasks are the target */
	bool side_band_must_be_wide; /* file descriptors do not suffice for one a task */
	bool some_cpus; /* not all that there are or will be */
	bool enabled;
	PM_VEC(int) poll_fds;
	struct pm_event_ids ids;
	struct pm_merge merge;
	struct pm_perf_notes notes;
	struct pm_perf_features features;
	struct pm_attr_shape shape;
	struct pm_perf_env env;
	size_t ring_bytes;
	size_t fds_needed; /* in all, for this way of opening */
	bool nofile_raised, rate_noted;
	bool map_failed; /* a ring, not an event */
};

#define pm_perf_note(perf, ...) pm_perf_notes_add(&(perf)->notes, __VA_ARGS__)

/* ---- for samples and for counts --------------------------------------------------------- */

/* Adds a sentence. */
void pm_perf_notes_add(struct pm_perf_notes *notes, const char *format, ...)
	PM_PRINTF(2, 3);
void pm_perf_notes_release(struct pm_perf_notes *notes);
/* The CPUs of @text, which have to be online; NULL: all that are. @online may be NULL. */
int pm_perf_cpus_wanted(const char *text, pm_cpu_list *ret, pm_cpu_list *online,
			struct pm_error *err);
/* A PMU may belong to some CPUs, as on processors with two kinds of cores. */
bool pm_perf_works_on(const struct pm_event_spec *spec, int cpu);
int pm_perf_set_filter(const struct pm_event_spec *spec, int fd, struct pm_error *err);
/* Whether user space alone may stand for all that was asked for. */
bool pm_perf_can_drop_kernel(const struct pm_event_spec *spec);
/* This machine does not have it, and what is near. Returns -code. */
int pm_perf_explain_missing(const struct pm_event_spec *spec, int code,
			    struct pm_error *err);
/* To the hard limit, once. */
bool pm_perf_raise_nofile(bool *raised);

static inline int pm_sys_perf_event_open(const struct perf_event_attr *attr, pid_t pid,
					 int cpu, int group_fd, unsigned long flags)
{
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, group_fd,
			    PERF_FLAG_FD_CLOEXEC | flags);
}

/* ---- perf-targets.c: what is opened where ------------------------------------------------ */

/* Everybody is the target, or who is in a cgroup. */
static inline bool pm_perf_wide(const struct pm_perf *perf)
{
	return perf->options.target == PM_PERF_CPUS ||
	       perf->options.target == PM_PERF_CGROUP;
}

static inline bool pm_perf_is_clock(const struct pm_event_spec *spec)
{
	return spec->type == PERF_TYPE_SOFTWARE &&
	       (spec->config == PERF_COUNT_SW_CPU_CLOCK ||
		spec->config == PERF_COUNT_SW_TASK_CLOCK);
}

/* Of the event's group; the event itself when it is in none. */
static inline uint32_t pm_perf_leader(const struct pm_perf *perf, uint32_t event)
{
	uint32_t leader = perf->events.data[event].requested.leader;

	return leader < perf->events.len ? leader : event;
}

static inline bool pm_cpu_list_has(const pm_cpu_list *list, uint32_t cpu)
{
	for (size_t i = 0; i < list->len; i++)
		if (list->data[i] == cpu)
			return true;
	return false;
}

/* Fills the places, the tasks, and decides about the filter. */
int pm_perf_plan_targets(struct pm_perf *perf, const struct pm_perf_options *options,
			 struct pm_error *err);
/* What can be done with fewer file descriptors. False when there is no such way. */
bool pm_perf_plan_fewer_fds(struct pm_perf *perf);
size_t pm_perf_count_fds(const struct pm_perf *perf);
/* Each place is a task's. */
bool pm_perf_by_task(const struct pm_perf *perf);
/* After each change of what is opened where. */
void pm_perf_decide_side_band(struct pm_perf *perf);

/* ---- perf-place.c ------------------------------------------------------------------------ */

/* -EAGAIN: something was changed, all has to be opened anew. */
int pm_perf_open_place(struct pm_perf *perf, uint32_t place, struct pm_error *err);
/* The events of the place that are of every task, after they were closed. */
int pm_perf_reopen_place(struct pm_perf *perf, uint32_t place, struct pm_error *err);
/* Those of every task, or all; its rings stay. */
void pm_perf_close_place(struct pm_perf *perf, uint32_t place, bool tasks_too);
/* All but the rings and the events that own them. */
void pm_perf_close_events(struct pm_perf *perf);
void pm_perf_close_all(struct pm_perf *perf);
/* Whether the event is opened for CPUs though tasks are the target. */
bool pm_perf_filtered(const struct pm_perf *perf, uint32_t event);
/* Of the uprobe or kprobe PMU. */
bool pm_perf_is_probe(const struct pm_event_spec *spec);
/* Then none of it is inherited: the kernel hands on a whole group, whatever its members say
 * (inherit_group()), or refuses members that say otherwise than their leader. */
bool pm_perf_group_has_probe(const struct pm_perf *perf, uint32_t event);
/* Says what is missed where probes are events of tasks. */
void pm_perf_note_probes(struct pm_perf *perf);
/* The same where samples have the counts of their group. */
void pm_perf_note_counts(struct pm_perf *perf);
/* PERF_EVENT_IOC_ENABLE or _DISABLE for the events that sample, of one place or of all. */
int pm_perf_switch(struct pm_perf *perf, int place, bool on);

/* ---- perf-degrade.c ---------------------------------------------------------------------- */

/* An event that no code in user space causes directly: with :u there are no samples. */
bool pm_perf_in_kernel_only(const struct pm_event_spec *spec);
/* Lowers the rate of @event to @max_hz (0: unknown). True when that changed it. */
bool pm_perf_clamp_rate(struct pm_perf *perf, struct pm_perf_event *event,
			uint64_t max_hz);
uint64_t pm_perf_nofile(void); /* the soft limit */
/* After errno @code of perf_event_open(2): changes one thing that may help, of @event and of
 * its group. True when another try of all is worth it. @first: the event was not open
 * anywhere yet. */
bool pm_perf_degrade(struct pm_perf *perf, struct pm_perf_event *event, int code,
		     bool first);
/* When nothing helps. Returns -code. */
int pm_perf_refused(struct pm_perf *perf, const struct pm_perf_event *event, int code,
		    struct pm_error *err);

/* ---- perf-room.c -------------------------------------------------------------------------- */

/* Sets ring_bytes. @explicit_bytes: what the user asked for, 0: nothing. */
int pm_perf_plan_rings(struct pm_perf *perf, const struct pm_perf_options *options,
		       size_t *explicit_bytes, struct pm_error *err);
/* Half of the size, when two records still fit. */
bool pm_perf_shrink_rings(struct pm_perf *perf, const struct pm_perf_options *options);
/* The watermark of the rings, in bytes. */
uint32_t pm_perf_wakeup_bytes(const struct pm_perf *perf);
/* Tells when the rings became smaller than is good. */
void pm_perf_note_rings(struct pm_perf *perf, const struct pm_perf_options *options,
			size_t explicit_bytes);

/* ---- perf-sums.c -------------------------------------------------------------------------- */

/* Before @entry is closed, as far as it can be read. */
void pm_perf_sums_keep(struct pm_perf *perf, const struct pm_perf_fd *entry);
