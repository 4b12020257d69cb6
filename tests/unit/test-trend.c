/* SPDX-License-Identifier: MIT */
/* Levels over many commits: series whose steps are known beforehand, in noise from a seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "pm/compare.h"
#include "tests/stat-documents.h"

/* ---- noise --------------------------------------------------------------------------------- */

static uint64_t state_of_noise;

/* In (0, 1): xorshift64. */
static double uniform(void)
{
	state_of_noise ^= state_of_noise << 13;
	state_of_noise ^= state_of_noise >> 7;
	state_of_noise ^= state_of_noise << 17;
	return ((double)(state_of_noise >> 11) + 0.5) / 9007199254740992.0;
}

static double gauss(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

/* One in twenty is far off. */
static double gauss_with_outliers(void)
{
	return uniform() < 0.05 ? 10 * gauss() : gauss();
}

/* ---- histories ----------------------------------------------------------------------------- */

enum {
	RUNS = 5,
	SERIES = 400,
	COMMITS = 50,
};

struct history {
	struct pm_stat stats[COMMITS];
	char names[COMMITS][41], subjects[COMMITS][32];
	struct pm_trend_of of[COMMITS];
	size_t len;
};

static void init_history(struct history *history, size_t len)
{
	*history = (struct history){ .len = len };
	for (size_t i = 0; i < len; i++) {
		snprintf(history->names[i], sizeof(history->names[i]), "%040zx", i + 1);
		snprintf(history->subjects[i], sizeof(history->subjects[i]),
			 "change no. %zu", i);
		stat_begin(&history->stats[i], "count");
		history->of[i] = (struct pm_trend_of){ .stat = &history->stats[i],
						       .commit = history->names[i],
						       .subject = history->subjects[i] };
	}
}

static void release_history(struct history *history)
{
	for (size_t i = 0; i < history->len; i++)
		pm_stat_release(&history->stats[i]);
}

static void find(struct pm_trends *trends, const struct history *history)
{
	assert_int_equal(pm_trends_find(trends, history->of, history->len, NULL), 0);
	assert_int_equal(trends->commits.len, history->len);
}

/* A history of one event, with one run a commit. */
static void init_simple(struct history *history, const uint64_t *values, size_t len,
			enum pm_stat_class class)
{
	init_history(history, len);
	for (size_t i = 0; i < len; i++) {
		stat_event(&history->stats[i], "sim.Ir", "", class);
		stat_run(&history->stats[i], 0, &values[i]);
	}
}

/* The steps of that event. */
static const struct pm_trend *only_one(const struct pm_trends *trends)
{
	assert_int_equal(trends->list.len, 1);
	return &trends->list.data[0];
}

/*
 * SERIES events, with RUNS runs a commit: 10 million, with noise of 1 %, and 3 % more from the
 * commit @step on, unless that is 0. The last argument is the noise.
 */
static void init_noisy(struct history *history, size_t step, double (*noise)(void))
{
	static const char name[] = "e000";

	init_history(history, COMMITS);
	for (size_t i = 0; i < COMMITS; i++) {
		uint64_t *values = calloc(SERIES, sizeof(*values));

		assert_non_null(values);
		for (unsigned int e = 0; e < SERIES; e++) {
			char text[sizeof(name) + 8];

			snprintf(text, sizeof(text), "e%03u", e);
			stat_event(&history->stats[i], text, "", PM_STAT_NOISY);
		}
		for (size_t run = 0; run < RUNS; run++) {
			for (size_t e = 0; e < SERIES; e++)
				values[e] =
					(uint64_t)(1e7 *
						   (1 +
						    (step > 0 && i >= step ? 0.03 : 0) +
						    0.01 * noise()));
			stat_run(&history->stats[i], 0, values);
		}
		free(values);
	}
}

/* ---- noise and steps ----------------------------------------------------------------------- */

static void expect_quiet(double (*noise)(void), uint64_t seed)
{
	static struct history history;
	PM_CLEANUP(pm_trends_release) struct pm_trends trends = { 0 };
	size_t wrong = 0;

	state_of_noise = seed;
	init_noisy(&history, 0, noise);
	find(&trends, &history);
	assert_int_equal(trends.list.len, SERIES);
	for (size_t i = 0; i < trends.list.len; i++)
		wrong += trends.list.data[i].steps.len > 0;
	if (wrong > 0)
		fail_msg("%zu of %d series have a step", wrong, SERIES);
	release_history(&history);
}

static void test_noise_has_no_steps(void **state)
{
	expect_quiet(gauss, 1);
	expect_quiet(gauss_with_outliers, 2);
}

static void test_step_in_noise_is_found(void **state)
{
	static const size_t steps[] = { 8, 25, COMMITS - 6 };

	for (size_t i = 0; i < PM_ARRAY_LEN(steps); i++) {
		static struct history history;
		PM_CLEANUP(pm_trends_release) struct pm_trends trends = { 0 };
		size_t found = 0, more = 0;

		state_of_noise = 3 + i;
		init_noisy(&history, steps[i], gauss);
		find(&trends, &history);
		for (size_t j = 0; j < trends.list.len; j++) {
			const struct pm_trend *trend = &trends.list.data[j];

			if (trend->steps.len == 0)
				continue;
			found += trend->steps.data[0].at == steps[i];
			more += trend->steps.len > 1;
			assert_true(fabs(trend->steps.data[0].change - 0.03) < 0.015);
			assert_int_equal(trend->steps.data[0].verdict, PM_VERDICT_WORSE);
			assert_true(trend->steps.data[0].noise < 0.015);
		}
		if (found * 100 < 95 * SERIES || more > 0)
			fail_msg("step at %zu: found in %zu of %d, more in %zu", steps[i],
				 found, SERIES, more);
		release_history(&history);
	}
}

/* The median of one commit far off, in the middle and at the end, is not a level. */
static void test_outliers_are_no_steps(void **state)
{
	static const size_t places[] = { 0, 7, 20, COMMITS - 1 };

	for (size_t i = 0; i < PM_ARRAY_LEN(places); i++) {
		struct history history;
		PM_CLEANUP(pm_trends_release) struct pm_trends trends = { 0 };
		uint64_t values[COMMITS];

		state_of_noise = 9;
		for (size_t j = 0; j < COMMITS; j++)
			values[j] = (uint64_t)(1e6 * (1 + 0.01 * gauss()));
		values[places[i]] *= 2;
		init_simple(&history, values, COMMITS, PM_STAT_NOISY);
		find(&trends, &history);
		assert_int_equal(only_one(&trends)->steps.len, 0);
		release_history(&history);
	}
}

/* Hardly any noise: what is smaller than anybody wants to know is no step. */
static void test_small_steps(void **state)
{
	static const uint64_t values[] = { 10000, 10001, 10000, 10001, 10040, 10041,
					   10040, 10041, 10110, 10111, 10110, 10111 };
	struct history history;
	PM_CLEANUP(pm_trends_release) struct pm_trends trends = { 0 };
	const struct pm_trend *trend;

	init_simple(&history, values, PM_ARRAY_LEN(values), PM_STAT_LOW_NOISE);
	find(&trends, &history);
	trend = only_one(&trends);
	assert_int_equal(trend->steps.len, 1);
	assert_int_equal(trend->steps.data[0].at, 8);
	release_history(&history);
}

/* ---- without noise ------------------------------------------------------------------------- */

static void test_exact(void **state)
{
	/* A change, one that is taken back in two parts, one back that stays, one that is below
	 * the gate until it has grown, and one at the end. */
	static const uint64_t values[] = { 10000, 10000, 10010, 10010, 12000, 11500,
					   10010, 10000, 10004, 10008, 10008, 13000 };
	static const size_t at[] = { 2, 4, 5, 6, 7, 9, 11 };
	static const enum pm_verdict verdicts[] = {
		PM_VERDICT_WORSE,  PM_VERDICT_WORSE, PM_VERDICT_BETTER, PM_VERDICT_BETTER,
		PM_VERDICT_BETTER, PM_VERDICT_WORSE, PM_VERDICT_WORSE,
	};
	struct history history;
	PM_CLEANUP(pm_trends_release) struct pm_trends trends = { 0 };
	const struct pm_trend *trend;

	init_simple(&history, values, PM_ARRAY_LEN(values), PM_STAT_EXACT);
	find(&trends, &history);
	trend = only_one(&trends);
	assert_int_equal(trend->class, PM_STAT_EXACT);
	assert_int_equal(trend->steps.len, PM_ARRAY_LEN(at));
	for (size_t i = 0; i < PM_ARRAY_LEN(at); i++) {
		assert_int_equal(trend->steps.data[i].at, at[i]);
		assert_int_equal(trend->steps.data[i].verdict, verdicts[i]);
	}
	assert_true(trend->steps.data[4].before == 10010 &&
		    trend->steps.data[4].after == 10000);
	assert_true(fabs(trend->steps.data[6].change - 2992.0 / 10008) < 1e-12);
	assert_string_equal(trends.commits.data[10].subject, "change no. 10");
	assert_string_equal(trends.commits.data[10].commit, history.names[10]);
	release_history(&history);
}

/* As in a comparison: a few misses are of addresses. */
static void test_a_few_are_no_step(void **state)
{
	static const uint64_t values[] = { 100, 103, 98, 115, 100, 116, 101, 102 };
	struct history history;
	PM_CLEANUP(pm_trends_release) struct pm_trends trends = { 0 };

	init_simple(&history, values, PM_ARRAY_LEN(values), PM_STAT_EXACT);
	find(&trends, &history);
	assert_true(only_one(&trends)->steps.len > 2);
	pm_trends_release(&trends);
	for (size_t i = 0; i < PM_ARRAY_LEN(values); i++) {
		free(history.stats[i].events.data[0].name);
		history.stats[i].events.data[0].name = stat_text("sim.D1mr");
	}
	find(&trends, &history);
	assert_int_equal(only_one(&trends)->steps.len, 1);
	assert_int_equal(only_one(&trends)->steps.data[0].at, 5);
	release_history(&history);
}

static void test_from_nothing(void **state)
{
	static const uint64_t values[] = { 0, 0, 0, 7, 7, 7, 7 };
	struct history history;
	PM_CLEANUP(pm_trends_release) struct pm_trends trends = { 0 };

	init_simple(&history, values, PM_ARRAY_LEN(values), PM_STAT_NOISY);
	find(&trends, &history);
	assert_int_equal(only_one(&trends)->steps.len, 1);
	assert_true(isinf(only_one(&trends)->steps.data[0].change));
	assert_true(isnan(only_one(&trends)->steps.data[0].noise));
	release_history(&history);
}

/* Called exact, but runs of one commit differ. */
static void test_what_varies_is_not_exact(void **state)
{
	static const uint64_t values[] = { 1000, 1001, 1000, 1002 };
	static const uint64_t other = 1003;
	struct history history;
	PM_CLEANUP(pm_trends_release) struct pm_trends trends = { 0 };

	init_simple(&history, values, PM_ARRAY_LEN(values), PM_STAT_EXACT);
	stat_run(&history.stats[1], 0, &other);
	find(&trends, &history);
	assert_int_equal(only_one(&trends)->class, PM_STAT_LOW_NOISE);
	assert_int_equal(only_one(&trends)->steps.len, 0);
	assert_int_equal(only_one(&trends)->points.data[1].runs, 2);
	assert_true(only_one(&trends)->points.data[1].median == 1002);
	release_history(&history);
}

/* ---- what has no value --------------------------------------------------------------------- */

static void test_unknown_is_not_0(void **state)
{
	static const uint64_t values[] = { 1000, 1000, 5, 1000, 1100, 1100 };
	struct history history;
	PM_CLEANUP(pm_trends_release) struct pm_trends trends = { 0 };
	const struct pm_trend *trend;

	init_simple(&history, values, PM_ARRAY_LEN(values), PM_STAT_EXACT);
	history.stats[2].runs.data[0].exit_code = 1; /* it failed */
	history.stats[3].runs.data[0].values[0].state = PM_STAT_NOT_COUNTED;
	find(&trends, &history);
	trend = only_one(&trends);
	assert_true(isnan(trend->points.data[2].median));
	assert_true(isnan(trend->points.data[3].median));
	assert_int_equal(trend->points.data[3].runs, 0);
	assert_int_equal(trend->steps.len, 1);
	assert_int_equal(trend->steps.data[0].at, 4);
	assert_int_equal(trend->steps.data[0].from, 1);
	release_history(&history);
}

/* By a factor that is beyond reason, and read as 0 or infinite nowhere. */
static void test_too_large(void **state)
{
	static const uint64_t values[] = { 1, UINT64_MAX, UINT64_MAX, 1 };
	struct history history;
	PM_CLEANUP(pm_trends_release) struct pm_trends trends = { 0 };

	init_simple(&history, values, PM_ARRAY_LEN(values), PM_STAT_EXACT);
	for (size_t i = 0; i < PM_ARRAY_LEN(values); i++)
		history.stats[i].events.data[0].scale = 1e300;
	find(&trends, &history);
	assert_int_equal(only_one(&trends)->steps.len, 0);
	assert_true(isnan(only_one(&trends)->points.data[1].median));
	pm_trends_release(&trends);
	history.of[0] = history.of[1];
	history.len = 3;
	find(&trends, &history);
	assert_int_equal(trends.list.len, 0);
	history.len = PM_ARRAY_LEN(values);
	release_history(&history);
}

/* One commit alone is no series. */
static void test_too_few(void **state)
{
	static const uint64_t values[] = { 1000, 1000 };
	struct history history;
	PM_CLEANUP(pm_trends_release) struct pm_trends trends = { 0 }, none = { 0 };

	init_simple(&history, values, PM_ARRAY_LEN(values), PM_STAT_EXACT);
	history.stats[0].runs.data[0].values[0].state = PM_STAT_NOT_SUPPORTED;
	find(&trends, &history);
	assert_int_equal(trends.list.len, 0);
	assert_int_equal(pm_trends_find(&none, NULL, 0, NULL), 0);
	assert_int_equal(none.commits.len, 0);
	release_history(&history);
}

/* ---- many series --------------------------------------------------------------------------- */

static void test_functions_and_order(void **state)
{
	static const uint64_t value = 5000;
	struct history history;
	PM_CLEANUP(pm_trends_release) struct pm_trends trends = { 0 };

	init_history(&history, 6);
	for (size_t i = 0; i < history.len; i++) {
		struct pm_stat *stat = &history.stats[i];
		uint64_t of_parse = i < 3 ? 100 : 104;

		stat_event(stat, "sim.Ir", "", PM_STAT_EXACT);
		stat_run(stat, 0, &value);
		stat_run(stat, 0, &value);
		for (uint32_t run = 0; run < 2; run++) {
			stat_scope(stat, run, "parse", 10, &of_parse);
			stat_scope(stat, run, "print", i < 5 ? 3 : 4, &value);
			stat_scope(stat, run, "both", 1, &value);
			stat_scope(stat, run, "both", 1, &value);
		}
	}
	find(&trends, &history);
	/* The program's, and two of two functions. */
	assert_int_equal(trends.list.len, 5);
	assert_string_equal(trends.list.data[0].scope, "print");
	assert_string_equal(trends.list.data[0].event, "calls");
	assert_string_equal(trends.list.data[0].module, "prog");
	assert_string_equal(trends.list.data[1].scope, "parse");
	assert_string_equal(trends.list.data[1].event, "sim.Ir");
	assert_int_equal(trends.list.data[1].steps.data[0].at, 3);
	assert_null(trends.list.data[2].scope);
	assert_int_equal(trends.list.data[2].points.data[0].runs, 2);
	assert_int_equal(trends.warnings.len, 1);
	assert_non_null(strstr(trends.warnings.data[0], "both"));
	release_history(&history);
}

static void test_machines_are_apart(void **state)
{
	static const uint64_t values[] = { 1000, 1020, 1000, 1020, 1000, 1020 };
	struct history history;
	PM_CLEANUP(pm_trends_release) struct pm_trends trends = { 0 };

	init_simple(&history, values, PM_ARRAY_LEN(values), PM_STAT_EXACT);
	for (size_t i = 0; i < history.len; i++) {
		free(history.stats[i].host.cpu_model);
		free(history.stats[i].host.virt);
		history.stats[i].host.cpu_model = stat_text("CPU");
		history.stats[i].host.virt = i % 2 == 0 ? NULL : stat_text("kvm");
	}
	find(&trends, &history);
	assert_int_equal(trends.list.len, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(trends.list.data[i].steps.len, 0);
		assert_int_equal(trends.list.data[i].points.len, 6);
		assert_string_equal(trends.list.data[i].machine,
				    i == 0 ? "count, CPU" : "count, CPU, kvm");
	}
	assert_int_equal(trends.warnings.len, 1);
	release_history(&history);
}

/* The kernel was left out where it may not be counted: a step, but none of the program. */
static void test_ways_of_counting_are_apart(void **state)
{
	static const uint64_t values[] = { 1000, 1000, 3000, 3000, 2, 3000 };
	struct history history;
	PM_CLEANUP(pm_trends_release) struct pm_trends trends = { 0 };
	const struct pm_trend *trend;

	init_simple(&history, values, PM_ARRAY_LEN(values), PM_STAT_EXACT);
	history.stats[0].events.data[0].user_only = true;
	history.stats[1].events.data[0].source[0] = 'S';
	history.stats[4].events.data[0].scale = 1000;
	find(&trends, &history);
	trend = only_one(&trends);
	assert_int_equal(trend->steps.len, 0);
	assert_true(isnan(trend->points.data[1].median));
	assert_true(isnan(trend->points.data[4].median));
	assert_true(trend->points.data[2].median == 3000);
	assert_int_equal(trends.warnings.len, 1);
	release_history(&history);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_noise_has_no_steps),
		cmocka_unit_test(test_step_in_noise_is_found),
		cmocka_unit_test(test_outliers_are_no_steps),
		cmocka_unit_test(test_small_steps),
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_a_few_are_no_step),
		cmocka_unit_test(test_from_nothing),
		cmocka_unit_test(test_what_varies_is_not_exact),
		cmocka_unit_test(test_unknown_is_not_0),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_too_few),
		cmocka_unit_test(test_functions_and_order),
		cmocka_unit_test(test_machines_are_apart),
		cmocka_unit_test(test_ways_of_counting_are_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
