/* SPDX-License-Identifier: MIT */
/* Shared by the parts of trends. */
#pragma once

#include "pm/compare.h"

/* Fills trend->steps from its points. Returns -ENOMEM. */
int pm_trend_find_steps(struct pm_trend *trend);
