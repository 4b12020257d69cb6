/* SPDX-License-Identifier: MIT */
#pragma once

#include "sides.h"
#include "workshop.h"

/*
 * Builds the two revisions in worktrees, and measures them, alternating; sides[0] is the
 * base. Returns in another process than the one that the user sees, see guard.h. Returns
 * 0, and @workshop must be released; or a negative errno with a one-line message.
 */
int pmdiff_measure(struct pmdiff_side sides[2], struct pmdiff_workshop *workshop,
		   const struct pmdiff_options *options, struct pm_error *err);
