/* SPDX-License-Identifier: MIT */
/*
 * From two sides to a verdict, and to an exit status.
 */
#pragma once

#include "options.h"
#include "read.h"

enum pmdiff_status {
	PMDIFF_STATUS_FINE = 0,
	PMDIFF_STATUS_REGRESSION = 1,
	PMDIFF_STATUS_USAGE = 2, /* also files that cannot be read */
	PMDIFF_STATUS_INCOMPARABLE = 3,
	PMDIFF_STATUS_INCONCLUSIVE = 4, /* with --strict */
	PMDIFF_STATUS_FAILED =
		PM_STATUS_FAILED, /* also a case that failed on the new side */
};

/* Compares them by the gates, and by the noise of the history. @ret is to be released in both
 * cases: of sides that do not compare it holds the differences. */
int pmdiff_judge(struct pm_comparison *ret, const struct pmdiff_inputs *inputs,
		 const struct pmdiff_options *options, struct pm_error *err);
/* Whether each gate means something that @sides have, of which a run each is enough: who has
 * mistyped one shall not wait for all of them. 0 or -EINVAL. */
int pmdiff_check_gates(const struct pmdiff_side sides[2],
		       const struct pmdiff_options *options, struct pm_error *err);
/* Into the history, if there is one: what the new side counted, and the base where it is not
 * there yet. Both are commits. */
int pmdiff_keep(const struct pmdiff_inputs *inputs, const struct pmdiff_options *options,
		struct pm_error *err);
enum pmdiff_status pmdiff_status_of(const struct pm_comparison *comparison,
				    const struct pmdiff_options *options);
