/* SPDX-License-Identifier: MIT */
/*
 * Statistics of small samples, for repeated runs and for comparisons. Pure: no I/O, no state,
 * and the random numbers of a bootstrap come from a seed, so that results can be had again.
 * Values are doubles; a sample with a NaN in it is refused by assertion of the caller's types.
 */
#pragma once

#include "pm/base.h"

struct pm_stats_summary {
	size_t len;
	double mean, sigma; /* sample standard deviation (n - 1); NaN below 2 */
	double min, q1, median, q3,
		max; /* quartiles by linear interpolation (R type 7) */
	/* 95 % confidence interval of the mean (Student's t); NaN below 2. */
	double mean_low, mean_high;
	size_t outliers; /* beyond 3 interquartile ranges of the quartiles */
};
/* NaN in all members for an empty sample. -ENOMEM. */
int pm_stats_summarize(const double *values, size_t len, struct pm_stats_summary *ret);
/* @values sorted. @q in [0, 1]. */
double pm_stats_quantile(const double *sorted, size_t len, double q);

/*
 * Two-sided Mann-Whitney U test: the probability of ranks at least as far apart if both came
 * from one distribution. Exact while there are no ties and both have at most 50 values, else by
 * the normal approximation with correction for ties and continuity. 1 when either is empty or
 * all values are equal. Negative: -ENOMEM.
 */
int pm_stats_mann_whitney(const double *a, size_t a_len, const double *b, size_t b_len,
			  double *ret_p);

struct pm_stats_shift {
	double shift; /* of B against A, in the values' unit: median of all differences b - a */
	/* Interval of @confidence: percentiles of a bootstrap; of more than 200 values
	 * together by their ranks (Moses), which then are enough for it. */
	double low, high;
	/* 1 + shift / median of A; NaN where that median is 0. */
	double ratio, ratio_low, ratio_high;
};
/* Hodges-Lehmann shift. NaN in all members when either is empty. -ENOMEM. */
int pm_stats_shift(const double *a, size_t a_len, const double *b, size_t b_len,
		   double confidence, uint64_t seed, struct pm_stats_shift *ret);

struct pm_stats_paired {
	double shift; /* median of the means of all two differences, each with itself, too */
	/* Interval of at least @confidence (Tukey), without bootstrap; of so few differences that
	 * there is none, the least and the greatest. */
	double low, high;
	/* Wilcoxon's signed-rank test, two-sided: the probability of signs and ranks at least as
	 * uneven if each difference might as well have the other sign. Exact of at most 50 that
	 * are not 0 and without ties, else by the normal approximation. 1: all are 0. */
	double p;
};
/*
 * Differences of pairs that were measured one right after the other: what disturbs both is in
 * none of them, and fewer are enough than of unpaired values. NaN, and p = 1, of none. -ENOMEM.
 */
int pm_stats_signed_rank(const double *differences, size_t len, double confidence,
			 struct pm_stats_paired *ret);

/* Holm's correction, in place, of @len probabilities; their order stays. -ENOMEM. */
int pm_stats_holm(double *p, size_t len);

struct pm_stats_share {
	uint64_t hits, of; /* hits at most `of` */
};
struct pm_stats_two_shares {
	double difference; /* of B against A */
	double low, high; /* 95 % interval: Newcombe, of Wilson's for each */
	double p; /* Fisher's exact test; of more than 1000 hits its normal approximation */
};
/* Of samples that were drawn independently. NaN, and p = 1, when either is of none. */
void pm_stats_two_shares(const struct pm_stats_share *a, const struct pm_stats_share *b,
			 struct pm_stats_two_shares *ret);
/* The probability of so many samples, or more different ones, if they stand for two equal sums:
 * @a_each and @b_each are what one stands for. Exact up to 1000 of both. 1 without any. */
double pm_stats_two_counts(uint64_t a, double a_each, uint64_t b, double b_each);
