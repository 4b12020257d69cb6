/* SPDX-License-Identifier: MIT */
/*
 * The counts of earlier commits. A history is a directory with one document of pmstat or
 * of a suite for each commit, COMMIT.json, or git notes below one ref, with one document
 * in each.
 */
#pragma once

#include "pm/base.h"
#include "pm/suite.h"

#define PMDIFF_HISTORY_NOTES "git-notes" /* or "git-notes:REF", with another ref */

struct pmdiff_history_commit {
	char *commit; /* full hash */
	char *subject; /* of the commit, one line; NULL: unknown */
	struct pm_suite suite; /* without cases if there is a single case that has no
	                        * name */
};

struct pmdiff_history {
	/* Oldest first: in git's order if the commits are in the repository of the
	 * working directory, otherwise by their times. */
	PM_VEC(struct pmdiff_history_commit) commits;
	size_t foreign; /* number of files that are not named after a commit; they are
	                 * ignored */
	PM_VEC(char *)
	warnings; /* full sentences, for example about files that could not
	                          * be read */
};

/* Reads the history @where: a directory, or a string in the form of PMDIFF_HISTORY_NOTES.
 * An empty history has 0 commits. Returns -ENOENT if the directory does not exist,
 * -EBADMSG, or errors of system calls. */
int pmdiff_history_read(struct pmdiff_history *out, const char *where,
			struct pm_error *err);
/* Checks that @where can be written to, as far as that is known in advance; creates
 * nothing. Returns -EINVAL for an invalid name of a ref, or errors of system calls. */
int pmdiff_history_check(const char *where, struct pm_error *err);
/* Stores the counts of one commit as its only entry, which replaces an older one. Creates
 * the directory if necessary. If a document does not name its commit, the name is added
 * in the file. */
int pmdiff_history_write_suite(const char *where, const char *commit,
			       const struct pm_suite *suite, struct pm_error *err);
/* The same for documents without cases, which are joined. All @stats must be of the same
 * measurement; each has one or more runs. */
int pmdiff_history_write(const char *where, const char *commit,
			 const struct pm_stat *stats, size_t len, struct pm_error *err);
void pmdiff_history_release(struct pmdiff_history *history);
