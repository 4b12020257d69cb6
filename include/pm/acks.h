/* SPDX-License-Identifier: MIT */
/*
 * pmdiff-acks.json: regressions that somebody has accepted, each up to a level and for a reason; and
 * what a document of `pmdiff --json` says that may be accepted. Read and written by src/file.
 */
#pragma once

#include "pm/base.h"

enum {
	PM_ACKS_VERSION = 1, /* of the file */
	PM_ACKS_MAX = 4096,
};

struct pm_ack {
	char *row; /* as a gate names it: "parse_small//fn:parse:sim.Ir" */
	/* The level of the base that it was accepted against; NaN: unknown. A regression from
	 * another level is another one. */
	double from;
	double to; /* the level that was accepted, in the unit of the row */
	char *reason; /* one line */
	char *commit; /* that made it so, full hash; NULL: unknown */
	char *created; /* UTC; NULL: unknown */
};

struct pm_acks {
	PM_VEC(struct pm_ack) list; /* by row, each once */
};

/* A file that is not there has none. -EBADMSG with the place, -EFBIG, -ENOMEM, or what system
 * calls say; @ret is then unchanged. */
int pm_acks_read(struct pm_acks *ret, const char *path, struct pm_error *err);
/* All of it as the text of a file, one acceptance a line: they are read in reviews. */
void pm_acks_put(struct pm_str *out, const struct pm_acks *acks);
/* NULL: the row was not accepted. */
const struct pm_ack *pm_acks_find(const struct pm_acks *acks, const char *row);
/* In place of one for the same row. @ack is owned from then on. -EFBIG (also of a row
 * or a reason that readers would refuse), -ENOMEM: it is not. */
int pm_acks_set(struct pm_acks *acks, struct pm_ack *ack, struct pm_error *err);
/* False: there is none. */
bool pm_acks_remove(struct pm_acks *acks, const char *row);
void pm_ack_release(struct pm_ack *ack);
void pm_acks_release(struct pm_acks *acks);

/* ---- what may be accepted --------------------------------------------------------------- */

struct pm_diff_result {
	char *commit; /* of the new side, NULL: unknown */
	PM_VEC(struct pm_diff_result_row {
		char *row; /* as a gate names it */
		char *case_name; /* NULL: no cases */
		double base, new; /* medians; NaN: unknown */
		bool failed; /* it has a gate, and is worse beyond it */
	})
	rows;
};
/* What `pmdiff --json` wrote. Failures as above. */
int pm_diff_result_read(struct pm_diff_result *ret, const char *path,
			struct pm_error *err);
void pm_diff_result_release(struct pm_diff_result *result);
