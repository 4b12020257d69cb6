/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files that parse the command line.
 */
#pragma once

#include "options.h"

#define pmstat_usage(err, ...) pm_usage(err, "pmstat", __VA_ARGS__)

/* Checks combinations of options, and sets the defaults that depend on them. @rest: the
 * words after the options. */
int pmstat_check(struct pmstat_options *options, char **rest, struct pm_error *err);
