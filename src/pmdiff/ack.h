/* SPDX-License-Identifier: MIT */
#pragma once

#include "options.h"
#include "pm/acks.h"

/* Reads the file of --acks, or that of the repository around the working directory.
 * Returns 0 or a negative errno. */
int pmdiff_acks_read(struct pm_acks *out, const struct pmdiff_options *options,
		     struct pm_error *err);
/* Accepts, removes or lists regressions. Returns 0, or a negative errno with a one-line
 * message. */
int pmdiff_ack(const struct pmdiff_options *options, FILE *to, struct pm_error *err);
