/* SPDX-License-Identifier: MIT */
/*
 * Turns two sides into a verdict and an exit status.
 */
#pragma once

#include "options.h"
#include "read.h"

enum pmdiff_status {
	PMDIFF_STATUS_FINE = 0,
	PMDIFF_STATUS_REGRESSION = 1,
	PMDIFF_STATUS_USAGE = 2, /* also: files that cannot be read */
	PMDIFF_STATUS_INCOMPARABLE = 3,
	PMDIFF_STATUS_INCONCLUSIVE = 4, /* only with --strict */
	PMDIFF_STATUS_FAILED = PM_STATUS_FAILED, /* also: a case failed on the new side */
};

/* Compares the sides, using the gates and the noise of the history. Release @out even on
 * failure: it contains the differences of sides that cannot be compared. */
int pmdiff_judge(struct pm_comparison *out, const struct pmdiff_inputs *inputs,
		 const struct pmdiff_options *options, struct pm_error *err);
/* Checks that each gate matches something that @sides have. One run of each
 * side is sufficient, so that a user who mistyped a gate does not wait for
 * all runs. 0 or -EINVAL. */
int pmdiff_check_gates(const struct pmdiff_side sides[2],
		       const struct pmdiff_options *options, struct pm_error *err);
/* Stores the counts of the new side in the history, if there is one, and those of the
 * base unless it has them. Both sides are commits. */
int pmdiff_keep(const struct pmdiff_inputs *inputs, const struct pmdiff_options *options,
		struct pm_error *err);
enum pmdiff_status pmdiff_status_of(const struct pm_comparison *comparison,
				    const struct pmdiff_options *options);
