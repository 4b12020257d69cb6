/* SPDX-License-Identifier: MIT */
/* Probes of the command line: where their words lead to in what is to be recorded. */
#pragma once

#include "options.h"

/* Puts the places of options->specs in the place of the words; options->probes keeps what
 * they stand on. Before anything is started. 0 or negative with @err. */
int pm_rec_probes_resolve(struct pm_rec_options *options, struct pm_error *err);
