/* SPDX-License-Identifier: MIT */
#pragma once

#include "pm/base.h"

/* Prints the last lines of a file, at most @lines, to stderr, and the number of lines
 * that were omitted. */
void pmdiff_log_show(const char *path, size_t lines);
/* Returns the rest of the first line that starts with @with, or NULL if there is none. */
char *pmdiff_log_find(const char *path, const char *with);
