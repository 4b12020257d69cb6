/* SPDX-License-Identifier: MIT */
/* The counters of each thread, which are read while the thread is stopped. */
#include "engine-ptrace.h"

#include <linux/perf_event.h>
#include <string.h>

/*
 * Puts events that are not in groups into one group, so that a visit reads all of them at
 * once. Events of a PMU that covers only some CPUs cannot be grouped with others and are
 * left alone.
 */
static void group_all_events(struct pm_ptr_counts *counts)
{
	for (size_t i = 0; i < counts->specs.len; i++)
		if (counts->specs.data[i].leader != i || counts->specs.data[i].cpus)
			return;
	for (size_t i = 0; i < counts->specs.len; i++)
		counts->specs.data[i].leader = 0;
}

int pm_ptr_counts_init(struct pm_ptr_counts *counts, const struct pm_event_spec *specs,
		       size_t len)
{
	*counts = (struct pm_ptr_counts){ .clock = -1 };
	if (pm_vec_reserve(&counts->specs, len + 1) < 0 ||
	    pm_vec_reserve(&counts->totals, len + 1) < 0 ||
	    pm_vec_reserve(&counts->events, len + 1) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++) {
		counts->specs.data[counts->specs.len++] = specs[i];
		counts->totals.data[counts->totals.len++] =
			(struct pm_ptr_total){ .known = false };
	}
	group_all_events(counts);
	return 0;
}

void pm_ptr_counts_release(struct pm_ptr_counts *counts)
{
	pm_vec_release(&counts->specs);
	pm_vec_release(&counts->totals);
	pm_vec_release(&counts->events);
}

/* If perf is denied, /proc still has CPU time. */
static void choose_clock_fallback(struct pm_ptr_counts *counts)
{
	for (size_t i = 0; i < counts->events.len; i++) {
		const struct pm_event_spec *spec = &counts->specs.data[i];

		if (counts->events.data[i].state == PM_STAT_OK)
			return;
		if (counts->clock < 0 &&
		    counts->events.data[i].state == PM_STAT_NOT_PERMITTED &&
		    spec->kind == PM_EVENT_SOFTWARE &&
		    spec->config == PERF_COUNT_SW_TASK_CLOCK)
			counts->clock = (int32_t)i;
	}
}

static void copy_event_states(struct pm_ptr_counts *counts,
			      const struct pm_counters *counters)
{
	size_t len;
	const struct pm_counters_event *events = pm_counters_events(counters, &len);

	if (counts->events.len > 0)
		return;
	for (size_t i = 0; i < len && i < counts->specs.len; i++)
		counts->events.data[counts->events.len++] = events[i];
	choose_clock_fallback(counts);
}

void pm_ptr_counts_open(struct pm_ptr_counts *counts, struct pm_ptr_counters *thread,
			pid_t tid)
{
	struct pm_counters_options options = {
		.specs = counts->specs.data,
		.specs_len = counts->specs.len,
		.target = PM_PERF_TASKS,
		.tids = &tid,
		.tids_len = 1,
		.cgroup_fd = -1,
		.no_inherit = true,
		.weak_groups = true,
	};

	if (counts->specs.len == 0)
		return;
	if (pm_counters_open(&thread->counters, &options, &counts->why) < 0) {
		thread->counters = NULL;
		counts->threads_missed++;
		return;
	}
	copy_event_states(counts, thread->counters);
}

void pm_ptr_counts_read(struct pm_ptr_counts *counts, struct pm_ptr_counters *thread,
			uint64_t cpu_ns, uint64_t *out, struct pm_visit *visit)
{
	const struct pm_counters_values *values = &thread->values;

	memset(out, 0, counts->specs.len * sizeof(*out));
	if (thread->counters &&
	    pm_counters_read(thread->counters, &thread->values, NULL) == 0)
		for (size_t i = 0; i < counts->specs.len && i < values->reads.len; i++) {
			out[i] = values->reads.data[i].value;
			if (visit->enabled_ns == 0) {
				visit->enabled_ns = values->reads.data[i].enabled_ns;
				visit->running_ns = values->reads.data[i].running_ns;
			}
		}
	if (counts->clock >= 0)
		out[counts->clock] = cpu_ns;
}

static void total_add_read(struct pm_ptr_total *total, const struct pm_count_read *read)
{
	struct pm_count count = pm_count_scale(read);

	total->known = true;
	total->value += count.value;
	total->raw += count.raw;
	total->enabled_ns += count.enabled_ns;
	total->running_ns += count.running_ns;
}

int pm_ptr_counts_add_hits(struct pm_ptr_counts *counts, const struct pm_hits *hits)
{
	size_t len;
	const struct pm_counters_event *events = pm_hits_counters(hits, &len);
	PM_AUTO_FREE struct pm_count_read *reads = calloc(len + 1, sizeof(*reads));
	int ret = -ENOMEM;

	if (reads)
		ret = pm_hits_totals(hits, reads);
	pm_vec_clear(&counts->events);
	for (size_t i = 0; ret == 0 && i < len && i < counts->specs.len; i++) {
		counts->events.data[counts->events.len++] = events[i];
		if (events[i].state == PM_STAT_OK)
			total_add_read(&counts->totals.data[i], &reads[i]);
	}
	return ret;
}

void pm_ptr_counts_close(struct pm_ptr_counts *counts, struct pm_ptr_counters *thread)
{
	const struct pm_counters_values *values = &thread->values;

	if (thread->counters && !thread->elsewhere &&
	    pm_counters_read(thread->counters, &thread->values, NULL) == 0)
		for (size_t i = 0; i < counts->totals.len && i < values->reads.len; i++)
			total_add_read(&counts->totals.data[i], &values->reads.data[i]);
	pm_counters_free(thread->counters);
	pm_counters_values_release(&thread->values);
	*thread = (struct pm_ptr_counters){ 0 };
}

static int event_set_state(const struct pm_counters_event *event,
			   struct pm_stat_event *out)
{
	out->state = event->state;
	out->user_only = !event->spec.kernel || event->kernel_dropped;
	if (event->state == PM_STAT_OK || out->why)
		return 0;
	return pm_stat_text(&out->why, event->why.text);
}

static struct pm_stat_value value_from_total(const struct pm_ptr_total *total)
{
	struct pm_stat_value value = { .state = PM_STAT_OK,
				       .value = total->value,
				       .raw = total->raw,
				       .enabled_ns = total->enabled_ns,
				       .running_ns = total->running_ns };

	if (total->running_ns < total->enabled_ns) {
		if (total->running_ns == 0)
			value.state = PM_STAT_NOT_COUNTED;
		else
			value.state = PM_STAT_MULTIPLEXED;
	}
	return value;
}

int pm_ptr_counts_finish(const struct pm_ptr_counts *counts, struct pm_stat *stat,
			 struct pm_stat_value *values)
{
	for (size_t i = 0; i < counts->events.len && i < stat->events.len; i++) {
		int ret;

		if ((int64_t)i == counts->clock)
			continue;
		ret = event_set_state(&counts->events.data[i], &stat->events.data[i]);
		if (ret < 0)
			return ret;
		if (counts->events.data[i].state != PM_STAT_OK)
			values[i].state = stat->events.data[i].state;
		else if (counts->totals.data[i].known)
			values[i] = value_from_total(&counts->totals.data[i]);
	}
	return 0;
}
