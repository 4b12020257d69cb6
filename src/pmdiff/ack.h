/* SPDX-License-Identifier: MIT */
#pragma once

#include "options.h"
#include "pm/acks.h"

/* Reads the file of --acks, else that of the repository around the working directory. */
int pmdiff_acks_read(struct pm_acks *out, const struct pmdiff_options *options,
		     struct pm_error *err);
/* Accepts, removes or lists regressions. 0 or negative with one clear line. */
int pmdiff_ack(const struct pmdiff_options *options, FILE *to, struct pm_error *err);
