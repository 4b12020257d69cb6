/* SPDX-License-Identifier: MIT */
/*
 * Worktrees of our own, in a private folder. The name of the folder, which begins the name of
 * everything of ours, says which process it belongs to: so what a machine that lost its power
 * has left is told from what is in use, and from what is the user's.
 */
#pragma once

#include "git.h"

struct pmdiff_folder {
	char *common_dir; /* of the repository that the worktrees are of */
	char *path; /* absolute */
	const char *name; /* in `path` */
};

/* Makes it in $TMPDIR, in the name of this process. */
int pmdiff_folder_make(struct pmdiff_folder *ret, const char *common_dir,
		       struct pm_error *err);
/* Removes it, with the worktrees in it, and the repository's memory of them. No git is needed.
 * All that can be removed is, also on failure. */
int pmdiff_folder_remove(const struct pmdiff_folder *folder, struct pm_error *err);
void pmdiff_folder_release(struct pmdiff_folder *folder);
/* Removes what processes that are no more have left of this repository, and in $TMPDIR. What
 * cannot be removed stays: that is no failure. */
void pmdiff_folders_sweep(const char *common_dir);

/* Checks a commit out in the folder: at a path of its own for each @name, of the same length
 * for names of the same length. */
int pmdiff_worktree_add(char **ret, const struct pmdiff_folder *folder, const char *name,
			const char *commit, struct pm_error *err);
/* Another commit in the same worktree. What is not git's stays, so that a build can go on from
 * it; with @clean nothing stays. */
int pmdiff_worktree_move(const char *path, const char *commit, bool clean,
			 struct pm_error *err);
