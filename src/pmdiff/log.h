/* SPDX-License-Identifier: MIT */
#pragma once

#include "pm/base.h"

/* The last lines of a file, at most @lines, to stderr, and how many were left out. */
void pmdiff_log_show(const char *path, size_t lines);
/* The rest of the first line that begins with @with; NULL: there is none. */
char *pmdiff_log_find(const char *path, const char *with);
