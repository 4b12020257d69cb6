/* SPDX-License-Identifier: MIT */
/* Profiles both sides to show where the additional cost of regressions is. */
#pragma once

#include "workshop.h"

/*
 * Runs cases that got worse once more on each side, while the worktrees still exist: with
 * callgrind, whose costs are exact, if that counted them, else sampled by pmrec. Fills
 * the `hot` of the comparison and of its cases, and writes their pages beside the file of
 * --html. A failure to profile becomes a warning. Does nothing if no output would show
 * the result. 0 or -ENOMEM.
 */
int pmdiff_profile(struct pm_comparison *comparison, struct pmdiff_workshop *workshop,
		   const struct pmdiff_side sides[2], struct pm_error *err);
