/* SPDX-License-Identifier: MIT */
/*
 * Names for addresses that are not part of a recording. They are looked up module by
 * module, each address once.
 */
#pragma once

#include "pm/chain-modules.h"

struct pm_rec_function {
	char *name, *file; /* NULL: unknown */
	uint32_t line; /* 0: unknown */
};

struct pm_rec_name {
	uint32_t module; /* id of struct pm_procs */
	uint64_t address; /* svma to look up */
	struct pm_rec_function *functions; /* innermost first; NULL: unknown */
	size_t functions_len;
};

struct pm_rec_names {
	PM_VEC(struct pm_rec_name) list; /* sorted after pm_rec_names_resolve() */
};

/* Returns 0 or -ENOMEM. */
int pm_rec_names_add(struct pm_rec_names *names, uint32_t module, uint64_t address);
/* Looks up all names. Every module in the list must have been touched. Returns 0 or
 * -ENOMEM; an address that is not found has no functions. */
int pm_rec_names_resolve(struct pm_rec_names *names, struct pm_chain_modules *modules,
			 const struct pm_procs *procs);
/* Returns the name of an address that was added; borrowed. */
const struct pm_rec_name *pm_rec_names_find(const struct pm_rec_names *names,
					    uint32_t module, uint64_t address);
void pm_rec_names_release(struct pm_rec_names *names);
