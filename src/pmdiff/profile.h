/* SPDX-License-Identifier: MIT */
/* Where the added cost of what got worse is: a profile of each side. */
#pragma once

#include "workshop.h"

/*
 * Runs what got worse once more on each side, while the worktrees are there: by callgrind, whose
 * costs are exact, where that had counted; else sampled by pmrec. Fills the `hot` of the comparison
 * and of its cases, and writes their pages beside the file of --html. What cannot be profiled gets a
 * warning. Nothing is done where no output would show it. 0 or -ENOMEM.
 */
int pmdiff_profile(struct pm_comparison *comparison, struct pmdiff_workshop *workshop,
		   const struct pmdiff_side sides[2], struct pm_error *err);
