/* SPDX-License-Identifier: MIT */
/* Opens the events of one place: a CPU, or a single task. */
#include "perf-state.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "tracepoint.h"

/* ---- events for records about processes ----------------------------------------------- */

static void fill_dummy_attr(const struct pm_perf *perf, struct perf_event_attr *out)
{
	struct pm_record_layout layout = pm_attr_layout(&(struct pm_attr_shape){ 0 });
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.sample_type = layout.sample_type;
	attr.sample_id_all = 1;
	attr.exclude_kernel = 1;
	attr.exclude_hv = 1;
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	attr.watermark = 1;
	attr.wakeup_watermark = pm_perf_wakeup_bytes(perf);
	*out = attr;
}

static void fill_side_band_attr(const struct pm_perf *perf, struct perf_event_attr *attr)
{
	attr->mmap = 1;
	attr->mmap2 = 1;
	attr->comm = 1;
	attr->comm_exec = 1;
	attr->task = 1;
	attr->context_switch = perf->options.switches;
}

/* Returns a descriptor or -errno; -EAGAIN after a change that requires another try of
 * everything. */
static int perf_open_dummy(struct pm_perf *perf, const struct perf_event_attr *attr,
			   pid_t pid, int cpu, unsigned long flags, struct pm_error *err)
{
	int fd = pm_sys_perf_event_open(attr, pid, cpu, -1, flags), ret = errno;

	if (fd >= 0)
		return fd;
	if (ret == ESRCH)
		return -ESRCH;
	if (ret == EMFILE && pm_perf_raise_nofile(&perf->nofile_raised))
		return -EAGAIN;
	return pm_perf_refused(perf, &perf->events.data[0], ret, err);
}

static int perf_add_fd(struct pm_perf *perf, struct pm_perf_fd entry,
		       struct pm_error *err)
{
	int ret = pm_vec_push(&perf->fds, entry);

	if (ret == 0 && entry.event >= 0) {
		ret = pm_event_ids_add(&perf->ids, entry.id, (uint32_t)entry.event);
		if (ret < 0)
			perf->fds.len--;
		else
			pm_event_ids_period(
				&perf->ids,
				pm_attr_unsaid_period(&perf->events.data[entry.event]));
	}
	if (ret < 0)
		return pm_error_set(err, ret, "no memory for the events");
	return 0;
}

static int share_ring_of_fd(int fd, int owner, struct pm_error *err)
{
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, owner) == 0)
		return 0;
	return pm_error_set(err, -errno, "events cannot share a ring: %s",
			    strerror(errno));
}

enum ring_direction {
	RING_FORWARD,
	RING_BACKWARD, /* overwritten */
};

static int perf_map_ring(struct pm_perf *perf, const struct pm_perf_place *place, int fd,
			 enum ring_direction direction, struct pm_error *err)
{
	struct pm_ring ring PM_CLEANUP(pm_ring_release) = { 0 };
	size_t pages = perf->ring_bytes / (size_t)sysconf(_SC_PAGESIZE);
	uint32_t key = (uint32_t)place->cpu;
	int ret;

	if (direction == RING_BACKWARD)
		ret = pm_ring_map_backward(&ring, fd, pages, err);
	else
		ret = pm_ring_map(&ring, fd, pages, err);
	if (ret < 0) {
		perf->map_failed = true;
		return ret;
	}
	if (place->cpu < 0)
		key = (uint32_t)place->task;
	ret = pm_merge_add(&perf->merge, &ring, key);
	if (ret < 0)
		return pm_error_set(err, ret, "no memory for the rings");
	return 0;
}

/* Opens the event that owns the ring and maps the ring, unless they exist. */
static int perf_open_anchor(struct pm_perf *perf, uint32_t at,
			    enum ring_direction direction, struct pm_error *err)
{
	struct pm_perf_place *place = &perf->places.data[at];
	bool backward = direction == RING_BACKWARD;
	int *anchor = backward ? &place->backward : &place->anchor;
	int fd PM_AUTO_CLOSE = -1;
	struct perf_event_attr attr;
	int ret;

	if (*anchor >= 0)
		return 0;
	fill_dummy_attr(perf, &attr);
	attr.write_backward = backward;
	attr.disabled = place->cpu >= 0;
	if (place->cpu < 0)
		fill_side_band_attr(perf, &attr);
	fd = perf_open_dummy(perf, &attr, place->cpu < 0 ? place->task : 0, place->cpu, 0,
			     err);
	if (fd < 0)
		return fd;
	ret = perf_map_ring(perf, place, fd, direction, err);
	if (ret == 0 && !backward && pm_vec_push(&perf->poll_fds, fd) < 0)
		ret = pm_error_set(err, -ENOMEM, "no memory for the rings");
	if (ret < 0)
		return ret;
	*anchor = pm_take_fd(&fd);
	return 0;
}

/* Returns the second argument of perf_event_open(2), a pid or the descriptor of a
 * cgroup. */
static int perf_pid_of_task(const struct pm_perf *perf, pid_t task)
{
	if (perf->options.target == PM_PERF_CGROUP)
		return perf->cgroup_fd;
	return task;
}

static unsigned long perf_open_flags(const struct pm_perf *perf)
{
	if (perf->options.target == PM_PERF_CGROUP)
		return PERF_FLAG_PID_CGROUP;
	return 0;
}

/* @task: the task whose records are wanted, or PM_EVERY_TASK. */
static int perf_open_side_band(struct pm_perf *perf, uint32_t at, pid_t task,
			       struct pm_error *err)
{
	const struct pm_perf_place *place = &perf->places.data[at];
	bool command = perf->options.target == PM_PERF_COMMAND;
	int fd PM_AUTO_CLOSE = -1;
	struct perf_event_attr attr;
	int ret;

	fill_dummy_attr(perf, &attr);
	fill_side_band_attr(perf, &attr);
	attr.inherit = task != PM_EVERY_TASK && !perf->options.no_inherit;
	attr.inherit_thread = attr.inherit && perf->features.inherit_thread;
	/* Also with begin_disabled: mappings made before the start must be known. */
	attr.disabled = command;
	attr.enable_on_exec = command;
	fd = perf_open_dummy(perf, &attr, perf_pid_of_task(perf, task), place->cpu,
			     perf_open_flags(perf), err);
	if (fd < 0)
		return fd;
	ret = share_ring_of_fd(fd, place->anchor, err);
	if (ret == 0)
		ret = perf_add_fd(perf,
				  (struct pm_perf_fd){ .fd = fd,
						       .place = at,
						       .event = PM_SIDE_BAND,
						       .task = task },
				  err);
	if (ret == 0)
		pm_take_fd(&fd);
	return ret;
}

/* For events of a CPU: opens a dummy event whose enabled time advances as long as they
 * work. */
static int perf_open_watch(struct pm_perf *perf, uint32_t at, struct pm_error *err)
{
	struct pm_perf_place *place = &perf->places.data[at];
	struct perf_event_attr attr;
	int fd;

	fill_dummy_attr(perf, &attr);
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
	fd = perf_open_dummy(perf, &attr, PM_EVERY_TASK, place->cpu, 0, err);
	if (fd < 0)
		return fd;
	place->watch = fd;
	place->watched_ns = 0;
	return 0;
}

/* ---- sampling events ------------------------------------------------------------------ */

struct where {
	uint32_t place;
	pid_t task; /* or PM_EVERY_TASK */
	int group_fd; /* the leader's, or -1 */
};

static void perf_fill_event_attr(const struct pm_perf *perf, const struct where *where,
				 uint32_t index, struct perf_event_attr *attr)
{
	uint32_t leader = pm_perf_leader(perf, index);
	bool command = perf->options.target == PM_PERF_COMMAND;
	struct pm_attr_request request = {
		.event = &perf->events.data[index],
		.features = &perf->features,
		.shape = perf->shape,
		.stack_bytes = perf->options.stack_bytes,
		.ring_bytes = perf->ring_bytes,
		.member = leader != index,
		.counted =
			leader != index && perf->events.data[leader].requested.read_group,
		.no_inherit = perf->options.no_inherit || where->task == PM_EVERY_TASK ||
			      perf->places.data[where->place].cpu < 0 ||
			      pm_perf_group_has_probe(perf, index),
		.no_enable_on_exec = perf->options.begin_disabled || !command ||
				     where->task == PM_EVERY_TASK,
		.overwrite = perf->options.overwrite,
	};

	pm_attr_fill(&request, attr);
	attr->wakeup_watermark = pm_perf_wakeup_bytes(perf);
	/* The event covers every task of the CPU, but the idle task never belongs to the
	 * target. */
	if (pm_perf_filtered(perf, index) && pm_perf_is_clock(&request.event->actual))
		attr->exclude_idle = 1;
}

int pm_perf_set_filter(const struct pm_event_spec *spec, int fd, struct pm_error *err)
{
	if (!spec->filter || ioctl(fd, PERF_EVENT_IOC_SET_FILTER, spec->filter) == 0)
		return 0;
	return pm_tracepoint_explain_filter(spec, errno, err);
}

/* Whether the kernel refused something that the filter requires; per-task events are then
 * tried instead. */
static bool perf_give_up_filter(struct pm_perf *perf, uint32_t index, int code)
{
	if (!pm_perf_filtered(perf, index) ||
	    (code != EACCES && code != EPERM && code != EINVAL && code != EEXIST))
		return false;
	pm_tree_filter_free(PM_TAKE_PTR(perf->filter));
	pm_perf_decide_side_band(perf);
	return true;
}

/* Returns a descriptor or -errno; -EAGAIN after a change that requires another try of
 * everything. */
static int perf_open_event(struct pm_perf *perf, const struct where *where,
			   uint32_t index, struct pm_error *err)
{
	const struct pm_perf_place *place = &perf->places.data[where->place];
	struct pm_perf_event *event = &perf->events.data[index];
	struct perf_event_attr attr;
	int fd, ret;

	perf_fill_event_attr(perf, where, index, &attr);
	fd = pm_sys_perf_event_open(&attr, perf_pid_of_task(perf, where->task),
				    place->cpu, where->group_fd, perf_open_flags(perf));
	ret = errno;
	if (fd >= 0)
		return fd;
	if (ret == ESRCH && where->task > 0 && perf->options.target == PM_PERF_TASKS)
		return -ESRCH;
	if (ret != EINVAL && perf_give_up_filter(perf, index, ret))
		return -EAGAIN;
	if (pm_perf_degrade(perf, event, ret, where->place == 0))
		return -EAGAIN;
	if (perf_give_up_filter(perf, index, ret))
		return -EAGAIN;
	return pm_perf_refused(perf, event, ret, err);
}

/* Returns the descriptor, which the recording now owns, or -errno. */
static int perf_add_event(struct pm_perf *perf, const struct where *where, uint32_t index,
			  struct pm_error *err)
{
	const struct pm_perf_place *place = &perf->places.data[where->place];
	int owner = perf->options.overwrite ? place->backward : place->anchor;
	int fd PM_AUTO_CLOSE = perf_open_event(perf, where, index, err);
	struct pm_perf_fd entry = { fd, where->place, (int)index, where->task, 0 };
	int ret;

	if (fd < 0)
		return fd;
	if (pm_perf_filtered(perf, index)) {
		ret = pm_tree_filter_attach(
			perf->filter, fd, index,
			pm_perf_is_probe(&perf->events.data[index].requested));
		if (ret < 0 && perf_give_up_filter(perf, index, -ret))
			return -EAGAIN;
		if (ret < 0)
			return pm_error_set(err, ret, "no filter at the event: %s",
					    strerror(-ret));
	}
	ret = share_ring_of_fd(fd, owner, err);
	if (ret == 0)
		ret = pm_perf_set_filter(&perf->events.data[index].actual, fd, err);
	if (ret < 0)
		return ret;
	if (ioctl(fd, PERF_EVENT_IOC_ID, &entry.id) < 0)
		return pm_error_set(err, -errno, "an event has no id: %s",
				    strerror(errno));
	ret = perf_add_fd(perf, entry, err);
	if (ret < 0)
		return ret;
	return pm_take_fd(&fd);
}

static int perf_open_group(struct pm_perf *perf, uint32_t place, uint32_t leader,
			   pid_t task, struct pm_error *err)
{
	struct where where = { place, task, -1 };
	int ret = perf_add_event(perf, &where, leader, err);

	if (ret < 0)
		return ret;
	where.group_fd = ret;
	for (uint32_t i = 0; i < perf->events.len; i++) {
		if (i == leader || pm_perf_leader(perf, i) != leader)
			continue;
		ret = perf_add_event(perf, &where, i, err);
		if (ret < 0)
			return ret;
	}
	return 0;
}

bool pm_perf_works_on(const struct pm_event_spec *spec, int cpu)
{
	pm_cpu_list cpus PM_CLEANUP(pm_cpu_list_release) = { 0 };

	return !spec->cpus || cpu < 0 || pm_cpu_list_parse(spec->cpus, &cpus) < 0 ||
	       pm_cpu_list_has(&cpus, (uint32_t)cpu);
}

/* Opens the groups for @task, which may be PM_EVERY_TASK. */
static int perf_open_groups(struct pm_perf *perf, uint32_t place, pid_t task,
			    struct pm_error *err)
{
	bool every = task == PM_EVERY_TASK;

	if (!perf->places.data[place].sampled)
		return 0;
	for (uint32_t i = 0; i < perf->events.len; i++) {
		int ret;

		if (pm_perf_leader(perf, i) != i ||
		    (pm_perf_wide(perf) || pm_perf_filtered(perf, i)) != every ||
		    !pm_perf_works_on(&perf->events.data[i].actual,
				      perf->places.data[place].cpu))
			continue;
		ret = perf_open_group(perf, place, i, task, err);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* ---- places --------------------------------------------------------------------------- */

static int perf_open_task(struct pm_perf *perf, uint32_t place, pid_t *task,
			  struct pm_error *err)
{
	int ret = 0;

	if (!perf->side_band_wide && perf->places.data[place].cpu >= 0)
		ret = perf_open_side_band(perf, place, *task, err);
	if (ret == 0)
		ret = perf_open_groups(perf, place, *task, err);
	if (ret != -ESRCH)
		return ret;
	/* The task has ended, which is normal for one of many threads. */
	if (perf->options.target != PM_PERF_TASKS)
		return pm_error_set(err, -ESRCH, "the process is gone");
	*task = 0;
	return 0;
}

static int perf_open_every_task(struct pm_perf *perf, uint32_t place,
				struct pm_error *err)
{
	int ret = 0;

	if (!pm_perf_wide(perf) && !perf->filter)
		return 0;
	if (perf->side_band_wide)
		ret = perf_open_side_band(perf, place, PM_EVERY_TASK, err);
	if (ret == 0)
		ret = perf_open_watch(perf, place, err);
	if (ret == 0)
		ret = perf_open_groups(perf, place, PM_EVERY_TASK, err);
	return ret;
}

static int perf_open_task_place(struct pm_perf *perf, uint32_t at, struct pm_error *err)
{
	struct pm_perf_place *place = &perf->places.data[at];
	int ret = 0;

	if (place->task > 0)
		ret = perf_open_anchor(perf, at, RING_FORWARD, err);

	if (ret == 0 && place->task > 0)
		ret = perf_open_groups(perf, at, place->task, err);
	if (ret != -ESRCH)
		return ret;
	place->task = 0;
	return 0;
}

int pm_perf_reopen_place(struct pm_perf *perf, uint32_t at, struct pm_error *err)
{
	int ret = perf_open_anchor(perf, at, RING_FORWARD, err);

	if (ret == 0 && perf->options.overwrite)
		ret = perf_open_anchor(perf, at, RING_BACKWARD, err);
	if (ret < 0)
		return ret;
	return perf_open_every_task(perf, at, err);
}

int pm_perf_open_place(struct pm_perf *perf, uint32_t at, struct pm_error *err)
{
	int ret;

	if (perf->places.data[at].cpu < 0)
		return perf_open_task_place(perf, at, err);
	ret = pm_perf_reopen_place(perf, at, err);
	for (size_t i = 0; i < perf->tasks.len && ret == 0; i++)
		if (perf->tasks.data[i] > 0)
			ret = perf_open_task(perf, at, &perf->tasks.data[i], err);
	return ret;
}

static void perf_forget_fd(struct pm_perf *perf, const struct pm_perf_fd *entry)
{
	pm_perf_sums_keep(perf, entry);
	close(entry->fd);
}

void pm_perf_close_place(struct pm_perf *perf, uint32_t at, enum pm_perf_closed which)
{
	struct pm_perf_place *place = &perf->places.data[at];
	size_t kept = 0;

	for (size_t i = 0; i < perf->fds.len; i++) {
		const struct pm_perf_fd *entry = &perf->fds.data[i];

		if (entry->place == at &&
		    (which == PM_CLOSE_ALL || entry->task == PM_EVERY_TASK))
			perf_forget_fd(perf, entry);
		else
			perf->fds.data[kept++] = *entry;
	}
	perf->fds.len = kept;
	if (place->watch >= 0)
		close(pm_take_fd(&place->watch));
}

int pm_perf_switch(struct pm_perf *perf, int place, bool on)
{
	unsigned long what = pm_perf_switch_request(on);
	int ret = 0;

	for (size_t i = 0; i < perf->fds.len; i++) {
		const struct pm_perf_fd *entry = &perf->fds.data[i];

		if (entry->event < 0 || (place >= 0 && entry->place != (uint32_t)place))
			continue;
		if (ioctl(entry->fd, what, 0) < 0)
			ret = -errno;
	}
	return ret;
}
