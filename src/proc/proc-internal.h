/* SPDX-License-Identifier: MIT */
/* What the files of this room share and nobody else sees. */
#pragma once

#include "pm/proc.h"

/* ---- modules.c ----------------------------------------------------------------------- */

/* The table of modules: ids are dense and rows never move or go away. */
struct pm_modules {
	PM_VEC(struct pm_module *) rows;
	/* A row with both a build-id and an inode is found under either. */
	struct pm_index index;
};

void pm_modules_release(struct pm_modules *modules);
int64_t pm_modules_intern(struct pm_modules *modules,
			  const struct pm_module_identity *identity);

/* ---- space.c ------------------------------------------------------------------------- */

enum {
	/* Twice the default of vm.max_map_count. Unmapping is never recorded, so what is
	 * gone stays here until something takes its place; a process that maps ever new
	 * places must not cost ever more. */
	PM_SPACE_MAPS_MAX = 1 << 17,
};

/*
 * Makes room in [start, end) by cutting what is there, and puts @mapping there unless NULL
 * (then start and end are its own). Returns 1 when something changed, 0 when it was like
 * that before, -ENOMEM without any change.
 */
int pm_space_replace(struct pm_space *space, uint64_t start, uint64_t end,
		     const struct pm_mapping *mapping);

/* ---- procs.c ------------------------------------------------------------------------- */

/* Puts @space in the place of the process's mappings and takes it over when it succeeds. */
int pm_procs_adopt(struct pm_procs *procs, pid_t pid, struct pm_space *space);
