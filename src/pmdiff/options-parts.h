/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files that parse the command line.
 */
#pragma once

#include "options.h"

#define pmdiff_usage(err, ...) pm_usage(err, "pmdiff", __VA_ARGS__)

/* These return 0, or -EINVAL with a one-line message. */
int pmdiff_parse_engine(const char **out, const char *text, struct pm_error *err);
