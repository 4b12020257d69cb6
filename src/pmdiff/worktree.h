/* SPDX-License-Identifier: MIT */
/*
 * Worktrees that pmdiff creates, in a private directory. The names of the directory and
 * of everything else that pmdiff creates start with a string that identifies the owning
 * process. This distinguishes files that are left after a power failure from those in
 * use, and from the user's data.
 */
#pragma once

#include "git.h"

struct pmdiff_folder {
	char *common_dir; /* git directory of the repository that the worktrees belong
	                   * to */
	char *path; /* absolute */
	const char *name; /* points into `path` */
};

/* Creates the directory in $TMPDIR, owned by this process. */
int pmdiff_folder_make(struct pmdiff_folder *out, const char *common_dir,
		       struct pm_error *err);
/* Removes the directory with its worktrees, and the repository's records of them. Does
 * not need git. If something cannot be removed, still removes everything else. */
int pmdiff_folder_remove(const struct pmdiff_folder *folder, struct pm_error *err);
void pmdiff_folder_release(struct pmdiff_folder *folder);
/* Removes what processes that no longer exist have left in this repository and in
 * $TMPDIR. If something cannot be removed, that is not an error. */
void pmdiff_folders_sweep(const char *common_dir);

/* Checks a commit out into the directory. Each @name gets a separate path; names of equal
 * length get paths of equal length. */
int pmdiff_worktree_add(char **out, const struct pmdiff_folder *folder, const char *name,
			const char *commit, struct pm_error *err);
enum pmdiff_untracked {
	PMDIFF_KEEP_UNTRACKED, /* a build can use these files again */
	PMDIFF_REMOVE_UNTRACKED,
};
/* Switches an existing worktree to another commit. */
int pmdiff_worktree_move(const char *path, const char *commit,
			 enum pmdiff_untracked untracked, struct pm_error *err);
