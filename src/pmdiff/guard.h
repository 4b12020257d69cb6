/* SPDX-License-Identifier: MIT */
/*
 * Nothing is left behind, however we end. Three processes: the one that the user sees, and may
 * end at any moment; the guard, an ancestor of all that is started, which notices that and
 * clears up; and the one that does the work.
 */
#pragma once

#include "worktree.h"

/*
 * Returns in the process that works, with a folder that is removed when it ends or when the one
 * that the user sees does, after all that it has started, however detached, is killed. That one
 * stays inside, and ends with its exit status, or by the signal that ended it. No other thread
 * may run yet. On failure, which returns in either, nothing is left to be removed.
 */
int pmdiff_guard_enter(struct pmdiff_folder *ret, const char *common_dir,
		       struct pm_error *err);
