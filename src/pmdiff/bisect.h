/* SPDX-License-Identifier: MIT */
#pragma once

#include "options.h"

/*
 * Finds the commit between the two revisions that moved a row, and prints it. Returns in
 * another process than the one that the user sees, see guard.h.
 *
 * 0; 1: some commits in between could not be measured, and all candidates were printed;
 * -ERANGE: no row moved between the ends, or not the requested one; -EXDEV; else
 * negative. All errors come with one clear line.
 */
int pmdiff_bisect(const struct pmdiff_options *options, FILE *to, struct pm_error *err);
