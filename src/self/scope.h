/* SPDX-License-Identifier: MIT */
/*
 * The functions of the scopes that the profile uses.
 */
#pragma once

#include "pm/base.h"

/* Whether there are scopes that can be printed. */
bool pm_self_scopes_used(void);
/*
 * Prints the table of scopes: to stderr if @table is NULL, nowhere if it is "", otherwise
 * to the end of that file. Prints nothing if no scope has ended since the last time.
 * Returns 0, or a negative errno from the file.
 */
int pm_self_scopes_show(const char *table, struct pm_error *err);
