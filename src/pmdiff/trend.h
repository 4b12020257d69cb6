/* SPDX-License-Identifier: MIT */
#pragma once

#include "options.h"
#include "pm/compare.h"

/* The history that options->history names, and the trends in it; the history's own warnings are
 * among theirs. 0 or negative. */
int pmdiff_trend(struct pm_trends *ret, const struct pmdiff_options *options,
		 struct pm_error *err);
