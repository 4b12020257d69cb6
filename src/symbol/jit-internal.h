/* SPDX-License-Identifier: MIT */
/* Shared by the readers of files that describe code generated at run time. */
#pragma once

#include "pm/symbol.h"

/* The source location at the end of a name. `file` points into the name. */
struct pm_jit_split {
	const char *file; /* NULL: none, or ambiguous */
	size_t file_len;
	uint32_t line; /* 0: unknown */
};

void pm_jit_name_split(const char *name, size_t len, struct pm_jit_split *out);

/* Whether @a, which has the same name and range as @b, includes all lines and unwind
 * information of @b. */
bool pm_jit_function_holds(const struct pm_jit_function *a,
			   const struct pm_jit_function *b);
