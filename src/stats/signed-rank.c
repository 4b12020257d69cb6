/* SPDX-License-Identifier: MIT */
/* Wilcoxon, "Individual comparisons by ranking methods", 1945; the interval is Tukey's,
 * and the estimate is Hodges and Lehmann's. */
#include "stats-internal.h"

#include <math.h>

enum {
	EXACT_MAX = 50, /* differences: 2^50 is well within a double */
};

/* ---- the test ------------------------------------------------------------------------ */

static int compare_differences_by_size(const void *a, const void *b)
{
	double x = fabs(*(const double *)a), y = fabs(*(const double *)b);

	return PM_COMPARE(x, y);
}

struct signed_ranks {
	size_t len; /* number of differences other than 0 */
	/* Sum of the ranks of positive differences; equal sizes share the mean of their
	 * ranks. */
	double positive;
	double ties; /* sum of t^3 - t over runs of t equal sizes */
};

static int rank_signed(const double *differences, size_t len, struct signed_ranks *out)
{
	PM_AUTO_FREE double *sizes = calloc(len + 1, sizeof(*sizes));

	if (!sizes)
		return -ENOMEM;
	*out = (struct signed_ranks){ 0 };
	for (size_t i = 0; i < len; i++)
		if (differences[i] != 0)
			sizes[out->len++] = differences[i];
	qsort(sizes, out->len, sizeof(*sizes), compare_differences_by_size);
	for (size_t first = 0, end; first < out->len; first = end) {
		double run;

		for (end = first + 1;
		     end < out->len && fabs(sizes[end]) == fabs(sizes[first]);)
			end++;
		run = (double)(end - first);
		out->ties += run * run * run - run;
		for (size_t i = first; i < end; i++)
			if (sizes[i] > 0)
				out->positive += ((double)first + (double)end + 1) / 2;
	}
	return 0;
}

/* Returns the probability of each sum of the ranks 1 to @len if the signs are random: len
 * * (len + 1) / 2 + 1 values. The caller frees them. NULL if out of memory. */
static double *rank_sum_chances(size_t len)
{
	size_t sums = len * (len + 1) / 2 + 1;
	double *chances = calloc(sums, sizeof(*chances));

	if (!chances)
		return NULL;
	chances[0] = 1;
	for (size_t rank = 1; rank <= len; rank++)
		for (size_t sum = sums; sum-- > 0;)
			chances[sum] =
				(chances[sum] + (sum >= rank ? chances[sum - rank] : 0)) /
				2;
	return chances;
}

static int signed_rank_p_value(const struct signed_ranks *ranks, double *out)
{
	double n = (double)ranks->len, all = n * (n + 1) / 2;
	double less = fmin(ranks->positive, all - ranks->positive), variance, far;

	*out = 1;
	if (ranks->len == 0)
		return 0;
	if (ranks->ties == 0 && ranks->len <= EXACT_MAX) {
		PM_AUTO_FREE double *chances = rank_sum_chances(ranks->len);
		double tail = 0;

		if (!chances)
			return -ENOMEM;
		for (size_t sum = 0; (double)sum <= less; sum++)
			tail += chances[sum];
		*out = fmin(1, 2 * tail);
		return 0;
	}
	variance = n * (n + 1) * (2 * n + 1) / 24 - ranks->ties / 48;
	far = fmax(0, all / 2 - less - 0.5);
	if (variance > 0)
		*out = erfc(far / sqrt(variance) / M_SQRT2);
	else
		*out = 1;
	return 0;
}

/* ---- the estimate -------------------------------------------------------------------- */

/* Returns the number of means of sorted[i] and sorted[j], with i <= j, that are at most
 * @limit. */
static size_t count_pair_means_up_to(const double *sorted, size_t len, double limit)
{
	size_t count = 0, end = len;

	/* The larger the first value is, the fewer second values are small enough. */
	for (size_t i = 0; i < len; i++) {
		while (end > i && sorted[i] / 2 + sorted[end - 1] / 2 > limit)
			end--;
		if (end <= i)
			break;
		count += end - i;
	}
	return count;
}

/* Returns the mean with rank @rank (from 0), without a list of all means, whose length
 * would be about half the square of @len. */
static double pair_mean_at(const double *sorted, size_t len, size_t rank)
{
	uint64_t low = pm_stats_order_of(sorted[0]);
	uint64_t high = pm_stats_order_of(sorted[len - 1]);

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (count_pair_means_up_to(sorted, len, pm_stats_from_order(middle)) >
		    rank)
			high = middle;
		else
			low = middle + 1;
	}
	return pm_stats_from_order(low);
}

/* Sets *out to the number of means outside of the interval on each side. */
static int count_means_outside(size_t len, double confidence, size_t *out)
{
	double n = (double)len, tail = 0;
	size_t count = 0, means = len * (len + 1) / 2;

	if (len <= EXACT_MAX) {
		PM_AUTO_FREE double *chances = rank_sum_chances(len);

		if (!chances)
			return -ENOMEM;
		while (count < means / 2) {
			tail += chances[count];
			if (tail > (1 - confidence) / 2)
				break;
			count++;
		}
	} else {
		count = (size_t)fmax(
			0,
			n * (n + 1) / 4 - pm_stats_normal_middle(confidence) *
						  sqrt(n * (n + 1) * (2 * n + 1) / 24));
	}
	*out = count;
	return 0;
}

static int estimate_median_shift(const double *differences, size_t len, double confidence,
				 struct pm_stats_paired *out)
{
	PM_AUTO_FREE double *sorted = pm_stats_sorted(differences, len);
	size_t means = len * (len + 1) / 2, beyond;

	if (!sorted || count_means_outside(len, confidence, &beyond) < 0)
		return -ENOMEM;
	out->shift = pair_mean_at(sorted, len, means / 2);
	if (means % 2 == 0)
		out->shift = (pair_mean_at(sorted, len, means / 2 - 1) + out->shift) / 2;
	if (beyond == 0)
		beyond = 1;
	out->low = pair_mean_at(sorted, len, beyond - 1);
	out->high = pair_mean_at(sorted, len, means - beyond);
	return 0;
}

int pm_stats_signed_rank(const double *differences, size_t len, double confidence,
			 struct pm_stats_paired *out)
{
	struct pm_stats_paired paired = { NAN, NAN, NAN, 1 };
	struct signed_ranks ranks;
	int ret = 0;

	if (len > 0)
		ret = estimate_median_shift(differences, len, confidence, &paired);
	if (ret == 0 && len > 0)
		ret = rank_signed(differences, len, &ranks);
	if (ret == 0 && len > 0)
		ret = signed_rank_p_value(&ranks, &paired.p);
	if (ret == 0)
		*out = paired;
	return ret;
}
