/* SPDX-License-Identifier: MIT */
/* Opens groups of counters and places, and their rings. */
#include "hits-state.h"

#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

enum {
	RING_KB_DEFAULT = 8192, /* room for 40,000 hits */
	/* Per task, as long as the rings of all tasks take at most RING_KB_TASKS. A
	 * thread that waits for its ring is delayed by at most half a millisecond while
	 * the pages are allocated. */
	RING_KB_TASK = 4096,
	RING_KB_TASKS = 65536,
	RING_KB_TASK_MIN = 512,
	RING_KB_MIN = 32,
	/* Divisor of the memory that may be locked: the first rings leave room for those
	 * of many threads. */
	LOCKED_SHARE = 8,
	/* Divisor of the physical memory: the limit for all rings together. */
	MEMORY_SHARE = 16,
	HEADER_WORDS = 3, /* of read(2): nr, time enabled, time running */
};

/* ---- attr ---------------------------------------------------------------------------- */

/*
 * The leader of a group. When a thread leaves a CPU, its sample reports what the thread
 * has counted there; otherwise this would be unknown at its next hit on another CPU. A
 * group for all CPUs does not need that.
 */
static struct pm_perf_event hits_leader_event(const struct pm_hits *hits)
{
	struct pm_event_spec spec = {
		.name = "context-switches",
		.kind = PM_EVENT_SOFTWARE,
		.type = PERF_TYPE_SOFTWARE,
		.config = hits->by_task ? PERF_COUNT_SW_DUMMY
					: PERF_COUNT_SW_CONTEXT_SWITCHES,
		.user = true,
		.kernel = !hits->by_task,
	};

	return (struct pm_perf_event){ .requested = spec, .actual = spec, .rate = 1 };
}

static void hits_fill_attr(const struct pm_hits *hits, const struct pm_hits_group *group,
			   const struct pm_perf_event *event, uint32_t stack_bytes,
			   struct perf_event_attr *out)
{
	bool command = hits->options.target == PM_PERF_COMMAND;
	bool leads = group->len == 0;
	struct pm_attr_request request = {
		.event = event,
		.features = &hits->features,
		.shape = hits->shape,
		.stack_bytes = stack_bytes,
		.member = !leads,
		.counted = event->rate == 0,
		.no_inherit = hits->options.no_inherit || hits->by_task,
		/* A task that is found after the start must count at once. */
		.no_enable_on_exec = !command || hits->options.begin_disabled ||
				     group->tid != hits->options.pid,
	};

	pm_attr_fill(&request, out);
	if (!leads)
		return;
	out->task = 1;
	out->comm = 1;
	out->comm_exec = 1;
	out->mmap = out->mmap2 = hits->options.stack_bytes > 0;
	if (hits->by_task)
		out->sample_period = 0;
}

/* ---- members ------------------------------------------------------------------------- */

static int hits_leader_fd(const struct pm_hits *hits, const struct pm_hits_group *group)
{
	if (group->len == 0)
		return -1;
	return hits->members.data[group->first].fd;
}

/* Returns a descriptor or -errno. */
static int hits_try_open(struct pm_hits *hits, const struct pm_hits_group *group,
			 struct perf_event_attr *attr)
{
	int fd = pm_sys_perf_event_open(attr, group->tid, group->cpu,
					hits_leader_fd(hits, group), 0);

	if (fd < 0 && errno == EMFILE && pm_perf_raise_nofile(&hits->nofile_raised))
		fd = pm_sys_perf_event_open(attr, group->tid, group->cpu,
					    hits_leader_fd(hits, group), 0);
	if (fd < 0)
		return -errno;
	return fd;
}

static int hits_explain_open(const struct pm_hits *hits, const struct pm_event_spec *spec,
			     int code, struct pm_error *err)
{
	struct pm_perf_refusal why = {
		.code = -code,
		.event = pm_event_shown_name(spec),
		.kernel = spec->kernel,
		.kind = spec->kind,
		.others = hits->options.target == PM_PERF_TASKS,
		.fds = (hits->groups.len + 1) *
		       (1 + hits->counters.len + hits->events.len),
		.env = &hits->env,
	};

	return pm_perf_explain_open(&why, err);
}

static int hits_add_member(struct pm_hits *hits, struct pm_hits_group *group, int fd,
			   int32_t counter, int32_t event, struct pm_error *err)
{
	struct pm_hits_member member = { fd, 0, (uint32_t)hits->groups.len, counter,
					 event };
	uint32_t index = (uint32_t)hits->members.len;
	int ret = 0;

	if (ioctl(fd, PERF_EVENT_IOC_ID, &member.id) < 0)
		ret = -errno;

	if (ret == 0)
		ret = pm_vec_push(&hits->members, member);
	if (ret == 0) {
		ret = pm_event_ids_add(&hits->ids, member.id, index);
		if (ret < 0)
			hits->members.len--;
	}
	if (ret < 0) {
		close(fd);
		return pm_error_set(err, ret, "an event cannot be used: %s",
				    strerror(-ret));
	}
	group->len++;
	return 0;
}

static int hits_share_ring(const struct pm_hits *hits, const struct pm_hits_group *group,
			   int fd, size_t cpu_index, struct pm_error *err)
{
	int owner;

	if (hits->by_task)
		owner = hits_leader_fd(hits, group);
	else
		owner = hits->anchors.data[cpu_index];

	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, owner) == 0)
		return 0;
	return pm_error_set(err, -errno, "events cannot share a ring: %s",
			    strerror(errno));
}

/* ---- rings --------------------------------------------------------------------------- */

/* Returns the space for the rings of all tasks, in KiB. */
static size_t hits_rings_room_kb(const struct pm_hits *hits)
{
	const struct pm_perf_env *env = &hits->env;
	uint64_t locked;

	if (pm_perf_env_unlimited_rings(env) || env->memlock_bytes == UINT64_MAX)
		return RING_KB_TASKS;
	locked = env->mlock_kb * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) +
		 env->memlock_bytes / 1024;
	if (locked / LOCKED_SHARE >= RING_KB_TASKS)
		return RING_KB_TASKS;
	return (size_t)locked / LOCKED_SHARE;
}

static size_t hits_choose_task_kb(const struct pm_hits *hits, size_t rings)
{
	size_t room = hits_rings_room_kb(hits), kb = RING_KB_TASK;
	size_t least = room < RING_KB_TASKS ? RING_KB_MIN : RING_KB_TASK_MIN;

	while (kb > least && kb * rings > room)
		kb /= 2;
	return kb;
}

static size_t hits_choose_pages(const struct pm_hits *hits, size_t rings)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), kb = RING_KB_DEFAULT;
	long memory = sysconf(_SC_PHYS_PAGES);

	if (hits->options.ring_pages > 0)
		return hits->options.ring_pages;
	if (hits->by_task)
		kb = hits_choose_task_kb(hits, rings);
	while (kb > RING_KB_MIN && memory > 0 &&
	       kb * 1024 / page * rings > (size_t)memory / MEMORY_SHARE)
		kb /= 2;
	/* Pages of arm64 may have 64 KiB. */
	if (kb * 1024 < page)
		return 1;
	return kb * 1024 / page;
}

/* Maps the ring of @fd. The more rings there are, the smaller they get. A size reduced by
 * the limits also applies to all later rings. */
static int hits_map_ring(struct pm_hits *hits, int fd, uint32_t key, struct pm_error *err)
{
	struct pm_ring ring PM_CLEANUP(pm_ring_release) = { 0 };
	size_t pages = hits_choose_pages(hits, hits->poll_fds.len + 1);
	int ret;

	if (pages > hits->ring_pages)
		pages = hits->ring_pages;
	for (;;) {
		ret = pm_ring_map(&ring, fd, pages, err);
		if ((ret != -EPERM && ret != -ENOMEM) || pages <= 1)
			break;
		hits->ring_pages = pages /= 2;
	}
	if (ret == 0)
		ret = pm_merge_add(&hits->merge, &ring, key);
	if (ret == 0)
		ret = pm_vec_push(&hits->poll_fds, fd);
	if (ret != -ENOMEM)
		return ret;
	return pm_error_set(err, ret, "no memory for the rings");
}

/* By task, a ring belongs to the group's leader, whose descriptor is its key. */
static void hits_unmap_ring(struct pm_hits *hits, int fd)
{
	size_t kept = 0;

	for (size_t i = 0; i < hits->poll_fds.len; i++)
		if (hits->poll_fds.data[i] != fd)
			hits->poll_fds.data[kept++] = hits->poll_fds.data[i];
	hits->poll_fds.len = kept;
	pm_merge_remove(&hits->merge, (uint32_t)fd);
}

/* The owner of a CPU's ring: a dummy event of our own task, which outlives the target's
 * tasks. */
static int hits_open_anchor(struct pm_hits *hits, uint32_t cpu, struct pm_error *err)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.watermark = 1, /* 0 would mean half of the ring (ring_buffer_init()) */
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	struct pm_hits_group self = { .cpu = (int)cpu, .tid = 0 };
	struct pm_perf_event leader = hits_leader_event(hits);
	int fd = hits_try_open(hits, &self, &attr);
	int ret;

	if (fd < 0)
		return hits_explain_open(hits, &leader.actual, fd, err);
	ret = pm_vec_push(&hits->anchors, fd);
	if (ret < 0) {
		close(fd);
		return pm_error_set(err, ret, "no memory for the rings");
	}
	return hits_map_ring(hits, fd, cpu, err);
}

/* ---- a group ------------------------------------------------------------------------- */

static int hits_open_leader(struct pm_hits *hits, struct pm_hits_group *group,
			    struct pm_error *err)
{
	struct pm_perf_event event = hits_leader_event(hits);
	struct perf_event_attr attr;
	int fd;

	hits_fill_attr(hits, group, &event, 0, &attr);
	fd = hits_try_open(hits, group, &attr);
	if (fd < 0) {
		hits_explain_open(hits, &event.actual, fd, err);
		return fd;
	}
	return hits_add_member(hits, group, fd, -1, -1, err);
}

static void hits_refuse_counter(struct pm_hits *hits, struct pm_counters_event *counter,
				int code)
{
	switch (code) {
	case -EACCES:
	case -EPERM:
		counter->state = PM_STAT_NOT_PERMITTED;
		hits_explain_open(hits, &counter->spec, code, &counter->why);
		return;
	case -EINVAL:
		counter->state = PM_STAT_NOT_COUNTED;
		pm_error_set(&counter->why, code,
			     "it cannot be counted together with the others at each "
			     "call");
		pm_error_where(&counter->why, counter->spec.requested, -1);
		return;
	default:
		counter->state = PM_STAT_NOT_SUPPORTED;
		pm_perf_explain_missing(&counter->spec, -code, &counter->why);
	}
}

/* Leaves out what this machine does not support. Returns a descriptor or -errno. */
static int hits_open_counter_fd(struct pm_hits *hits, struct pm_hits_group *group,
				struct pm_counters_event *counter)
{
	struct pm_perf_event event = { .requested = counter->spec,
				       .actual = counter->spec };
	struct perf_event_attr attr;
	int fd;

	for (;;) {
		event.kernel_dropped = counter->kernel_dropped;
		hits_fill_attr(hits, group, &event, 0, &attr);
		attr.precise_ip = 0;
		fd = hits_try_open(hits, group, &attr);
		if ((fd == -EACCES || fd == -EPERM) && counter->spec.kernel &&
		    !counter->kernel_dropped && pm_perf_can_drop_kernel(&counter->spec))
			counter->kernel_dropped = true;
		else if (fd == -EINVAL && attr.exclude_guest && !counter->spec.host_only)
			hits->features.exclude_guest = false;
		else
			return fd;
	}
}

/* In the first group, failure to open a counter becomes the counter's state and is not an
 * error. */
static int hits_open_counter(struct pm_hits *hits, struct pm_hits_group *group,
			     uint32_t index, struct pm_error *err)
{
	struct pm_counters_event *counter = &hits->counters.data[index];
	int fd, ret;

	if (counter->state != PM_STAT_OK || !pm_perf_works_on(&counter->spec, group->cpu))
		return 0;
	fd = hits_open_counter_fd(hits, group, counter);
	if (fd == -ESRCH || fd == -EMFILE || fd == -ENOMEM)
		return hits_explain_open(hits, &counter->spec, fd, err);
	if (fd < 0 && hits->groups.len > 0)
		return hits_explain_open(hits, &counter->spec, fd, err);
	if (fd < 0) {
		hits_refuse_counter(hits, counter, fd);
		return 0;
	}
	ret = pm_perf_set_filter(&counter->spec, fd, err);
	if (ret < 0) {
		close(fd);
		return ret;
	}
	return hits_add_member(hits, group, fd, (int32_t)index, -1, err);
}

static int hits_open_event(struct pm_hits *hits, struct pm_hits_group *group,
			   size_t cpu_index, uint32_t index, struct pm_error *err)
{
	const struct pm_event_spec *spec = &hits->events.data[index].spec;
	struct pm_perf_event event = { .requested = *spec, .actual = *spec, .rate = 1 };
	struct perf_event_attr attr;
	int fd, ret;

	hits_fill_attr(hits, group, &event,
		       hits->event_stack.data[index] ? hits->options.stack_bytes : 0,
		       &attr);
	fd = hits_try_open(hits, group, &attr);
	if (fd < 0) {
		hits_explain_open(hits, spec, fd, err);
		return fd;
	}
	ret = hits_share_ring(hits, group, fd, cpu_index, err);
	if (ret < 0) {
		close(fd);
		return ret;
	}
	return hits_add_member(hits, group, fd, -1, (int32_t)index, err);
}

/*
 * Closes members of a group, the leader last: when the leader of a group is closed, the
 * kernel makes each member a group of its own, which is enabled even if the leader was
 * disabled (perf_group_detach()). Probes would be hit again while they are being removed.
 */
static void hits_close_members(struct pm_hits *hits, uint32_t first, uint32_t len)
{
	for (size_t i = first + len; i-- > first;)
		if (hits->members.data[i].fd >= 0)
			close(pm_take_fd(&hits->members.data[i].fd));
}

/* @cpu_index: index in `anchors`. */
static int hits_open_group(struct pm_hits *hits, int cpu, size_t cpu_index, pid_t tid,
			   struct pm_error *err)
{
	struct pm_hits_group group = { .cpu = cpu,
				       .tid = tid,
				       .first = (uint32_t)hits->members.len };
	int ret = hits_open_leader(hits, &group, err);

	if (ret == 0) {
		int leader = hits_leader_fd(hits, &group);

		if (hits->by_task)
			ret = hits_map_ring(hits, leader, (uint32_t)leader, err);
		else
			ret = hits_share_ring(hits, &group, leader, cpu_index, err);
	}
	for (uint32_t i = 0; i < hits->counters.len && ret == 0; i++)
		ret = hits_open_counter(hits, &group, i, err);
	for (uint32_t i = 0; i < hits->events.len && ret == 0; i++)
		ret = hits_open_event(hits, &group, cpu_index, i, err);
	if (ret == 0)
		ret = pm_vec_push(&hits->groups, group);
	if (ret < 0 && hits->by_task && group.len > 0)
		hits_unmap_ring(hits, hits_leader_fd(hits, &group));
	if (ret < 0)
		hits_close_members(hits, group.first, group.len);
	if (ret != -ENOMEM)
		return ret;
	return pm_error_set(err, ret, "no memory for the events");
}

/* ---- all groups ---------------------------------------------------------------------- */

static int hits_open_cpus(struct pm_hits *hits, const pid_t *tids, size_t tids_len,
			  struct pm_error *err)
{
	pm_cpu_list cpus PM_CLEANUP(pm_cpu_list_release) = { 0 };
	int ret = pm_perf_cpus_wanted(NULL, &cpus, NULL, err);

	if (ret < 0)
		return ret;
	hits->ring_pages = hits_choose_pages(hits, cpus.len);
	for (size_t i = 0; i < cpus.len; i++) {
		ret = hits_open_anchor(hits, cpus.data[i], err);
		for (size_t k = 0; k < tids_len && ret == 0; k++) {
			ret = hits_open_group(hits, (int)cpus.data[i], i, tids[k], err);
			/* That one of many threads has ended is normal. */
			if (ret == -ESRCH && hits->options.target == PM_PERF_TASKS)
				ret = 0;
		}
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int hits_open_tasks(struct pm_hits *hits, const pid_t *tids, size_t tids_len,
			   struct pm_error *err)
{
	hits->ring_pages = hits_choose_pages(hits, tids_len);
	for (size_t i = 0; i < tids_len; i++) {
		int ret = hits_open_group(hits, -1, 0, tids[i], err);

		if (ret < 0 && !(ret == -ESRCH && hits->options.target == PM_PERF_TASKS))
			return ret;
	}
	return 0;
}

/* Whether a group for each task may be tried instead. */
static bool hits_fall_back_to_tasks(struct pm_hits *hits, int code)
{
	if (hits->by_task ||
	    (code != -EINVAL && code != -EACCES && code != -EPERM && code != -EMFILE))
		return false;
	pm_hits_close_all(hits);
	hits->by_task = true;
	for (size_t i = 0; i < hits->counters.len; i++)
		hits->counters.data[i] =
			(struct pm_counters_event){ .spec = hits->counters.data[i].spec };
	hits->few_fds = code == -EMFILE;
	return true;
}

int pm_hits_open_all(struct pm_hits *hits, const struct pm_hits_options *options,
		     struct pm_error *err)
{
	const pid_t *tids = options->tids;
	size_t len = options->tids_len;
	int ret;

	if (options->target == PM_PERF_COMMAND) {
		tids = &options->pid;
		len = 1;
	}
	hits->by_task = options->follow;
	do {
		if (hits->by_task)
			ret = hits_open_tasks(hits, tids, len, err);
		else
			ret = hits_open_cpus(hits, tids, len, err);
	} while (ret < 0 && hits_fall_back_to_tasks(hits, ret));
	if (ret == 0 && hits->groups.len == 0)
		return pm_error_set(err, -ESRCH, "all processes to be counted are gone");
	return ret;
}

bool pm_hits_has_task(const struct pm_hits *hits, pid_t tid)
{
	for (size_t i = 0; i < hits->groups.len; i++)
		if (hits->groups.data[i].tid == tid && !hits->groups.data[i].ended)
			return true;
	return false;
}

int pm_hits_open_task(struct pm_hits *hits, pid_t tid, struct pm_error *err)
{
	int ret = hits_open_group(hits, -1, 0, tid, err);

	/* If the task is killed in between, its leader is no longer a leader (-ENODEV).
	 * On the second try the task is gone. */
	if (ret == -ENODEV)
		ret = hits_open_group(hits, -1, 0, tid, err);
	if (ret == 0 && hits->enabled &&
	    ioctl(hits_leader_fd(hits, &hits->groups.data[hits->groups.len - 1]),
		  PERF_EVENT_IOC_ENABLE, 0) < 0)
		return pm_error_set(err, -errno, "events cannot be enabled: %s",
				    strerror(errno));
	return ret;
}

static void hits_add_read(const struct pm_hits *hits, struct pm_count_read *sum,
			  const uint64_t *head, uint64_t value)
{
	/* An event of a CPU is also "enabled" while the task runs on other CPUs. All that
	 * matters is whether it was displaced while it should have run, which never
	 * happens to software events. */
	sum->value += value;
	sum->running_ns += head[2];
	if (hits->software_only || !hits->by_task)
		sum->enabled_ns += head[2];
	else
		sum->enabled_ns += head[1];
}

/* { u64 nr, enabled, running; { u64 value, id; } [nr]; } (perf_event_open(2)) */
int pm_hits_read_group(const struct pm_hits *hits, const struct pm_hits_group *group,
		       const struct pm_hits_sums *sums)
{
	size_t words = HEADER_WORDS + 2 * (size_t)group->len;
	PM_AUTO_FREE uint64_t *values = calloc(words, sizeof(*values));

	if (!values)
		return -ENOMEM;
	if (read(hits_leader_fd(hits, group), values, words * sizeof(*values)) !=
		    (ssize_t)(words * sizeof(*values)) ||
	    values[0] != group->len)
		return -EIO;
	for (size_t i = 0; i < group->len; i++) {
		const struct pm_hits_member *member =
			&hits->members.data[group->first + i];
		uint64_t value = values[HEADER_WORDS + 2 * i];

		if (member->event >= 0)
			sums->events[member->event] += value;
		if (member->counter >= 0)
			hits_add_read(hits, &sums->counters[member->counter], values,
				      value);
	}
	return 0;
}

static void hits_close_group(struct pm_hits *hits, struct pm_hits_group *group)
{
	pm_hits_read_group(hits, group, &hits->closed);
	hits_unmap_ring(hits, hits_leader_fd(hits, group));
	hits_close_members(hits, group->first, group->len);
	group->len = 0;
}

void pm_hits_close_ended(struct pm_hits *hits)
{
	for (size_t i = 0; i < hits->groups.len; i++)
		if (hits->groups.data[i].ended && hits->groups.data[i].len > 0)
			hits_close_group(hits, &hits->groups.data[i]);
}

static int hits_switch_events(struct pm_hits *hits, bool on)
{
	unsigned long what = pm_perf_switch_request(on);
	int ret = 0;

	hits->enabled = on;
	for (size_t i = 0; i < hits->groups.len; i++) {
		const struct pm_hits_group *group = &hits->groups.data[i];

		if (group->len > 0 &&
		    ioctl(hits->members.data[group->first].fd, what, 0) < 0)
			ret = -errno;
	}
	return ret;
}

int pm_hits_enable(struct pm_hits *hits)
{
	return hits_switch_events(hits, true);
}

int pm_hits_disable(struct pm_hits *hits)
{
	return hits_switch_events(hits, false);
}

void pm_hits_close_all(struct pm_hits *hits)
{
	struct pm_record_layout layout = hits->merge.layout;

	pm_hits_disable(hits);
	hits_close_members(hits, 0, (uint32_t)hits->members.len);
	for (size_t i = 0; i < hits->anchors.len; i++)
		close(hits->anchors.data[i]);
	pm_vec_clear(&hits->members);
	pm_vec_clear(&hits->groups);
	pm_vec_clear(&hits->anchors);
	pm_vec_clear(&hits->poll_fds);
	pm_event_ids_release(&hits->ids);
	pm_merge_release(&hits->merge);
	hits->merge.layout = layout;
}
