/* SPDX-License-Identifier: MIT */
/*
 * git, run as a program by its plumbing commands, whose output is made for machines.
 */
#pragma once

#include "pm/base.h"

/* One call: `git ARGS…` in @dir. */
struct pmdiff_git_call {
	const char *dir; /* NULL: where we are */
	const char *const *args; /* NULL-terminated, without "git" */
	const char *input; /* for its stdin; NULL: none */
	size_t input_len;
	int *status; /* NULL: git that fails is an error; else its exit status, for the caller */
};

/* Appends what it writes to @out, which may be NULL; a NUL follows. 0, -ENOENT without git (or
 * without @dir), -ENOMEM; -EIO with what git says, and its remedy if it has one. */
int pmdiff_git_run(const struct pmdiff_git_call *call, struct pm_str *out,
		   struct pm_error *err);
/* The same for a call without input: pmdiff_git(dir, &out, err, "rev-parse", "HEAD"). */
#define pmdiff_git(where, out, err, ...)                                    \
	pmdiff_git_run(                                                     \
		&(const struct pmdiff_git_call){                            \
			.dir = (where),                                     \
			.args = (const char *const[]){ __VA_ARGS__, NULL }, \
		},                                                          \
		(out), (err))

/* ---- the repository around us -------------------------------------------------------- */

struct pmdiff_repository {
	char *common_dir; /* absolute: what all worktrees share */
	char *top; /* of the working tree we are in; NULL: none, a bare one or its git folder */
	bool shallow;
};

/* Around the working directory. -ENOENT without git; -EIO: there is none. */
int pmdiff_repository_open(struct pmdiff_repository *ret, struct pm_error *err);
void pmdiff_repository_release(struct pmdiff_repository *repository);
/* Until *@ret is closed no other pmdiff changes what git does not change safely beside others:
 * its list of worktrees, and notes. -EBUSY: another one has had it for too long. */
int pmdiff_repository_lock(int *ret, const char *common_dir, struct pm_error *err);

struct pmdiff_commit {
	char *hash; /* full */
	char *subject, *author, *date; /* "Jane Doe", "2026-11-22" */
	int64_t time; /* of its committer, seconds since 1970; -1: unknown */
};

/* The commit that @rev, as typed, means. -ENOENT when there is none, with the remedy for a
 * shallow clone. */
int pmdiff_commit_find(struct pmdiff_commit *ret,
		       const struct pmdiff_repository *repository, const char *rev,
		       struct pm_error *err);
void pmdiff_commit_release(struct pmdiff_commit *commit);
/* As people write it, when there are no two commits of that name. */
#define PMDIFF_SHORT_HASH "%.10s"
/* 1: something in the working tree is not committed, in files that git knows; 0: nothing is, or
 * there is no working tree. Negative with @err. */
int pmdiff_repository_is_dirty(const struct pmdiff_repository *repository,
			       struct pm_error *err);
