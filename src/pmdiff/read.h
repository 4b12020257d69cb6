/* SPDX-License-Identifier: MIT */
/*
 * Reads the files that are named on the command line.
 */
#pragma once

#include "options.h"
#include "sides.h"

struct pmdiff_inputs {
	bool recordings;
	bool cases; /* the counts have cases */
	struct pmdiff_side sides[2]; /* counts; for recordings, only the names */
	struct pm_profile *profiles[2]; /* recordings */
};

/* Reads all files. Returns -EXDEV if they are not two sides of the same kind, or another
 * negative errno, with the file that cannot be read in @err. @out must be released in
 * both cases. */
int pmdiff_read(struct pmdiff_inputs *out, const struct pmdiff_options *options,
		struct pm_error *err);
void pmdiff_inputs_release(struct pmdiff_inputs *inputs);
