/* SPDX-License-Identifier: MIT */
#include "perf-state.h"

#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

enum {
	DEGRADE_STEPS_MAX = 16, /* more steps than there are, for one open */
};

/* ---- opening -------------------------------------------------------------------------------- */

struct place {
	const struct pm_perf_options *options;
	size_t cpu, event; /* indices */
	int *owner; /* the fd that has this CPU's ring, -1 before there is one */
};

/* An fd, or -errno with @err set. */
static int open_event(struct pm_perf *perf, const struct place *at, struct pm_error *err)
{
	struct pm_perf_event *event = &perf->events.data[at->event];

	for (int step = 0; step < DEGRADE_STEPS_MAX; step++) {
		struct pm_attr_request request = {
			.event = event,
			.features = &perf->features,
			.shape = perf->shape,
			.stack_bytes = at->options->stack_bytes,
			.ring_bytes = perf->ring_bytes,
			.first = *at->owner < 0,
		};
		struct perf_event_attr attr;
		int fd, code;

		pm_attr_fill(&request, &attr);
		fd = pm_sys_perf_event_open(&attr, at->options->pid,
					    (int)perf->cpus.data[at->cpu]);
		if (fd >= 0)
			return fd;
		code = errno;
		if (!pm_perf_degrade(perf, event, code, at->cpu == 0))
			return pm_perf_refused(perf, event, code, err);
	}
	return pm_error_set(err, -EINVAL, "the kernel takes the event in no form");
}

/* The first event of a CPU owns the ring, the others write into it. */
static int attach_ring(struct pm_perf *perf, const struct place *at, int fd,
		       bool *map_failed, struct pm_error *err)
{
	struct pm_ring ring PM_CLEANUP(pm_ring_release) = { 0 };
	int r;

	if (*at->owner >= 0) {
		if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, *at->owner) == 0)
			return 0;
		return pm_error_set(err, -errno, "events cannot share a ring: %s",
				    strerror(errno));
	}
	r = pm_ring_map(&ring, fd, perf->ring_bytes / (size_t)sysconf(_SC_PAGESIZE), err);
	if (r < 0) {
		*map_failed = true;
		return r;
	}
	r = pm_vec_push(&perf->poll_fds, fd);
	if (r == 0)
		r = pm_merge_add(&perf->merge, &ring, perf->cpus.data[at->cpu]);
	if (r < 0)
		return pm_error_set(err, r, "no memory for the rings");
	*at->owner = fd;
	return 0;
}

static int open_at(struct pm_perf *perf, const struct place *at, bool *map_failed,
		   struct pm_error *err)
{
	int fd PM_AUTO_CLOSE = open_event(perf, at, err);
	uint64_t id;
	int r;

	if (fd < 0)
		return fd;
	r = attach_ring(perf, at, fd, map_failed, err);
	if (r < 0)
		return r;
	if (ioctl(fd, PERF_EVENT_IOC_ID, &id) < 0)
		return pm_error_set(err, -errno, "an event has no id: %s",
				    strerror(errno));
	r = pm_event_ids_add(&perf->ids, id, (uint32_t)at->event);
	if (r < 0)
		return pm_error_set(err, r, "no memory for the events");
	perf->fds[at->cpu * perf->events.len + at->event] = pm_take_fd(&fd);
	return 0;
}

static void close_all(struct pm_perf *perf)
{
	pm_merge_release(&perf->merge);
	pm_event_ids_release(&perf->ids);
	pm_vec_clear(&perf->poll_fds);
	for (size_t i = 0; perf->fds && i < perf->cpus.len * perf->events.len; i++) {
		if (perf->fds[i] >= 0)
			close(perf->fds[i]);
		perf->fds[i] = -1;
	}
}

static int open_all(struct pm_perf *perf, const struct pm_perf_options *options,
		    bool *map_failed, struct pm_error *err)
{
	*map_failed = false;
	pm_attr_shape_of(options->specs, options->specs_len, options->call_graph,
			 options->branches, &perf->shape);
	perf->merge.layout = pm_attr_layout(&perf->shape);
	perf->merge.layout.ids = &perf->ids;
	for (size_t cpu = 0; cpu < perf->cpus.len; cpu++) {
		int owner = -1;

		for (size_t event = 0; event < perf->events.len; event++) {
			struct place at = { options, cpu, event, &owner };
			int r = open_at(perf, &at, map_failed, err);

			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* The watermark is a part of the attr: a smaller ring means to open all again. */
static int open_with_room(struct pm_perf *perf, const struct pm_perf_options *options,
			  struct pm_error *err)
{
	size_t explicit_bytes;
	bool map_failed;
	int r = pm_perf_plan_rings(perf, options, &explicit_bytes, err);

	if (r < 0)
		return r;
	for (;;) {
		r = open_all(perf, options, &map_failed, err);
		if (r == 0)
			break;
		if (!map_failed || (r != -EPERM && r != -ENOMEM))
			return r;
		if (!pm_perf_shrink_rings(perf, options))
			return pm_perf_explain_map(-r, &perf->env, perf->ring_bytes,
						   perf->cpus.len, err);
		close_all(perf);
	}
	pm_perf_note_rings(perf, options, explicit_bytes);
	return 0;
}

/* ---- public ----------------------------------------------------------------------------------- */

static int check_options(const struct pm_perf_options *options, struct pm_error *err)
{
	if (options->specs_len == 0)
		return pm_error_set(err, -EINVAL, "no event was asked for");
	if (options->rate == 0)
		return pm_error_set(err, -EINVAL, "a %s of 0 gives no samples",
				    options->by_frequency ? "frequency" : "period");
	if (options->pid <= 0)
		return pm_error_set(err, -EINVAL, "no process to follow");
	if (options->call_graph != PM_CALL_GRAPH_DWARF)
		return 0;
	if (!pm_regs_native())
		return pm_error_set(
			err, -ENOTSUP,
			"stacks cannot be unwound with DWARF on this processor");
	if (options->stack_bytes == 0 || options->stack_bytes % 8 != 0 ||
	    options->stack_bytes > PM_STACK_BYTES_MAX)
		return pm_error_set(
			err, -EINVAL,
			"%u bytes of stack: the number must be a multiple of 8, "
			"at most %u",
			options->stack_bytes, PM_STACK_BYTES_MAX);
	return 0;
}

static int prepare(struct pm_perf *perf, const struct pm_perf_options *options)
{
	size_t fds;
	int r;

	pm_perf_env_read(&perf->env);
	perf->features = (struct pm_perf_features){ true, true, true };
	for (size_t i = 0; i < options->specs_len; i++) {
		struct pm_perf_event event = {
			.requested = options->specs[i],
			.actual = options->specs[i],
			.by_frequency = options->by_frequency,
			.rate = options->rate,
		};

		pm_perf_clamp_rate(perf, &event, perf->env.max_hz);
		if (pm_perf_in_kernel_only(&event.requested) && !event.requested.kernel)
			pm_perf_note(perf,
				     "%s happens inside the kernel: in user space alone "
				     "there are no samples of it.",
				     event.requested.name);
		r = pm_vec_push(&perf->events, event);
		if (r < 0)
			return r;
	}
	r = pm_cpu_list_online(&perf->cpus);
	if (r < 0)
		return r;
	if (perf->cpus.len == 0)
		return -ENODEV;
	fds = perf->cpus.len * perf->events.len;
	perf->fds = malloc(fds * sizeof(*perf->fds));
	if (!perf->fds)
		return -ENOMEM;
	for (size_t i = 0; i < fds; i++)
		perf->fds[i] = -1;
	return 0;
}

void pm_perf_free(struct pm_perf *perf)
{
	if (!perf)
		return;
	close_all(perf);
	for (size_t i = 0; i < perf->notes.texts.len; i++)
		free(perf->notes.texts.data[i]);
	pm_vec_release(&perf->notes.texts);
	pm_vec_release(&perf->poll_fds);
	pm_vec_release(&perf->events);
	pm_vec_release(&perf->cpus);
	free(perf->fds);
	free(perf);
}

static void cleanup_perf(struct pm_perf **perf)
{
	pm_perf_free(*perf);
}

int pm_perf_open(struct pm_perf **ret, const struct pm_perf_options *options,
		 struct pm_error *err)
{
	struct pm_perf *perf PM_CLEANUP(cleanup_perf) = NULL;
	int r = check_options(options, err);

	if (r < 0)
		return r;
	perf = calloc(1, sizeof(*perf));
	if (!perf)
		return pm_error_set(err, -ENOMEM, "no memory for the events");
	r = prepare(perf, options);
	if (r < 0)
		return pm_error_set(err, r, "cannot prepare the events: %s",
				    strerror(-r));
	r = open_with_room(perf, options, err);
	if (r < 0)
		return r;
	if (!perf->features.format_lost)
		pm_perf_note(
			perf,
			"this kernel (before Linux 6.0) does not count the lost samples "
			"of each event: the last ones of a recording may be missing in "
			"the count.");
	*ret = PM_TAKE_PTR(perf);
	return 0;
}

const struct pm_perf_event *pm_perf_events(const struct pm_perf *perf, size_t *len)
{
	*len = perf->events.len;
	return perf->events.data;
}

const struct pm_perf_notes *pm_perf_notes(const struct pm_perf *perf)
{
	return &perf->notes;
}

size_t pm_perf_ring_pages(const struct pm_perf *perf)
{
	return perf->ring_bytes / (size_t)sysconf(_SC_PAGESIZE);
}

const int *pm_perf_poll_fds(const struct pm_perf *perf, size_t *len)
{
	*len = perf->poll_fds.len;
	return perf->poll_fds.data;
}

int pm_perf_disable(struct pm_perf *perf)
{
	int r = 0;

	for (size_t i = 0; i < perf->cpus.len * perf->events.len; i++) {
		if (perf->fds[i] >= 0 &&
		    ioctl(perf->fds[i], PERF_EVENT_IOC_DISABLE, 0) < 0)
			r = -errno;
	}
	return r;
}

void pm_perf_begin(struct pm_perf *perf, bool final)
{
	uint64_t limit = UINT64_MAX;

	/*
	 * The clock before the heads. A record on one CPU that is a consequence of a record
	 * on another one (a sample in a mapping that another thread made) is stamped after
	 * that one was written. So when the heads are read after `limit`, a consequence
	 * with a time up to `limit` has its cause in front of the head that we read. With
	 * the heads first, the cause could lie behind the one, the consequence in front of
	 * the other.
	 */
	if (!final) {
		struct timespec now;

		clock_gettime(CLOCK_MONOTONIC, &now);
		limit = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	}
	pm_merge_begin(&perf->merge, limit);
}

int pm_perf_next(struct pm_perf *perf, struct pm_record *ret, struct pm_error *err)
{
	return pm_merge_next(&perf->merge, ret, err);
}

void pm_perf_hold(struct pm_perf *perf, bool hold)
{
	pm_merge_hold(&perf->merge, hold);
}

int pm_perf_lost(const struct pm_perf *perf, size_t index, uint64_t *ret)
{
	uint64_t sum = 0;

	if (index >= perf->events.len)
		return -EINVAL;
	if (!perf->features.format_lost)
		return -ENOTSUP;
	for (size_t cpu = 0; cpu < perf->cpus.len; cpu++) {
		int fd = perf->fds[cpu * perf->events.len + index];
		uint64_t values[3]; /* { value; id; lost; }, PERF_FORMAT_ID | _LOST */

		if (fd < 0)
			continue;
		if (read(fd, values, sizeof(values)) != (ssize_t)sizeof(values))
			return -EIO;
		sum += values[2];
	}
	*ret = sum;
	return 0;
}
