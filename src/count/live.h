/* SPDX-License-Identifier: MIT */
/* --live: a line for each call that has ended. */
#pragma once

#include "pm/count.h"

/* For pm_calls_options.ended, whose last parameters these are. @cost: what is taken off, by event
 * and behind them elapsed time (NULL: nothing); what looking at calls inside has cost is not. */
void pm_live_call(const struct pm_engine_options *options, const struct pm_stat *stat,
		  const uint64_t *cost, uint32_t region, const struct pm_visit *entry,
		  const struct pm_visit *exit, uint32_t depth);
