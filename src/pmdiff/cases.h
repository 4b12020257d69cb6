/* SPDX-License-Identifier: MIT */
/* The cases of the configuration, and those of a benchmark harness in one program. */
#pragma once

#include "workshop.h"

/*
 * Measures each selected case in both trees, alternating, and stores the results in
 * sides[].cases: the same cases in the same order. If a case fails on a side, the failure
 * is stored there, and the other cases continue. 0; -EINVAL: --case matches none;
 * -ENOMEM.
 */
int pmdiff_cases_measure(struct pmdiff_workshop *workshop, struct pmdiff_side sides[2],
			 struct pm_error *err);

/* Names of cases in a program. */
struct pmdiff_names {
	PM_VEC(char *) list;
};
void pmdiff_names_release(struct pmdiff_names *names);

/* A harness: a library for benchmark programs. */
struct pmdiff_harness;
/* The harness that @measured requests. NULL: none, or it is to be detected. */
const struct pmdiff_harness *pmdiff_harness_of(const struct pmdiff_measured *measured);
/*
 * Asks the program in @tree for its cases. If *@harness is NULL, tries each one and
 * stores the one that answers; it stays NULL if none does. -ENOENT: the command does not
 * exist; -EBADMSG: the answer is not that of the harness; -ENOMEM.
 */
int pmdiff_harness_list(struct pmdiff_names *out, const struct pmdiff_harness **harness,
			const struct pmdiff_meter *meter, const struct pmdiff_tree *tree,
			struct pm_error *err);
/* The words that run one case: those of the command, and those for the harness. The case
 * borrows them; release them by pmdiff_names_release() afterwards. -ENOMEM. */
int pmdiff_harness_words(struct pmdiff_names *out, const struct pmdiff_harness *harness,
			 const char *const *command, const char *name);
/* The part of a case that callgrind counts, for --marked of pmstat; NULL: all of it. */
const char *pmdiff_harness_marks(const struct pmdiff_harness *harness);
/* Such as "google-benchmark". */
const char *pmdiff_harness_name(const struct pmdiff_harness *harness);
