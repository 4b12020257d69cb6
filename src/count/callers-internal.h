/* SPDX-License-Identifier: MIT */
#pragma once

#include "callers.h"
#include "pm/proc.h"
#include "pm/unwind.h"

struct pm_callers_module {
	struct pm_unw_module *unwind; /* NULL: no file, no ELF file, or not accessible */
	bool opened; /* opening it was tried */
};

/* Where a call was made. */
struct pm_callers_place {
	uint32_t module; /* id of struct pm_procs; PM_INDEX_NONE: none */
	uint64_t address; /* svma, in the call instruction */
	/* Functions at the address, innermost first; texts are owned. */
	PM_VEC(struct pm_stat_frame) names;
};

struct pm_callers {
	uint32_t depth;
	struct pm_procs *procs;
	struct pm_unwinder *unwinder;
	struct pm_unw_frame *frames; /* PM_UNW_FRAMES_MAX */
	PM_VEC(struct pm_callers_module) modules; /* by id of struct pm_procs */
	PM_VEC(struct pm_callers_place) places;
	struct pm_index by_place;
	PM_VEC(uint32_t)
	chains; /* rows of `depth` places, padded with PM_INDEX_NONE */
	struct pm_index by_chain;
};
