/* SPDX-License-Identifier: MIT */
/* The current activity, on one line of a terminal, which the next one overwrites. */
#pragma once

#include "options.h"

struct pmdiff_progress {
	bool shown; /* false: not a terminal, or not wanted */
	uint64_t runs, done; /* `runs`: expected total; 0: unknown */
	uint64_t begin_ns; /* start of the first run */
};

void pmdiff_progress_init(struct pmdiff_progress *progress,
			  const struct pmdiff_options *options);
/* Starts to count @runs runs, for an estimate of the remaining time. */
void pmdiff_progress_begin(struct pmdiff_progress *progress, uint64_t runs);
void pmdiff_progress_step(struct pmdiff_progress *progress);
void PM_PRINTF(2, 3) pmdiff_progress_show(const struct pmdiff_progress *progress,
					  const char *format, ...);
/* To be called before anything else is printed. */
void pmdiff_progress_clear(const struct pmdiff_progress *progress);
