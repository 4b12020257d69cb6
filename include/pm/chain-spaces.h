/* SPDX-License-Identifier: MIT */
/*
 * A process's mappings as the unwinder wants them, kept in process->user.
 */
#pragma once

#include "pm/chain-modules.h"

/* @ret is borrowed until the next call for the same process. 0 or -ENOMEM. The tag of each
 * map is the module's id in @procs; every module in it has been touched. */
int pm_chain_space_get(struct pm_process *process, struct pm_chain_modules *modules,
		       const struct pm_procs *procs, struct pm_unw_space *ret);
/* As long as it is the same, so is what pm_chain_space_get() gave. 0: nothing valid was given. */
uint64_t pm_chain_space_version(const struct pm_process *process);
/*
 * From now on @maps (sorted, without overlap; copied) stand in the place of what they cover of
 * memory that no module of the unwinder describes, and have its tag.
 */
int pm_chain_space_overlay(struct pm_process *process, const struct pm_unw_map *maps,
			   size_t len);
/* For pm_procs_new(). */
void pm_chain_space_free(void *user);
