/* SPDX-License-Identifier: MIT */
/* Shared by the parts of trends. */
#pragma once

#include "pm/compare.h"

/* Fills trend->steps from its points. Returns -ENOMEM. */
int pm_trend_find_steps(struct pm_trend *trend);
/* Fills out->list with series and their points, and adds warnings; does not find steps.
 * Returns -ENOMEM. */
int pm_trends_collect(struct pm_trends *out, const struct pm_trend_of *commits,
		      size_t len);
void pm_trend_release(struct pm_trend *trend);
