/* SPDX-License-Identifier: MIT */
/*
 * Worktrees of our own, in a private directory. The names of the directory and of
 * everything else that we create start with a text that identifies the owning process.
 * This distinguishes what was left by a machine that lost its power from what is in use,
 * and from the user's data.
 */
#pragma once

#include "git.h"

struct pmdiff_folder {
	char *common_dir; /* of the repository that the worktrees belong to */
	char *path; /* absolute */
	const char *name; /* points into `path` */
};

/* Creates the directory in $TMPDIR, owned by this process. */
int pmdiff_folder_make(struct pmdiff_folder *out, const char *common_dir,
		       struct pm_error *err);
/* Removes the directory with its worktrees, and the repository's records of them. Does
 * not need git. Removes as much as possible, also on failure. */
int pmdiff_folder_remove(const struct pmdiff_folder *folder, struct pm_error *err);
void pmdiff_folder_release(struct pmdiff_folder *folder);
/* Removes what processes that no longer exist have left in this repository and in
 * $TMPDIR. What cannot be removed stays; that is not an error. */
void pmdiff_folders_sweep(const char *common_dir);

/* Checks a commit out into the directory. Each @name gets a path of its own, of the same
 * length for names of the same length. */
int pmdiff_worktree_add(char **out, const struct pmdiff_folder *folder, const char *name,
			const char *commit, struct pm_error *err);
enum pmdiff_untracked {
	PMDIFF_KEEP_UNTRACKED, /* a build can use these files again */
	PMDIFF_REMOVE_UNTRACKED,
};
/* Switches an existing worktree to another commit. */
int pmdiff_worktree_move(const char *path, const char *commit,
			 enum pmdiff_untracked untracked, struct pm_error *err);
