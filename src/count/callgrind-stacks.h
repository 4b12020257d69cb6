/* SPDX-License-Identifier: MIT */
/*
 * What each stack has cost: callgrind counts a function apart for each chain of its callers
 * (--separate-callers), and calls it FUNCTION'CALLER'CALLER…. Written as a recording (pm/file.h)
 * whose weights are exact.
 */
#pragma once

#include "callgrind.h"

enum {
	PM_CALLGRIND_CALLERS =
		60, /* that a stack has; the outer ones of a deeper stack are lost */
};

struct pm_callgrind_stacks;
/* 0 or -ENOMEM. */
int pm_callgrind_stacks_new(struct pm_callgrind_stacks **ret);
void pm_callgrind_stacks_free(struct pm_callgrind_stacks *stacks);
/* Adds what a line cost in a function of the table by itself. -ENOMEM. */
int pm_callgrind_stacks_add(struct pm_callgrind_stacks *stacks,
			    const struct pm_callgrind_row *row, uint64_t instructions);
/* @command: NULL-terminated. 0 or negative with @err. */
int pm_callgrind_stacks_write(const struct pm_callgrind_stacks *stacks,
			      const struct pm_callgrind_table *table,
			      const struct pm_stat *stat, char *const *command,
			      const char *path, struct pm_error *err);
