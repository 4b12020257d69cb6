/* SPDX-License-Identifier: MIT */
/*
 * Writes the results in every requested format.
 */
#pragma once

#include "options.h"

/* Recordings for the HTML page; NULL: there are none. */
struct pmdiff_shown {
	const struct pm_comparison *comparison;
	const struct pm_profile *base, *new;
	const char *failure; /* why the sides were not compared; NULL: they were */
};

/* Checks that the output files can be written, before any long measurement. */
int pmdiff_print_check(const struct pmdiff_options *options, struct pm_error *err);
/* Writes files first and standard output last, because its reader may stop reading. */
int pmdiff_print_comparison(const struct pmdiff_options *options,
			    const struct pmdiff_shown *shown, struct pm_error *err);
/* Writes the reason why nothing was compared to every requested document, because CI
 * services show those, and not standard error. @comparison has what is known about the
 * sides. */
int pmdiff_print_failure(const struct pmdiff_options *options,
			 const struct pm_comparison *comparison,
			 const struct pm_error *why, struct pm_error *err);
int pmdiff_print_trends(const struct pmdiff_options *options,
			const struct pm_trends *trends, struct pm_error *err);
