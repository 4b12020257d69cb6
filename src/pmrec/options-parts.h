/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files that parse the command line.
 */
#pragma once

#include "options.h"

/* Sets @err to the message, followed by a hint to --help. Returns -EINVAL. */
#define pm_rec_usage(err, ...) pm_usage(err, "pmrec", __VA_ARGS__)

/* Checks combinations of options. @rest are the words after the options. */
int pm_rec_check(struct pm_rec_options *options, char **rest, struct pm_error *err);
