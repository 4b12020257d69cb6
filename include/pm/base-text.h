/* SPDX-License-Identifier: MIT */
/* Growing strings that are shown even if memory ran out while they grew. */
#pragma once

#include "pm/base.h"

/* Returns the string, or @otherwise if memory ran out before it was complete. */
static inline const char *pm_str_complete_or(const struct pm_str *str,
					     const char *otherwise)
{
	return str->failed ? otherwise : pm_str_text(str);
}

/* Returns the width of the string in columns. */
static inline size_t pm_str_columns(const struct pm_str *str)
{
	return pm_columns(pm_str_text(str));
}
