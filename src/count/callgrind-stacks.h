/* SPDX-License-Identifier: MIT */
/*
 * The cost of each stack: callgrind counts a function separately for each chain of its
 * callers (--separate-callers), and names it FUNCTION'CALLER'CALLER…. It is written as a
 * recording (pm/file.h) whose weights are exact.
 */
#pragma once

#include "callgrind.h"

enum {
	PM_CALLGRIND_CALLERS = 60, /* per stack; deeper stacks lose their outer callers */
};

struct pm_callgrind_stacks;
/* Returns 0 or -ENOMEM. */
int pm_callgrind_stacks_new(struct pm_callgrind_stacks **out);
void pm_callgrind_stacks_free(struct pm_callgrind_stacks *stacks);
/* Adds the cost of a line in a function of the table, without its callees. Returns 0 or
 * -ENOMEM. */
int pm_callgrind_stacks_add(struct pm_callgrind_stacks *stacks,
			    const struct pm_callgrind_row *row, uint64_t instructions);
/* @command: NULL-terminated. Returns 0, or a negative error with @err. */
int pm_callgrind_stacks_write(const struct pm_callgrind_stacks *stacks,
			      const struct pm_callgrind_table *table,
			      const struct pm_stat *stat, char *const *command,
			      const char *path, struct pm_error *err);
