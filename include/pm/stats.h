/* SPDX-License-Identifier: MIT */
/*
 * Statistics of small samples, for repeated runs and for comparisons. Pure: no I/O and no
 * state. The random numbers of a bootstrap come from a seed, so that results are
 * reproducible. No value may be NaN; this is not checked.
 */
#pragma once

#include "pm/base.h"

struct pm_stats_summary {
	size_t len;
	double mean, sigma; /* sample standard deviation (n - 1); NaN below 2 */
	/* Quartiles by linear interpolation (R type 7). */
	double min, q1, median, q3, max;
	/* 95 % confidence interval of the mean (Student's t); NaN below 2. */
	double mean_low, mean_high;
	/* Values more than 3 interquartile ranges outside of the quartiles. */
	size_t outliers;
};
/* All members are NaN for an empty sample. Returns 0 or -ENOMEM. */
int pm_stats_summarize(const double *values, size_t len, struct pm_stats_summary *out);
/* @sorted must be ascending. @q in [0, 1]. */
double pm_stats_quantile(const double *sorted, size_t len, double q);

/*
 * Two-sided Mann-Whitney U test: the probability of ranks that are at least as different
 * if both samples came from one distribution. Exact if there are no ties and both have at
 * most 50 values, otherwise by the normal approximation with correction for ties and
 * continuity. The probability is 1 if either sample is empty or all values are equal.
 * Returns 0 or -ENOMEM.
 */
int pm_stats_mann_whitney(const double *a, size_t a_len, const double *b, size_t b_len,
			  double *ret_p);

struct pm_stats_shift {
	/* How far B is above A, in the values' unit: median of all differences b - a. */
	double shift;
	/* Interval of @confidence, from percentiles of a bootstrap. With more than 200
	 * values in total it comes from their ranks (Moses), which are then
	 * sufficient. */
	double low, high;
	/* 1 + shift / median of A; NaN if that median is 0. */
	double ratio, ratio_low, ratio_high;
};
/* Hodges-Lehmann shift. All members are NaN if either sample is empty. Returns 0 or
 * -ENOMEM. */
int pm_stats_shift(const double *a, size_t a_len, const double *b, size_t b_len,
		   double confidence, uint64_t seed, struct pm_stats_shift *out);

struct pm_stats_paired {
	/* Median of the means of any two differences, including each with itself. */
	double shift;
	/* Interval of at least @confidence (Tukey), without a bootstrap. If there are too
	 * few differences for it, the smallest and the largest. */
	double low, high;
	/* Wilcoxon's signed-rank test, two-sided: the probability of signs and ranks that
	 * are at least as uneven if each difference was as likely to have the other sign.
	 * Exact for at most 50 differences other than 0 without ties, otherwise by the
	 * normal approximation. 1 if all are 0. */
	double p;
};
/*
 * Statistics of the differences of pairs that were measured one right after the other. A
 * disturbance of both measurements of a pair cancels out, so that fewer pairs are needed
 * than unpaired values. With no differences, p is 1 and the others are NaN. Returns 0 or
 * -ENOMEM.
 */
int pm_stats_signed_rank(const double *differences, size_t len, double confidence,
			 struct pm_stats_paired *out);

/* Applies Holm's correction in place to @len probabilities, which keep their order.
 * Returns 0 or -ENOMEM. */
int pm_stats_holm(double *p, size_t len);

struct pm_stats_share {
	uint64_t hits, of; /* hits <= of */
};
struct pm_stats_two_shares {
	double difference; /* of B relative to A */
	double low, high; /* 95 % interval: Newcombe, from Wilson's intervals of both */
	double p; /* Fisher's exact test; its normal approximation above 1000 hits */
};
/* Compares two samples drawn independently. If either has no draws, p is 1 and the others
 * are NaN. */
void pm_stats_two_shares(const struct pm_stats_share *a, const struct pm_stats_share *b,
			 struct pm_stats_two_shares *out);
/* The probability of counts that are at least as different as @a and @b if the sums they
 * stand for are equal. One count stands for @a_each or @b_each. Exact up to a total of
 * 1000. 1 if both are 0. */
double pm_stats_two_counts(uint64_t a, double a_each, uint64_t b, double b_each);
