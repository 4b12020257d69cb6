/* SPDX-License-Identifier: MIT */
/*
 * Whether code was mapped or unmapped, for engines that are not told. To read all mappings and
 * find nothing new costs far more than to see that nothing is.
 */
#pragma once

#include "pm/base.h"

/* What was seen last; zero-initialised nothing was. */
struct pm_self_mappings {
	uint64_t sum; /* of the lines of the map that are code; 0: not known */
	uint64_t loaded, unloaded; /* libraries, since the program began */
};

/* Before the first look; a fork waits for looks after that. 0 or negative errno. */
int pm_self_mappings_init(void);
/* Whether libraries were loaded or unloaded since the last call: some ns, none of the kernel. */
bool pm_self_libraries_changed(struct pm_self_mappings *known);
/* Whether any code was mapped or unmapped. True also if it cannot be known. */
bool pm_self_mappings_changed(struct pm_self_mappings *known);
