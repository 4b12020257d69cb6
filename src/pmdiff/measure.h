/* SPDX-License-Identifier: MIT */
/*
 * Commits built, and runs of a command in them counted by pmstat, one at a time.
 */
#pragma once

#include "options.h"
#include "progress.h"
#include "sides.h"
#include "worktree.h"

/* What all functions here return, with @err, when it is the commit's fault: it does not build,
 * or its command does not run or fails. Another commit may do better. */
#define PMDIFF_BAD_COMMIT (-ECANCELED)

/* One commit, checked out. */
/* A function of the options that a commit does not have. */
struct pmdiff_missing {
	const char *name; /* borrowed */
	char *more; /* what pmstat says behind that, as near names; or "" */
};

struct pmdiff_tree {
	const char *
		role; /* for people: "base"; NULL: whoever calls says which commit it is */
	char *path;
	const struct pmdiff_commit *commit; /* borrowed */
	PM_VEC(struct pmdiff_missing) missing;
	bool failed; /* the last measurement ended because of it */
	bool absent; /* and that because its command is not there */
};
void pmdiff_tree_forget_missing(struct pmdiff_tree *tree);

struct pmdiff_meter {
	const struct pmdiff_options *options;
	const struct pmdiff_measured
		*measured; /* of the options, or of the case at hand */
	const char *case_name; /* for people; NULL: there are no cases */
	const struct pmdiff_folder *folder;
	const char *top; /* of the user's working tree; NULL: none */
	struct pmdiff_progress progress;
	char *pmstat; /* the program */
	int8_t counters; /* whether the processor has some, for us; -1: not tried */
	const char *engine; /* of pmstat; NULL: its own choice */
	bool simulated; /* by that engine: nothing but the program itself can change it */
	bool all_functions; /* whatever the options say, if they can be measured */
	char *no_functions; /* why they cannot; NULL: they can */
	bool brief; /* what builds and commands say is not shown when they fail */
	uint64_t runs, warmups; /* of each side */
	uint64_t seed, random;
	char *document, *log, *scratch; /* files, and a folder, in the folder */
};

/* Finds pmstat, and the engine. */
int pmdiff_meter_init(struct pmdiff_meter *meter, const struct pmdiff_options *options,
		      const struct pmdiff_folder *folder, const char *top,
		      struct pm_error *err);
void pmdiff_meter_release(struct pmdiff_meter *meter);
/* From now on this is measured: chooses the engine, and forgets what was learned of another. */
void pmdiff_meter_choose(struct pmdiff_meter *meter,
			 const struct pmdiff_measured *measured, const char *case_name);
/* Runs the build. What it says is shown if it fails, and else not. */
int pmdiff_meter_build(struct pmdiff_meter *meter, const struct pmdiff_tree *tree,
		       struct pm_error *err);
/* From now on all functions are measured if that costs next to nothing, and nobody has said which
 * ones are of interest: to tell where a change comes from. */
void pmdiff_meter_explain(struct pmdiff_meter *meter);
/* The option of pmstat for the part of the case at hand that counts, NULL: all does. -ENOMEM. */
int pmdiff_meter_marked(char **ret, const struct pmdiff_meter *meter);
/* Runs the set-up of the case at hand. */
int pmdiff_meter_set_up(struct pmdiff_meter *meter, const struct pmdiff_tree *tree,
			struct pm_error *err);
/* Runs the command in the trees in turns, as often as is wanted, and fills their sides. Functions
 * that one tree has and another has not are measured where they are; where all of them are too
 * many, none is, and that is told. */
int pmdiff_meter_measure(struct pmdiff_meter *meter, struct pmdiff_tree *trees,
			 struct pmdiff_side *sides, size_t len, struct pm_error *err);
