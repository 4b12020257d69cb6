/* SPDX-License-Identifier: MIT */
/*
 * Cleans up, however pmdiff ends. There are three processes: the one that the user sees,
 * which may be killed at any moment; the worker; and the guard, the ancestor of every
 * process that pmdiff starts. The guard notices when one of the others ends, and then
 * cleans up.
 */
#pragma once

#include "worktree.h"

/*
 * Returns in the worker, with a directory that is removed when the worker or the process
 * that the user sees ends, after all processes that the worker started, even detached
 * ones, have been killed. The process that the user sees does not return; it ends with
 * the worker's exit status, or by the signal that ended it. No other thread may run yet.
 * On failure, which may return in either process, nothing is left to be removed.
 */
int pmdiff_guard_enter(struct pmdiff_folder *out, const char *common_dir,
		       struct pm_error *err);
