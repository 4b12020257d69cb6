/* SPDX-License-Identifier: MIT */
#include "live.h"

#include <string.h>

static uint64_t value_less_cost_of_visit(uint64_t value, const uint64_t *cost,
					 size_t index)
{
	if (!cost)
		return value;
	return PM_SUB_OR_0(value, cost[index]);
}

static void put_live_count(const struct pm_engine_options *options, struct pm_str *line,
			   const struct pm_stat_event *event, const uint64_t *cost,
			   const struct pm_visit *entry, const struct pm_visit *exit,
			   size_t index)
{
	struct pm_count_read delta = {
		.value = exit->counts[index] - entry->counts[index],
		.enabled_ns = exit->enabled_ns - entry->enabled_ns,
		.running_ns = exit->running_ns - entry->running_ns,
	};
	struct pm_count count = pm_count_scale(&delta);

	if (count.state > PM_STAT_MULTIPLEXED)
		return;
	pm_str_printf(line, ", %s ", event->name);
	options->live_value(line, event,
			    value_less_cost_of_visit(count.value, cost, index));
}

void pm_live_call(const struct pm_engine_options *options, const struct pm_stat *stat,
		  const uint64_t *cost, uint32_t region, const struct pm_visit *entry,
		  const struct pm_visit *exit, uint32_t depth)
{
	static char unit[] = "ns";
	static const struct pm_stat_event wall_time = { .unit = unit };
	const char *name = options->regions->list.data[region].name;
	struct pm_str line PM_CLEANUP(pm_str_release) = { 0 };

	pm_str_printable(&line, name, strlen(name));
	pm_str_printf(&line, " [%d/%d", (int)exit->pid, (int)exit->tid);
	if (depth > 1)
		pm_str_printf(&line, " depth %u", depth);
	pm_str_puts(&line, "]: wall-time ");
	options->live_value(&line, &wall_time,
			    value_less_cost_of_visit(exit->time - entry->time, cost,
						     options->specs_len));
	for (size_t i = 0; i < options->specs_len && i < stat->events.len; i++)
		if (stat->events.data[i].state == PM_STAT_OK)
			put_live_count(options, &line, &stat->events.data[i], cost, entry,
				       exit, i);
	if (!line.failed)
		options->live_line(options->live_user, line.data);
}
