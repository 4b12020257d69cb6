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
	PMDIFF_STATUS_USAGE = 2, /* also if files cannot be read */
	PMDIFF_STATUS_INCOMPARABLE = 3,
	PMDIFF_STATUS_INCONCLUSIVE = 4, /* returned only with --strict */
	PMDIFF_STATUS_FAILED = PM_STATUS_FAILED, /* also if a case failed on the new
	                                          * side */
};

/* Compares the sides, using the gates, and the noise of the history. @out must be
 * released even on failure: it contains the differences of sides that cannot be
 * compared. */
int pmdiff_judge(struct pm_comparison *out, const struct pmdiff_inputs *inputs,
		 const struct pmdiff_options *options, struct pm_error *err);
/* Checks that each gate matches something that @sides have. One run of each side is
 * enough for this, so that a user who mistyped a gate does not wait for all runs. Returns
 * 0 or -EINVAL. */
int pmdiff_check_gates(const struct pmdiff_side sides[2],
		       const struct pmdiff_options *options, struct pm_error *err);
/* Stores the counts of the new side in the history, if there is one, and also those of
 * the base if the history does not have them. Both sides must be commits. */
int pmdiff_keep(const struct pmdiff_inputs *inputs, const struct pmdiff_options *options,
		struct pm_error *err);
enum pmdiff_status pmdiff_status_of(const struct pm_comparison *comparison,
				    const struct pmdiff_options *options);
