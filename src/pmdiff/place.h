/* SPDX-License-Identifier: MIT */
#pragma once

#include "pm/base.h"

/* The top of the repository of the working directory; NULL: there is none. Only checks
 * names, because comparing files must work without git. 0 or -ENOMEM. */
int pmdiff_find_top(char **out, struct pm_error *err);
