/* SPDX-License-Identifier: MIT */
/*
 * What scopes have counted, by name.
 */
#pragma once

#include "pm/base.h"

#define PM_SELF_UNKNOWN UINT64_MAX

struct pm_self_sum {
	char *name; /* a copy: the library whose text it is may be unloaded */
	uint64_t calls, unfinished, elapsed_ns;
	uint64_t cpu_ns, cycles, instructions; /* PM_SELF_UNKNOWN: of one call at least */
};

/* Zero-initialised is empty. */
struct pm_self_sums {
	PM_VEC(struct pm_self_sum) list;
	struct pm_index index; /* by the pointer that it was first asked for with */
};

void pm_self_sums_release(struct pm_self_sums *sums);
/* Rows stay, but with nothing in them. */
void pm_self_sums_clear(struct pm_self_sums *sums);
/* The row of this pointer and text, made if need be: other pointers to the same text have rows
 * of their own, as has another text in the same place. -ENOMEM. */
int pm_self_sums_at(struct pm_self_sums *sums, const char *name, uint32_t *ret);
/* Adds what was counted. */
void pm_self_sum_add(struct pm_self_sum *sum, const struct pm_self_sum *counted);
/* Adds to the rows of the same texts; none is made for what counted nothing. -ENOMEM. */
int pm_self_sums_merge(struct pm_self_sums *sums, const struct pm_self_sum *from,
		       size_t len);
