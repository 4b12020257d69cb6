/* SPDX-License-Identifier: MIT */
/*
 * The counts of a run of several cases on one side: a document of pmstat for each case.
 * docs/format.md §10 and docs/pmstat-suite.schema.json describe the file. Written and
 * read by src/file; created and compared by pmdiff.
 */
#pragma once

#include "pm/stat.h"

enum {
	PM_SUITE_VERSION = 1, /* of the file */
	PM_SUITE_NAME_MAX = 200, /* bytes in the name of a case */
	PM_SUITE_CASES_MAX = 4096,
};

/*
 * Separates the name of a case from its row: "BM_parse/64//fn:parse:sim.Ir". Names of
 * google-benchmark and criterion contain single slashes and colons, names of PMU events
 * single slashes. The last separator that is followed by text counts.
 */
#define PM_CASE_SEPARATOR "//"

struct pm_suite {
	PM_VEC(struct pm_suite_case {
		char *name; /* unique; NULL: the only case of a plain document of pmstat */
		struct pm_stat stat;
	})
	cases;
};

/* Returns NULL, or why @name is not a valid name for a case: printable UTF-8 of 1 to
 * PM_SUITE_NAME_MAX bytes. */
const char *pm_suite_name_check(const char *name);
/* Returns ROW of "CASE//ROW", or NULL if @text names no case. */
const char *pm_case_row(const char *text);
/* Returns the case with that name (NULL: the one without a name), or NULL. */
const struct pm_suite_case *pm_suite_find(const struct pm_suite *suite, const char *name);
/* Adds a case, which takes ownership of @stat. -EINVAL: the name is invalid or exists
 * already; -EFBIG, -ENOMEM. On failure, @stat still belongs to the caller. */
int pm_suite_add(struct pm_suite *suite, const char *name, struct pm_stat *stat,
		 struct pm_error *err);
void pm_suite_release(struct pm_suite *suite);

/* Writes a suite. One case without a name is written as a plain document of pmstat. Fails
 * like pm_stat_write(). */
int pm_suite_write(const struct pm_suite *suite, int fd, struct pm_error *err);
/* Reads a suite, or a plain document of pmstat as a suite of one case without a name.
 * Fails like pm_stat_read(); a suite without cases is -EBADMSG. */
int pm_suite_read(struct pm_suite *out, int fd, const char *name, struct pm_error *err);
