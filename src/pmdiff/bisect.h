/* SPDX-License-Identifier: MIT */
#pragma once

#include "options.h"

/*
 * Finds the commit between the two revisions that changed a row, and prints it. Returns
 * in another process than the one that the user sees, see guard.h.
 *
 * Returns 0; 1: some commits in between could not be measured, and all candidates were
 * printed; -ERANGE: no row changed between the ends, or not the requested one; -EXDEV; or
 * another negative errno. All errors have a one-line message.
 */
int pmdiff_bisect(const struct pmdiff_options *options, FILE *to, struct pm_error *err);
