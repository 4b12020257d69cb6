/* SPDX-License-Identifier: MIT */
/*
 * A process's mappings in the form that the unwinder needs, kept in process->user.
 */
#pragma once

#include "pm/chain-modules.h"

/* Sets @out to the address space of @process, valid until the next call for the same
 * process. The tag of each map is the module's id in @procs; every module in it has been
 * touched. Returns 0 or -ENOMEM. */
int pm_chain_space_get(struct pm_process *process, struct pm_chain_modules *modules,
		       const struct pm_procs *procs, struct pm_unw_space *out);
/* Returns a number that changes when the result of pm_chain_space_get() becomes invalid.
 * 0: there is no valid result. */
uint64_t pm_chain_space_version(const struct pm_process *process);
/*
 * Adds memory that the unwinder has no module for: from now on, @maps (sorted, without
 * overlap; copied) replace the parts of it that they cover. They keep the tag of that
 * memory.
 */
int pm_chain_space_overlay(struct pm_process *process, const struct pm_unw_map *maps,
			   size_t len);
/* For pm_procs_new(). */
void pm_chain_space_free(void *user);
