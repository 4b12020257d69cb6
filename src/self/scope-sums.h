/* SPDX-License-Identifier: MIT */
/*
 * Counts of scopes, by name.
 */
#pragma once

#include "pm/base.h"

#define PM_SELF_UNKNOWN UINT64_MAX

struct pm_self_sum {
	char *name; /* a copy: the library that contains the original may be unloaded */
	uint64_t calls, unfinished, elapsed_ns;
	/* Each is PM_SELF_UNKNOWN if it is unknown for at least one call. */
	uint64_t cpu_ns, cycles, instructions;
};

/* Empty if zero-initialised. */
struct pm_self_sums {
	PM_VEC(struct pm_self_sum) list;
	struct pm_index index; /* by the pointer with which a row was first used */
};

void pm_self_sums_release(struct pm_self_sums *sums);
/* Sets all rows to zero. */
void pm_self_sums_clear(struct pm_self_sums *sums);
/* Finds the row of this pointer and string, or creates it. Other pointers to an equal
 * string have separate rows, and so does another string at the same address. Returns 0 or
 * -ENOMEM. */
int pm_self_sums_at(struct pm_self_sums *sums, const char *name, uint32_t *out);
/* Adds the counts of @counted. */
void pm_self_sum_add(struct pm_self_sum *sum, const struct pm_self_sum *counted);
/* Adds the counts to the rows with equal strings. No rows are created for rows that
 * counted nothing. Returns 0 or -ENOMEM. */
int pm_self_sums_merge(struct pm_self_sums *sums, const struct pm_self_sum *from,
		       size_t len);
