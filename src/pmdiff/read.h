/* SPDX-License-Identifier: MIT */
/*
 * The files of the command line.
 */
#pragma once

#include "options.h"
#include "sides.h"

struct pmdiff_inputs {
	bool recordings;
	bool cases; /* counts have cases */
	struct pmdiff_side sides[2]; /* counts; of recordings the names alone */
	struct pm_profile *profiles[2]; /* recordings */
};

/* All of them. -EXDEV when they are no two sides of one kind, else negative with the file that
 * cannot be read. Release in both cases. */
int pmdiff_read(struct pmdiff_inputs *ret, const struct pmdiff_options *options,
		struct pm_error *err);
void pmdiff_inputs_release(struct pmdiff_inputs *inputs);
