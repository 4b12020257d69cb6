/* SPDX-License-Identifier: MIT */
#pragma once

#include "pm/base.h"

/* Finds the top of the repository that contains the working directory; NULL: there is
 * none. Only looks for file names, because comparing files must work without git. Returns
 * 0 or -ENOMEM. */
int pmdiff_find_top(char **out, struct pm_error *err);
