/* SPDX-License-Identifier: MIT */
/*
 * What was mapped when a sample was taken, for engines that cannot be notified of changes
 * and therefore look from time to time. If two looks differ, an address may have belonged
 * to either state between them: to code of a library that was unloaded, or of one that
 * was loaded there since. It is unknown which, so samples of that time get neither's
 * names.
 */
#pragma once

#include "mappings.h"
#include "pm/proc.h"

enum pm_self_stage {
	PM_SELF_NOW, /* the state found by the last look */
	PM_SELF_BEFORE, /* the state found by the look before */
	PM_SELF_BETWEEN, /* what both have in common, or where only one has a mapping */
};

/* Zero-initialised is empty. Maintains the address space of the process in `procs`. */
struct pm_self_changes {
	struct pm_procs *procs;
	pid_t pid;
	struct pm_self_mappings seen;
	enum pm_self_stage stage;
	/* BEFORE is valid until before_ns, NOW was seen at now_ns: CLOCK_MONOTONIC. */
	uint64_t before_ns, now_ns;
	uint64_t whole_ns; /* when all mappings were last compared */
	PM_VEC(struct pm_mapping) before, now;
	uint64_t hidden; /* number of libraries that came and went between two looks */
};

/* Reads all mappings. @procs and @changes belong together. Returns 0 or -ENOMEM. */
int pm_self_changes_begin(struct pm_self_changes *changes, struct pm_procs *procs,
			  pid_t pid);
void pm_self_changes_release(struct pm_self_changes *changes);
/*
 * Looks again: only at the libraries, which is very cheap, or with @whole at all
 * mappings. After that, all samples taken until @until may be given in time order; later
 * ones wait for the next look. @until NULL: records report the time of changes. Returns 1
 * if something has changed, 0, or -ENOMEM.
 */
int pm_self_changes_look(struct pm_self_changes *changes, bool whole, uint64_t *until);
/* To be called before a sample of that time is unwound. Returns 0 or -ENOMEM. */
int pm_self_changes_at(struct pm_self_changes *changes, uint64_t time);
