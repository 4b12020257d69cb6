/* SPDX-License-Identifier: MIT */
/* --live: a line for each call that has ended. */
#pragma once

#include "pm/count.h"

/* For pm_calls_options.ended, whose other parameters these are. Values are as they were seen,
 * with what looking at calls costs. */
void pm_live_call(const struct pm_engine_options *options, const struct pm_stat *stat,
		  uint32_t region, const struct pm_visit *entry,
		  const struct pm_visit *exit, uint32_t depth);
