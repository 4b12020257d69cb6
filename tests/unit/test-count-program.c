/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "pm/count.h"

static void describe(struct pm_stat *stat, const char *events)
{
	struct pm_event_specs specs PM_CLEANUP(pm_event_specs_release) = { 0 };
	struct pm_error err;

	if (pm_event_specs_parse(events, &specs, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(pm_count_describe_events(stat, &specs, false), 0);
	assert_int_equal(stat->events.len, specs.list.len + PM_COUNT_TOOL_EVENTS);
}

/* A run of @variant with these values, of the first events. */
static void add_run(struct pm_stat *stat, uint32_t variant, const uint64_t *values,
		    size_t len)
{
	struct pm_stat_run run = { .variant = variant };

	run.values = pm_stat_values_new(stat->events.len);
	assert_non_null(run.values);
	for (size_t i = 0; i < len; i++)
		run.values[i] =
			(struct pm_stat_value){ .state = PM_STAT_OK, .value = values[i] };
	assert_int_equal(pm_vec_push(&stat->runs, run), 0);
}

static const struct pm_stat_metric *find(const struct pm_stat *stat, const char *name,
					 uint32_t variant)
{
	for (size_t i = 0; i < stat->metrics.len; i++)
		if (strcmp(stat->metrics.data[i].name, name) == 0 &&
		    stat->metrics.data[i].variant == variant)
			return &stat->metrics.data[i];
	return NULL;
}

static void assert_metric(const struct pm_stat *stat, const char *name, uint32_t variant,
			  double expected)
{
	const struct pm_stat_metric *metric = find(stat, name, variant);

	assert_non_null(metric);
	assert_true(metric->known);
	assert_true(fabs(metric->value - expected) < 1e-9 * fabs(expected));
}

static void assert_unknown(const struct pm_stat *stat, const char *name, uint32_t variant)
{
	const struct pm_stat_metric *metric = find(stat, name, variant);

	assert_non_null(metric);
	assert_false(metric->known);
}

static void events_are_described(void **state)
{
	struct pm_stat stat = { 0 };
	const struct pm_stat_event *event;

	(void)state;
	describe(&stat, "task-clock,{instructions:u,cycles:u},r1a8,page-faults");
	event = stat.events.data;
	assert_string_equal(event[0].unit, "ns");
	assert_string_equal(event[0].source, "software");
	assert_int_equal(event[0].group, -1);
	assert_int_equal(event[0].class, PM_STAT_NOISY);
	assert_string_equal(event[1].name, "instructions");
	assert_string_equal(event[1].requested, "instructions:u");
	assert_string_equal(event[1].source, "hardware");
	assert_true(event[1].user_only);
	assert_int_equal(event[1].class, PM_STAT_LOW_NOISE);
	assert_int_equal(event[1].better, -1);
	assert_int_equal(event[1].group, event[2].group);
	assert_true(event[1].group >= 0);
	assert_string_equal(event[3].source, "raw");
	assert_int_equal(event[3].better, 0);
	assert_string_equal(event[4].unit, "");
	assert_false(event[4].user_only);
	assert_string_equal(event[5].name, "wall-time");
	assert_string_equal(event[5].source, "tool");
	assert_string_equal(event[8].unit, "bytes");
	pm_stat_release(&stat);
}

static void metrics_are_of_means(void **state)
{
	static const uint64_t first[] = { 2000, 1000, 10, 1000 };
	static const uint64_t second[] = { 4000, 1000, 30, 1000 };
	static const uint64_t other[] = { 300, 0, 5, 200 };
	struct pm_stat stat = { 0 };

	(void)state;
	describe(&stat, "instructions,cycles,page-faults,task-clock");
	add_run(&stat, 0, first, 4);
	add_run(&stat, 0, second, 4);
	add_run(&stat, 1, other, 4);
	assert_int_equal(pm_count_metrics(&stat), 0);
	assert_metric(&stat, "IPC", 0, 3);
	assert_metric(&stat, "GHz", 0, 1);
	assert_metric(&stat, "faults per CPU second", 0, 20e6);
	assert_int_equal(find(&stat, "IPC", 0)->event, 0);
	assert_int_equal(find(&stat, "IPC", 0)->scope, -1);
	/* Nothing is divided by 0, and wall-time has no value. */
	assert_unknown(&stat, "IPC", 1);
	assert_unknown(&stat, "CPUs utilised", 0);
	assert_metric(&stat, "faults per CPU second", 1, 25e6);
	/* What was not asked for is not derived. */
	assert_null(find(&stat, "branch misses", 0));
	pm_stat_release(&stat);
}

/* A short run, in which one of the two was on no counter. */
static void metrics_are_of_runs_that_have_both(void **state)
{
	static const uint64_t first[] = { 50, 1000 }, second[] = { 0, 100 };
	struct pm_stat stat = { 0 };

	(void)state;
	describe(&stat, "branch-misses,branches");
	add_run(&stat, 0, first, 2);
	add_run(&stat, 0, second, 2);
	stat.runs.data[1].values[0].state = PM_STAT_NOT_COUNTED;
	assert_int_equal(pm_count_metrics(&stat), 0);
	assert_metric(&stat, "branch misses", 0, 5);
	pm_stat_release(&stat);
}

/* As the means that stand above them. */
static void metrics_leave_out_what_was_cut_short(void **state)
{
	static const uint64_t first[] = { 50, 1000 }, second[] = { 100, 100 };
	struct pm_stat stat = { 0 };

	(void)state;
	describe(&stat, "branch-misses,branches");
	add_run(&stat, 0, first, 2);
	add_run(&stat, 0, second, 2);
	stat.runs.data[1].stopped = true;
	assert_int_equal(pm_count_metrics(&stat), 0);
	assert_metric(&stat, "branch misses", 0, 5);
	pm_stat_release(&stat);
}

/* Events of user space do not go with those of both. */
static void metrics_compare_the_same_code(void **state)
{
	static const uint64_t values[] = { 100, 50, 10, 1000 };
	struct pm_stat stat = { 0 };

	(void)state;
	describe(&stat, "instructions:u,cycles,cycles:u,task-clock");
	add_run(&stat, 0, values, 4);
	assert_int_equal(pm_count_metrics(&stat), 0);
	assert_metric(&stat, "IPC", 0, 10);
	assert_metric(&stat, "GHz", 0, 0.05);
	pm_stat_release(&stat);
}

static void states_make_no_numbers(void **state)
{
	static const uint64_t values[] = { 100, 50 };
	struct pm_stat stat = { 0 };

	(void)state;
	describe(&stat, "branch-misses,branches");
	add_run(&stat, 0, values, 2);
	stat.runs.data[0].values[1].state = PM_STAT_NOT_SUPPORTED;
	assert_int_equal(pm_count_metrics(&stat), 0);
	assert_unknown(&stat, "branch misses", 0);
	pm_stat_release(&stat);
}

/* Whatever this machine has: groups whose members are there, software events in any case. */
static void default_events_are_there(void **state)
{
	struct pm_event_specs specs PM_CLEANUP(pm_event_specs_release) = { 0 };
	struct pm_error err;
	bool clock = false;

	(void)state;
	assert_int_equal(pm_count_default_events(&specs, &err), 0);
	for (size_t i = 0; i < specs.list.len; i++) {
		const struct pm_event_spec *spec = &specs.list.data[i];

		clock |= strcmp(spec->name, "task-clock") == 0;
		assert_true(spec->leader <= i);
		assert_int_equal(specs.list.data[spec->leader].leader, spec->leader);
		if (spec->kind != PM_EVENT_SOFTWARE)
			assert_int_not_equal(pm_perf_try(spec, NULL),
					     PM_PERF_NOT_AVAILABLE);
	}
	assert_true(clock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_described),
		cmocka_unit_test(metrics_are_of_means),
		cmocka_unit_test(metrics_are_of_runs_that_have_both),
		cmocka_unit_test(metrics_leave_out_what_was_cut_short),
		cmocka_unit_test(metrics_compare_the_same_code),
		cmocka_unit_test(states_make_no_numbers),
		cmocka_unit_test(default_events_are_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
