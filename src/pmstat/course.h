/* SPDX-License-Identifier: MIT */
/*
 * Runs everything, from the first warm-up to the printed result.
 */
#pragma once

#include "options.h"

/* Returns the exit status of pmstat; errors have been printed. */
int pmstat_course_run(struct pmstat_options *options);
