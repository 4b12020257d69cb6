/* SPDX-License-Identifier: MIT */
#pragma once

#include "options.h"
#include "pm/compare.h"

/* Reads the history that options->history names, and computes its trends; the history's
 * own warnings are added to theirs. Returns 0 or a negative errno. */
int pmdiff_trend(struct pm_trends *out, const struct pmdiff_options *options,
		 struct pm_error *err);
