/* SPDX-License-Identifier: MIT */
/* Definitions shared by the two files of Firefox Profiler's format. */
#pragma once

#include "export.h"

struct pm_firefox {
	struct pm_export export;
	struct pm_export_order order;
	const struct pm_profile *profile;
	const char **files; /* by function: its source file */
	struct pm_strings strings; /* the profile's stringArray */
	struct pm_strings sources;
	uint32_t *functions; /* by function: index plus 1; 0: unused */
	PM_VEC(uint32_t) function_list; /* functions by index */
	uint32_t *libs; /* by module: index plus 1; 0: unused */
	PM_VEC(uint32_t) libs_list;
	uint32_t *frames; /* by frame: index of its outermost level, plus 1 */
	PM_VEC(uint32_t) frame_list;
	uint32_t *stacks; /* by stack: index of its innermost level, plus 1 */
	struct pm_str out, text;
	FILE *to;
	bool failed;
};

/* Returns the index of the string in ->text, which is cleared. */
uint32_t pm_firefox_string(struct pm_firefox *it);
/* Assigns indexes to everything that is used: functions, frames, stacks, libraries.
 * Returns 0 or -ENOMEM. */
int pm_firefox_number(struct pm_firefox *it);
void pm_firefox_put_libs(struct pm_firefox *it);
/* Writes all tables that threads refer to by index. */
void pm_firefox_put_shared(struct pm_firefox *it);
