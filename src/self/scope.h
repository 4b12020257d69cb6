/* SPDX-License-Identifier: MIT */
/*
 * Scopes, as far as the profile has to know of them.
 */
#pragma once

#include "pm/base.h"

/* Whether there is anything to show. */
bool pm_self_scopes_used(void);
/*
 * The table of what was counted, to stderr (@table NULL), to the end of a file, or ("") nowhere.
 * Nothing if no scope has ended since it was last shown. 0 or negative errno of the file.
 */
int pm_self_scopes_show(const char *table, struct pm_error *err);
