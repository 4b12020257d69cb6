/* SPDX-License-Identifier: MIT */
#include "perf-state.h"

#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

enum {
	TRIES_MAX = 64, /* more than all degradations of all events of a recording */
	FDS_OF_THE_REST = 64, /* descriptors that the rest of the program may have open */
};

/* ---- opening -------------------------------------------------------------------------------- */

static int perf_open_once(struct pm_perf *perf, struct pm_error *err)
{
	int ret = 0;

	perf->map_failed = false;
	/* Clearing a ring of 16 MiB takes the kernel 5 ms and more, so the rings of CPUs
	 * stay. A task's ring belongs to an event whose attr may have changed. */
	if (pm_perf_by_task(perf))
		pm_perf_close_all(perf);
	else
		pm_perf_close_events(perf);
	perf->merge.layout = pm_attr_layout(&perf->shape);
	if (perf->shape.read && perf->features.format_lost)
		perf->merge.layout.read_format |= PERF_FORMAT_LOST;
	perf->merge.layout.branch_sample_type = perf->shape.branches;
	perf->merge.layout.ids = &perf->ids;
	perf->fds_needed = pm_perf_count_fds(perf);
	for (size_t i = 0; i < perf->places.len && ret == 0; i++)
		ret = pm_perf_open_place(perf, (uint32_t)i, err);
	return ret;
}

static int perf_open_all(struct pm_perf *perf, struct pm_error *err)
{
	int ret = -EAGAIN;

	pm_perf_close_all(perf);
	for (int i = 0; i < TRIES_MAX && ret == -EAGAIN; i++) {
		ret = perf_open_once(perf, err);
		if (ret == -EMFILE && pm_perf_plan_fewer_fds(perf))
			ret = -EAGAIN;
	}
	if (ret == -EAGAIN)
		return pm_error_set(err, -EINVAL,
				    "the kernel takes the events in no form");
	return ret;
}

/* Checks whether any of the tasks to be followed still exists. */
static int perf_check_alive(const struct pm_perf *perf, struct pm_error *err)
{
	for (size_t i = 0; i < perf->fds.len; i++)
		if (perf->fds.data[i].event >= 0)
			return 0;
	return pm_error_set(err, -ESRCH, "all processes to be sampled are gone");
}

/* The watermark is a part of the attr, so a smaller ring requires that all events are
 * opened again. */
static int perf_open_with_room(struct pm_perf *perf,
			       const struct pm_perf_options *options,
			       struct pm_error *err)
{
	size_t explicit_bytes;
	int ret = pm_perf_plan_rings(perf, options, &explicit_bytes, err);

	if (ret < 0)
		return ret;
	for (;;) {
		ret = perf_open_all(perf, err);
		if (ret == 0)
			break;
		if (!perf->map_failed || (ret != -EPERM && ret != -ENOMEM))
			return ret;
		if (!pm_perf_shrink_rings(perf, options))
			return pm_perf_explain_map(-ret, &perf->env, perf->ring_bytes,
						   perf->places.len, err);
	}
	pm_perf_note_rings(perf, options, explicit_bytes);
	return perf_check_alive(perf, err);
}

/* Starts sampling, except events that wait for an exec or for pm_perf_enable(). */
static int perf_begin(struct pm_perf *perf, const struct pm_perf_options *options,
		      struct pm_error *err)
{
	bool command = options->target == PM_PERF_COMMAND;
	int ret = 0;

	for (size_t i = 0; perf->filter && i < perf->tasks.len; i++)
		pm_tree_filter_mark(perf->filter, perf->tasks.data[i],
				    command ? PM_TREE_AT_EXEC : PM_TREE_YES);
	if (options->begin_disabled)
		return 0;
	perf->enabled = true;
	for (size_t i = 0; i < perf->fds.len && ret == 0; i++) {
		const struct pm_perf_fd *entry = &perf->fds.data[i];

		/* A command's own events start with its exec. */
		if (entry->event < 0 || (command && entry->task != PM_EVERY_TASK))
			continue;
		if (ioctl(entry->fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
			ret = pm_error_set(err, -errno, "an event cannot be enabled: %s",
					   strerror(errno));
	}
	return ret;
}

/* ---- public ----------------------------------------------------------------------------------- */

static int perf_check_target(const struct pm_perf_options *options, struct pm_error *err)
{
	switch (options->target) {
	case PM_PERF_COMMAND:
		if (options->pid > 0)
			return 0;
		break;
	case PM_PERF_TASKS:
		if (options->tids_len > 0)
			return 0;
		break;
	case PM_PERF_CPUS:
		return 0;
	case PM_PERF_CGROUP:
		if (options->cgroup_fd >= 0)
			return 0;
		break;
	}
	return pm_error_set(err, -EINVAL, "no process to follow");
}

static int perf_check_options(const struct pm_perf_options *options, struct pm_error *err)
{
	int ret = perf_check_target(options, err);

	if (ret < 0)
		return ret;
	if (options->specs_len == 0)
		return pm_error_set(err, -EINVAL, "no event was asked for");
	if (options->rate == 0)
		return pm_error_set(err, -EINVAL, "a %s of 0 gives no samples",
				    options->by_frequency ? "frequency" : "period");
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

/* Whether every hit is sampled by default, as for events at a place in code or memory. */
static bool is_each_hit_sampled(const struct pm_event_spec *spec)
{
	return spec->kind == PM_EVENT_TRACEPOINT || spec->kind == PM_EVENT_UPROBE ||
	       spec->kind == PM_EVENT_KPROBE || spec->kind == PM_EVENT_BREAKPOINT;
}

static struct pm_perf_event perf_event_of_spec(const struct pm_perf_options *options,
					       const struct pm_event_spec *spec)
{
	struct pm_perf_event event = {
		.requested = *spec,
		.actual = *spec,
		.by_frequency = options->by_frequency,
		.rate = options->rate,
	};

	if (spec->rate_given) {
		event.by_frequency = spec->by_frequency;
		event.rate = spec->rate;
	} else if (is_each_hit_sampled(spec)) {
		event.by_frequency = false;
		event.rate = 1;
	}
	return event;
}

static int perf_prepare_events(struct pm_perf *perf,
			       const struct pm_perf_options *options)
{
	for (size_t i = 0; i < options->specs_len; i++) {
		struct pm_perf_event event =
			perf_event_of_spec(options, &options->specs[i]);

		pm_perf_clamp_rate(perf, &event, perf->env.max_hz);
		if (pm_perf_in_kernel_only(&event.requested) && !event.requested.kernel)
			pm_perf_note(perf,
				     "%s happens inside the kernel: in user space alone "
				     "there are no samples of it.",
				     event.requested.name);
		if (pm_vec_push(&perf->events, event) < 0 ||
		    pm_vec_push(&perf->before, (struct pm_perf_sums){ 0 }) < 0)
			return -ENOMEM;
	}
	return 0;
}

static bool can_kernel_inherit_threads(void)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_DUMMY,
					.disabled = 1,
					.exclude_kernel = 1,
					.exclude_hv = 1,
					.inherit = 1,
					.inherit_thread = 1 };
	PM_AUTO_CLOSE int fd = pm_sys_perf_event_open(&attr, 0, -1, -1, 0);

	return fd >= 0;
}

static int perf_prepare(struct pm_perf *perf, const struct pm_perf_options *options,
			struct pm_error *err)
{
	int ret;

	pm_perf_env_read(&perf->env);
	perf->features = (struct pm_perf_features){ true, true, true, false };
	perf->features.inherit_thread =
		options->threads_only && can_kernel_inherit_threads();
	perf->options = *options;
	perf->options.tids = NULL;
	perf->options.cpus = NULL;
	if (perf_prepare_events(perf, options) < 0)
		return pm_error_set(err, -ENOMEM, "no memory for the events");
	pm_attr_shape_of(options->specs, options->specs_len, options->call_graph,
			 options->branches, &perf->shape);
	perf->shape.returns = options->returns;
	ret = pm_perf_plan_targets(perf, options, err);
	if (ret < 0)
		return ret;
	/* Raise the limit now, and not in the middle of opening thousands. */
	if (pm_perf_count_fds(perf) + FDS_OF_THE_REST > pm_perf_nofile())
		pm_perf_raise_nofile(&perf->nofile_raised);
	if (pm_perf_count_fds(perf) + FDS_OF_THE_REST > pm_perf_nofile())
		pm_perf_plan_fewer_fds(perf);
	return 0;
}

static void cleanup_perf(struct pm_perf **perf)
{
	pm_perf_free(*perf);
}

int pm_perf_open(struct pm_perf **out, const struct pm_perf_options *options,
		 struct pm_error *err)
{
	struct pm_perf *perf PM_CLEANUP(cleanup_perf) = NULL;
	int ret = perf_check_options(options, err);

	if (ret < 0)
		return ret;
	perf = calloc(1, sizeof(*perf));
	if (!perf)
		return pm_error_set(err, -ENOMEM, "no memory for the events");
	perf->cgroup_fd = -1;
	ret = perf_prepare(perf, options, err);
	if (ret == 0)
		ret = perf_open_with_room(perf, options, err);
	if (ret == 0)
		ret = perf_begin(perf, options, err);
	if (ret < 0)
		return ret;
	pm_perf_note_probes(perf);
	pm_perf_note_counts(perf);
	if (!perf->features.format_lost)
		pm_perf_note(
			perf,
			"this kernel (before Linux 6.0) does not count the lost samples "
			"of each event: the last ones of a recording may be missing in "
			"the count.");
	*out = PM_TAKE_PTR(perf);
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

bool pm_perf_per_cpu(const struct pm_perf *perf)
{
	return perf->filter != NULL;
}

bool pm_perf_follows(const struct pm_perf *perf, pid_t tid)
{
	return perf->filter && pm_tree_filter_marked(perf->filter, tid) != PM_TREE_NO;
}

bool pm_perf_follow(struct pm_perf *perf, const pid_t *tids, size_t len)
{
	if (!perf->filter)
		return false;
	for (size_t i = 0; i < len; i++)
		pm_tree_filter_mark(perf->filter, tids[i], PM_TREE_YES);
	return true;
}

int pm_perf_enable(struct pm_perf *perf)
{
	perf->enabled = true;
	return pm_perf_switch(perf, -1, true);
}

int pm_perf_disable(struct pm_perf *perf)
{
	perf->enabled = false;
	return pm_perf_switch(perf, -1, false);
}

int pm_perf_snapshot(struct pm_perf *perf, bool stop)
{
	if (!perf->options.overwrite)
		return -EINVAL;
	if (!stop)
		pm_merge_stop_backward(&perf->merge, false, NULL);
	for (size_t i = 0; i < perf->places.len; i++) {
		int fd = perf->places.data[i].backward;

		if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, stop) < 0)
			return -errno;
	}
	if (stop)
		return pm_merge_stop_backward(&perf->merge, true, NULL);
	return 0;
}

void pm_perf_begin(struct pm_perf *perf, bool final)
{
	pm_merge_begin_now(&perf->merge, final);
}

int pm_perf_count(const struct pm_perf *perf, const struct pm_record *record,
		  size_t index, uint64_t *out)
{
	return pm_sample_count(&record->sample, &perf->merge.layout, (uint32_t)index,
			       out);
}

int pm_perf_next(struct pm_perf *perf, struct pm_record *out, struct pm_error *err)
{
	return pm_merge_next(&perf->merge, out, err);
}

void pm_perf_hold(struct pm_perf *perf, bool hold)
{
	pm_merge_hold(&perf->merge, hold);
}
