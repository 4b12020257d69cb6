/* SPDX-License-Identifier: MIT */
/*
 * Runs git as a program, with plumbing commands, whose output is made for programs.
 */
#pragma once

#include "pm/base.h"

/* One call: `git ARGS…` in @dir. */
struct pmdiff_git_call {
	const char *dir; /* NULL: the working directory */
	const char *const *args; /* NULL-terminated, without "git" */
	const char *input; /* for its stdin; NULL: none */
	size_t input_len;
	int *status; /* NULL: a failure of git is an error; otherwise, set to its exit
	              * status */
};

/* Appends git's output and a NUL to @out, which may be NULL. Returns 0; -ENOENT: git or
 * @dir does not exist; -ENOMEM; -EIO: @err has git's message, and a remedy if there is
 * one. */
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

/* ---- the current repository ---------------------------------------------------------- */

struct pmdiff_repository {
	char *common_dir; /* absolute path, shared by all worktrees */
	char *top; /* of the current working tree; NULL: none (bare, or inside .git) */
	bool shallow;
};

/* Opens the repository of the working directory. Returns -ENOENT if there is no git, -EIO
 * if there is no repository. */
int pmdiff_repository_open(struct pmdiff_repository *out, struct pm_error *err);
void pmdiff_repository_release(struct pmdiff_repository *repository);
/* Takes a lock: until *@out is closed, no other pmdiff changes data that git does not
 * update safely in parallel (the list of worktrees, and notes). Returns -EBUSY if another
 * process holds the lock for too long. */
int pmdiff_repository_lock(int *out, const char *common_dir, struct pm_error *err);

struct pmdiff_commit {
	char *hash; /* full */
	char *subject, *author, *date; /* "Jane Doe", "2026-11-22" */
	int64_t time; /* commit time, seconds since 1970; -1: unknown */
};

/* Finds the commit that @rev refers to, as the user typed it. Returns -ENOENT if there is
 * none; @err has the remedy for a shallow clone. */
int pmdiff_commit_find(struct pmdiff_commit *out,
		       const struct pmdiff_repository *repository, const char *rev,
		       struct pm_error *err);
void pmdiff_commit_release(struct pmdiff_commit *commit);
/* Whether @text is the full name of a commit, SHA-1 or SHA-256. */
bool pmdiff_is_hash(const char *text, size_t len);
/* Returns a short form for people, which is ambiguous in rare cases. */
#define PMDIFF_SHORT_HASH "%.10s"
/* Returns 1 if tracked files have changes that are not committed; 0 if they have none, or
 * there is no working tree; or a negative errno with @err. */
int pmdiff_repository_is_dirty(const struct pmdiff_repository *repository,
			       struct pm_error *err);
