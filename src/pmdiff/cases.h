/* SPDX-License-Identifier: MIT */
/* The cases of the configuration, and those that a harness of benchmarks has in one program. */
#pragma once

#include "workshop.h"

/*
 * Measures each case that is wanted in both trees, in turns, into sides[].cases: the same cases in
 * the same order. A side on which a case fails has its failure there, and the other cases go on.
 * 0, -EINVAL: --case means none of them; -ENOMEM.
 */
int pmdiff_cases_measure(struct pmdiff_workshop *workshop, struct pmdiff_side sides[2],
			 struct pm_error *err);

/* Names of cases in a program. */
struct pmdiff_names {
	PM_VEC(char *) list;
};
void pmdiff_names_release(struct pmdiff_names *names);

/* A harness: a library that makes a program of benchmarks. */
struct pmdiff_harness;
/* The one that @measured asks for. NULL: none, or it is to be found. */
const struct pmdiff_harness *pmdiff_harness_of(const struct pmdiff_measured *measured);
/*
 * Asks the program in @tree for its cases. @harness NULL: each one is tried, and the one that
 * answers is put there; NULL stays where the program has none. -ENOENT: the command is not there;
 * -EBADMSG: it does not answer as its harness does; -ENOMEM.
 */
int pmdiff_harness_list(struct pmdiff_names *ret, const struct pmdiff_harness **harness,
			const struct pmdiff_meter *meter, const struct pmdiff_tree *tree,
			struct pm_error *err);
/* The words that run the one case: those of the command, and the harness's own. To be released by
 * pmdiff_names_release(); borrowed by the case as long. -ENOMEM. */
int pmdiff_harness_words(struct pmdiff_names *ret, const struct pmdiff_harness *harness,
			 const char *const *command, const char *name);
/* What of a case callgrind counts, for --marked of pmstat; NULL: all of it. */
const char *pmdiff_harness_marks(const struct pmdiff_harness *harness);
/* "google-benchmark". */
const char *pmdiff_harness_name(const struct pmdiff_harness *harness);
