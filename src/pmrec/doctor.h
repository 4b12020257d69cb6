/* SPDX-License-Identifier: MIT */
/*
 * `pmrec --doctor`: what works on this machine for this user, and how to fix the rest.
 */
#pragma once

#include "options.h"

/* Prints to stdout, as text or (options->json) as one JSON document. Returns the exit
 * status: 0 if the user's own programs can be recorded, else 1; PM_STATUS_FAILED if
 * memory or output fails. */
int pm_rec_doctor_run(const struct pm_rec_options *options);
