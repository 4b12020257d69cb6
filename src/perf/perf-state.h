/* SPDX-License-Identifier: MIT */
/* State of a recording, shared by the files that open events, degrade the setup and size
 * the rings. */
#pragma once

#include "perf-internal.h"
#include "tree-filter.h"

#include <sys/syscall.h>

enum {
	PM_EVERY_TASK = -1,
	/* In place of an event's index: records about processes, no samples. */
	PM_SIDE_BAND = -1,
};

/* What a ring belongs to: a CPU or, if file descriptors are scarce, one task on all
 * CPUs. */
struct pm_perf_place {
	int cpu; /* -1: the place is a task */
	pid_t task; /* if cpu is -1 */
	bool sampled; /* false: only records about processes */
	bool offline;
	/*
	 * Dummy events of our own task on that CPU; the rings belong to them. They
	 * outlive the target's tasks (whose events report POLLHUP forever, perf_poll())
	 * and a CPU that goes offline and comes back. A CPU's own events survive neither.
	 */
	int anchor, backward;
	/* A dummy event of the CPU for all tasks: its enabled time stops while the CPU is
	 * offline. */
	int watch;
	/* When the watch was last read (0: never), and its enabled time then. */
	uint64_t watched_ns, enabled_ns;
};

struct pm_perf_fd {
	int fd;
	uint32_t place;
	int event; /* index, or PM_SIDE_BAND */
	pid_t task; /* PM_EVERY_TASK: of a CPU */
	uint64_t id; /* 0: records about processes only */
};

/* Sums of what read(2) of events returned. */
struct pm_perf_sums {
	uint64_t counted, lost;
};

struct pm_perf {
	struct pm_perf_options options; /* tids and cgroup_fd: see the copies below */
	PM_VEC(struct pm_perf_event) events;
	PM_VEC(struct pm_perf_sums)
	before; /* by event: sums of descriptors that are closed */
	PM_VEC(struct pm_perf_place) places;
	PM_VEC(struct pm_perf_fd) fds;
	PM_VEC(pid_t) tasks; /* to be followed; 0: the task is gone */
	int cgroup_fd;
	struct pm_tree_filter *filter; /* NULL: no per-CPU events for tasks */
	bool no_filter; /* creating it was tried and failed */
	/* Records about processes come from every task, although tasks are the target. */
	bool side_band_wide;
	bool side_band_must_be_wide; /* too few file descriptors for one per task */
	bool some_cpus; /* not all present and future CPUs */
	bool enabled;
	PM_VEC(int) poll_fds;
	struct pm_event_ids ids;
	struct pm_merge merge;
	struct pm_perf_notes notes;
	struct pm_perf_features features;
	struct pm_attr_shape shape;
	struct pm_perf_env env;
	size_t ring_bytes;
	size_t fds_needed; /* in total, for the current plan */
	bool nofile_raised, rate_noted;
	bool map_failed; /* the failure was a ring's, not an event's */
};

#define pm_perf_note(perf, ...) pm_perf_notes_add(&(perf)->notes, __VA_ARGS__)

/* ---- for samples and for counts --------------------------------------------------------- */

/* Adds a note, which must be a full sentence. */
void pm_perf_notes_add(struct pm_perf_notes *notes, const char *format, ...)
	PM_PRINTF(2, 3);
void pm_perf_notes_release(struct pm_perf_notes *notes);
/* Gets the CPUs of the list @text, which must be online; NULL: all online CPUs. @online
 * may be NULL. */
int pm_perf_cpus_wanted(const char *text, pm_cpu_list *out, pm_cpu_list *online,
			struct pm_error *err);
/* Whether the event can be opened on @cpu. A PMU may belong to some CPUs only, as on
 * processors with two kinds of cores. */
bool pm_perf_works_on(const struct pm_event_spec *spec, int cpu);
int pm_perf_set_filter(const struct pm_event_spec *spec, int fd, struct pm_error *err);
/* Whether sampling user space alone is an acceptable substitute. */
bool pm_perf_can_drop_kernel(const struct pm_event_spec *spec);
/* Explains that this machine does not have the event, and lists similar ones. Returns
 * -code. */
int pm_perf_explain_missing(const struct pm_event_spec *spec, int code,
			    struct pm_error *err);
/* Raises the limit of file descriptors to the hard limit, once. */
bool pm_perf_raise_nofile(bool *raised);

static inline int pm_sys_perf_event_open(const struct perf_event_attr *attr, pid_t pid,
					 int cpu, int group_fd, unsigned long flags)
{
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, group_fd,
			    PERF_FLAG_FD_CLOEXEC | flags);
}

/* ---- perf-targets.c: what is opened where ------------------------------------------------ */

/* Whether the target is all tasks or a cgroup. */
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

/* Returns the leader of the event's group, or the event itself if it is in no group. */
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

/* Fills the places and the tasks, and decides whether to use the filter. */
int pm_perf_plan_targets(struct pm_perf *perf, const struct pm_perf_options *options,
			 struct pm_error *err);
/* Changes the plan so that it needs fewer file descriptors. Returns false if that is not
 * possible. */
bool pm_perf_plan_fewer_fds(struct pm_perf *perf);
size_t pm_perf_count_fds(const struct pm_perf *perf);
/* Whether events are opened for tasks, not for CPUs. */
bool pm_perf_by_task(const struct pm_perf *perf);
/* To be called after each change of what is opened where. */
void pm_perf_decide_side_band(struct pm_perf *perf);

/* ---- perf-place.c ------------------------------------------------------------------------ */

/* Returns -EAGAIN if the plan was changed and everything has to be opened again. */
int pm_perf_open_place(struct pm_perf *perf, uint32_t place, struct pm_error *err);
/* Reopens the events at the place that cover every task, after they were closed. */
int pm_perf_reopen_place(struct pm_perf *perf, uint32_t place, struct pm_error *err);
enum pm_perf_closed {
	PM_CLOSE_EVERY_TASK, /* events that cover every task */
	PM_CLOSE_ALL, /* those of single tasks, too */
};
/* Closes events; the rings stay. */
void pm_perf_close_place(struct pm_perf *perf, uint32_t place, enum pm_perf_closed which);
/* Closes everything but the rings and the events that own them. */
void pm_perf_close_events(struct pm_perf *perf);
void pm_perf_close_all(struct pm_perf *perf);
/* Whether the event is opened per CPU although tasks are the target. */
bool pm_perf_filtered(const struct pm_perf *perf, uint32_t event);
/* Whether the event belongs to the uprobe or kprobe PMU. */
bool pm_perf_is_probe(const struct pm_event_spec *spec);
/* Whether a probe is in the event's group. None of the group is inherited then: the
 * kernel inherits a whole group, whatever the attrs of its members are (inherit_group()),
 * or refuses members that differ from their leader. */
bool pm_perf_group_has_probe(const struct pm_perf *perf, uint32_t event);
/* Adds a note about what is missed if probes are opened per task. */
void pm_perf_note_probes(struct pm_perf *perf);
/* The same if samples contain the counts of their group. */
void pm_perf_note_counts(struct pm_perf *perf);
/* PERF_EVENT_IOC_ENABLE or _DISABLE for the sampling events of one place, or of all
 * (-1). */
int pm_perf_switch(struct pm_perf *perf, int place, bool on);

/* ---- perf-degrade.c ---------------------------------------------------------------------- */

/* Whether no code in user space causes the event directly: with :u there are no
 * samples. */
bool pm_perf_in_kernel_only(const struct pm_event_spec *spec);
/* Lowers the rate of @event to @max_hz (0: unknown). Returns true if it changed. */
bool pm_perf_clamp_rate(struct pm_perf *perf, struct pm_perf_event *event,
			uint64_t max_hz);
uint64_t pm_perf_nofile(void); /* the soft limit */
/* Changes one thing in the plan for @event and its group that may help after
 * perf_event_open(2) failed with errno @code. Returns true if everything should be tried
 * again. @first: the event has not been opened anywhere yet. */
bool pm_perf_degrade(struct pm_perf *perf, struct pm_perf_event *event, int code,
		     bool first);
/* Called when nothing helps. Returns -code. */
int pm_perf_refused(struct pm_perf *perf, const struct pm_perf_event *event, int code,
		    struct pm_error *err);

/* ---- perf-room.c -------------------------------------------------------------------------- */

/* Sets ring_bytes. @explicit_bytes: the size that the user asked for, 0: none. */
int pm_perf_plan_rings(struct pm_perf *perf, const struct pm_perf_options *options,
		       size_t *explicit_bytes, struct pm_error *err);
/* Halves the size of the rings if two records still fit. Returns false if they do not. */
bool pm_perf_shrink_rings(struct pm_perf *perf, const struct pm_perf_options *options);
/* Returns the watermark of the rings, in bytes. */
uint32_t pm_perf_wakeup_bytes(const struct pm_perf *perf);
/* Adds a note if the rings became too small. */
void pm_perf_note_rings(struct pm_perf *perf, const struct pm_perf_options *options,
			size_t explicit_bytes);

/* ---- perf-sums.c -------------------------------------------------------------------------- */

/* Adds the counts of @entry to the sums before it is closed, if it can be read. */
void pm_perf_sums_keep(struct pm_perf *perf, const struct pm_perf_fd *entry);
