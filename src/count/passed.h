/* SPDX-License-Identifier: MIT */
/* Detects a range in the middle of a loop, which makes the program crawl. */
#pragma once

#include "pm/count.h"

struct pm_passed {
	/* Hits by region since since_ns. NULL: no warning is wanted, or it has been
	 * given. */
	uint64_t *hits;
	uint64_t since_ns;
};

/* Returns 0 or -ENOMEM. */
int pm_passed_init(struct pm_passed *passed, const struct pm_engine_options *options);
static inline void pm_passed_count(struct pm_passed *passed, uint32_t region)
{
	if (passed->hits)
		passed->hits[region]++;
}
/* To be called from time to time: warns about one range, once. */
void pm_passed_tell(struct pm_passed *passed, const struct pm_engine_options *options);
void pm_passed_release(struct pm_passed *passed);
