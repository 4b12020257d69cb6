/* SPDX-License-Identifier: MIT */
/*
 * `pmrec --doctor`: what works on this machine for this user, and what mends the rest.
 */
#pragma once

#include "options.h"

/* To stdout, as text or (options->json) as one JSON document. The exit status: 0 when programs
 * of one's own can be recorded, else 1; PM_STATUS_FAILED without memory or output. */
int pm_rec_doctor_run(const struct pm_rec_options *options);
