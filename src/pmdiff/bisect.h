/* SPDX-License-Identifier: MIT */
#pragma once

#include "options.h"

/*
 * Finds the commit between the two revisions that moved a row, and tells about it. From here on
 * this is another process than the one that the user sees, see guard.h. 0; 1: commits that
 * could not be measured lie in between, and all that it may be were told; -ERANGE: no row moved
 * between the ends, or not the one that was asked for; -EXDEV; else negative. All with one clear
 * line.
 */
int pmdiff_bisect(const struct pmdiff_options *options, FILE *to, struct pm_error *err);
