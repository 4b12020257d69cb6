/* SPDX-License-Identifier: MIT */
/*
 * Detects whether code was mapped or unmapped, for engines that are not notified of it.
 * Detecting that nothing has changed is far cheaper than reading all mappings.
 */
#pragma once

#include "pm/base.h"

/* The state that was found last. Empty if zero-initialised. */
struct pm_self_mappings {
	uint64_t sum; /* hash of those lines of the map that are code; 0: not known */
	/* Numbers of libraries loaded and unloaded since the start of the program. */
	uint64_t loaded, unloaded;
};

/* To be called before the first check; from then on, a fork waits until a check has
 * finished. Returns 0 or a negative errno. */
int pm_self_mappings_init(void);
/* Whether libraries were loaded or unloaded since the last call. Takes some nanoseconds
 * and no system call. */
bool pm_self_libraries_changed(struct pm_self_mappings *known);
/* Whether any code was mapped or unmapped. Also true if that cannot be determined. */
bool pm_self_mappings_changed(struct pm_self_mappings *known);
