/* SPDX-License-Identifier: MIT */
#include "stats-internal.h"

#include <math.h>
#include <string.h>

/* Tukey's "far out": 3 interquartile ranges. */
#define OUTLIER_RANGES 3.0
#define HALF_ALPHA     0.975 /* of a two-sided interval of 95 % */
#define NORMAL_975     1.959963984540054

enum {
	/* Above this, the expansion in 1/freedom is accurate to 11 digits. */
	SERIES_FREEDOM_MAX = 1000,
	BISECTIONS = 100, /* more than a double has bits */
};

static int compare_values(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return PM_COMPARE(x, y);
}

double *pm_stats_sorted(const double *values, size_t len)
{
	double *sorted = calloc(len + 1, sizeof(*sorted));

	if (sorted && len > 0) {
		memcpy(sorted, values, len * sizeof(*sorted));
		qsort(sorted, len, sizeof(*sorted), compare_values);
	}
	return sorted;
}

double pm_stats_quantile(const double *sorted, size_t len, double q)
{
	double at, part;
	size_t below;

	if (len == 0)
		return NAN;
	at = q * (double)(len - 1);
	if (at > 0)
		below = (size_t)at;
	else
		below = 0;
	if (below >= len - 1)
		return sorted[len - 1];
	part = at - (double)below;
	/* Equal values need no interpolation, which would round the result. */
	if (part <= 0 || sorted[below] == sorted[below + 1])
		return sorted[below];
	return sorted[below] + part * (sorted[below + 1] - sorted[below]);
}

/* Returns P(|T| < t) for a whole number of degrees of freedom: Abramowitz and Stegun,
 * 26.7.3 and 26.7.4. */
static double student_t_within(double t, size_t freedom)
{
	double angle = atan(t / sqrt((double)freedom));
	double c = cos(angle), s = sin(angle), term = 1, sum = 0;

	if (freedom % 2 == 1) {
		term = c;
		for (size_t i = 3; i <= freedom; i += 2) {
			sum += term;
			term *= c * c * (double)(i - 1) / (double)i;
		}
		return M_2_PI * (angle + s * sum);
	}
	for (size_t i = 2; i <= freedom; i += 2) {
		sum += term;
		term *= c * c * (double)(i - 1) / (double)i;
	}
	return s * sum;
}

/* Returns the quantile 0.975 of Student's t. */
static double student_t_quantile(size_t freedom)
{
	double low = 0, high = 16, z = NORMAL_975, v = (double)freedom;

	/* Abramowitz and Stegun, 26.7.5. */
	if (freedom > SERIES_FREEDOM_MAX)
		return z + (pow(z, 3) + z) / (4 * v) +
		       (5 * pow(z, 5) + 16 * pow(z, 3) + 3 * z) / (96 * v * v) +
		       (3 * pow(z, 7) + 19 * pow(z, 5) + 17 * pow(z, 3) - 15 * z) /
			       (384 * v * v * v);
	for (unsigned int i = 0; i < BISECTIONS; i++) {
		double middle = (low + high) / 2;

		if (student_t_within(middle, freedom) < 2 * HALF_ALPHA - 1)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}

static void set_mean_and_interval(const double *values, size_t len,
				  struct pm_stats_summary *out)
{
	long double sum = 0, squares = 0, mean;
	double half;

	for (size_t i = 0; i < len; i++)
		sum += values[i];
	mean = sum / (long double)len;
	/* Rounding must not change the mean of equal values. */
	if (out->min == out->max)
		out->mean = out->min;
	else
		out->mean = (double)mean;
	if (len < 2)
		return;
	for (size_t i = 0; i < len; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	if (out->min == out->max)
		out->sigma = 0;
	else
		out->sigma = (double)sqrtl(squares / (long double)(len - 1));
	half = student_t_quantile(len - 1) * out->sigma / sqrt((double)len);
	out->mean_low = out->mean - half;
	out->mean_high = out->mean + half;
}

int pm_stats_summarize(const double *values, size_t len, struct pm_stats_summary *out)
{
	PM_AUTO_FREE double *sorted = pm_stats_sorted(values, len);
	struct pm_stats_summary summary = {
		.len = len,
		.mean = NAN,
		.sigma = NAN,
		.mean_low = NAN,
		.mean_high = NAN,
	};
	double range;

	if (!sorted)
		return -ENOMEM;
	summary.min = pm_stats_quantile(sorted, len, 0);
	summary.q1 = pm_stats_quantile(sorted, len, 0.25);
	summary.median = pm_stats_quantile(sorted, len, 0.5);
	summary.q3 = pm_stats_quantile(sorted, len, 0.75);
	summary.max = pm_stats_quantile(sorted, len, 1);
	if (len > 0)
		set_mean_and_interval(sorted, len, &summary);
	range = OUTLIER_RANGES * (summary.q3 - summary.q1);
	for (size_t i = 0; i < len; i++)
		summary.outliers +=
			sorted[i] < summary.q1 - range || sorted[i] > summary.q3 + range;
	*out = summary;
	return 0;
}
