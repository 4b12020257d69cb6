/* SPDX-License-Identifier: MIT */
#pragma once

#include "pm/stats.h"

/* Ascending; NULL without memory. Of an empty sample any pointer that free(3) takes. */
double *pm_stats_sorted(const double *values, size_t len);
