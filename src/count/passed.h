/* SPDX-License-Identifier: MIT */
/* Whether a range turns out to be the middle of a loop, which makes the program crawl. */
#pragma once

#include "pm/count.h"

struct pm_passed {
	/* Hits by region since since_ns. NULL: nobody is to be told, or was told. */
	uint64_t *hits;
	uint64_t since_ns;
};

/* 0 or -ENOMEM. */
int pm_passed_init(struct pm_passed *passed, const struct pm_engine_options *options);
static inline void pm_passed_count(struct pm_passed *passed, uint32_t region)
{
	if (passed->hits)
		passed->hits[region]++;
}
/* Now and then: tells of one, once. */
void pm_passed_tell(struct pm_passed *passed, const struct pm_engine_options *options);
void pm_passed_release(struct pm_passed *passed);
