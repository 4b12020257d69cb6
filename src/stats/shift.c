/* SPDX-License-Identifier: MIT */
/* Hodges and Lehmann, "Estimates of location based on rank tests", 1963; Efron's bootstrap. */
#include "stats-internal.h"

#include <math.h>
#include <string.h>

enum {
	RESAMPLES = 2000,
	BOOTSTRAP_MAX = 200, /* values of both samples together */
};

/* ---- random numbers -------------------------------------------------------------------- */

/* xoshiro256** of Blackman and Vigna, its state filled by splitmix64. */
struct random {
	uint64_t state[4];
};

static void random_init(struct random *random, uint64_t seed)
{
	for (size_t i = 0; i < PM_ARRAY_LEN(random->state); i++) {
		uint64_t z = seed += 0x9e3779b97f4a7c15;

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
		z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
		random->state[i] = z ^ (z >> 31);
	}
}

static uint64_t rotate_left(uint64_t value, unsigned int by)
{
	return value << by | value >> (64 - by);
}

static uint64_t random_next(struct random *random)
{
	uint64_t *s = random->state, result = rotate_left(s[1] * 5, 7) * 9,
		 t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate_left(s[3], 45);
	return result;
}

/* Returns a random number below @bound; the bias is 1 in 2^64 / @bound. */
static size_t random_below(struct random *random, size_t bound)
{
	return (size_t)((__uint128_t)random_next(random) * bound >> 64);
}

/* ---- differences ----------------------------------------------------------------------- */

struct sample {
	double *values; /* sorted */
	size_t len;
};

/* Returns the number of differences b - a that are at most @limit. */
static size_t differences_up_to(const struct sample *a, const struct sample *b,
				double limit)
{
	size_t count = 0, first = a->len;

	/* The larger b is, the fewer values of a are large enough for it. */
	for (size_t j = b->len; j-- > 0;) {
		while (first > 0 && b->values[j] - a->values[first - 1] <= limit)
			first--;
		count += a->len - first;
	}
	return count;
}

/* Returns the difference with rank @rank (from 0), by bisection over all numbers. A list
 * of the differences would be as long as the product of both lengths. */
static double difference_at(const struct sample *a, const struct sample *b, size_t rank)
{
	uint64_t low = pm_stats_order_of(b->values[0] - a->values[a->len - 1]);
	uint64_t high = pm_stats_order_of(b->values[b->len - 1] - a->values[0]);

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (differences_up_to(a, b, pm_stats_from_order(middle)) > rank)
			high = middle;
		else
			low = middle + 1;
	}
	return pm_stats_from_order(low);
}

static double median_difference(const struct sample *a, const struct sample *b)
{
	size_t len = a->len * b->len;
	double upper = difference_at(a, b, len / 2);

	if (len % 2 == 1)
		return upper;
	return (difference_at(a, b, len / 2 - 1) + upper) / 2;
}

/* Returns the ratio of the shifted median of @a to its median. */
static double shift_to_ratio(const struct sample *a, double shift)
{
	double of_a = pm_stats_quantile(a->values, a->len, 0.5);

	if (of_a == 0)
		return NAN;
	return 1 + shift / of_a;
}

/* ---- the bootstrap --------------------------------------------------------------------- */

/* Draws @len of @len values with replacement. Sets times[i] to how often value i is
 * drawn. */
static void draw_with_replacement(struct random *random, size_t len, size_t *times)
{
	memset(times, 0, len * sizeof(*times));
	for (size_t i = 0; i < len; i++)
		times[random_below(random, len)]++;
}

/* The median of the drawn values. */
static double median_drawn(const struct sample *from, const size_t *times)
{
	size_t lower = (from->len - 1) / 2, upper = from->len / 2, count = 0, i = 0;
	double at_lower;

	while (count + times[i] <= lower)
		count += times[i++];
	at_lower = from->values[i];
	while (count + times[i] <= upper)
		count += times[i++];
	return at_lower + (from->values[i] - at_lower) / 2;
}

/* One of the differences between the two samples. A draw contains it as many times as the
 * product of the counts of its two values. */
struct difference {
	double value;
	uint32_t a, b;
};

static int compare_differences(const void *first, const void *second)
{
	const struct difference *x = first, *y = second;

	return PM_COMPARE(x->value, y->value);
}

/* All differences, sorted. The caller frees the result. */
static struct difference *all_differences(const struct sample *a, const struct sample *b)
{
	struct difference *all = calloc(a->len * b->len, sizeof(*all)), *next = all;

	for (uint32_t i = 0; all && i < a->len; i++)
		for (uint32_t j = 0; j < b->len; j++)
			*next++ =
				(struct difference){ b->values[j] - a->values[i], i, j };
	if (all)
		qsort(all, a->len * b->len, sizeof(*all), compare_differences);
	return all;
}

static double median_difference_drawn(const struct difference *all, size_t len,
				      const size_t *times_a, const size_t *times_b)
{
	size_t lower = (len - 1) / 2, upper = len / 2, count = 0, i = 0;
	double at_lower;

	for (; count <= lower; i++)
		count += times_a[all[i].a] * times_b[all[i].b];
	at_lower = all[i - 1].value;
	for (; count <= upper; i++)
		count += times_a[all[i].a] * times_b[all[i].b];
	return (at_lower + all[i - 1].value) / 2;
}

static int percentile_interval(double *values, double confidence, double *low,
			       double *high)
{
	PM_AUTO_FREE double *sorted = NULL;
	double tail = (1 - confidence) / 2;

	for (size_t i = 0; i < RESAMPLES; i++)
		if (isnan(values[i]))
			return 0;
	sorted = pm_stats_sorted(values, RESAMPLES);
	if (!sorted)
		return -ENOMEM;
	*low = pm_stats_quantile(sorted, RESAMPLES, tail);
	*high = pm_stats_quantile(sorted, RESAMPLES, 1 - tail);
	return 0;
}

static int bootstrap_shift(const struct sample *a, const struct sample *b,
			   double confidence, uint64_t seed, struct pm_stats_shift *shift)
{
	PM_AUTO_FREE size_t *times_a = calloc(a->len, sizeof(*times_a));
	PM_AUTO_FREE size_t *times_b = calloc(b->len, sizeof(*times_b));
	PM_AUTO_FREE struct difference *all = all_differences(a, b);
	PM_AUTO_FREE double *shifts = calloc(RESAMPLES, sizeof(double));
	PM_AUTO_FREE double *ratios = calloc(RESAMPLES, sizeof(double));
	struct random random;
	int ret;

	if (!times_a || !times_b || !all || !shifts || !ratios)
		return -ENOMEM;
	random_init(&random, seed);
	for (size_t i = 0; i < RESAMPLES; i++) {
		double median;

		draw_with_replacement(&random, a->len, times_a);
		draw_with_replacement(&random, b->len, times_b);
		shifts[i] =
			median_difference_drawn(all, a->len * b->len, times_a, times_b);
		median = median_drawn(a, times_a);
		ratios[i] = NAN;
		if (median != 0)
			ratios[i] = 1 + shifts[i] / median;
	}
	ret = percentile_interval(shifts, confidence, &shift->low, &shift->high);
	if (ret < 0)
		return ret;
	return percentile_interval(ratios, confidence, &shift->ratio_low,
				   &shift->ratio_high);
}

double pm_stats_normal_middle(double confidence)
{
	double low = 0, high = 40;

	for (unsigned int i = 0; i < 100; i++) {
		double z = (low + high) / 2;

		if (erf(z / M_SQRT2) < confidence)
			low = z;
		else
			high = z;
	}
	return low;
}

/*
 * Computes the interval from ranks. On each side, the number of differences outside of it
 * is the quantile of Mann-Whitney's U in its normal approximation. With many values this
 * is as good as a bootstrap, without the repeated draws.
 */
static void shift_interval_by_ranks(const struct sample *a, const struct sample *b,
				    double confidence, struct pm_stats_shift *shift)
{
	double m = (double)a->len, n = (double)b->len;
	double sigma = sqrt(m * n * (m + n + 1) / 12);
	double below = m * n / 2 - pm_stats_normal_middle(confidence) * sigma;
	size_t rank = (size_t)fmax(below, 0);
	bool negative = pm_stats_quantile(a->values, a->len, 0.5) < 0;

	shift->low = difference_at(a, b, rank);
	shift->high = difference_at(a, b, a->len * b->len - 1 - rank);
	if (negative) {
		shift->ratio_low = shift_to_ratio(a, shift->high);
		shift->ratio_high = shift_to_ratio(a, shift->low);
	} else {
		shift->ratio_low = shift_to_ratio(a, shift->low);
		shift->ratio_high = shift_to_ratio(a, shift->high);
	}
}

int pm_stats_shift(const double *a, size_t a_len, const double *b, size_t b_len,
		   double confidence, uint64_t seed, struct pm_stats_shift *out)
{
	PM_AUTO_FREE double *sorted_a = pm_stats_sorted(a, a_len);
	PM_AUTO_FREE double *sorted_b = pm_stats_sorted(b, b_len);
	struct sample of_a = { sorted_a, a_len }, of_b = { sorted_b, b_len };
	struct pm_stats_shift shift = { NAN, NAN, NAN, NAN, NAN, NAN };
	int ret = 0;

	if (!sorted_a || !sorted_b)
		return -ENOMEM;
	if (a_len > 0 && b_len > 0) {
		shift.shift = median_difference(&of_a, &of_b);
		shift.ratio = shift_to_ratio(&of_a, shift.shift);
		if (a_len + b_len > BOOTSTRAP_MAX)
			shift_interval_by_ranks(&of_a, &of_b, confidence, &shift);
		else
			ret = bootstrap_shift(&of_a, &of_b, confidence, seed, &shift);
	}
	if (ret == 0)
		*out = shift;
	return ret;
}
