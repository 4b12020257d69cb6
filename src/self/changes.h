/* SPDX-License-Identifier: MIT */
/*
 * What was mapped when a sample was taken, where nobody tells of changes but looks from time to
 * time see them. Between two looks that differ a place may have been either's: code of a library
 * that was unloaded, or of one that was loaded there since. Nobody knows which, and samples of
 * that time get neither's names.
 */
#pragma once

#include "mappings.h"
#include "pm/proc.h"

enum pm_self_stage {
	PM_SELF_NOW, /* what the last look has seen is in force */
	PM_SELF_BEFORE, /* what the one before has */
	PM_SELF_BETWEEN, /* what both have, or one where the other has nothing */
};

/* Zero-initialised is empty; the space of the process in `procs` is its work. */
struct pm_self_changes {
	struct pm_procs *procs;
	pid_t pid;
	struct pm_self_mappings seen;
	enum pm_self_stage stage;
	/* Until when BEFORE holds, and NOW has been seen: CLOCK_MONOTONIC. */
	uint64_t before_ns, now_ns;
	uint64_t whole_ns; /* when all mappings were looked at */
	PM_VEC(struct pm_mapping) before, now;
	uint64_t hidden; /* libraries that came and went between two looks */
};

/* Reads all. @procs and @changes go together. 0 or -ENOMEM. */
int pm_self_changes_begin(struct pm_self_changes *changes, struct pm_procs *procs,
			  pid_t pid);
void pm_self_changes_release(struct pm_self_changes *changes);
/*
 * Looks again: at the libraries, which costs nothing, or with @whole at all mappings. All samples
 * that were taken until @until may be given then, in order of time; others wait for the next
 * look. NULL: records tell the time of changes. 1: something has changed, 0, or -ENOMEM.
 */
int pm_self_changes_look(struct pm_self_changes *changes, bool whole, uint64_t *until);
/* Before a sample of that time is unwound. 0 or -ENOMEM. */
int pm_self_changes_at(struct pm_self_changes *changes, uint64_t time);
