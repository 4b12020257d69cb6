/* SPDX-License-Identifier: MIT */
/* What the parts of trends share. */
#pragma once

#include "pm/compare.h"

/* Fills trend->steps from its points. -ENOMEM. */
int pm_trend_find_steps(struct pm_trend *trend);
/* Fills ret->list with series and their points, and warnings; steps are not looked for.
 * -ENOMEM. */
int pm_trends_collect(struct pm_trends *ret, const struct pm_trend_of *commits,
		      size_t len);
void pm_trend_release(struct pm_trend *trend);
