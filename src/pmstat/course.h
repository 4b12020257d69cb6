/* SPDX-License-Identifier: MIT */
/*
 * The runs, one after the other, from the first warm-up to the printed result.
 */
#pragma once

#include "options.h"

/* Returns the exit status for this program; what goes wrong has been printed. */
int pmstat_course_run(struct pmstat_options *options);
