/* SPDX-License-Identifier: MIT */
/*
 * What was found, in every form that was asked for.
 */
#pragma once

#include "options.h"

/* Recordings that a page is made of; NULL: there are none. */
struct pmdiff_shown {
	const struct pm_comparison *comparison;
	const struct pm_profile *base, *new;
	const char *failure; /* why nothing was compared; NULL: it was */
};

/* Whether files could be written, before anything takes its time. */
int pmdiff_print_check(const struct pmdiff_options *options, struct pm_error *err);
/* Files first, standard output last: whoever reads it may stop reading. */
int pmdiff_print_comparison(const struct pmdiff_options *options,
			    const struct pmdiff_shown *shown, struct pm_error *err);
/* Why nothing was compared, in every document that was asked for: services show those, and no
 * standard error. @comparison: what is known of the sides. */
int pmdiff_print_failure(const struct pmdiff_options *options,
			 const struct pm_comparison *comparison,
			 const struct pm_error *why, struct pm_error *err);
int pmdiff_print_trends(const struct pmdiff_options *options,
			const struct pm_trends *trends, struct pm_error *err);
