/* SPDX-License-Identifier: MIT */
/*
 * The mappings that existed when a sample was taken, for engines that cannot be notified
 * of changes and therefore check the mappings from time to time. If two checks differ, an
 * address in a sample between them may have belonged to either state: to code of a
 * library that was unloaded, or of one that was loaded there since. It is not known to
 * which, so such samples get the names of neither.
 */
#pragma once

#include "mappings.h"
#include "pm/proc.h"

enum pm_self_stage {
	PM_SELF_NOW, /* the state found by the last check */
	PM_SELF_BEFORE, /* the state found by the previous check */
	PM_SELF_BETWEEN, /* only what both states have in common, or where just one of
	                  * them has a mapping */
};

/* Empty if zero-initialised. Keeps the process's address space in `procs` up to date. */
struct pm_self_changes {
	struct pm_procs *procs;
	pid_t pid;
	struct pm_self_mappings seen;
	enum pm_self_stage stage;
	/* BEFORE is valid until before_ns, NOW was found at now_ns; CLOCK_MONOTONIC. */
	uint64_t before_ns, now_ns;
	uint64_t whole_ns; /* time when all mappings were last compared */
	PM_VEC(struct pm_mapping) before, now;
	uint64_t hidden; /* number of libraries that were loaded and unloaded between two
	                  * checks */
};

/* Reads all mappings. @changes always has to be used with the same @procs. Returns 0 or
 * -ENOMEM. */
int pm_self_changes_begin(struct pm_self_changes *changes, struct pm_procs *procs,
			  pid_t pid);
void pm_self_changes_release(struct pm_self_changes *changes);
/*
 * Checks again: only the libraries, which is very cheap, or with @whole all mappings.
 * After that, all samples that were taken until @until may be processed in order of time;
 * later ones have to wait for the next check. @until is NULL if records report the time
 * of changes. Returns 1 if something has changed, 0, or -ENOMEM.
 */
int pm_self_changes_look(struct pm_self_changes *changes, bool whole, uint64_t *until);
/* To be called before a sample of that time is unwound. Returns 0 or -ENOMEM. */
int pm_self_changes_at(struct pm_self_changes *changes, uint64_t time);
