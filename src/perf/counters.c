/* SPDX-License-Identifier: MIT */
#include "counters-state.h"

#include <linux/perf_event.h>
#include <string.h>

enum {
	FDS_OF_THE_REST = 64, /* descriptors that the rest of the program may have open */
};

/* ---- options --------------------------------------------------------------------------- */

static bool has_counters_target(const struct pm_counters_options *options)
{
	switch (options->target) {
	case PM_PERF_COMMAND:
		return options->pid > 0;
	case PM_PERF_TASKS:
		return options->tids_len > 0;
	case PM_PERF_CPUS:
		return true;
	case PM_PERF_CGROUP:
		return options->cgroup_fd >= 0;
	}
	return false;
}

static int counters_check_options(const struct pm_counters_options *options,
				  struct pm_error *err)
{
	if (!has_counters_target(options))
		return pm_error_set(err, -EINVAL, "no process to count");
	if (options->specs_len == 0)
		return pm_error_set(err, -EINVAL, "no event was asked for");
	if (options->by == PM_COUNTERS_BY_THREAD &&
	    (options->target == PM_PERF_CPUS || options->target == PM_PERF_CGROUP))
		return pm_error_set(err, -EINVAL,
				    "whole CPUs and control groups are not counted by "
				    "thread");
	return 0;
}

/* ---- preparing ------------------------------------------------------------------------- */

/* Before Linux 4.13, inherited events could only be read one by one. */
static bool can_kernel_read_groups(void)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_DUMMY,
					.disabled = 1,
					.inherit = 1,
					.exclude_kernel = 1,
					.exclude_hv = 1,
					.read_format = PERF_FORMAT_GROUP };
	int fd PM_AUTO_CLOSE = pm_sys_perf_event_open(&attr, 0, -1, -1, 0);

	return fd >= 0 || errno != EINVAL;
}

static int counters_prepare_events(struct pm_counters *counters,
				   const struct pm_counters_options *options)
{
	for (size_t i = 0; i < options->specs_len; i++) {
		const struct pm_event_spec *spec = &options->specs[i];

		if (pm_vec_push(&counters->events,
				(struct pm_counters_event){ .spec = *spec,
							    .state = PM_STAT_OK }) < 0 ||
		    pm_vec_push(&counters->asked,
				(struct pm_perf_event){ .requested = *spec,
							.actual = *spec }) < 0 ||
		    pm_vec_push(&counters->uncore, false) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Uses fewer descriptors by not reporting ended threads. */
static void counters_use_fewer_fds(struct pm_counters *counters,
				   const struct pm_counters_options *options,
				   const char *why)
{
	if (!pm_counters_plan_fewer(counters, options))
		return;
	pm_perf_notes_add(&counters->notes,
			  "%s: threads that are started from now on have no rows, they "
			  "are in that of the thread that they came from.",
			  why);
}

static int counters_prepare(struct pm_counters *counters,
			    const struct pm_counters_options *options,
			    struct pm_error *err)
{
	int ret;

	pm_perf_env_read(&counters->env);
	counters->features = (struct pm_perf_features){ true, true };
	counters->options = *options;
	counters->options.specs = NULL;
	counters->options.tids = NULL;
	counters->options.cpus = NULL;
	counters->can_read_groups = can_kernel_read_groups();
	if (counters_prepare_events(counters, options) < 0)
		return pm_error_set(err, -ENOMEM, "no memory for the events");
	ret = pm_counters_plan(counters, options, err);
	if (ret < 0)
		return ret;
	/* Raise the limit now, and not in the middle of opening thousands. */
	if (pm_counters_fds_needed(counters) + FDS_OF_THE_REST > pm_perf_nofile())
		pm_perf_raise_nofile(&counters->nofile_raised);
	if (pm_counters_fds_needed(counters) + FDS_OF_THE_REST > pm_perf_nofile())
		counters_use_fewer_fds(counters, options,
				       "there are too few file descriptors");
	return 0;
}

static int counters_open_rings_and_all(struct pm_counters *counters,
				       const struct pm_counters_options *options,
				       struct pm_error *err)
{
	int ret = 0;

	if (counters->tell_ended)
		ret = pm_counters_map_rings(counters, NULL);

	if (ret == -EPERM || ret == -ENOMEM || ret == -EACCES)
		counters_use_fewer_fds(counters, options,
				       "there is too little locked memory");
	else if (ret < 0 && ret != -ENOSYS)
		return pm_error_set(err, ret, "no ring for the ends of threads: %s",
				    strerror(-ret));
	ret = pm_counters_open_all(counters, err);
	if (ret < 0 || options->by != PM_COUNTERS_BY_THREAD)
		return ret;
	ret = pm_counters_expect(counters);
	if (ret == 0)
		ret = pm_counters_name_rows(counters);
	if (ret < 0)
		return pm_error_set(err, ret, "no memory for the threads");
	return 0;
}

/* Starts counting, except events that wait for an exec or for pm_counters_enable(). */
static int counters_begin(struct pm_counters *counters, struct pm_error *err)
{
	enum pm_counters_switched which = PM_SWITCH_ALL;
	int ret = 0;

	if (counters->options.target == PM_PERF_COMMAND)
		which = PM_SWITCH_WIDE;
	if (!counters->options.begin_disabled)
		ret = pm_counters_switch(counters, true, which);
	if (ret < 0)
		return pm_error_set(err, ret, "an event cannot be enabled: %s",
				    strerror(-ret));
	return 0;
}

/* ---- public ---------------------------------------------------------------------------- */

void pm_counters_free(struct pm_counters *counters)
{
	if (!counters)
		return;
	pm_counters_close_all(counters);
	if (counters->cgroup_fd >= 0)
		close(counters->cgroup_fd);
	pm_perf_notes_release(&counters->notes);
	pm_vec_release(&counters->events);
	pm_vec_release(&counters->asked);
	pm_vec_release(&counters->uncore);
	pm_vec_release(&counters->places);
	pm_vec_release(&counters->fds);
	pm_vec_release(&counters->rows);
	pm_vec_release(&counters->expected);
	pm_vec_release(&counters->tasks);
	pm_index_release(&counters->task_index);
	pm_vec_release(&counters->ended);
	pm_vec_release(&counters->pending);
	pm_vec_release(&counters->ended_reads);
	pm_vec_release(&counters->anchors);
	free(counters);
}

static void cleanup_counters(struct pm_counters **counters)
{
	pm_counters_free(*counters);
}

int pm_counters_open(struct pm_counters **out, const struct pm_counters_options *options,
		     struct pm_error *err)
{
	struct pm_counters *counters PM_CLEANUP(cleanup_counters) = NULL;
	int ret = counters_check_options(options, err);

	if (ret < 0)
		return ret;
	counters = calloc(1, sizeof(*counters));
	if (!counters)
		return pm_error_set(err, -ENOMEM, "no memory for the counters");
	counters->cgroup_fd = -1;
	ret = counters_prepare(counters, options, err);
	if (ret == 0)
		ret = counters_open_rings_and_all(counters, options, err);
	if (ret == 0)
		ret = counters_begin(counters, err);
	if (ret < 0)
		return ret;
	*out = PM_TAKE_PTR(counters);
	return 0;
}

const struct pm_counters_event *pm_counters_events(const struct pm_counters *counters,
						   size_t *len)
{
	*len = counters->events.len;
	return counters->events.data;
}

const struct pm_perf_notes *pm_counters_notes(const struct pm_counters *counters)
{
	return &counters->notes;
}

int pm_counters_enable(struct pm_counters *counters)
{
	return pm_counters_switch(counters, true, PM_SWITCH_ALL);
}

int pm_counters_disable(struct pm_counters *counters)
{
	return pm_counters_switch(counters, false, PM_SWITCH_ALL);
}

const int *pm_counters_poll_fds(const struct pm_counters *counters, size_t *len)
{
	*len = counters->anchors.len;
	return counters->anchors.data;
}

uint64_t pm_counters_lost_rows(const struct pm_counters *counters)
{
	uint64_t told = counters->ended.len + counters->pending.len;
	uint64_t untold = PM_SUB_OR_0(counters->ends, told);

	return counters->lost_rows + counters->pending.len + untold;
}

bool pm_counters_ends_untold(const struct pm_counters *counters)
{
	return counters->ends > 0 && !counters->told;
}
