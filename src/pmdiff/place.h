/* SPDX-License-Identifier: MIT */
#pragma once

#include "pm/base.h"

/* The top of the repository around the working directory; NULL: we are in none. Looks at names
 * alone, for files are compared without git, too. 0 or -ENOMEM. */
int pmdiff_find_top(char **ret, struct pm_error *err);
