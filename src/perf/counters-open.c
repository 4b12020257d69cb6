/* SPDX-License-Identifier: MIT */
/*
 * Opens counters. A group is opened at all of its places. If the kernel refuses one
 * member anywhere, the cause is removed and the whole group is opened again, so that all
 * members have the same restrictions.
 */
#include "counters-state.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>

enum {
	TRIES_MAX = 256, /* more than all degradations of all members of a group */
};

/* ---- groups ---------------------------------------------------------------------------- */

/* Identifies the event's group by the index of the leader as typed, or of the event
 * itself. */
static uint32_t counters_group_of(const struct pm_counters *counters, uint32_t event)
{
	uint32_t leader = counters->asked.data[event].requested.leader;

	if (leader >= counters->asked.len || counters->events.data[event].group_broken)
		return event;
	return leader;
}

static bool has_counter_opened(const struct pm_counters *counters, uint32_t event)
{
	return counters->events.data[event].state == PM_STAT_OK;
}

/* Whether both events are counted together. */
static bool are_counted_together(const struct pm_counters *counters, uint32_t a,
				 uint32_t b)
{
	if (a == b)
		return true;
	return !counters->events.data[a].group_broken &&
	       !counters->events.data[b].group_broken &&
	       counters_group_of(counters, a) == counters_group_of(counters, b);
}

/* Returns the leader of the event's group. If the typed one cannot be opened, the first
 * member that can replaces it. */
static uint32_t counters_leader_of(const struct pm_counters *counters, uint32_t event)
{
	for (uint32_t i = 0; i < event; i++)
		if (has_counter_opened(counters, i) &&
		    are_counted_together(counters, i, event))
			return i;
	return event;
}

static bool group_has_probe(const struct pm_counters *counters, uint32_t event)
{
	for (uint32_t i = 0; i < counters->asked.len; i++)
		if (are_counted_together(counters, i, event) &&
		    pm_perf_is_probe(&counters->asked.data[i].actual))
			return true;
	return false;
}

/* ---- one descriptor -------------------------------------------------------------------- */

static void fill_counter_attr(const struct pm_counters *counters,
			      const struct pm_counter_place *place,
			      const struct pm_perf_event *event, bool member,
			      struct perf_event_attr *attr)
{
	bool command = counters->options.target == PM_PERF_COMMAND;
	bool every = place->task == PM_EVERY_TASK;
	struct pm_attr_request request = {
		.event = event,
		.features = &counters->features,
		.member = member,
		.no_inherit = every || counters->options.no_inherit,
		.no_enable_on_exec =
			every || counters->options.begin_disabled || !command,
		.read_group = pm_counters_read_groups(counters),
		.tell_ended = counters->tell_ended && !every,
	};

	pm_attr_fill_counter(&request, attr);
}

static int open_counter_at(const struct pm_counters *counters,
			   const struct pm_counter_place *place,
			   const struct perf_event_attr *attr, int group_fd)
{
	bool cgroup = counters->options.target == PM_PERF_CGROUP;
	int fd = pm_sys_perf_event_open(attr, cgroup ? counters->cgroup_fd : place->task,
					place->cpu, group_fd,
					cgroup ? PERF_FLAG_PID_CGROUP : 0);

	if (fd < 0)
		return -errno;
	return fd;
}

/* Takes over @fd. */
static int counters_add_fd(struct pm_counters *counters, int fd, uint32_t place,
			   int event)
{
	int anchor = -1, ret = 0;
	struct pm_counter_fd entry = { .fd = fd,
				       .place = place,
				       .event = event,
				       .leads = true,
				       .opened_ns = pm_perf_now_ns() };

	if (event != PM_GUARD)
		anchor = counters->places.data[place].anchor;
	entry.told = anchor >= 0;

	if (ioctl(fd, PERF_EVENT_IOC_ID, &entry.id) < 0)
		ret = -errno;
	if (ret == 0 && anchor >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, anchor) < 0)
		ret = -errno;
	if (ret == 0)
		ret = pm_vec_push(&counters->fds, entry);
	if (ret < 0)
		close(fd);
	return ret;
}

static void counters_close_fds_from(struct pm_counters *counters, size_t len)
{
	while (counters->fds.len > len)
		close(counters->fds.data[--counters->fds.len].fd);
}

/* ---- helper events --------------------------------------------------------------------- */

static const struct pm_perf_event dummy = {
	.actual = { .kind = PM_EVENT_SOFTWARE,
		    .type = PERF_TYPE_SOFTWARE,
		    .config = PERF_COUNT_SW_DUMMY,
		    .user = true },
};

static int counters_open_reference(struct pm_counters *counters, uint32_t at)
{
	struct pm_counter_place *place = &counters->places.data[at];
	struct perf_event_attr attr;
	int fd, ret;

	if (place->cpu < 0 || place->task <= 0)
		return 0;
	fill_counter_attr(counters, place, &dummy, false, &attr);
	attr.task = attr.comm = attr.comm_exec = counters->tell_ended;
	fd = open_counter_at(counters, place, &attr, -1);
	if (fd < 0)
		return fd;
	ret = counters_add_fd(counters, fd, at, PM_REFERENCE);
	if (ret == 0)
		place->reference = (int)counters->fds.len - 1;
	return ret;
}

/*
 * If all events of two tasks are inherited from each other, the tasks are "clones": the
 * scheduler swaps their contexts instead of their events. With inherit_stat it then also
 * swaps the counts, pairing events by their position in two lists
 * (perf_event_sync_stat()). In a task whose events we opened, the order differs from that
 * of its children, so the counts of one event would end up in another. An event that is
 * not inherited keeps such a task from having clones; its children are clones of each
 * other, all in the same order.
 *
 * The members of a group are also opened one by one. If the context of a running task is
 * swapped in between, its leader is in another context, and the kernel refuses the
 * members (EINVAL).
 */
static int counters_open_guard(struct pm_counters *counters, uint32_t at)
{
	struct pm_counter_place place = counters->places.data[at];
	struct perf_event_attr attr;
	int fd;

	if (!pm_counters_guarded(counters) || place.task <= 0 ||
	    (at > 0 && counters->places.data[at - 1].task == place.task))
		return 0;
	place.cpu = -1;
	fill_counter_attr(counters, &place, &dummy, false, &attr);
	attr.inherit = 0;
	attr.inherit_stat = 0;
	attr.enable_on_exec = 0;
	fd = open_counter_at(counters, &place, &attr, -1);
	if (fd < 0)
		return fd;
	return counters_add_fd(counters, fd, at, PM_GUARD);
}

/* ---- a group --------------------------------------------------------------------------- */

/* Where and why an event could not be opened. */
struct refused {
	uint32_t event;
	const struct pm_counter_place *place;
	bool member;
	bool filter; /* the event's filter was refused, not the event: nothing helps */
};

/* Opens one event at one place. @group_fd: its leader's descriptor, or -1. Returns 0 or
 * -errno. */
static int open_counter_at_place(struct pm_counters *counters, uint32_t event,
				 uint32_t at, int group_fd, struct refused *refused,
				 struct pm_error *err)
{
	const struct pm_perf_event *asked = &counters->asked.data[event];
	const struct pm_counter_place *place = &counters->places.data[at];
	struct perf_event_attr attr;
	int fd, ret;

	*refused = (struct refused){ event, place, group_fd >= 0, false };
	fill_counter_attr(counters, place, asked, group_fd >= 0, &attr);
	if (group_has_probe(counters, event))
		attr.inherit = attr.inherit_stat = 0;
	fd = open_counter_at(counters, place, &attr, group_fd);
	if (fd < 0)
		return fd;
	ret = pm_perf_set_filter(&asked->actual, fd, err);
	if (ret < 0) {
		refused->filter = true;
		close(fd);
		return ret;
	}
	ret = counters_add_fd(counters, fd, at, (int)event);
	if (ret == 0 && !attr.inherit)
		counters->fds.data[counters->fds.len - 1].told = false;
	return ret;
}

static int open_counter_group_at(struct pm_counters *counters, uint32_t leader,
				 uint32_t at, struct refused *refused,
				 struct pm_error *err)
{
	size_t first = counters->fds.len;

	for (uint32_t i = leader; i < counters->asked.len; i++) {
		bool member = i != leader;
		int ret;

		if (!has_counter_opened(counters, i) ||
		    !are_counted_together(counters, leader, i))
			continue;
		ret = open_counter_at_place(counters, i, at,
					    member ? counters->fds.data[first].fd : -1,
					    refused, err);
		if (ret < 0)
			return ret;
		if (member && pm_counters_read_groups(counters)) {
			counters->fds.data[first].members++;
			counters->fds.data[counters->fds.len - 1].leads = false;
		}
	}
	return 0;
}

static int open_counter_group(struct pm_counters *counters, uint32_t leader,
			      struct refused *refused, struct pm_error *err)
{
	for (uint32_t at = 0; at < counters->places.len; at++) {
		struct pm_counter_place *place = &counters->places.data[at];
		int ret;

		if (place->task == 0 || place->uncore != counters->uncore.data[leader] ||
		    (place->task == PM_EVERY_TASK &&
		     !pm_perf_works_on(&counters->asked.data[leader].actual, place->cpu)))
			continue;
		ret = open_counter_group_at(counters, leader, at, refused, err);
		/* It is normal that one of many threads has ended. */
		if (ret == -ESRCH && counters->options.target == PM_PERF_TASKS)
			place->task = 0;
		else if (ret < 0)
			return ret;
	}
	return 0;
}

/* ---- degradations ---------------------------------------------------------------------- */

static int explain_refused_counter(const struct pm_counters *counters, uint32_t event,
				   int code, struct pm_error *err)
{
	const struct pm_perf_event *asked = &counters->asked.data[event];
	const struct pm_event_spec *spec = &asked->actual;
	struct pm_perf_refusal why = {
		.code = code,
		.event = spec->requested,
		.kernel = spec->kernel && !asked->kernel_dropped,
		.in_kernel_only = pm_perf_in_kernel_only(spec),
		.kind = spec->kind,
		.wide = pm_counters_wide(counters),
		.others = counters->options.target == PM_PERF_TASKS,
		.fds = pm_counters_fds_needed(counters),
		.env = &counters->env,
	};

	if (code == ENOENT || code == ENXIO || code == ENODEV || code == EOPNOTSUPP)
		return pm_perf_explain_missing(spec, code, err);
	return pm_perf_explain_open(&why, err);
}

static int counters_leave_out(struct pm_counters *counters, uint32_t event,
			      enum pm_stat_state state, int code)
{
	struct pm_counters_event *about = &counters->events.data[event];

	about->state = state;
	about->kernel_dropped = false;
	explain_refused_counter(counters, event, code, &about->why);
	return 0;
}

/* Whether the event makes sense without the kernel. Everything that a tracepoint or
 * kprobe counts happens in the kernel, so nothing would be left. */
static bool may_drop_kernel(const struct pm_event_spec *spec)
{
	return pm_perf_can_drop_kernel(spec) && spec->kind != PM_EVENT_TRACEPOINT &&
	       spec->kind != PM_EVENT_KPROBE;
}

/* Restricts all events of a group to user space together, so that they count the same
 * code and their counts can be compared. */
static int counters_drop_kernel(struct pm_counters *counters, uint32_t event, int code)
{
	struct pm_perf_event *asked = counters->asked.data;

	if (asked[event].kernel_dropped || !asked[event].actual.kernel ||
	    !may_drop_kernel(&asked[event].actual))
		return counters_leave_out(counters, event, PM_STAT_NOT_PERMITTED, code);
	for (uint32_t i = 0; i < counters->asked.len; i++) {
		const struct pm_event_spec *spec = &asked[i].actual;

		if (!are_counted_together(counters, i, event) || !spec->kernel ||
		    !may_drop_kernel(spec))
			continue;
		asked[i].kernel_dropped = true;
		/* A clock counts all time of a task, even if the kernel is excluded. */
		counters->events.data[i].kernel_dropped = !pm_perf_is_clock(spec);
	}
	return 0;
}

static bool does_counter_open_alone(struct pm_counters *counters,
				    const struct refused *refused)
{
	struct perf_event_attr attr;
	int fd PM_AUTO_CLOSE = -1;

	fill_counter_attr(counters, refused->place, &counters->asked.data[refused->event],
			  false, &attr);
	fd = open_counter_at(counters, refused->place, &attr, -1);
	return fd >= 0;
}

static int counters_break_group(struct pm_counters *counters, uint32_t event,
				struct pm_error *err)
{
	const struct pm_event_spec *spec = &counters->asked.data[event].actual;
	uint32_t leader = counters_leader_of(counters, event);

	if (!counters->options.weak_groups) {
		pm_error_set(err, -EINVAL,
			     "the events of its group cannot be counted together");
		pm_error_where(err, spec->requested, -1);
		return -EINVAL;
	}
	pm_perf_notes_add(&counters->notes,
			  "%s cannot be counted together with its group: each of its "
			  "events is counted for itself.",
			  spec->requested);
	/* The leader is last, because are_counted_together() finds the other members by it. */
	for (uint32_t i = (uint32_t)counters->asked.len; i-- > 0;)
		if (i != leader && are_counted_together(counters, leader, i))
			counters->events.data[i].group_broken = true;
	counters->events.data[leader].group_broken = true;
	return 0;
}

/* Counts the event on whole CPUs: a PMU outside of the cores cannot count tasks
 * (perf_invalid_context). */
static int counters_count_uncore(struct pm_counters *counters, uint32_t event)
{
	const struct pm_event_spec *spec = &counters->asked.data[event].actual;

	if (counters->options.by == PM_COUNTERS_BY_THREAD) {
		struct pm_counters_event *about = &counters->events.data[event];

		about->state = PM_STAT_NOT_SUPPORTED;
		pm_error_set(&about->why, -EINVAL,
			     "it belongs to whole CPUs and is not counted by thread");
		pm_error_where(&about->why, spec->requested, -1);
		return 0;
	}
	counters->uncore.data[event] = true;
	counters->events.data[event].group_broken = true;
	pm_perf_notes_add(&counters->notes,
			  "%s belongs to whole CPUs: what other programs do meanwhile is "
			  "counted, too.",
			  spec->requested);
	return pm_counters_plan_uncore(counters, event);
}

/* Handles EINVAL, which does not say what is wrong, by trying the likely causes in
 * turn. */
static int counters_settle_invalid(struct pm_counters *counters,
				   const struct refused *refused, struct pm_error *err)
{
	uint32_t event = refused->event;
	struct pm_perf_event *asked = &counters->asked.data[event];
	const struct pm_event_spec *spec = &asked->actual;

	if (refused->member && does_counter_open_alone(counters, refused))
		return counters_break_group(counters, event, err);
	if (counters->features.exclude_guest && spec->type != PERF_TYPE_SOFTWARE) {
		counters->features.exclude_guest = false;
		return 0;
	}
	if (spec->cpus && !counters->uncore.data[event] &&
	    refused->place->task != PM_EVERY_TASK)
		return counters_count_uncore(counters, event);
	/* The PMU can only count user space and kernel together
	 * (PERF_PMU_CAP_NO_EXCLUDE). */
	if (asked->kernel_dropped) {
		asked->kernel_dropped = false;
		return counters_leave_out(counters, event, PM_STAT_NOT_PERMITTED, EACCES);
	}
	return counters_leave_out(counters, event, PM_STAT_NOT_SUPPORTED, EINVAL);
}

/* Returns 0 if another try is worthwhile. */
static int counters_settle_refusal(struct pm_counters *counters,
				   const struct refused *refused, int code,
				   struct pm_error *err)
{
	bool filtered = counters->env.seccomp == PM_SECCOMP_FILTER;

	switch (code) {
	case EMFILE:
		if (pm_perf_raise_nofile(&counters->nofile_raised))
			return 0;
		return explain_refused_counter(counters, refused->event, code, err);
	case ENFILE:
	case ENOMEM:
	case ESRCH:
		return explain_refused_counter(counters, refused->event, code, err);
	case EACCES:
	case EPERM:
		return counters_drop_kernel(counters, refused->event, code);
	case EINVAL:
		return counters_settle_invalid(counters, refused, err);
	default:
		if (code == ENOSYS && filtered)
			return counters_leave_out(counters, refused->event,
						  PM_STAT_NOT_PERMITTED, code);
		return counters_leave_out(counters, refused->event, PM_STAT_NOT_SUPPORTED,
					  code);
	}
}

/* ---- all of them ------------------------------------------------------------------------ */

static int counters_open_helpers(struct pm_counters *counters, struct pm_error *err)
{
	for (uint32_t at = 0; at < counters->places.len; at++) {
		struct pm_counter_place *place = &counters->places.data[at];
		int ret = counters_open_reference(counters, at);

		if (ret == 0)
			ret = counters_open_guard(counters, at);
		if (ret == -ESRCH && counters->options.target == PM_PERF_TASKS)
			place->task = 0;
		else if (ret == -EMFILE && pm_perf_raise_nofile(&counters->nofile_raised))
			at--;
		else if (ret == -EACCES || ret == -EPERM || ret == -ENOSYS)
			return 0; /* the events will be refused too, each with a reason */
		else if (ret < 0)
			return explain_refused_counter(counters, 0, -ret, err);
	}
	return 0;
}

static int counters_settle_group(struct pm_counters *counters, uint32_t event,
				 struct pm_error *err)
{
	size_t before = counters->fds.len;

	for (int i = 0; i < TRIES_MAX; i++) {
		struct refused refused;
		int ret;

		/* The last try left it out, or its group has another leader now. */
		if (!has_counter_opened(counters, event) ||
		    counters_leader_of(counters, event) != event)
			return 0;
		ret = open_counter_group(counters, event, &refused, err);
		if (ret == 0 || refused.filter)
			return ret;
		counters_close_fds_from(counters, before);
		ret = counters_settle_refusal(counters, &refused, -ret, err);
		if (ret < 0)
			return ret;
	}
	return pm_error_set(err, -EINVAL, "the kernel takes the events in no form");
}

static int counters_add_ids(struct pm_counters *counters)
{
	int ret = 0;

	for (uint32_t i = 0; i < counters->fds.len && ret == 0; i++)
		ret = pm_event_ids_add(&counters->ids, counters->fds.data[i].id, i);
	return ret;
}

static void counters_note_kernel(struct pm_counters *counters)
{
	struct pm_str names PM_CLEANUP(pm_str_release) = { 0 };
	char level[16] = "unknown";

	for (size_t i = 0; i < counters->events.len; i++) {
		const struct pm_counters_event *event = &counters->events.data[i];

		if (!event->kernel_dropped || event->state != PM_STAT_OK)
			continue;
		if (names.len > 0)
			pm_str_puts(&names, ", ");
		pm_str_puts(&names, event->spec.name);
	}
	if (names.len == 0 || names.failed)
		return;
	if (counters->env.paranoid_known)
		snprintf(level, sizeof(level), "%d", counters->env.paranoid);
	pm_perf_notes_add(
		&counters->notes,
		"the kernel may not be counted here (kernel.perf_event_paranoid is %s): "
		"%s in user space only (sudo sysctl kernel.perf_event_paranoid=1 allows "
		"both).",
		level, names.data);
}

static void counters_note_probes(struct pm_counters *counters)
{
	if (pm_counters_wide(counters) || counters->options.no_inherit)
		return;
	for (uint32_t i = 0; i < counters->events.len; i++) {
		if (!has_counter_opened(counters, i) || !group_has_probe(counters, i))
			continue;
		pm_perf_notes_add(&counters->notes,
				  "%s is not counted in threads and processes that are "
				  "started from now on: the kernel does not hand probes "
				  "on (-a counts everybody).",
				  counters->events.data[i].spec.name);
		return;
	}
}

static int counters_check_alive(const struct pm_counters *counters, struct pm_error *err)
{
	for (size_t i = 0; i < counters->places.len; i++)
		if (counters->places.data[i].task != 0)
			return 0;
	return pm_error_set(err, -ESRCH, "all processes to be counted are gone");
}

int pm_counters_open_all(struct pm_counters *counters, struct pm_error *err)
{
	int ret = counters_open_helpers(counters, err);

	for (uint32_t i = 0; i < counters->events.len && ret == 0; i++)
		if (counters_leader_of(counters, i) == i)
			ret = counters_settle_group(counters, i, err);
	if (ret < 0)
		return ret;
	ret = counters_add_ids(counters);
	if (ret < 0)
		return pm_error_set(err, ret, "no memory for the counters");
	counters_note_kernel(counters);
	counters_note_probes(counters);
	return counters_check_alive(counters, err);
}

void pm_counters_close_all(struct pm_counters *counters)
{
	counters_close_fds_from(counters, 0);
	pm_event_ids_release(&counters->ids);
	pm_merge_release(&counters->merge);
	for (size_t i = 0; i < counters->anchors.len; i++)
		close(counters->anchors.data[i]);
	pm_vec_clear(&counters->anchors);
	for (size_t i = 0; i < counters->places.len; i++)
		counters->places.data[i].reference = counters->places.data[i].anchor = -1;
}

int pm_counters_switch(struct pm_counters *counters, bool on,
		       enum pm_counters_switched which)
{
	unsigned long what = pm_perf_switch_request(on);
	size_t len = counters->fds.len;
	int ret = 0;

	/* References, which come first in `fds`, must be enabled for a slightly
	 * shorter time than the events that they measure; otherwise these would look
	 * multiplexed. */
	for (size_t i = 0; i < len; i++) {
		const struct pm_counter_fd *entry =
			&counters->fds.data[on ? len - 1 - i : i];

		if (entry->event == PM_GUARD ||
		    (which == PM_SWITCH_WIDE &&
		     counters->places.data[entry->place].task != PM_EVERY_TASK))
			continue;
		if (ioctl(entry->fd, what, 0) < 0)
			ret = -errno;
	}
	return ret;
}
