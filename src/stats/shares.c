/* SPDX-License-Identifier: MIT */
/* Fisher, "Statistical methods for research workers", 1934; Wilson, 1927; Newcombe, "Interval
 * estimation for the difference between independent proportions", 1998, method 10. */
#include "stats-internal.h"

#include <math.h>

#define NORMAL_975 1.959963984540054
/* Tables whose probability differs from that of the observed one only by rounding count
 * as equally extreme. */
#define ROUNDING 1e-7

enum {
	EXACT_MAX = 1000, /* hits of both samples together */
};

static double log_choose(double n, double k)
{
	return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}

/* Given the total number of hits, sums the probabilities of all divisions that are at
 * most as probable as the observed one. */
static double shares_exact(const struct pm_stats_share *a, const struct pm_stats_share *b)
{
	double m = (double)a->of, n = (double)b->of, hits = (double)(a->hits + b->hits);
	double all = log_choose(m + n, hits), sum = 0;
	double seen =
		log_choose(m, (double)a->hits) + log_choose(n, (double)b->hits) - all;

	for (double k = fmax(0, hits - n); k <= fmin(m, hits); k++) {
		double p = log_choose(m, k) + log_choose(n, hits - k) - all;

		if (p <= seen + ROUNDING)
			sum += exp(p);
	}
	return fmin(1, sum);
}

static double shares_normal(const struct pm_stats_share *a,
			    const struct pm_stats_share *b)
{
	double m = (double)a->of, n = (double)b->of;
	double p = (double)(a->hits + b->hits) / (m + n);
	double far = fabs((double)a->hits / m - (double)b->hits / n);
	double variance = p * (1 - p) * (1 / m + 1 / n);

	far = fmax(0, far - (1 / m + 1 / n) / 2);
	if (variance <= 0)
		return 1;
	return erfc(far / sqrt(variance) / M_SQRT2);
}

/* Computes Wilson's interval of one share. */
static void wilson_interval(const struct pm_stats_share *of, double *low, double *high)
{
	double n = (double)of->of, p = (double)of->hits / n, z = NORMAL_975;
	double middle = p + z * z / (2 * n);
	double half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n));

	*low = fmax(0, (middle - half) / (1 + z * z / n));
	*high = fmin(1, (middle + half) / (1 + z * z / n));
}

void pm_stats_two_shares(const struct pm_stats_share *a, const struct pm_stats_share *b,
			 struct pm_stats_two_shares *out)
{
	double p, q, a_low, a_high, b_low, b_high;

	*out = (struct pm_stats_two_shares){ NAN, NAN, NAN, 1 };
	if (a->of == 0 || b->of == 0)
		return;
	p = (double)a->hits / (double)a->of;
	q = (double)b->hits / (double)b->of;
	wilson_interval(a, &a_low, &a_high);
	wilson_interval(b, &b_low, &b_high);
	out->difference = q - p;
	out->low = q - p - sqrt((q - b_low) * (q - b_low) + (a_high - p) * (a_high - p));
	out->high = q - p + sqrt((b_high - q) * (b_high - q) + (p - a_low) * (p - a_low));
	if (a->hits + b->hits <= EXACT_MAX)
		out->p = shares_exact(a, b);
	else
		out->p = shares_normal(a, b);
}

/* Returns the probability of both tails of a binomial distribution, as twice the smaller
 * one. */
static double binomial_two_sided(double k, double n, double q)
{
	double below = 0, above = 0;

	for (double i = 0; i <= n; i++) {
		double p = exp(log_choose(n, i) + i * log(q) + (n - i) * log1p(-q));

		if (i <= k)
			below += p;
		if (i >= k)
			above += p;
	}
	return fmin(1, 2 * fmin(below, above));
}

double pm_stats_two_counts(uint64_t a, double a_each, uint64_t b, double b_each)
{
	double n = (double)a + (double)b, q = a_each / (a_each + b_each), far;

	if (!(a_each > 0) || !(b_each > 0) || n <= 0)
		return 1;
	if (n <= EXACT_MAX)
		return binomial_two_sided((double)b, n, q);
	far = fmax(0, fabs((double)b - n * q) - 0.5);
	return erfc(far / sqrt(n * q * (1 - q)) / M_SQRT2);
}
