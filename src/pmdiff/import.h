/* SPDX-License-Identifier: MIT */
#pragma once

#include "options.h"

/* Converts the file of another tool to counts, and writes them to -o, to the history, or
 * to standard output. 0 or negative with one clear line. */
int pmdiff_import(const struct pmdiff_options *options, struct pm_error *err);
