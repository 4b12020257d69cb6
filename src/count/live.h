/* SPDX-License-Identifier: MIT */
/* --live: prints a line for each call that has ended. */
#pragma once

#include "pm/count.h"

/* Implements pm_calls_options.ended, with the same parameters from @region on. @cost, by
 * event and then elapsed time (NULL: none), is subtracted; the cost of observing calls
 * inside is not. */
void pm_live_call(const struct pm_engine_options *options, const struct pm_stat *stat,
		  const uint64_t *cost, uint32_t region, const struct pm_visit *entry,
		  const struct pm_visit *exit, uint32_t depth);
