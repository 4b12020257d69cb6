/* SPDX-License-Identifier: MIT */
/* Plans what is counted where, and which rows result. */
#include "counters-state.h"

#include <fcntl.h>
#include <string.h>

/* Whether the place is one task on one CPU: see pm_counter_place.reference. */
static bool has_place_reference(const struct pm_counter_place *place)
{
	return place->task > 0 && place->cpu >= 0;
}

static int counters_add_place(struct pm_counters *counters, int cpu, pid_t task,
			      uint32_t row)
{
	return pm_vec_push(&counters->places, (struct pm_counter_place){ .cpu = cpu,
									 .task = task,
									 .row = row,
									 .reference = -1,
									 .anchor = -1 });
}

static int counters_plan_row(struct pm_counters *counters, pid_t tid, int cpu)
{
	return pm_vec_push(&counters->rows,
			   (struct pm_counters_row){ .tid = tid, .cpu = cpu });
}

/* Returns the row of @cpu, which is created if needed, or -ENOMEM. */
static int counters_row_of_cpu(struct pm_counters *counters, int cpu)
{
	if (counters->options.by != PM_COUNTERS_BY_CPU)
		return 0;
	for (size_t i = 0; i < counters->rows.len; i++)
		if (counters->rows.data[i].cpu == cpu)
			return (int)i;
	if (counters_plan_row(counters, 0, cpu) < 0)
		return -ENOMEM;
	return (int)counters->rows.len - 1;
}

static int counters_plan_task(struct pm_counters *counters, pid_t task,
			      const pm_cpu_list *cpus)
{
	bool by_thread = counters->options.by == PM_COUNTERS_BY_THREAD;
	int ret = 0, task_row = 0;

	if (by_thread) {
		ret = counters_plan_row(counters, task, -1);
		task_row = (int)counters->rows.len - 1;
	}
	if (ret == 0 && !cpus)
		ret = counters_add_place(counters, -1, task, (uint32_t)task_row);
	for (size_t i = 0; cpus && ret == 0 && i < cpus->len; i++) {
		int cpu = (int)cpus->data[i];
		int row = task_row;

		if (!by_thread)
			row = counters_row_of_cpu(counters, cpu);
		if (row < 0)
			ret = row;
		else
			ret = counters_add_place(counters, cpu, task, (uint32_t)row);
	}
	return ret;
}

static int counters_plan_tasks(struct pm_counters *counters,
			       const struct pm_counters_options *options,
			       const pm_cpu_list *cpus)
{
	int ret = 0;

	if (options->target == PM_PERF_COMMAND)
		return counters_plan_task(counters, options->pid, cpus);
	for (size_t i = 0; i < options->tids_len && ret == 0; i++)
		ret = counters_plan_task(counters, options->tids[i], cpus);
	return ret;
}

static int counters_plan_cpus(struct pm_counters *counters, const pm_cpu_list *cpus)
{
	int ret = 0;

	for (size_t i = 0; i < cpus->len && ret == 0; i++) {
		int row = counters_row_of_cpu(counters, (int)cpus->data[i]);

		if (row < 0)
			ret = row;
		else
			ret = counters_add_place(counters, (int)cpus->data[i],
						 PM_EVERY_TASK, (uint32_t)row);
	}
	return ret;
}

static int counters_plan_on_cpus(struct pm_counters *counters,
				 const struct pm_counters_options *options,
				 const pm_cpu_list *cpus)
{
	bool on_cpus = counters->tell_ended || options->cpus ||
		       options->by == PM_COUNTERS_BY_CPU;
	int ret = 0;

	pm_vec_clear(&counters->places);
	pm_vec_clear(&counters->rows);
	if (options->by == PM_COUNTERS_SUM)
		ret = counters_plan_row(counters, 0, -1);
	if (ret == 0) {
		if (pm_counters_wide(counters))
			ret = counters_plan_cpus(counters, cpus);
		else
			ret = counters_plan_tasks(counters, options,
						  on_cpus ? cpus : NULL);
	}
	counters->own_rows = counters->rows.len;
	return ret;
}

int pm_counters_plan(struct pm_counters *counters,
		     const struct pm_counters_options *options, struct pm_error *err)
{
	pm_cpu_list cpus PM_CLEANUP(pm_cpu_list_release) = { 0 };
	int ret = pm_perf_cpus_wanted(options->cpus, &cpus, NULL, err);

	if (ret < 0)
		return ret;
	/* A thread's end can only be reported if all CPUs that it may have run on are
	 * opened. */
	counters->tell_ended = options->by == PM_COUNTERS_BY_THREAD &&
			       !options->no_inherit && !options->cpus;
	if (options->target == PM_PERF_CGROUP) {
		counters->cgroup_fd = fcntl(options->cgroup_fd, F_DUPFD_CLOEXEC, 0);
		if (counters->cgroup_fd < 0)
			return pm_error_set(err, -errno, "no such cgroup: %s",
					    strerror(errno));
	}
	if (counters_plan_on_cpus(counters, options, &cpus) < 0)
		return pm_error_set(err, -ENOMEM, "no memory for the counters");
	return 0;
}

bool pm_counters_plan_fewer(struct pm_counters *counters,
			    const struct pm_counters_options *options)
{
	if (!counters->tell_ended)
		return false;
	counters->tell_ended = false;
	return counters_plan_on_cpus(counters, options, NULL) == 0;
}

int pm_counters_plan_uncore(struct pm_counters *counters, uint32_t event)
{
	pm_cpu_list cpus PM_CLEANUP(pm_cpu_list_release) = { 0 };
	int ret = pm_cpu_list_parse(counters->asked.data[event].actual.cpus, &cpus);

	for (size_t i = 0; i < cpus.len && ret == 0; i++) {
		int cpu = (int)cpus.data[i], row;
		bool known = false;

		for (size_t k = 0; k < counters->places.len; k++)
			known |= counters->places.data[k].uncore &&
				 counters->places.data[k].cpu == cpu;
		if (known)
			continue;
		row = counters_row_of_cpu(counters, cpu);
		if (row < 0)
			ret = row;
		else
			ret = counters_add_place(counters, cpu, PM_EVERY_TASK,
						 (uint32_t)row);
		if (ret == 0)
			counters->places.data[counters->places.len - 1].uncore = true;
	}
	counters->own_rows = counters->rows.len;
	return ret;
}

bool pm_counters_guarded(const struct pm_counters *counters)
{
	if (counters->tell_ended)
		return true;
	for (uint32_t i = 0; pm_counters_may_grow(counters) && i < counters->asked.len;
	     i++)
		if (counters->asked.data[i].requested.leader != i)
			return true;
	return false;
}

size_t pm_counters_fds_needed(const struct pm_counters *counters)
{
	size_t sum = 0;

	for (size_t i = 0; i < counters->places.len; i++)
		sum += counters->events.len +
		       has_place_reference(&counters->places.data[i]);
	if (pm_counters_guarded(counters))
		sum += counters->places.len; /* an upper bound for rings and guards */
	return sum;
}
