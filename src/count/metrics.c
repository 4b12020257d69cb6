/* SPDX-License-Identifier: MIT */
/* Metrics derived from other numbers. Each is a ratio of means over runs, or of one
 * scope's values. */
#include "pm/count.h"

#include <math.h>
#include <string.h>

struct formula {
	const char *name, *unit, *text;
	const char *over, *under; /* events; the metric is shown with the first */
	double factor; /* multiplies over / under */
	/* Only for whole programs; for a function, the events per call say more. */
	bool rate;
};

/* Clocks are in ns: cycles per nanosecond are GHz, events per nanosecond are 1e9 per
 * second. The number is printed before unit and name. */
static const struct formula formulas[] = {
	{ "CPUs utilised", "", "task-clock / wall-time", "task-clock", "wall-time", 1 },
	{ "switches per CPU second", "", "context-switches / task-clock",
	  "context-switches", "task-clock", 1e9, true },
	{ "migrations per CPU second", "", "cpu-migrations / task-clock",
	  "cpu-migrations", "task-clock", 1e9, true },
	{ "faults per CPU second", "", "page-faults / task-clock", "page-faults",
	  "task-clock", 1e9, true },
	{ "GHz", "", "cycles / task-clock", "cycles", "task-clock", 1 },
	{ "IPC", "", "instructions / cycles", "instructions", "cycles", 1 },
	{ "branch misses", "%", "100 * branch-misses / branches", "branch-misses",
	  "branches", 100 },
	{ "cache misses", "%", "100 * cache-misses / cache-references", "cache-misses",
	  "cache-references", 100 },
	{ "mispredicted", "%", "100 * sim.Bcm / sim.Bc", "sim.Bcm", "sim.Bc", 100 },
	{ "retiring", "%", "100 * topdown-retiring / slots", "topdown-retiring", "slots",
	  100 },
	{ "bad speculation", "%", "100 * topdown-bad-spec / slots", "topdown-bad-spec",
	  "slots", 100 },
	{ "frontend bound", "%", "100 * topdown-fe-bound / slots", "topdown-fe-bound",
	  "slots", 100 },
	{ "backend bound", "%", "100 * topdown-be-bound / slots", "topdown-be-bound",
	  "slots", 100 },
};

/* The code that an event counts. */
enum levels {
	LEVELS_ANY,
	LEVELS_ALL,
	LEVELS_USER,
};

static enum levels counted_levels(const struct pm_stat_event *event)
{
	if (event->user_only)
		return LEVELS_USER;
	return LEVELS_ALL;
}

/* Finds the first event of this name that counts @levels. Events that count different
 * code make no ratio. */
static bool find_ratio_event(const struct pm_stat *stat, const char *name,
			     enum levels levels, uint32_t *out)
{
	for (uint32_t i = 0; i < stat->events.len; i++) {
		const struct pm_stat_event *event = &stat->events.data[i];

		if (strcmp(event->name, name) != 0 ||
		    (levels != LEVELS_ANY && counted_levels(event) != levels))
			continue;
		*out = i;
		return true;
	}
	return false;
}

/* Times are the same whatever levels are counted. */
static bool is_time(const char *name)
{
	return strcmp(name, "task-clock") == 0 || strcmp(name, "wall-time") == 0;
}

/* A quotient. */
struct ratio {
	uint32_t over, under;
	double sum_over, sum_under;
};

/* Adds the values of one run or scope if both are known, as means over different runs
 * make no ratio. */
static void add_values(struct ratio *ratio, const struct pm_stat_value *values)
{
	if (!values || !pm_stat_has_value(&values[ratio->over]) ||
	    !pm_stat_has_value(&values[ratio->under]))
		return;
	ratio->sum_over += (double)values[ratio->over].value;
	ratio->sum_under += (double)values[ratio->under].value;
}

/* Returns the ratio of the sums over the runs of @variant, which equals the ratio of the
 * means; NAN (0 / 0) if nothing was counted. */
static double ratio_of_sums(const struct pm_stat *stat, uint32_t variant, int32_t scope,
			    struct ratio *ratio)
{
	uint32_t ended = pm_stat_variants_ended(stat);

	if (scope >= 0)
		add_values(ratio, stat->scopes.data[scope].values);
	for (size_t i = 0; scope < 0 && i < stat->runs.len; i++)
		if (stat->runs.data[i].variant == variant &&
		    pm_stat_is_summed(ended, &stat->runs.data[i]))
			add_values(ratio, stat->runs.data[i].values);
	return ratio->sum_over / ratio->sum_under;
}

static void release_metric(struct pm_stat_metric *metric)
{
	free(metric->name);
	free(metric->unit);
	free(metric->formula);
}

static int add_formula_metric(struct pm_stat *stat, const struct formula *formula,
			      uint32_t variant, int32_t scope)
{
	struct pm_stat_metric metric = { .variant = variant, .scope = scope };
	struct ratio ratio = { 0 };
	enum levels levels = LEVELS_ANY;
	double value;

	if (!find_ratio_event(stat, formula->over, LEVELS_ANY, &ratio.over))
		return 0;
	if (!is_time(formula->under))
		levels = counted_levels(&stat->events.data[ratio.over]);
	if (!find_ratio_event(stat, formula->under, levels, &ratio.under))
		return 0;
	value = formula->factor * ratio_of_sums(stat, variant, scope, &ratio);
	metric.known = isfinite(value);
	if (metric.known)
		metric.value = value;
	else
		metric.value = 0;
	metric.event = ratio.over;
	if (pm_stat_text(&metric.name, formula->name) == 0 &&
	    pm_stat_text(&metric.unit, formula->unit) == 0 &&
	    pm_stat_text(&metric.formula, formula->text) == 0 &&
	    pm_vec_push(&stat->metrics, metric) == 0)
		return 0;
	release_metric(&metric);
	return -ENOMEM;
}

static int add_scope_metrics(struct pm_stat *stat, uint32_t variant, int32_t scope)
{
	int ret = 0;

	for (size_t i = 0; i < PM_ARRAY_LEN(formulas) && ret == 0; i++)
		if (scope < 0 || !formulas[i].rate)
			ret = add_formula_metric(stat, &formulas[i], variant, scope);
	return ret;
}

int pm_count_metrics(struct pm_stat *stat)
{
	uint32_t variants = 0;
	int ret = 0;

	for (size_t i = 0; i < stat->runs.len; i++)
		if (stat->runs.data[i].variant >= variants)
			variants = stat->runs.data[i].variant + 1;
	for (uint32_t i = 0; i < variants && ret == 0; i++)
		ret = add_scope_metrics(stat, i, -1);
	for (size_t i = 0; i < stat->scopes.len && ret == 0; i++) {
		uint32_t run = stat->scopes.data[i].run;

		if (run < stat->runs.len)
			ret = add_scope_metrics(stat, stat->runs.data[run].variant,
						(int32_t)i);
	}
	return ret;
}
