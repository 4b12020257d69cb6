/* SPDX-License-Identifier: MIT */
/*
 * Counts of scopes by name.
 */
#pragma once

#include "pm/base.h"

#define PM_SELF_UNKNOWN UINT64_MAX

struct pm_self_sum {
	char *name; /* a copy: the library that contains the original may be unloaded */
	uint64_t calls, unfinished, elapsed_ns;
	/* PM_SELF_UNKNOWN: unknown for at least one call. */
	uint64_t cpu_ns, cycles, instructions;
};

/* Zero-initialised is empty. */
struct pm_self_sums {
	PM_VEC(struct pm_self_sum) list;
	struct pm_index index; /* by the pointer of its first use */
};

void pm_self_sums_release(struct pm_self_sums *sums);
/* Sets all rows to zero. */
void pm_self_sums_clear(struct pm_self_sums *sums);
/* Finds or creates the row of this pointer and text. Other pointers to the same text have
 * rows of their own, as does another text at the same address. -ENOMEM. */
int pm_self_sums_at(struct pm_self_sums *sums, const char *name, uint32_t *out);
/* Adds what was counted. */
void pm_self_sum_add(struct pm_self_sum *sum, const struct pm_self_sum *counted);
/* Adds the counts to the rows with the same texts. Rows that counted nothing are not
 * created. -ENOMEM. */
int pm_self_sums_merge(struct pm_self_sums *sums, const struct pm_self_sum *from,
		       size_t len);
