/* SPDX-License-Identifier: MIT */
#include "passed.h"

#include <inttypes.h>

#include "pm/run.h"

/* With more passes per second, a range makes the program much slower. */
#define PASSED_MAX 10000
#define PASSED_NS  1000000000u

int pm_passed_init(struct pm_passed *passed, const struct pm_engine_options *options)
{
	*passed = (struct pm_passed){ 0 };
	if (!options->warn)
		return 0;
	passed->hits = calloc(options->regions->list.len + 1, sizeof(*passed->hits));
	if (!passed->hits)
		return -ENOMEM;
	return 0;
}

void pm_passed_release(struct pm_passed *passed)
{
	free(passed->hits);
	passed->hits = NULL;
}

void pm_passed_tell(struct pm_passed *passed, const struct pm_engine_options *options)
{
	const struct pm_regions *regions = options->regions;
	uint64_t now = pm_now_ns(), ns = now - passed->since_ns, rate;
	char text[512];

	if (!passed->hits || (passed->since_ns > 0 && ns < PASSED_NS))
		return;
	for (size_t i = 0; i < regions->list.len && passed->since_ns > 0; i++) {
		rate = passed->hits[i] * 1000 / (ns / 1000000);
		passed->hits[i] = 0;
		if (rate < PASSED_MAX || regions->list.data[i].kind != PM_STAT_RANGE)
			continue;
		/* A process that is already running cannot be simulated. */
		snprintf(text, sizeof(text),
			 "%.200s: its edges are passed %" PRIu64
			 " times a second, which makes the program much slower%s",
			 regions->list.data[i].name, rate,
			 options->targets ? "" : "; try: --engine callgrind");
		options->warn(options->warn_user, text);
		pm_passed_release(passed);
		return;
	}
	passed->since_ns = now;
}
