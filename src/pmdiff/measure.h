/* SPDX-License-Identifier: MIT */
/*
 * Builds commits, and runs a command in them under pmstat, one at a time.
 */
#pragma once

#include "options.h"
#include "progress.h"
#include "sides.h"
#include "worktree.h"

/* All functions here return this, with @err, if the commit is at fault: it cannot be
 * built, or its command cannot be started or fails. Another commit may succeed. */
#define PMDIFF_BAD_COMMIT (-ECANCELED)

/* A function of --fn that a commit does not have. */
struct pmdiff_missing {
	const char *name; /* borrowed */
	char *more; /* the rest of pmstat's message, such as similar names; or "" */
};

/* One commit, checked out. */
struct pmdiff_tree {
	const char *
		role; /* for people: "base"; NULL: the caller states which commit it is */
	char *path;
	const struct pmdiff_commit *commit; /* borrowed */
	PM_VEC(struct pmdiff_missing) missing;
	bool failed; /* the last measurement failed because of this tree */
	bool absent; /* it failed because its command does not exist */
};
void pmdiff_tree_forget_missing(struct pmdiff_tree *tree);

struct pmdiff_meter {
	const struct pmdiff_options *options;
	const struct pmdiff_measured
		*measured; /* of the options, or of the current case */
	const char *case_name; /* for people; NULL: no cases */
	const struct pmdiff_folder *folder;
	const char *top; /* of the user's working tree; NULL: none */
	struct pmdiff_progress progress;
	char *pmstat; /* path of the program */
	int8_t counters; /* number of usable counters of the processor; -1: unknown */
	const char *engine; /* for pmstat; NULL: pmstat chooses */
	bool simulated; /* the engine simulates: only the program affects the result */
	bool all_functions; /* if possible, whatever the options say */
	char *no_functions; /* why all functions cannot be measured; NULL: they can */
	bool brief; /* do not print the output of failed builds and commands */
	uint64_t runs, warmups; /* for each side */
	uint64_t seed, random;
	char *document, *log, *scratch; /* two files and a directory, all in `folder` */
};

/* Finds pmstat, and chooses the engine. */
int pmdiff_meter_init(struct pmdiff_meter *meter, const struct pmdiff_options *options,
		      const struct pmdiff_folder *folder, const char *top,
		      struct pm_error *err);
void pmdiff_meter_release(struct pmdiff_meter *meter);
/* Sets what is measured from now on: chooses the engine, and drops what was learned for
 * the previous command. */
void pmdiff_meter_choose(struct pmdiff_meter *meter,
			 const struct pmdiff_measured *measured, const char *case_name);
/* Runs the build. Its output is printed only if it fails. */
int pmdiff_meter_build(struct pmdiff_meter *meter, const struct pmdiff_tree *tree,
		       struct pm_error *err);
/* From now on all functions are measured, to explain changes, unless that costs more than
 * a little or the user has named functions. */
void pmdiff_meter_explain(struct pmdiff_meter *meter);
/* Sets @out to pmstat's option for the counted part of the current case; NULL: all of it
 * is counted. Returns 0 or -ENOMEM. */
int pmdiff_meter_marked(char **out, const struct pmdiff_meter *meter);
/* Runs the set-up command of the current case. */
int pmdiff_meter_set_up(struct pmdiff_meter *meter, const struct pmdiff_tree *tree,
			struct pm_error *err);
/* Runs the command in the trees, alternating, as often as required, and fills their
 * sides. A function that exists only in some trees is measured in these. If measuring all
 * functions is too expensive, none is measured, and a message says so. */
int pmdiff_meter_measure(struct pmdiff_meter *meter, struct pmdiff_tree *trees,
			 struct pmdiff_side *sides, size_t len, struct pm_error *err);
