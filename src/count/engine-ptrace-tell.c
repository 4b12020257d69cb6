/* SPDX-License-Identifier: MIT */
/* Writes a run of the ptrace engine to the document. */
#include "engine-ptrace-run.h"
#include "tell.h"

#include <string.h>

static int ptrace_add_warnings(const struct pm_ptr_engine *it)
{
	const struct pm_ptr *ptr = &it->ptr;
	int ret = 0;

	if (ptr->unplanted > 0)
		ret = pm_tell_warning(
			it->stat,
			"%llu places got no breakpoint: their code was another one in "
			"memory, or could not be moved; calls are missing",
			(unsigned long long)ptr->unplanted);
	if (ret == 0 && ptr->hw.hits)
		ret = pm_tell_lost(it->stat, ptr->hw.hits);
	if (ret == 0)
		ret = pm_tell_outlived(it->stat, it->outlived);
	if (ret == 0 && ptr->strangers > 0)
		ret = pm_tell_warning(
			it->stat,
			"%llu processes are not counted: who had made them was killed "
			"before that was seen",
			(unsigned long long)ptr->strangers);
	if (ret == 0)
		ret = pm_tell_privileged(it->stat, ptr->privileged);
	if (ret == 0 && ptr->kept_waiting)
		ret = pm_tell_warning(
			it->stat,
			"wall-time of threads that were stopped at the same time contains "
			"their wait while the others' callers were looked for");
	if (ret == 0 && ptr->blocked)
		ret = pm_tell_warning(
			it->stat,
			"threads block SIGTRAP, which breakpoints are: what the program "
			"does on that signal of its own was reset by the kernel, and it "
			"may end by one; --engine uprobe leaves signals alone");
	if (ret == 0 && ptr->counts.threads_missed > 0)
		ret = pm_tell_warning(it->stat, "%llu threads could not be counted: %s",
				      (unsigned long long)ptr->counts.threads_missed,
				      ptr->counts.why.text);
	return ret;
}

/* If perf is denied, a command's task-clock is taken from wait4(2). */
static void fill_clock(const struct pm_ptr_engine *it, struct pm_stat_value *values)
{
	const struct rusage *usage = &it->child->usage;
	int32_t clock = it->ptr.counts.clock;
	uint64_t used = pm_tell_ns(&usage->ru_utime) + pm_tell_ns(&usage->ru_stime);

	if (clock >= 0 && it->child->status_known)
		values[clock] = (struct pm_stat_value){ .state = PM_STAT_OK,
							.value = used,
							.raw = used };
}

static int ptrace_fill_run(struct pm_ptr_engine *it)
{
	const struct pm_child *child = it->child;
	struct pm_stat_run *run;

	it->run = (uint32_t)it->stat->runs.len;
	if (pm_vec_push(&it->stat->runs,
			(struct pm_stat_run){ .begin_ns = it->began_ns }) < 0)
		return -ENOMEM;
	run = &it->stat->runs.data[it->run];
	run->exited = child->status_known && !it->options->targets;
	run->exit_code = -1;
	if (run->exited)
		pm_tell_status(run, child->status);
	run->stopped = it->timed_out || child->interrupts > 0;
	run->values = pm_stat_values_new(it->stat->events.len);
	if (!run->values)
		return -ENOMEM;
	pm_tell_tools(it->stat, it->options, child, it->end_ns - it->begin_ns,
		      run->values);
	fill_clock(it, run->values);
	if (it->ptr.hw.hits &&
	    pm_ptr_counts_add_hits(&it->ptr.counts, it->ptr.hw.hits) < 0)
		return -ENOMEM;
	return pm_ptr_counts_finish(&it->ptr.counts, it->stat, run->values);
}

static const struct pm_ptr_costs *costs_of(const struct pm_ptr_engine *it)
{
	return &it->costs[it->ptr.hw.hits != NULL];
}

/* The document has one overhead for all of its runs, that of the last one. */
static int stat_set_overhead(const struct pm_ptr_engine *it)
{
	struct pm_stat *stat = it->stat;
	const struct pm_ptr_costs *costs = costs_of(it);
	struct pm_stat_value *values = pm_stat_values_new(stat->events.len);
	struct pm_stat_value *inner = pm_stat_values_new(stat->events.len);

	if (!values || !inner) {
		free(values);
		free(inner);
		return -ENOMEM;
	}
	for (size_t i = 0; i < stat->events.len; i++) {
		const struct pm_stat_event *event = &stat->events.data[i];
		size_t column = i;

		if (strcmp(event->source, "tool") == 0) {
			if (strcmp(event->name, "wall-time") == 0)
				column = it->options->specs_len;
			else
				column = SIZE_MAX;
		}
		if (event->state != PM_STAT_OK) {
			values[i].state = inner[i].state = event->state;
		} else if (column <= it->options->specs_len && costs->known) {
			values[i] =
				(struct pm_stat_value){ .value = costs->call[column] };
			inner[i] =
				(struct pm_stat_value){ .value = 2 *
								 costs->visit[column] };
		}
		values[i].raw = values[i].value;
		inner[i].raw = inner[i].value;
	}
	free(stat->overhead);
	free(stat->overhead_inner);
	stat->overhead = values;
	stat->overhead_inner = inner;
	stat->overhead_subtracted = costs->known && !it->options->keep_overhead;
	if (costs->known)
		return 0;
	return pm_tell_warning(stat,
			       "what counting a call adds is not known, and not "
			       "subtracted: %s",
			       it->no_costs.text);
}

static int finish_calls(struct pm_ptr_engine *it)
{
	const struct pm_ptr_costs *costs = costs_of(it);
	bool subtract = costs->known && !it->options->keep_overhead;
	size_t first = it->stat->scopes.len;
	int ret = pm_ptr_callers_name(&it->ptr.callers, it->ptr.procs);

	if (ret == 0 && subtract)
		ret = pm_calls_set_visit_cost(it->calls, costs->visit);

	if (ret == 0)
		ret = pm_calls_finish(it->calls, it->stat, it->run,
				      subtract ? costs->call : NULL);
	if (ret == 0)
		pm_ptr_hw_tell_lost(&it->ptr.hw, it->options->regions,
				    it->stat->scopes.data + first,
				    it->stat->scopes.len - first);
	return ret;
}

/* Only the first run sets it. Later runs normally make the same choice. */
static int stat_set_breakpoint_kind(const struct pm_ptr_engine *it)
{
	struct pm_stat_setting setting = { 0 };
#if defined(__aarch64__)
	static const char stops[] = "brk";
#else
	static const char stops[] = "int3";
#endif

	for (size_t i = 0; i < it->stat->settings.len; i++)
		if (strcmp(it->stat->settings.data[i].name, "breakpoints") == 0)
			return 0;
	if (pm_stat_text(&setting.name, "breakpoints") == 0 &&
	    pm_stat_text(&setting.value, it->ptr.hw.hits ? "processor" : stops) == 0 &&
	    pm_vec_push(&it->stat->settings, setting) == 0)
		return 0;
	free(setting.name);
	free(setting.value);
	return -ENOMEM;
}

int pm_ptr_tell(struct pm_ptr_engine *it, struct pm_error *err)
{
	int ret = ptrace_fill_run(it);

	if (ret == 0)
		ret = stat_set_overhead(it);
	if (ret == 0)
		ret = finish_calls(it);
	if (ret == 0)
		ret = stat_set_breakpoint_kind(it);
	if (ret == 0)
		ret = ptrace_add_warnings(it);
	if (ret < 0)
		return pm_error_set(err, ret, "%s", strerror(-ret));
	return 0;
}
