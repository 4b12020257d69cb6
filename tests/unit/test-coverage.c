/* SPDX-License-Identifier: MIT */
/* When time without samples is worth a warning, and what it is blamed on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "src/pmrec/clock-evidence.h"
#include "src/pmrec/coverage.h"

#define MS 1000000ull

static enum pm_rec_cover judge(uint64_t cpu_ms, uint64_t sampled_ms, uint64_t threads)
{
	return pm_rec_coverage_judge(
		&(struct pm_rec_coverage){ .cpu_ns = cpu_ms * MS,
					   .period_ns = MS,
					   .sampled_ns = sampled_ms * MS,
					   .threads = threads,
					   .cpus = 2 });
}

static void test_enough(void **state)
{
	assert_int_equal(judge(0, 0, 0), PM_REC_COVER_WELL);
	assert_int_equal(judge(1000, 1000, 0), PM_REC_COVER_WELL);
	assert_int_equal(judge(1000, 1050, 0), PM_REC_COVER_WELL);
	assert_int_equal(judge(10000, 9000, 100000), PM_REC_COVER_WELL);
	assert_int_equal(judge(10000, 8999, 100000), PM_REC_COVER_SHORT_THREADS);
}

static void test_chance(void **state)
{
	/* A few samples prove nothing. */
	assert_int_equal(judge(5, 0, 100), PM_REC_COVER_WELL);
	assert_int_equal(judge(20, 12, 100), PM_REC_COVER_WELL);
	assert_int_equal(judge(100, 80, 100), PM_REC_COVER_WELL);
	assert_int_equal(judge(100, 50, 100), PM_REC_COVER_SHORT_THREADS);
	assert_int_equal(judge(20, 0, 100), PM_REC_COVER_SHORT_THREADS);
}

static void test_excess(void **state)
{
	struct pm_rec_coverage known = {
		.cpu_ns = 10000 * MS, .period_ns = MS, .sampled_ns = 10500 * MS, .cpus = 2
	};

	assert_int_equal(pm_rec_coverage_judge(&known), PM_REC_COVER_WELL);
	known.sampled_ns = 10501 * MS;
	assert_int_equal(pm_rec_coverage_judge(&known), PM_REC_COVER_TOO_MUCH);
	/* What the host took explains it; it is no smaller for that. */
	known.stolen_ns = 10000 * MS;
	assert_int_equal(pm_rec_coverage_judge(&known), PM_REC_COVER_TOO_MUCH);
	/* Each thread runs on for a moment when its time is counted. */
	known.threads = 50000;
	assert_int_equal(pm_rec_coverage_judge(&known), PM_REC_COVER_WELL);
	known.threads = UINT64_MAX;
	assert_int_equal(pm_rec_coverage_judge(&known), PM_REC_COVER_WELL);
	/* As it was once seen: 792 samples of 0.67 ms for 401.5 ms. */
	known = (struct pm_rec_coverage){ .cpu_ns = 401500000,
					  .period_ns = 669792,
					  .sampled_ns = 792 * 669792ull,
					  .threads = 500,
					  .cpus = 2 };
	assert_int_equal(pm_rec_coverage_judge(&known), PM_REC_COVER_TOO_MUCH);
	/* A few samples prove nothing. */
	assert_int_equal(judge(100, 115, 0), PM_REC_COVER_WELL);
	assert_int_equal(judge(100, 125, 0), PM_REC_COVER_TOO_MUCH);
	/* Nobody knows what the lost ones stood for. */
	known = (struct pm_rec_coverage){ .cpu_ns = 1000 * MS,
					  .period_ns = MS,
					  .sampled_ns = 900 * MS,
					  .lost_ns = 900 * MS,
					  .cpus = 2 };
	assert_int_equal(pm_rec_coverage_judge(&known), PM_REC_COVER_WELL);
	known.sampled_ns = 500 * MS;
	known.lost_ns = 100 * MS;
	assert_int_equal(pm_rec_coverage_judge(&known), PM_REC_COVER_SKIPPED);
	known.lost_ns = UINT64_MAX;
	assert_int_equal(pm_rec_coverage_judge(&known), PM_REC_COVER_WELL);
}

static void test_blame(void **state)
{
	/* A thread may hide one period on each CPU. */
	assert_int_equal(judge(1000, 500, 250), PM_REC_COVER_SHORT_THREADS);
	assert_int_equal(judge(1000, 500, 249), PM_REC_COVER_SKIPPED);
	assert_int_equal(judge(1000, 0, 0), PM_REC_COVER_SKIPPED);
}

static enum pm_rec_cover judge_counted(uint64_t counted, uint64_t sampled, uint64_t begun,
				       bool by_frequency)
{
	return pm_rec_counted_judge(
		&(struct pm_rec_counted){ .counted = counted * MS,
					  .sampled = sampled * MS,
					  .period = MS,
					  .begun = begun,
					  .by_frequency = by_frequency });
}

static void test_counted(void **state)
{
	assert_int_equal(judge_counted(0, 0, 2, false), PM_REC_COVER_WELL);
	assert_int_equal(judge_counted(1000, 1001, 2, false), PM_REC_COVER_WELL);
	assert_int_equal(judge_counted(1000, 950, 2, false), PM_REC_COVER_WELL);
	assert_int_equal(judge_counted(1000, 949, 2, false), PM_REC_COVER_SKIPPED);
	assert_int_equal(judge_counted(1000, 949, 2, true), PM_REC_COVER_WELL);
	assert_int_equal(judge_counted(1003, 304, 2, true), PM_REC_COVER_SKIPPED);
	/* So few, and as many as threads may hide. */
	assert_int_equal(judge_counted(4, 1, 2, false), PM_REC_COVER_WELL);
	assert_int_equal(judge_counted(1000, 920, 80, false), PM_REC_COVER_WELL);
	assert_int_equal(judge_counted(1000, 800, 200, false),
			 PM_REC_COVER_SHORT_THREADS);
	assert_int_equal(judge_counted(1000, 800, 199, false), PM_REC_COVER_SKIPPED);
	/* Without a sample of an unknown period nothing is known. */
	assert_int_equal(
		pm_rec_counted_judge(&(struct pm_rec_counted){ .counted = 1000 }),
		PM_REC_COVER_WELL);
	assert_int_equal(judge_counted(INT64_MAX / MS, 1, 2, false),
			 PM_REC_COVER_SKIPPED);
}

static enum pm_rec_cover judge_samples(uint64_t samples, uint64_t counted,
				       uint64_t sampled, uint64_t lost)
{
	return pm_rec_counted_judge(&(struct pm_rec_counted){ .counted = counted,
							      .sampled = sampled,
							      .lost = lost,
							      .samples = samples,
							      .enough = 20,
							      .period = 1,
							      .begun = 2,
							      .by_frequency = true });
}

static void test_too_much(void **state)
{
	assert_int_equal(judge_samples(100, 1000, 1100, 0), PM_REC_COVER_WELL);
	assert_int_equal(judge_samples(100, 1000, 1101, 0), PM_REC_COVER_TOO_MUCH);
	assert_int_equal(judge_samples(19, 1000, 9000, 0), PM_REC_COVER_WELL);
	assert_int_equal(judge_samples(20, 0, 20, 0), PM_REC_COVER_TOO_MUCH);
	/* Nobody knows what those stood for. */
	assert_int_equal(judge_samples(100, 1000, 1000, 9000), PM_REC_COVER_WELL);
	assert_int_equal(judge_samples(100, 1000, 500, 500), PM_REC_COVER_WELL);
	assert_int_equal(judge_samples(100, 1000, 500, UINT64_MAX), PM_REC_COVER_WELL);
	assert_int_equal(judge_samples(100, 1000, 500, 100), PM_REC_COVER_SKIPPED);
}

/* No timer ticks on a CPU that the host has given to others: nothing was to be sampled. */
static void test_away(void **state)
{
	struct pm_rec_counted known = { .counted = 2000 * MS,
					.sampled = 1000 * MS,
					.samples = 1000,
					.enough = 20,
					.period = MS,
					.begun = 2,
					.by_frequency = true };

	assert_int_equal(pm_rec_counted_judge(&known), PM_REC_COVER_SKIPPED);
	known.away = 700 * MS;
	assert_int_equal(pm_rec_counted_judge(&known), PM_REC_COVER_SKIPPED);
	known.away = 850 * MS;
	assert_int_equal(pm_rec_counted_judge(&known), PM_REC_COVER_WELL);
	known.away = UINT64_MAX;
	assert_int_equal(pm_rec_counted_judge(&known), PM_REC_COVER_WELL);
}

/* The kernel splits user time by ticks of up to 10 ms. */
static void test_user_only(void **state)
{
	struct pm_rec_coverage known = { .cpu_ns = 400 * MS,
					 .user_only = true,
					 .period_ns = MS,
					 .sampled_ns = 300 * MS,
					 .threads = 1000,
					 .cpus = 2 };

	assert_int_equal(pm_rec_coverage_judge(&known), PM_REC_COVER_WELL);
	known.sampled_ns = 200 * MS;
	assert_int_equal(pm_rec_coverage_judge(&known), PM_REC_COVER_SHORT_THREADS);
	known.sampled_ns = 300 * MS;
	known.user_only = false;
	assert_int_equal(pm_rec_coverage_judge(&known), PM_REC_COVER_SHORT_THREADS);
}

static void test_extremes(void **state)
{
	struct pm_rec_coverage known = {
		.cpu_ns = INT64_MAX, .period_ns = 1, .threads = UINT64_MAX, .cpus = 1
	};

	assert_int_equal(pm_rec_coverage_judge(&known), PM_REC_COVER_SHORT_THREADS);
	known.period_ns = 0;
	assert_int_equal(pm_rec_coverage_judge(&known), PM_REC_COVER_WELL);
	known.period_ns = INT64_MAX;
	assert_int_equal(pm_rec_coverage_judge(&known), PM_REC_COVER_WELL);
}

/* Gaps between ticks, by what they are against the period. */
static void test_evidence(void **state)
{
	static const uint64_t at_us[] = { 1000, 2000, 3400, 4000, 9000, 10001 };
	struct pm_rec_clock_evidence *evidence = pm_rec_clock_evidence_new(2, 2);
	struct pm_rec_clock_tally tally;
	uint64_t runs, cpu_ns;

	assert_non_null(evidence);
	for (size_t i = 0; i < sizeof(at_us) / sizeof(*at_us); i++)
		pm_rec_clock_evidence_sample(evidence, 1, 1, at_us[i] * 1000, MS);
	tally = pm_rec_clock_evidence_of(evidence, 1, 1);
	assert_int_equal(tally.samples, 6);
	assert_int_equal(tally.period, 6 * MS);
	assert_int_equal(tally.longer, 1);
	assert_int_equal(tally.late, 1);
	assert_int_equal(tally.late_ns, 400000);
	assert_int_equal(pm_rec_clock_evidence_of(evidence, 0, 1).samples, 0);
	assert_int_equal(pm_rec_clock_evidence_of(evidence, 1, 0).samples, 0);
	/* No such CPU, no such event, a time that goes back. */
	pm_rec_clock_evidence_sample(evidence, 1, 2, MS, MS);
	pm_rec_clock_evidence_sample(evidence, 2, 1, MS, MS);
	pm_rec_clock_evidence_sample(evidence, 1, 1, 5, MS);
	assert_int_equal(pm_rec_clock_evidence_of(evidence, 1, 1).late, 1);
	pm_rec_clock_evidence_reader(evidence, 7, &runs, &cpu_ns);
	assert_int_equal(runs + cpu_ns, 0);
	pm_rec_clock_evidence_free(evidence);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_enough),   cmocka_unit_test(test_chance),
		cmocka_unit_test(test_excess),   cmocka_unit_test(test_evidence),
		cmocka_unit_test(test_blame),    cmocka_unit_test(test_counted),
		cmocka_unit_test(test_too_much), cmocka_unit_test(test_user_only),
		cmocka_unit_test(test_extremes), cmocka_unit_test(test_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
