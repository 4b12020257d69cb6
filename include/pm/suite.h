/* SPDX-License-Identifier: MIT */
/*
 * What a run of several cases has counted on one side: a document of pmstat for each case.
 * docs/format.md §10 and docs/pmstat-suite.schema.json describe the file. Written and read by
 * src/file, made and compared by pmdiff.
 */
#pragma once

#include "pm/stat.h"

enum {
	PM_SUITE_VERSION = 1, /* of the file */
	PM_SUITE_NAME_MAX = 200, /* bytes of the name of a case */
	PM_SUITE_CASES_MAX = 4096,
};

/*
 * Between the name of a case and a row of it: "BM_parse/64//fn:parse:sim.Ir". Names of
 * google-benchmark and criterion have single slashes and colons, names of PMU events have single
 * slashes. The last one counts that has text behind it.
 */
#define PM_CASE_SEPARATOR "//"

struct pm_suite {
	PM_VEC(struct pm_suite_case {
		char *name; /* unique; NULL: the only case of a plain document of pmstat */
		struct pm_stat stat;
	})
	cases;
};

/* NULL, or why @name cannot be the name of a case: printable UTF-8 of 1 to PM_SUITE_NAME_MAX
 * bytes. */
const char *pm_suite_name_check(const char *name);
/* The row of "CASE//ROW", or NULL where @text names no case. */
const char *pm_case_row(const char *text);
/* The case of that name (NULL: the one without a name), or NULL. */
const struct pm_suite_case *pm_suite_find(const struct pm_suite *suite, const char *name);
/* Adds a case that owns @stat from then on. -EINVAL: the name cannot be one, or is there already;
 * -EFBIG, -ENOMEM. On failure @stat is still the caller's. */
int pm_suite_add(struct pm_suite *suite, const char *name, struct pm_stat *stat,
		 struct pm_error *err);
void pm_suite_release(struct pm_suite *suite);

/* A suite of one case without a name is written as a plain document of pmstat. Failures are those
 * of pm_stat_write(). */
int pm_suite_write(const struct pm_suite *suite, int fd, struct pm_error *err);
/* Reads a suite, or a plain document of pmstat as a suite of one case without a name; failures
 * are those of pm_stat_read(). A suite without cases is -EBADMSG. */
int pm_suite_read(struct pm_suite *ret, int fd, const char *name, struct pm_error *err);
