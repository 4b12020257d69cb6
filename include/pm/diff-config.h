/* SPDX-License-Identifier: MIT */
/*
 * pmdiff.json: how a repository is measured and judged. Read by src/file; what the texts mean
 * is for pmdiff to say.
 */
#pragma once

#include "pm/base.h"

enum pm_diff_harness {
	PM_DIFF_HARNESS_UNSET,
	PM_DIFF_HARNESS_NONE, /* the command is one case */
	PM_DIFF_HARNESS_AUTO, /* it is asked */
	PM_DIFF_HARNESS_GOOGLE_BENCHMARK,
	PM_DIFF_HARNESS_CRITERION,
};

enum pm_diff_part {
	PM_DIFF_PART_UNSET,
	PM_DIFF_PART_WHOLE, /* the run from its first to its last moment */
	PM_DIFF_PART_MARKED, /* what the program marks, by perf_start() and perf_stop() */
};

/* What is measured and how. NULL, 0 and empty: the file says nothing about it. */
struct pm_diff_measure {
	/* "instructions:u", "fn:parse:sim.Ir" → "0.5%". */
	PM_VEC(struct pm_diff_gate {
		char *row, *limit;
		int64_t line; /* in the file; -1: unknown */
	})
	gates;
	/* The same over the history; of no single case. */
	PM_VEC(struct pm_diff_gate) history_gates;
	PM_VEC(char *) command;
	char *setup; /* for the shell: before each run, not counted */
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
	char *path; /* of the file; NULL: there is none */
	struct pm_diff_measure all; /* holds for a case where the case says nothing */
	PM_VEC(struct pm_diff_case {
		char *name;
		struct pm_diff_measure measure;
		int64_t line; /* of its name */
	})
	cases;
	char *build; /* for the shell */
	char *history;
	int8_t profile; /* whether what got worse is profiled; -1: nothing is said */
};

/*
 * Reads @path. Unknown keys are refused, with a near name. -EBADMSG with the line where the
 * file is no JSON or something else than expected, -EFBIG, -ENOMEM, or what open(2) and
 * read(2) say. @ret is then unchanged.
 */
int pm_diff_config_read(struct pm_diff_config *ret, const char *path,
			struct pm_error *err);
void pm_diff_config_release(struct pm_diff_config *config);
