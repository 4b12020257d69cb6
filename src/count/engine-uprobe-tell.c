/* SPDX-License-Identifier: MIT */
/* Reports a run after its end. */
#include "engine-uprobe.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "callers.h"
#include "tell.h"

int pm_up_no_memory(struct pm_error *err)
{
	return pm_error_set(err, -ENOMEM, "no memory for the calls");
}

int pm_up_fill_events(const struct pm_up_engine *it)
{
	size_t len;
	const struct pm_counters_event *counters = pm_hits_counters(it->hits, &len);

	for (size_t i = 0; i < len && i < it->stat->events.len; i++) {
		struct pm_stat_event *event = &it->stat->events.data[i];

		event->state = counters[i].state;
		event->user_only |= counters[i].kernel_dropped;
		if (counters[i].state == PM_STAT_OK || event->why)
			continue;
		if (pm_stat_text(&event->why, counters[i].why.text) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Counters that other users displaced have no sum. */
static int uprobe_fill_counts(const struct pm_up_engine *it, struct pm_stat_value *values)
{
	struct pm_count_read reads[PM_HITS_COUNTERS_MAX] = { 0 };
	bool crowded = pm_hits_crowded(it->hits);
	int ret = pm_hits_totals(it->hits, reads);

	for (size_t i = 0; i < it->options->specs_len && i < it->stat->events.len; i++) {
		struct pm_count count = pm_count_scale(&reads[i]);

		if (ret < 0 || it->stat->events.data[i].state != PM_STAT_OK || crowded) {
			if (it->stat->events.data[i].state == PM_STAT_OK)
				values[i].state = PM_STAT_NOT_COUNTED;
			else
				values[i].state = it->stat->events.data[i].state;
			continue;
		}
		values[i] = pm_tell_value(&count);
	}
	if (ret == -ENOMEM)
		return ret;
	return 0;
}

static int uprobe_fill_run(struct pm_up_engine *it)
{
	const struct pm_child *child = it->child;
	struct pm_stat_run run = { .begin_ns = it->began_ns, .exit_code = -1 };
	int ret;

	run.exited = child->status_known && !it->options->targets;
	if (run.exited)
		pm_tell_status(&run, child->status);
	run.stopped = it->timed_out || child->interrupts > 0;
	run.values = pm_stat_values_new(it->stat->events.len);
	if (!run.values)
		return -ENOMEM;
	it->run = (uint32_t)it->stat->runs.len;
	pm_tell_tools(it->stat, it->options, it->child, it->end_ns - it->begin_ns,
		      run.values);
	ret = uprobe_fill_counts(it, run.values);
	if (ret == 0)
		ret = pm_vec_push(&it->stat->runs, run);
	if (ret < 0)
		free(run.values);
	return ret;
}

/* The part of the cost of a call. */
enum cost_part {
	COST_INSIDE, /* added to the call itself */
	COST_AROUND, /* of its entry and exit: added to an enclosing call */
};

/* Of column @at. */
static uint64_t cost_of_call(const struct pm_up_engine *it, bool cheap,
			     enum cost_part part, size_t at)
{
	if (part == COST_AROUND)
		return it->cost.visit[cheap][at] + it->cost.visit[0][at];
	return it->cost.call[cheap][at];
}

/* The average over the calls seen, in the scopes from @first on. */
static uint64_t mean_cost(const struct pm_up_engine *it, size_t first,
			  enum cost_part part, size_t at)
{
	const struct pm_regions *regions = it->options->regions;
	unsigned __int128 sum = 0;
	uint64_t calls = 0;
	size_t scope = first;

	for (uint32_t i = 0; i < regions->list.len; i++) {
		bool cheap = pm_up_entered_cheaply(regions, i);

		if (regions->list.data[i].sum >= 0)
			continue;
		sum += (unsigned __int128)it->stat->scopes.data[scope].calls *
		       cost_of_call(it, cheap, part, at);
		calls += it->stat->scopes.data[scope++].calls;
	}
	if (calls > 0)
		return (uint64_t)(sum / calls);
	return cost_of_call(it, false, part, at);
}

static int fill_overhead(struct pm_up_engine *it, size_t first, enum cost_part part,
			 struct pm_stat_value **out)
{
	struct pm_stat *stat = it->stat;
	struct pm_stat_value *values = pm_stat_values_new(stat->events.len);
	size_t specs = it->options->specs_len;

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < stat->events.len; i++) {
		bool is_wall =
			i >= specs && strcmp(stat->events.data[i].name, "wall-time") == 0;

		if (stat->events.data[i].state != PM_STAT_OK)
			values[i].state = stat->events.data[i].state;
		else if (is_wall || i < specs)
			values[i] = (struct pm_stat_value){
				.value = mean_cost(it, first, part, is_wall ? specs : i)
			};
		values[i].raw = values[i].value;
	}
	free(*out);
	*out = values;
	stat->overhead_subtracted = !it->options->keep_overhead;
	return 0;
}

/* Whether calls of threads that were created later may be missing. */
static bool uprobe_hold_missed(const struct pm_up_engine *it)
{
	return it->hold.refused > 0 || pm_hits_missed(it->hits);
}

/* Marks the scopes, from @first on, that lack calls. */
static void fill_lost(struct pm_up_engine *it, size_t first)
{
	const struct pm_regions *regions = it->options->regions;
	size_t scope = first;

	for (uint32_t i = 0; i < regions->list.len; i++) {
		struct pm_stat_scope *to;

		if (regions->list.data[i].sum >= 0)
			continue;
		to = &it->stat->scopes.data[scope++];
		for (uint32_t part = 0; part < regions->list.len; part++) {
			uint32_t class;

			if (part != i && regions->list.data[part].sum != (int32_t)i)
				continue;
			if (pm_up_is_short(&it->places, part))
				to->calls_exact = false;
			for (uint32_t which = 0;
			     pm_up_class(&it->places, part, which, &class); which++)
				to->lost += pm_hits_lost_of(it->hits, class);
		}
		if (to->lost > 0 || pm_hits_crowded(it->hits) || uprobe_hold_missed(it) ||
		    !regions->asked)
			to->calls_exact = false;
		if (pm_regions_is_deaf(regions, i))
			pm_tell_unknown(it->stat, to);
	}
}

/* Counts the descendants that were still running. If threads may have been missed, the
 * list may contain processes whose end was not seen. */
static size_t count_running_descendants(const struct pm_up_engine *it)
{
	size_t len = it->descendants.len;

	for (size_t i = 0; uprobe_hold_missed(it) && i < it->descendants.len; i++)
		len -= kill(it->descendants.data[i], 0) < 0 && errno == ESRCH;
	return len;
}

/* Reports what the refusals of the kernel mean for each function. */
static int warn_of_refused_probes(const struct pm_up_engine *it)
{
	const struct pm_regions *regions = it->options->regions;
	size_t deaf = 0;
	uint32_t first = 0;
	int ret = 0;

	for (uint32_t i = 0; i < regions->list.len; i++)
		if (regions->list.data[i].sum < 0 && pm_regions_is_deaf(regions, i) &&
		    deaf++ == 0)
			first = i;
	if (deaf > 0)
		ret = pm_tell_warning(
			it->stat,
			"the kernel puts no probe on the instructions that %s "
			"begins with (%zu such functions): whether it was "
			"called is not known; try: --engine ptrace",
			regions->list.data[first].name, deaf);
	else if (it->places.refused > 0)
		ret = pm_tell_warning(
			it->stat,
			"the kernel puts no probe on some instructions (%zu, one of them of "
			"%s): calls that begin or end there are not seen to do so.",
			it->places.refused,
			regions->list.data[it->places.refused_region].name);
	if (ret == 0 && it->places.behind > 0)
		ret = pm_tell_warning(
			it->stat,
			"the kernel puts no probe on the first instructions of %s (%zu such "
			"places): they are looked at behind these, and a call that a fault "
			"in them ends is not seen.",
			regions->list.data[it->places.behind_region].name,
			it->places.behind);
	return ret;
}

/* Whether calls of threads that were created later may be missing. */
static int uprobe_hold_warn(const struct pm_up_engine *it)
{
	const struct pm_up_hold *hold = &it->hold;
	int ret = 0;

	if (pm_hits_missed(it->hits) && hold->why.text[0])
		ret = pm_tell_warning(
			it->stat,
			"new threads could not be held until they are counted: "
			"%s",
			hold->why.text);
	if (ret == 0 && hold->refused > 0)
		ret = pm_tell_warning(it->stat, "%zu threads are not counted: %s",
				      hold->refused, hold->why.text);
	if (ret < 0)
		return ret;
	return pm_tell_privileged(it->stat, hold->privileged);
}

static int uprobe_add_warnings(const struct pm_up_engine *it)
{
	const struct pm_perf_notes *notes = pm_hits_notes(it->hits);
	int ret = 0;

	for (size_t i = 0; i < notes->texts.len && ret == 0; i++)
		ret = pm_tell_warning(it->stat, "%s", notes->texts.data[i]);
	if (ret == 0)
		ret = uprobe_hold_warn(it);
	if (ret == 0)
		ret = pm_tell_lost(it->stat, it->hits);
	if (ret == 0 && !it->options->targets)
		ret = pm_tell_outlived(it->stat, count_running_descendants(it));
	if (ret == 0 && pm_hits_crowded(it->hits))
		ret = pm_tell_warning(
			it->stat,
			"the processor had not enough counters for all events at all "
			"times, and calls were not seen meanwhile: count fewer events.");
	if (ret == 0)
		ret = warn_of_refused_probes(it);
	if (ret == 0 && it->places.unjudged > 0)
		ret = pm_tell_warning(
			it->stat,
			"on this processor a probe does not tell whether a conditional jump "
			"is taken (%zu, one of them of %s): calls that end so are not seen "
			"to do so.",
			it->places.unjudged,
			it->options->regions->list.data[it->places.unjudged_region].name);
	if (ret == 0 && !it->cost.known)
		ret = pm_tell_warning(
			it->stat, "what looking at a call costs could not be measured: "
				  "nothing was taken off.");
	return ret;
}

int pm_up_tell(struct pm_up_engine *it, struct pm_error *err)
{
	bool take_off = it->cost.known && !it->options->keep_overhead;
	size_t first = it->stat->scopes.len;
	int ret = uprobe_fill_run(it);

	if (ret == 0 && it->callers)
		ret = pm_callers_resolve(it->callers);
	if (ret == 0)
		ret = pm_calls_finish(it->calls, it->stat, it->run,
				      take_off ? it->cost.call[0] : NULL);
	if (ret == 0 && it->cost.known)
		ret = fill_overhead(it, first, COST_INSIDE, &it->stat->overhead);
	if (ret == 0 && it->cost.known)
		ret = fill_overhead(it, first, COST_AROUND, &it->stat->overhead_inner);
	if (ret == 0) {
		fill_lost(it, first);
		ret = uprobe_add_warnings(it);
	}
	if (ret < 0)
		return pm_up_no_memory(err);
	return 0;
}
