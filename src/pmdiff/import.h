/* SPDX-License-Identifier: MIT */
#pragma once

#include "options.h"

/* Converts the file of another tool to counts, and writes them to -o, to the history, or
 * to standard output. Returns 0, or a negative errno with a one-line message. */
int pmdiff_import(const struct pmdiff_options *options, struct pm_error *err);
