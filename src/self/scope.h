/* SPDX-License-Identifier: MIT */
/*
 * The part of the scopes that the profile uses.
 */
#pragma once

#include "pm/base.h"

/* Whether there are scopes to show. */
bool pm_self_scopes_used(void);
/*
 * Prints the table of scopes to stderr (@table NULL), to the end of a file, or ("")
 * nowhere. Prints nothing if no scope has ended since the last time. Returns 0, or a
 * negative errno of the file.
 */
int pm_self_scopes_show(const char *table, struct pm_error *err);
