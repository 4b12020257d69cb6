/* SPDX-License-Identifier: MIT */
/*
 * pmdiff.json: how a repository is measured and judged. Read by src/file; what the texts mean
 * is for pmdiff to say.
 */
#pragma once

#include "pm/base.h"

/* NULL, 0 and empty: the file says nothing about it. */
struct pm_diff_config {
	char *path; /* of the file; NULL: there is none */
	/* "instructions:u", "fn:parse:sim.Ir" → "0.5%". */
	PM_VEC(struct pm_diff_gate {
		char *row, *limit;
		int64_t line; /* in the file; -1: unknown */
	})
	gates;
	char *build; /* for the shell */
	PM_VEC(char *) command;
	uint64_t runs;
	uint64_t warmups;
	bool warmups_set;
	PM_VEC(char *) events;
	PM_VEC(char *) functions;
	PM_VEC(char *) ranges;
	char *engine, *history;
};

/*
 * Reads @path. Unknown keys are refused, with a near name. -EBADMSG with the line where the
 * file is no JSON or something else than expected, -EFBIG, -ENOMEM, or what open(2) and
 * read(2) say. @ret is then unchanged.
 */
int pm_diff_config_read(struct pm_diff_config *ret, const char *path,
			struct pm_error *err);
void pm_diff_config_release(struct pm_diff_config *config);
