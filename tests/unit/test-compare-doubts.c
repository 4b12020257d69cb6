/* SPDX-License-Identifier: MIT */
/* Counting documents that are not what they should be: what may be said of them all the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "pm/compare.h"
#include "tests/stat-documents.h"

/* ---- documents ------------------------------------------------------------------------- */

static const char *const program[] = { "./prog" };

#define NUMBERS(...)                       \
	(const uint64_t[]){ __VA_ARGS__ }, \
		PM_ARRAY_LEN(((const uint64_t[]){ __VA_ARGS__ }))

/* One event that was asked for, so many runs of these numbers, begun one a second. */
static void document(struct pm_stat *stat, const char *event, enum pm_stat_class class,
		     const uint64_t *numbers, size_t runs)
{
	stat_begin(stat, "count");
	stat_subject(stat, program, 1);
	stat_event(stat, event, "", class)->default_set = false;
	for (size_t i = 0; i < runs; i++)
		stat_run(stat, 0, &numbers[i])->begin_ns = i * 1000000000;
}

static struct pm_compare_options options;

static int try(struct pm_comparison *ret, const struct pm_stat *base,
	       const struct pm_stat *new)
{
	return pm_compare_stats(ret, &base, 1, &new, 1, &options, NULL);
}

static const struct pm_compare_row *row_of(const struct pm_comparison *comparison,
					   const char *event)
{
	for (size_t i = 0; i < comparison->rows.len; i++)
		if (strcmp(comparison->rows.data[i].event, event) == 0)
			return &comparison->rows.data[i];
	fail_msg("there is no row %s", event);
	return NULL;
}

/* The first row of @event, and of all of it; releases the documents. */
static enum pm_verdict verdict_of(const char *event, struct pm_stat *base,
				  struct pm_stat *new)
{
	struct pm_comparison comparison;
	enum pm_verdict ret;

	assert_int_equal(try(&comparison, base, new), 0);
	ret = row_of(&comparison, event)->verdict;
	assert_int_equal(comparison.verdict, ret);
	pm_comparison_release(&comparison);
	pm_stat_release(base);
	pm_stat_release(new);
	return ret;
}

/* ---- runs ------------------------------------------------------------------------------ */

/* What gives up at once takes no time: that is not an improvement. */
static void test_all_failed(void **state)
{
	struct pm_stat base, new;
	struct pm_comparison comparison;

	document(&base, "instructions", PM_STAT_LOW_NOISE, NUMBERS(1000, 1000));
	document(&new, "instructions", PM_STAT_LOW_NOISE, NUMBERS(10));
	new.runs.data[0].exit_code = 1;
	assert_int_equal(try(&comparison, &base, &new), -EXDEV);
	assert_int_equal(comparison.differences.len, 1);
	assert_non_null(
		strstr(comparison.differences.data[0], "all failed on the new side"));
	pm_comparison_release(&comparison);
	options.force = true;
	assert_int_equal(verdict_of("instructions", &base, &new), PM_VERDICT_BETTER);
	options.force = false;

	/* A program whose status is always that compares. */
	document(&base, "instructions", PM_STAT_LOW_NOISE, NUMBERS(1000));
	document(&new, "instructions", PM_STAT_LOW_NOISE, NUMBERS(1100));
	base.runs.data[0].exit_code = 1;
	new.runs.data[0].exit_code = 1;
	assert_int_equal(verdict_of("instructions", &base, &new), PM_VERDICT_WORSE);
}

/* One disturbed run of many hides nothing. */
static void test_outlier(void **state)
{
	struct pm_stat base, new;

	document(&base, "instructions", PM_STAT_LOW_NOISE,
		 NUMBERS(1000, 1000, 1001, 1000, 1000, 1001, 1000, 1000, 1001, 1000));
	document(&new, "instructions", PM_STAT_LOW_NOISE,
		 NUMBERS(1010, 1010, 1011, 1010, 1000, 1011, 1010, 1010, 1011, 1010));
	assert_int_equal(verdict_of("instructions", &base, &new), PM_VERDICT_WORSE);
	document(&base, "instructions", PM_STAT_LOW_NOISE,
		 NUMBERS(1000, 1000, 1001, 1000, 1000, 1001, 1000, 1000, 1001, 1000));
	document(&new, "instructions", PM_STAT_LOW_NOISE,
		 NUMBERS(1010, 1010, 1011, 1010, 1000, 1000, 1010, 1010, 1011, 1010));
	assert_int_equal(verdict_of("instructions", &base, &new),
			 PM_VERDICT_INCONCLUSIVE);
}

/* Simulated runs that differ by a few instructions: 0.1 % is still seen. */
static void test_nearly_exact(void **state)
{
	struct pm_stat base, new;

	document(&base, "sim.Ir", PM_STAT_EXACT, NUMBERS(1000000, 1000003));
	document(&new, "sim.Ir", PM_STAT_EXACT, NUMBERS(1001002, 1001000));
	assert_int_equal(verdict_of("sim.Ir", &base, &new), PM_VERDICT_WORSE);
	document(&base, "sim.Ir", PM_STAT_EXACT, NUMBERS(1000000, 1000900));
	document(&new, "sim.Ir", PM_STAT_EXACT, NUMBERS(1001902, 1001000));
	assert_int_equal(verdict_of("sim.Ir", &base, &new), PM_VERDICT_SAME);
}

/* What @base and @new runs of each side, 1000 and 1100 long, say where @order tells who began
 * when: 'b' or 'n'. */
static const struct pm_compare_row *clocks(struct pm_comparison *ret, const char *order,
					   const char *host, const char *other)
{
	struct pm_stat base, new;
	struct pm_stat *sides[] = { &base, &new };

	document(&base, "task-clock", PM_STAT_NOISY, NUMBERS(1));
	document(&new, "task-clock", PM_STAT_NOISY, NUMBERS(1));
	base.host.hostname = stat_text(host);
	new.host.hostname = stat_text(other);
	for (size_t i = 0; i < 2; i++)
		free(sides[i]->runs.data[--sides[i]->runs.len].values);
	for (size_t i = 0; order[i]; i++) {
		uint64_t number = (order[i] == 'n' ? 1150 : 1000) + i % 7;

		stat_run(sides[order[i] == 'n'], 0, &number)->begin_ns = i;
	}
	assert_int_equal(try(ret, &base, &new), 0);
	pm_stat_release(&base);
	pm_stat_release(&new);
	return row_of(ret, "task-clock");
}

/* Blocks are no turns; and clocks of machines that are not the same decide nothing. */
static void test_turns(void **state)
{
	static const struct {
		const char *order, *host;
		double gate;
		bool gated;
	} cases[] = {
		{ "bnbnbnbnbnbnbnbnbn", "a", 0.005, true },
		{ "bnnbbnnbbnnbbnnbbn", "b", 0.005, true },
		{ "bbbbbbbbbnnnnnnnnn", "a", 0.1, true },
		{ "bbbbbbbbbnnnnnnnnn", "b", 0.1, false },
		{ "bbbbbnnnnnnnnnnbbbbb", "a", 0.1, true },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct pm_comparison comparison;
		const struct pm_compare_row *row =
			clocks(&comparison, cases[i].order, "a", cases[i].host);

		assert_int_equal(row->verdict, PM_VERDICT_WORSE);
		assert_true(row->gate == cases[i].gate);
		assert_int_equal(row->gated, cases[i].gated);
		pm_comparison_release(&comparison);
	}
}

/* ---- numbers --------------------------------------------------------------------------- */

/* A factor can make infinities of numbers, which are not the same. */
static void test_infinite(void **state)
{
	struct pm_stat base, new;
	struct pm_comparison comparison;

	document(&base, "cycles", PM_STAT_NOISY, NUMBERS(1000, 1001, 1000, 1001));
	document(&new, "cycles", PM_STAT_NOISY, NUMBERS(1000, 1001, 1000, 1001));
	base.events.data[0].scale = new.events.data[0].scale = 1e308;
	assert_int_equal(try(&comparison, &base, &new), -EINVAL);
	pm_stat_release(&base);
	pm_stat_release(&new);
}

/* What one side lacks decides nothing, and is told. */
static void test_lack(void **state)
{
	struct pm_stat base, new;
	struct pm_comparison comparison;

	document(&base, "instructions", PM_STAT_LOW_NOISE, NUMBERS(1000));
	document(&new, "instructions", PM_STAT_LOW_NOISE, NUMBERS(1000));
	for (size_t i = 0; i < 2; i++) {
		struct pm_stat *stat = i == 0 ? &base : &new;

		stat_event(stat, "page-faults", "", PM_STAT_LOW_NOISE);
		free(stat->runs.data[0].values);
		stat->runs.data[0].values =
			stat_values(stat, (const uint64_t[]){ 1000, 7 });
	}
	new.runs.data[0].values[0].state = PM_STAT_NOT_PERMITTED;
	assert_int_equal(try(&comparison, &base, &new), 0);
	assert_int_equal(row_of(&comparison, "instructions")->verdict,
			 PM_VERDICT_UNKNOWN);
	assert_int_equal(comparison.warnings.len, 1);
	assert_non_null(strstr(comparison.warnings.data[0], "new side has no number"));
	pm_comparison_release(&comparison);
	pm_stat_release(&base);
	pm_stat_release(&new);
}

/* Where things lie moves a few simulated misses. */
static void test_few_misses(void **state)
{
	struct pm_stat base, new;

	document(&base, "sim.D1mr", PM_STAT_LOW_NOISE, NUMBERS(10));
	document(&new, "sim.D1mr", PM_STAT_LOW_NOISE, NUMBERS(20));
	assert_int_equal(verdict_of("sim.D1mr", &base, &new), PM_VERDICT_SAME);
	document(&base, "sim.D1mr", PM_STAT_LOW_NOISE, NUMBERS(10));
	document(&new, "sim.D1mr", PM_STAT_LOW_NOISE, NUMBERS(26));
	assert_int_equal(verdict_of("sim.D1mr", &base, &new), PM_VERDICT_WORSE);
}

static void add_lossy(struct pm_stat *stat, uint64_t calls, uint64_t lost)
{
	struct pm_stat_scope *scope = stat_scope(stat, 0, "f", calls, (uint64_t[]){ 1 });

	scope->lost = lost;
	scope->calls_exact = lost == 0;
}

static enum pm_verdict lossy(uint64_t base_calls, uint64_t base_lost, uint64_t calls,
			     uint64_t lost)
{
	struct pm_stat base, new;

	document(&base, "page-faults", PM_STAT_LOW_NOISE, NUMBERS(1));
	document(&new, "page-faults", PM_STAT_LOW_NOISE, NUMBERS(1));
	base.runs.data[0].values[0].state = new.runs.data[0].values[0].state =
		PM_STAT_NOT_COUNTED;
	add_lossy(&base, base_calls, base_lost);
	add_lossy(&new, calls, lost);
	base.scopes.data[0].values[0].state = new.scopes.data[0].values[0].state =
		PM_STAT_NOT_COUNTED;
	return verdict_of("calls", &base, &new);
}

/* Half of the calls are lost: fewer are not an improvement. */
static void test_lost_hits(void **state)
{
	assert_int_equal(lossy(1000, 0, 1000, 0), PM_VERDICT_SAME);
	assert_int_equal(lossy(1000, 0, 500, 500), PM_VERDICT_INCONCLUSIVE);
	assert_int_equal(lossy(1000, 0, 1000, 500), PM_VERDICT_INCONCLUSIVE);
	assert_int_equal(lossy(500, 500, 1000, 0), PM_VERDICT_INCONCLUSIVE);
	assert_int_equal(lossy(1000, 0, 1500, 500), PM_VERDICT_WORSE);
	assert_int_equal(lossy(100000, 1, 103000, 0), PM_VERDICT_WORSE);
}

/* ---- history --------------------------------------------------------------------------- */

/* Two machines in turns: what they differ by is the noise of neither. */
static void test_history_of_machines(void **state)
{
	static const uint64_t before[] = { 1000, 1500, 1001, 1502, 1000, 1501, 1001,
					   1500, 1000, 1501, 1000, 1500, 1000, 1500 };
	struct pm_stat past[14], base, new;
	const struct pm_stat *history[14];

	for (size_t i = 0; i < PM_ARRAY_LEN(past); i++) {
		document(&past[i], "instructions", PM_STAT_LOW_NOISE, &before[i], 1);
		past[i].host.cpu_model = stat_text(i % 2 == 0 ? "One" : "Other");
		history[i] = &past[i];
	}
	document(&base, "instructions", PM_STAT_LOW_NOISE, NUMBERS(1000));
	document(&new, "instructions", PM_STAT_LOW_NOISE, NUMBERS(1030));
	base.host.cpu_model = stat_text("One");
	new.host.cpu_model = stat_text("One");
	options.history = history;
	options.history_len = PM_ARRAY_LEN(past);
	assert_int_equal(verdict_of("instructions", &base, &new), PM_VERDICT_WORSE);
	options.history = NULL;
	options.history_len = 0;
	for (size_t i = 0; i < PM_ARRAY_LEN(past); i++)
		pm_stat_release(&past[i]);
}

/* ---- gates ----------------------------------------------------------------------------- */

/* Gates for a machine with counters, on one without: a regression is none the less one. */
static void test_gates_of_others(void **state)
{
	struct pm_stat base, new;
	struct pm_gates gates = { 0 };
	struct pm_comparison comparison;

	document(&base, "sim.Ir", PM_STAT_EXACT, NUMBERS(1000));
	document(&new, "sim.Ir", PM_STAT_EXACT, NUMBERS(1100));
	assert_int_equal(pm_gates_parse(&gates, "instructions:u=1%", "pmdiff.json", NULL),
			 0);
	options.gates = &gates;
	assert_int_equal(try(&comparison, &base, &new), 0);
	assert_int_equal(comparison.verdict, PM_VERDICT_WORSE);
	assert_true(row_of(&comparison, "sim.Ir")->gated);
	assert_int_equal(row_of(&comparison, "instructions:u")->verdict,
			 PM_VERDICT_UNKNOWN);
	assert_int_equal(comparison.rows.len, 2);
	pm_comparison_release(&comparison);
	/* One that means something, and no other decides. */
	assert_int_equal(pm_gates_parse(&gates, "sim.Ir=20%", "pmdiff.json", NULL), 0);
	assert_int_equal(verdict_of("sim.Ir", &base, &new), PM_VERDICT_SAME);
	options.gates = NULL;
	pm_gates_release(&gates);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_failed),
		cmocka_unit_test(test_outlier),
		cmocka_unit_test(test_nearly_exact),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_infinite),
		cmocka_unit_test(test_lack),
		cmocka_unit_test(test_few_misses),
		cmocka_unit_test(test_lost_hits),
		cmocka_unit_test(test_history_of_machines),
		cmocka_unit_test(test_gates_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
