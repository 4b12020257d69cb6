/* SPDX-License-Identifier: MIT */
/* Profiles both sides to show where the additional cost of regressions comes from. */
#pragma once

#include "workshop.h"

/*
 * Runs cases that got worse once more on each side, while the worktrees still exist: with
 * callgrind, whose costs are exact, if it was used for counting, otherwise with pmrec,
 * which samples. Fills the `hot` of the comparison and of its cases, and writes their
 * pages into the directory of the --html file. If profiling fails, adds a warning. Does
 * nothing if no output would show the result. Returns 0 or -ENOMEM.
 */
int pmdiff_profile(struct pm_comparison *comparison, struct pmdiff_workshop *workshop,
		   const struct pmdiff_side sides[2], struct pm_error *err);
