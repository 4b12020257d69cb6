/* SPDX-License-Identifier: MIT */
/* What is being done, in one line of a terminal, which the next one overwrites. */
#pragma once

#include "options.h"

struct pmdiff_progress {
	bool shown; /* false: nobody looks, or nobody wants to */
	uint64_t runs, done; /* those to come in all; 0: not known */
	uint64_t begin_ns; /* of the first of them */
};

void pmdiff_progress_init(struct pmdiff_progress *progress,
			  const struct pmdiff_options *options);
/* Begins to count @runs, for the time that is left. */
void pmdiff_progress_begin(struct pmdiff_progress *progress, uint64_t runs);
void pmdiff_progress_step(struct pmdiff_progress *progress);
void PM_PRINTF(2, 3) pmdiff_progress_show(const struct pmdiff_progress *progress,
					  const char *format, ...);
/* Before anything else is printed. */
void pmdiff_progress_clear(const struct pmdiff_progress *progress);
