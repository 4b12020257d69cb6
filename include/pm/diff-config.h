/* SPDX-License-Identifier: MIT */
/*
 * pmdiff.json: how a repository is measured and judged. Parsed by src/file; pmdiff
 * interprets the strings.
 */
#pragma once

#include "pm/base.h"

enum pm_diff_harness {
	PM_DIFF_HARNESS_UNSET,
	PM_DIFF_HARNESS_NONE, /* the command is one case */
	PM_DIFF_HARNESS_AUTO, /* the command is asked for its harness */
	PM_DIFF_HARNESS_GOOGLE_BENCHMARK,
	PM_DIFF_HARNESS_CRITERION,
};

enum pm_diff_part {
	PM_DIFF_PART_UNSET,
	PM_DIFF_PART_WHOLE, /* the whole run */
	PM_DIFF_PART_MARKED, /* between perf_start() and perf_stop() in the program */
};

/* A measurement: its subject and its settings. NULL, 0 and empty: not set in the file. */
struct pm_diff_measure {
	/* "instructions:u", "fn:parse:sim.Ir" → "0.5%". */
	PM_VEC(struct pm_diff_gate {
		char *row, *limit;
		int64_t line; /* in the file; -1: unknown */
	})
	gates;
	/* The same for the history; never set for a single case. */
	PM_VEC(struct pm_diff_gate) history_gates;
	PM_VEC(char *) command;
	char *setup; /* shell command run before each run, not counted */
	uint64_t runs;
	uint64_t warmups;
	bool warmups_set;
	PM_VEC(char *) events;
	PM_VEC(char *) functions;
	PM_VEC(char *) ranges;
	char *engine;
	char *timeout; /* "10s" */
	enum pm_diff_harness harness;
	enum pm_diff_part measured;
};

struct pm_diff_config {
	char *path; /* of the file; NULL: none */
	struct pm_diff_measure all; /* defaults for cases */
	PM_VEC(struct pm_diff_case {
		char *name;
		struct pm_diff_measure measure;
		int64_t line; /* of its name */
	})
	cases;
	char *build; /* shell command */
	char *history;
	int8_t profile; /* whether regressions are profiled; -1: not set */
};

/*
 * Reads @path. Unknown keys are rejected, with a similar name. -EBADMSG, with the line,
 * if the file is not JSON or has unexpected contents; -EFBIG; -ENOMEM; or an error of
 * open(2) or read(2). On failure @out is unchanged.
 */
int pm_diff_config_read(struct pm_diff_config *out, const char *path,
			struct pm_error *err);
void pm_diff_config_release(struct pm_diff_config *config);
