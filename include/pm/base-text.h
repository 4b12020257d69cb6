/* SPDX-License-Identifier: MIT */
/* Growing texts that are shown although there may have been no memory for all of them. */
#pragma once

#include "pm/base.h"

/* The text, @otherwise if there was no memory for all of it. */
static inline const char *pm_str_complete_or(const struct pm_str *str,
					     const char *otherwise)
{
	return str->failed ? otherwise : pm_str_text(str);
}

/* The width of the text in columns. */
static inline size_t pm_str_columns(const struct pm_str *str)
{
	return pm_columns(pm_str_text(str));
}
