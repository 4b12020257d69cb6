/* SPDX-License-Identifier: MIT */
/*
 * What earlier commits counted. A history is a directory with one document of pmstat or suite a
 * commit, COMMIT.json, or the notes of git below one ref, one a note.
 */
#pragma once

#include "pm/base.h"
#include "pm/suite.h"

#define PMDIFF_HISTORY_NOTES "git-notes" /* "git-notes:REF": of another ref than ours */

struct pmdiff_history_commit {
	char *commit; /* full hash */
	char *subject; /* of the commit, one line; NULL: unknown */
	struct pm_suite suite; /* without cases: one that has no name */
};

struct pmdiff_history {
	/* Oldest first: as git has them where they are in a repository around the working
	 * directory, else by their times. */
	PM_VEC(struct pmdiff_history_commit) commits;
	size_t foreign; /* files that are not named as commits are: left out */
	PM_VEC(char *) warnings; /* full sentences: what could not be read … */
};

/* @where: a directory, or as PMDIFF_HISTORY_NOTES. An empty history is none: 0 commits, but a
 * directory that is not there is -ENOENT. Else -EBADMSG and what system calls say. */
int pmdiff_history_read(struct pmdiff_history *ret, const char *where,
			struct pm_error *err);
/* Whether it can be written to, as far as that is known before; nothing is made. -EINVAL: the
 * name of a ref is none; else what system calls say. */
int pmdiff_history_check(const char *where, struct pm_error *err);
/* What one commit counted as its one entry, in place of what it had; the directory is made if it is
 * missing. A document that does not say its commit gets it in the file. */
int pmdiff_history_write_suite(const char *where, const char *commit,
			       const struct pm_suite *suite, struct pm_error *err);
/* The same of documents without cases, which become one. @stats: of the same measurement, one run
 * each or several. */
int pmdiff_history_write(const char *where, const char *commit,
			 const struct pm_stat *stats, size_t len, struct pm_error *err);
void pmdiff_history_release(struct pmdiff_history *history);
