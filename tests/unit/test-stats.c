/* SPDX-License-Identifier: MIT */
/*
 * Statistics against what they are defined to be: every order of small samples, every
 * difference, and values that python3's statistics, mpmath and SciPy give.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "pm/stats.h"

static void assert_near(double value, double expected, double relative)
{
	if (!(fabs(value - expected) <= fabs(expected) * relative))
		fail_msg("%.17g, expected %.17g", value, expected);
}

/* ---- one sample ------------------------------------------------------------------------ */

static void test_summary(void **state)
{
	static const double values[] = { 12.5, 3.25, 8, 8, 41, 7.75, 9.125, 10 };
	struct pm_stats_summary s;

	assert_int_equal(pm_stats_summarize(values, PM_ARRAY_LEN(values), &s), 0);
	assert_int_equal(s.len, 8);
	assert_near(s.mean, 12.453125, 1e-15);
	assert_near(s.sigma, 11.823089074681674, 1e-15);
	assert_true(s.min == 3.25 && s.q1 == 7.9375 && s.median == 8.5625);
	assert_true(s.q3 == 10.625 && s.max == 41);
	/* 41 is above 10.625 + 3 * 2.6875; 3.25 is not below 7.9375 - 3 * 2.6875. */
	assert_int_equal(s.outliers, 1);
	assert_near(s.mean_high - s.mean, 2.3646242515927844 * s.sigma / sqrt(8), 1e-12);
	assert_near(s.mean - s.mean_low, s.mean_high - s.mean, 1e-12);
}

static void test_summary_of_few(void **state)
{
	static const double one[] = { 42 };
	static const double equal[] = { 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1 };
	struct pm_stats_summary s;

	assert_int_equal(pm_stats_summarize(NULL, 0, &s), 0);
	assert_true(s.len == 0 && isnan(s.mean) && isnan(s.median) && isnan(s.max));
	assert_int_equal(pm_stats_summarize(one, 1, &s), 0);
	assert_true(s.mean == 42 && s.min == 42 && s.q1 == 42 && s.max == 42);
	assert_true(isnan(s.sigma) && isnan(s.mean_low) && s.outliers == 0);
	assert_int_equal(pm_stats_summarize(equal, 7, &s), 0);
	assert_true(s.mean == 0.1 && s.sigma == 0 && s.mean_low == 0.1);
	assert_int_equal(s.outliers, 0);
}

/* Large counts that differ little: sums of squares must not eat the difference. */
static void test_summary_of_large(void **state)
{
	double values[1000];
	struct pm_stats_summary s;

	for (size_t i = 0; i < 1000; i++)
		values[i] = 4e15 + (double)(i % 2);
	assert_int_equal(pm_stats_summarize(values, 1000, &s), 0);
	assert_true(s.mean == 4e15 + 0.5);
	assert_near(s.sigma, sqrt(250.0 / 999), 1e-12);
}

static void test_student(void **state)
{
	static const struct {
		size_t freedom;
		double t;
	} cases[] = {
		{ 1, 12.706204736174704 },    { 2, 4.3026527297494638 },
		{ 3, 3.1824463052837095 },    { 5, 2.5705818356363155 },
		{ 9, 2.2621571627982055 },    { 30, 2.0422724563012383 },
		{ 100, 1.9839715185235522 },  { 1000, 1.9623390808264084 },
		{ 1001, 1.9623367052808799 }, { 5000, 1.9604385517065079 },
	};
	static double values[5001];

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		size_t len = cases[i].freedom + 1;
		struct pm_stats_summary s;

		for (size_t v = 0; v < len; v++)
			values[v] = (double)(v % 3);
		assert_int_equal(pm_stats_summarize(values, len, &s), 0);
		assert_near((s.mean_high - s.mean) / s.sigma * sqrt((double)len),
			    cases[i].t, 1e-11);
	}
}

/* ---- Mann-Whitney ------------------------------------------------------------------------ */

/* U of every way to choose which of m + n ranks are of b. */
static void count_orders(size_t m, size_t n, uint64_t *orders)
{
	memset(orders, 0, (m * n + 1) * sizeof(*orders));
	for (unsigned int set = 0; set < 1U << (m + n); set++) {
		size_t u = 0, below = 0;

		if ((size_t)__builtin_popcount(set) != n)
			continue;
		for (size_t i = 0; i < m + n; i++) {
			if (set >> i & 1)
				u += below;
			else
				below++;
		}
		orders[u]++;
	}
}

/* Splits the ranks 1 to m + n so that U is @u: b begins with the highest that it may have. */
static void sample_of(size_t m, size_t n, size_t u, double *a, double *b)
{
	bool of_b[64] = { false };
	size_t at = 0;

	for (size_t j = n; j-- > 0;) {
		size_t up = u < m ? u : m;

		of_b[j + up] = true;
		u -= up;
	}
	for (size_t i = 0; i < m + n; i++) {
		if (of_b[i])
			*b++ = (double)i;
		else
			a[at++] = (double)i;
	}
	assert_int_equal(at, m);
}

static void test_exact(void **state)
{
	for (size_t m = 1; m <= 7; m++) {
		for (size_t n = 1; n <= 7; n++) {
			uint64_t orders[50], all = 0, up_to = 0;
			double a[7], b[7], p;

			count_orders(m, n, orders);
			for (size_t u = 0; u <= m * n; u++)
				all += orders[u];
			for (size_t u = 0; u <= m * n / 2; u++) {
				double expected;

				up_to += orders[u];
				expected = fmin(1, 2 * (double)up_to / (double)all);
				sample_of(m, n, u, a, b);
				assert_int_equal(pm_stats_mann_whitney(a, m, b, n, &p),
						 0);
				assert_near(p, expected, 1e-14);
				assert_int_equal(pm_stats_mann_whitney(b, n, a, m, &p),
						 0);
				assert_near(p, expected, 1e-14);
			}
		}
	}
}

static void test_exact_at_most(void **state)
{
	double a[51], b[51], p;

	for (size_t i = 0; i < 51; i++) {
		a[i] = (double)i;
		b[i] = 100 + (double)i;
	}
	/* 2 / C(100, 50); one more, and it is an approximation. */
	assert_int_equal(pm_stats_mann_whitney(a, 50, b, 50, &p), 0);
	assert_near(p, 1.9823306042836678e-29, 1e-13);
	assert_int_equal(pm_stats_mann_whitney(a, 51, b, 51, &p), 0);
	assert_true(p > 1e-19 && p < 1e-17);
}

static void test_ties(void **state)
{
	static const double a[] = { 1, 2, 2, 3, 5, 8, 9 };
	static const double b[] = { 2, 4, 6, 7, 9, 10, 11, 12 };
	static const double equal[] = { 7, 7, 7, 7, 7, 7, 7, 7 };
	double p = 0;

	assert_int_equal(pm_stats_mann_whitney(a, 7, b, 8, &p), 0);
	assert_near(p, 0.08120887152819865, 1e-12);
	assert_int_equal(pm_stats_mann_whitney(equal, 8, equal, 5, &p), 0);
	assert_true(p == 1);
	p = 0;
	assert_int_equal(pm_stats_mann_whitney(a, 0, b, 8, &p), 0);
	assert_true(p == 1);
}

static void test_holm(void **state)
{
	double p[] = { 0.01, 0.04, 0.03, 0.005, 0.9 };
	static const double expected[] = { 0.04, 0.09, 0.09, 0.025, 0.9 };

	assert_int_equal(pm_stats_holm(p, 5), 0);
	for (size_t i = 0; i < 5; i++)
		assert_near(p[i], expected[i], 1e-15);
	assert_int_equal(pm_stats_holm(NULL, 0), 0);
}

/* ---- shifts -------------------------------------------------------------------------------- */

static uint64_t seed = 1;

static double any(void)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return (double)(int64_t)(seed >> 33) - 1e9;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void test_shift_is_the_median_difference(void **state)
{
	for (size_t round = 0; round < 18; round++) {
		double a[9], b[8], all[72];
		size_t m = 1 + round % 9, n = 1 + round % 8, len = 0;
		struct pm_stats_shift s;

		for (size_t i = 0; i < m; i++)
			a[i] = any() / (round % 2 ? 1 : 1e12);
		for (size_t j = 0; j < n; j++)
			b[j] = any() / (round % 2 ? 1 : 1e12);
		for (size_t i = 0; i < m; i++)
			for (size_t j = 0; j < n; j++)
				all[len++] = b[j] - a[i];
		qsort(all, len, sizeof(double), compare);
		assert_int_equal(pm_stats_shift(a, m, b, n, 0.95, 1, &s), 0);
		assert_true(s.shift == (len % 2 ? all[len / 2]
						: (all[len / 2 - 1] + all[len / 2]) / 2));
		assert_true(s.low <= s.high);
	}
}

static void test_shift_interval(void **state)
{
	double a[10], b[10];
	struct pm_stats_shift s, again;

	for (size_t i = 0; i < 10; i++) {
		a[i] = 1000 + (double)i;
		b[i] = 1100 + (double)(9 - i);
	}
	b[3] = 1e12; /* one run was disturbed */
	assert_int_equal(pm_stats_shift(a, 10, b, 10, 0.95, 7, &s), 0);
	assert_true(s.shift > 98 && s.shift < 103);
	assert_true(s.low > 95 && s.low < s.shift && s.shift < s.high && s.high < 110);
	assert_near(s.ratio, 1104.5 / 1004.5, 2e-3);
	assert_true(s.ratio_low > 1.09 && s.ratio_low < s.ratio_high &&
		    s.ratio_high < 1.11);
	/* The same seed, the same numbers. */
	assert_int_equal(pm_stats_shift(a, 10, b, 10, 0.95, 7, &again), 0);
	assert_memory_equal(&s, &again, sizeof(s));
	assert_int_equal(pm_stats_shift(a, 10, b, 10, 0.5, 7, &again), 0);
	assert_true(again.low >= s.low && again.high <= s.high &&
		    again.high - again.low < s.high - s.low);
}

/* How often the interval has the truth in it, when both come from one distribution. */
static void test_interval_covers(void **state)
{
	unsigned int inside = 0;

	seed = 1;
	for (unsigned int round = 0; round < 20; round++) {
		double a[8], b[8];
		struct pm_stats_shift s;

		for (size_t i = 0; i < 8; i++) {
			a[i] = any();
			b[i] = any();
		}
		assert_int_equal(pm_stats_shift(a, 8, b, 8, 0.95, round, &s), 0);
		inside += s.low <= 0 && s.high >= 0;
	}
	/* Of a seed of our own: always the same count. */
	assert_in_range(inside, 16, 20);
}

/* Of so many, ranks tell as much as drawing them again. */
static void test_interval_of_many(void **state)
{
	double a[101], b[101];
	struct pm_stats_shift drawn, ranked;
	double width;

	seed = 1; /* always the same numbers, whatever came before */
	for (size_t i = 0; i < 101; i++) {
		a[i] = 1e10 + any();
		b[i] = 1.05e10 + any();
	}
	assert_int_equal(pm_stats_shift(a, 100, b, 100, 0.95, 1, &drawn), 0);
	assert_int_equal(pm_stats_shift(a, 101, b, 101, 0.95, 1, &ranked), 0);
	width = drawn.high - drawn.low;
	assert_true(fabs(ranked.low - drawn.low) < 0.25 * width);
	assert_true(fabs(ranked.high - drawn.high) < 0.25 * width);
	assert_near(ranked.ratio, drawn.ratio, 0.01);
	assert_near(ranked.ratio_low, drawn.ratio_low, 0.01);
	assert_near(ranked.ratio_high, drawn.ratio_high, 0.01);
	assert_true(ranked.low > 0 && ranked.low < ranked.shift &&
		    ranked.shift < ranked.high);
}

/* "-0" would be read as less. */
static void test_zero_has_no_sign(void **state)
{
	static const double a[] = { 1, 1, 2, 3 }, b[] = { 1, 2, 2, 2 };
	static const double differences[] = { -2, -1, 0, 0, 0, 1, 2 };
	struct pm_stats_paired paired;
	struct pm_stats_shift shift;

	assert_int_equal(pm_stats_shift(a, 4, b, 4, 0.95, 1, &shift), 0);
	assert_true(shift.shift == 0 && !signbit(shift.shift));
	assert_int_equal(pm_stats_signed_rank(differences, 7, 0.95, &paired), 0);
	assert_true(paired.shift == 0 && !signbit(paired.shift));
}

static void test_shift_of_equals(void **state)
{
	static const double fives[] = { 5, 5, 5, 5 }, zeros[] = { 0, 0, 0 };
	static const double one[] = { 8 };
	struct pm_stats_shift s;

	assert_int_equal(pm_stats_shift(fives, 4, fives, 4, 0.95, 1, &s), 0);
	assert_true(s.shift == 0 && s.low == 0 && s.high == 0);
	assert_true(s.ratio == 1 && s.ratio_low == 1 && s.ratio_high == 1);
	assert_int_equal(pm_stats_shift(zeros, 3, fives, 4, 0.95, 1, &s), 0);
	assert_true(s.shift == 5 && s.low == 5 && s.high == 5);
	assert_true(isnan(s.ratio) && isnan(s.ratio_low) && isnan(s.ratio_high));
	assert_int_equal(pm_stats_shift(fives, 1, one, 1, 0.95, 1, &s), 0);
	assert_true(s.shift == 3 && s.low == 3 && s.ratio == 1.6);
	assert_int_equal(pm_stats_shift(fives, 0, one, 1, 0.95, 1, &s), 0);
	assert_true(isnan(s.shift) && isnan(s.low) && isnan(s.ratio));
}

/* ---- samples --------------------------------------------------------------------------- */

/* p: SciPy 1.10.1, fisher_exact([[hits, of - hits], …]); the sixth, of more than 1000 hits, is
 * chi2_contingency(…, correction=True). */
static void test_two_shares(void **state)
{
	static const struct {
		struct pm_stats_share a, b;
		double p;
	} cases[] = {
		{ { 3, 20 }, { 12, 20 }, 0.0079116936736514046 },
		{ { 1, 100 }, { 9, 100 }, 0.018487679877476362 },
		{ { 56, 70 }, { 48, 80 }, 0.012521129749209154 },
		{ { 0, 50 }, { 6, 50 }, 0.026661076308390465 },
		{ { 120, 1000 }, { 165, 1000 }, 0.0048200581101501827 },
		{ { 700, 10000 }, { 850, 10500 }, 0.0032983539409505969 },
	};
	struct pm_stats_two_shares two;

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		pm_stats_two_shares(&cases[i].a, &cases[i].b, &two);
		assert_near(two.p, cases[i].p, 1e-9);
		assert_true(two.low < two.difference && two.difference < two.high);
		pm_stats_two_shares(&cases[i].b, &cases[i].a, &two);
		assert_near(two.p, cases[i].p, 1e-9);
	}
	/* Newcombe 1998, table II, (a), method 10. */
	pm_stats_two_shares(&cases[2].b, &cases[2].a, &two);
	assert_near(two.difference, 0.2, 1e-12);
	assert_true(fabs(two.low - 0.0524) < 5e-5 && fabs(two.high - 0.3339) < 5e-5);
	pm_stats_two_shares(&(struct pm_stats_share){ 0, 0 }, &cases[2].b, &two);
	assert_true(isnan(two.difference) && two.p == 1);
	pm_stats_two_shares(&(struct pm_stats_share){ 9, 9 },
			    &(struct pm_stats_share){ 2000, 2000 }, &two);
	assert_true(two.difference == 0 && two.p == 1);
}

/* SciPy 1.10.1: binomtest(k, n, 0.5), and twice the smaller tail of binom(30, 0.4). */
static void test_two_counts(void **state)
{
	assert_near(pm_stats_two_counts(8, 1, 12, 1), 0.50344467163085938, 1e-10);
	assert_near(pm_stats_two_counts(18, 7, 2, 7), 0.000402450561523437, 1e-10);
	assert_near(pm_stats_two_counts(10, 2, 20, 3), 0.0057077652156214496, 1e-10);
	/* Many: by the normal distribution, binomtest() exactly. */
	assert_near(pm_stats_two_counts(10000 - 212, 1, 10000 + 212, 1), 0.002779191649,
		    1e-3);
	assert_true(pm_stats_two_counts(0, 1, 0, 1) == 1);
	assert_true(pm_stats_two_counts(5, 0, 9, 1) == 1);
}

/* ---- pairs ----------------------------------------------------------------------------- */

/* The probability by its definition: of all signs, those whose sum of ranks is as far off. */
static double signed_rank_by_hand(const double *values, size_t len)
{
	double ranks[16], seen = 0, middle = (double)(len * (len + 1)) / 4;
	size_t as_far = 0;

	assert_true(len <= PM_ARRAY_LEN(ranks));
	for (size_t i = 0; i < len; i++) {
		ranks[i] = 1;
		for (size_t j = 0; j < len; j++)
			ranks[i] += fabs(values[j]) < fabs(values[i]);
		seen += values[i] > 0 ? ranks[i] : 0;
	}
	for (size_t signs = 0; signs < (size_t)1 << len; signs++) {
		double sum = 0;

		for (size_t i = 0; i < len; i++)
			sum += signs >> i & 1 ? ranks[i] : 0;
		as_far += fabs(sum - middle) >= fabs(seen - middle);
	}
	return (double)as_far / (double)((size_t)1 << len);
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void test_signed_rank(void **state)
{
	static const double values[] = { 1.2,  -0.5, 3.1, 2.2, 0.7,  4.4,
					 -1.1, 2.9,  1.8, 0.3, 5.03, -2.6 };
	/* One more than the critical values of Wilcoxon's table for 5 %, two-sided. */
	static const size_t outside[] = {
		[6] = 1, [7] = 3, [8] = 4, [9] = 6, [10] = 9, [11] = 11, [12] = 14
	};

	for (size_t len = 6; len <= PM_ARRAY_LEN(values); len++) {
		struct pm_stats_paired paired;
		double means[128];
		size_t count = 0;

		for (size_t i = 0; i < len; i++)
			for (size_t j = i; j < len; j++)
				means[count++] = values[i] / 2 + values[j] / 2;
		qsort(means, count, sizeof(*means), compare_doubles);
		assert_int_equal(pm_stats_signed_rank(values, len, 0.95, &paired), 0);
		assert_near(paired.p, signed_rank_by_hand(values, len), 1e-12);
		assert_near(paired.shift, (means[(count - 1) / 2] + means[count / 2]) / 2,
			    1e-12);
		assert_true(paired.low == means[outside[len] - 1]);
		assert_true(paired.high == means[count - outside[len]]);
	}
}

static void test_signed_rank_of_odd_values(void **state)
{
	static const double zeros[] = { 0, 0, 0, 0 };
	static const double ties[] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1 };
	double many[1000];
	struct pm_stats_paired paired;

	assert_int_equal(pm_stats_signed_rank(NULL, 0, 0.95, &paired), 0);
	assert_true(isnan(paired.shift) && isnan(paired.low) && paired.p == 1);
	assert_int_equal(pm_stats_signed_rank(zeros, 4, 0.95, &paired), 0);
	assert_true(paired.shift == 0 && paired.low == 0 && paired.high == 0);
	assert_true(paired.p == 1);
	assert_int_equal(pm_stats_signed_rank(ties, 12, 0.95, &paired), 0);
	assert_true(paired.shift == 1 && paired.p > 0.003 && paired.p < 0.005);
	/* As many as need no list of all means, around 0.1. */
	for (size_t i = 0; i < PM_ARRAY_LEN(many); i++)
		many[i] = (double)(i * 7919 % 1000) / 1000 - 0.4;
	assert_int_equal(pm_stats_signed_rank(many, PM_ARRAY_LEN(many), 0.95, &paired),
			 0);
	assert_true(paired.p < 1e-20);
	assert_near(paired.shift, 0.0995, 0.001);
	assert_true(paired.low > 0.08 && paired.low < paired.shift);
	assert_true(paired.high < 0.12 && paired.high > paired.shift);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signed_rank),
		cmocka_unit_test(test_signed_rank_of_odd_values),
		cmocka_unit_test(test_summary),
		cmocka_unit_test(test_summary_of_few),
		cmocka_unit_test(test_summary_of_large),
		cmocka_unit_test(test_student),
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_exact_at_most),
		cmocka_unit_test(test_ties),
		cmocka_unit_test(test_holm),
		cmocka_unit_test(test_shift_is_the_median_difference),
		cmocka_unit_test(test_shift_interval),
		cmocka_unit_test(test_interval_covers),
		cmocka_unit_test(test_interval_of_many),
		cmocka_unit_test(test_shift_of_equals),
		cmocka_unit_test(test_zero_has_no_sign),
		cmocka_unit_test(test_two_shares),
		cmocka_unit_test(test_two_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
