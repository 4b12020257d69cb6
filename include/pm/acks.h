/* SPDX-License-Identifier: MIT */
/*
 * pmdiff-acks.json: accepted regressions, each up to a level and with a reason; and the
 * rows of a document of `pmdiff --json` that can be accepted. Read and written by
 * src/file.
 */
#pragma once

#include "pm/base.h"

enum {
	PM_ACKS_VERSION = 1, /* of the file */
	PM_ACKS_MAX = 4096,
};

struct pm_ack {
	char *row; /* as a gate names it: "parse_small//fn:parse:sim.Ir" */
	/* The level of the base when it was accepted; NaN: unknown. A regression from
	 * another level is a different one. */
	double from;
	double to; /* the accepted level, in the unit of the row */
	char *reason; /* one line */
	char *commit; /* full hash of the commit that caused it; NULL: unknown */
	char *created; /* UTC; NULL: unknown */
};

struct pm_acks {
	PM_VEC(struct pm_ack) list; /* sorted by row; each row once */
};

/* Reads the acceptances in the file @path; a missing file has none. Returns -EBADMSG with
 * the place, -EFBIG, -ENOMEM, or the error of a system call; @out is then unchanged. */
int pm_acks_read(struct pm_acks *out, const char *path, struct pm_error *err);
/* Appends the contents of the file, with one acceptance per line so that changes can be
 * reviewed. */
void pm_acks_put(struct pm_str *out, const struct pm_acks *acks);
/* Returns NULL if the row is not accepted. */
const struct pm_ack *pm_acks_find(const struct pm_acks *acks, const char *row);
/* Adds @ack, or replaces the acceptance of the same row. Takes ownership of @ack, unless
 * it fails with -EFBIG (also for a row or a reason that readers would refuse) or
 * -ENOMEM. */
int pm_acks_set(struct pm_acks *acks, struct pm_ack *ack, struct pm_error *err);
/* Removes the acceptance of @row. Returns false if there is none. */
bool pm_acks_remove(struct pm_acks *acks, const char *row);
void pm_ack_release(struct pm_ack *ack);
void pm_acks_release(struct pm_acks *acks);

/* ---- rows that can be accepted ---------------------------------------------------------- */

struct pm_diff_result {
	char *commit; /* of the new side; NULL: unknown */
	PM_VEC(struct pm_diff_result_row {
		char *row; /* as a gate names it */
		char *case_name; /* NULL: no cases */
		double base, new; /* medians; NaN: unknown */
		bool failed; /* it has a gate, and is worse than the gate allows */
	})
	rows;
};
/* Reads the output of `pmdiff --json`. Fails like pm_acks_read(). */
int pm_diff_result_read(struct pm_diff_result *out, const char *path,
			struct pm_error *err);
void pm_diff_result_release(struct pm_diff_result *result);
