/* SPDX-License-Identifier: MIT */
/*
 * --stacks: prints once where every thread of a running process is. The process is
 * stopped only while registers and stacks are copied; unwinding and names come
 * afterwards.
 */
#pragma once

#include "options.h"

/* Prints to stdout. Returns the exit status: 0, or 125 if the process may not be traced,
 * after printing why. */
int pm_rec_stacks_run(const struct pm_rec_options *options);
