/* SPDX-License-Identifier: MIT */
/* Measures the cases of the configuration, and those of a benchmark harness in one
 * program. */
#pragma once

#include "workshop.h"

/*
 * Measures each selected case in both trees, alternating, and stores the results in
 * sides[].cases: the same cases in the same order. If a case fails on a side, the failure
 * is stored there, and the other cases continue. Returns 0, -EINVAL if --case matches no
 * case, or -ENOMEM.
 */
int pmdiff_cases_measure(struct pmdiff_workshop *workshop, struct pmdiff_side sides[2],
			 struct pm_error *err);

/* A list of words: names of cases, or a command. */
struct pmdiff_names {
	PM_VEC(char *) list;
};
void pmdiff_names_release(struct pmdiff_names *names);

/* A harness: a library that benchmark programs are built with. */
struct pmdiff_harness;
/* Returns the harness that @measured requests, or NULL if there is none, or it is to be
 * detected. */
const struct pmdiff_harness *pmdiff_harness_of(const struct pmdiff_measured *measured);
/*
 * Asks the program in @tree for its cases. If *@harness is NULL, tries all harnesses and
 * stores the one that the program uses; it stays NULL if there is none. Returns 0;
 * -ENOENT: the command does not exist; -EBADMSG: the output does not come from the
 * harness; or -ENOMEM.
 */
int pmdiff_harness_list(struct pmdiff_names *out, const struct pmdiff_harness **harness,
			const struct pmdiff_meter *meter, const struct pmdiff_tree *tree,
			struct pm_error *err);
/* Builds the words that run one case: those of the command, followed by those for the
 * harness. The case only borrows them: release them by pmdiff_names_release() after it.
 * Returns 0 or -ENOMEM. */
int pmdiff_harness_words(struct pmdiff_names *out, const struct pmdiff_harness *harness,
			 const char *const *command, const char *name);
/* Returns the part of a case that callgrind counts, for --marked of pmstat; NULL: all of
 * it. */
const char *pmdiff_harness_marks(const struct pmdiff_harness *harness);
/* Returns the harness's name, such as "google-benchmark". */
const char *pmdiff_harness_name(const struct pmdiff_harness *harness);
