/* SPDX-License-Identifier: MIT */
#pragma once

#include "pm/base.h"

/* Prints the last lines of a file, at most @lines, to stderr, and
 * how many were omitted. */
void pmdiff_log_show(const char *path, size_t lines);
/* The rest of the first line that starts with @with; NULL: there is none. */
char *pmdiff_log_find(const char *path, const char *with);
