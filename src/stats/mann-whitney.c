/* SPDX-License-Identifier: MIT */
/* Mann and Whitney, "On a test of whether one of two random variables is stochastically larger
 * than the other", 1947. */
#include "stats-internal.h"

#include <math.h>

enum {
	EXACT_MAX = 50, /* of each sample: C(100, 50) fits into 128 bits */
};

struct ranked {
	double value;
	bool of_b;
};

static int compare_ranked(const void *a, const void *b)
{
	double x = ((const struct ranked *)a)->value;
	double y = ((const struct ranked *)b)->value;

	return PM_COMPARE(x, y);
}

/* Result of ranking two samples together. */
struct ranks {
	double u; /* number of pairs in which b is larger; a tie counts as a half */
	double ties; /* sum of t³ - t over runs of t equal values */
};

static int rank_both_samples(const double *a, size_t a_len, const double *b, size_t b_len,
			     struct ranks *out)
{
	size_t len = a_len + b_len;
	PM_AUTO_FREE struct ranked *all = calloc(len, sizeof(*all));
	double sum = 0;

	if (!all)
		return -ENOMEM;
	*out = (struct ranks){ 0 };
	for (size_t i = 0; i < a_len; i++)
		all[i] = (struct ranked){ a[i], false };
	for (size_t i = 0; i < b_len; i++)
		all[a_len + i] = (struct ranked){ b[i], true };
	qsort(all, len, sizeof(*all), compare_ranked);
	for (size_t first = 0, end; first < len; first = end) {
		double run;

		for (end = first + 1; end < len && all[end].value == all[first].value;)
			end++;
		run = (double)(end - first);
		out->ties += run * run * run - run;
		/* Equal values share the mean of their ranks, which start at 1. */
		for (size_t i = first; i < end; i++)
			if (all[i].of_b)
				sum += ((double)first + (double)end + 1) / 2;
	}
	out->u = sum - (double)b_len * ((double)b_len + 1) / 2;
	return 0;
}

/*
 * Counts the orders of m and n values for which U is 0, 1, …: the coefficients of the
 * Gaussian binomial, the product of (1 - q^(n+i)) / (1 - q^i) for i from 1 to m. Each
 * factor is applied as a recurrence. Intermediate differences may wrap around; the final
 * values fit.
 */
static int mann_whitney_exact(double u, size_t m, size_t n, double *ret_p)
{
	size_t len = m * n + 1, most = (size_t)fmin(u, (double)(m * n) - u);
	PM_AUTO_FREE __uint128_t *orders = calloc(len, sizeof(*orders));
	__uint128_t all = 0, as_far = 0;

	if (!orders)
		return -ENOMEM;
	orders[0] = 1;
	for (size_t i = 1; i <= m; i++) {
		for (size_t k = len; k-- > n + i;)
			orders[k] -= orders[k - n - i];
		for (size_t k = i; k < len; k++)
			orders[k] += orders[k - i];
	}
	for (size_t k = 0; k < len; k++) {
		all += orders[k];
		if (k <= most)
			as_far += orders[k];
	}
	*ret_p = fmin(1, (double)(2 * (long double)as_far / (long double)all));
	return 0;
}

static double mann_whitney_normal(const struct ranks *ranks, double m, double n)
{
	double all = m + n;
	double variance = m * n / 12 * (all + 1 - ranks->ties / (all * (all - 1)));
	double far = fmax(0, fabs(ranks->u - m * n / 2) - 0.5);

	if (variance <= 0)
		return 1;
	return erfc(far / sqrt(variance) / M_SQRT2);
}

int pm_stats_mann_whitney(const double *a, size_t a_len, const double *b, size_t b_len,
			  double *ret_p)
{
	struct ranks ranks;
	int ret;

	if (a_len == 0 || b_len == 0) {
		*ret_p = 1;
		return 0;
	}
	ret = rank_both_samples(a, a_len, b, b_len, &ranks);
	if (ret < 0)
		return ret;
	if (ranks.ties == 0 && a_len <= EXACT_MAX && b_len <= EXACT_MAX)
		return mann_whitney_exact(ranks.u, a_len, b_len, ret_p);
	*ret_p = mann_whitney_normal(&ranks, (double)a_len, (double)b_len);
	return 0;
}

struct place {
	double p;
	size_t at;
};

static int compare_places_by_p(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return PM_COMPARE(x->p, y->p);
}

int pm_stats_holm(double *p, size_t len)
{
	PM_AUTO_FREE struct place *places = calloc(len + 1, sizeof(*places));
	double largest = 0;

	if (!places)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++)
		places[i] = (struct place){ p[i], i };
	qsort(places, len, sizeof(*places), compare_places_by_p);
	for (size_t i = 0; i < len; i++) {
		largest = fmax(largest, fmin(1, places[i].p * (double)(len - i)));
		p[places[i].at] = largest;
	}
	return 0;
}
