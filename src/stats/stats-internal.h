/* SPDX-License-Identifier: MIT */
#pragma once

#include "pm/stats.h"

#include <string.h>

/* Returns a sorted copy, also of an empty sample, to be freed by the caller. NULL if out
 * of memory. */
double *pm_stats_sorted(const double *values, size_t len);

/* Maps doubles to integers in the same order, for bisection over all doubles. */
static inline uint64_t pm_stats_order_of(double value)
{
	uint64_t bits;

	value += 0; /* -0 is 0 */
	memcpy(&bits, &value, sizeof(bits));
	return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

static inline double pm_stats_from_order(uint64_t order)
{
	uint64_t bits = order >> 63 ? order & ~((uint64_t)1 << 63) : ~order;
	double value;

	memcpy(&value, &bits, sizeof(value));
	/* Bisection finds -0 before 0. */
	return value + 0;
}

/* Returns the z for which a standard normal value lies in [-z, z] with probability
 * @confidence. */
double pm_stats_normal_middle(double confidence);
