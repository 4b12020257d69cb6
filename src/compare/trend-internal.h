/* SPDX-License-Identifier: MIT */
/* Shared by the files for trends. */
#pragma once

#include "pm/compare.h"

/* Finds the steps between the points of @trend and fills trend->steps. Returns 0 or
 * -ENOMEM. */
int pm_trend_find_steps(struct pm_trend *trend);
