/* SPDX-License-Identifier: MIT */
/*
 * --stacks: where every thread of a running process is, once. The process stands still only
 * while registers and stacks are copied; unwinding and names come after.
 */
#pragma once

#include "options.h"

/* Prints to stdout; returns the exit status: 0, or 125 when the process may not be looked at,
 * which has been printed. */
int pm_rec_stacks_run(const struct pm_rec_options *options);
