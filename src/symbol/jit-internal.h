/* SPDX-License-Identifier: MIT */
/* What the readers of code made while running share. */
#pragma once

#include "pm/symbol.h"

/* The place in the source that a name ends with. `file` points into the name. */
struct pm_jit_split {
	const char *file; /* NULL: none that is beyond doubt */
	size_t file_len;
	uint32_t line; /* 0: unknown */
};

void pm_jit_name_split(const char *name, size_t len, struct pm_jit_split *ret);

/* Whether @a, of the same name and range, has all that @b tells of lines and unwinding. */
bool pm_jit_function_holds(const struct pm_jit_function *a,
			   const struct pm_jit_function *b);
