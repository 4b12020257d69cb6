/* SPDX-License-Identifier: MIT */
/* Definitions shared by the two files of Firefox Profiler's format. */
#pragma once

#include "export.h"

struct pm_firefox {
	struct pm_export export;
	struct pm_export_order order;
	const struct pm_profile *profile;
	const char **files; /* by function */
	struct pm_strings strings; /* the profile's stringArray */
	struct pm_strings sources;
	uint32_t *functions; /* by function: index plus 1; 0: unused */
	PM_VEC(uint32_t) function_list; /* the reverse */
	uint32_t *libs; /* by module: as above */
	PM_VEC(uint32_t) libs_list;
	uint32_t *frames; /* by frame: index of its outermost level, plus 1 */
	PM_VEC(uint32_t) frame_list;
	uint32_t *stacks; /* by stack: index of its innermost level, plus 1 */
	struct pm_str out, text;
	FILE *to;
	bool failed;
};

/* The index of the text in ->text, which is cleared. */
uint32_t pm_firefox_string(struct pm_firefox *it);
/* Assigns indexes to everything that is used: functions, frames, stacks, libraries. 0 or
 * -ENOMEM. */
int pm_firefox_number(struct pm_firefox *it);
void pm_firefox_put_libs(struct pm_firefox *it);
/* All tables to which threads refer by index. */
void pm_firefox_put_shared(struct pm_firefox *it);
