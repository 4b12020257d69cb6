/* SPDX-License-Identifier: MIT */
/*
 * The two sides of a comparison: the documents of each side, from any source.
 */
#pragma once

#include "options.h"
#include "pm/stat.h"

/* One case on one side. */
struct pmdiff_side_case {
	char *name;
	const char *group; /* the configuration's case that contains it; NULL: none */
	char *failure; /* why it has no documents, one sentence; NULL: not present */
	bool explains; /* functions were only measured to explain changes */
	PM_VEC(struct pm_stat) stats; /* owned */
	/* How it was measured; all 0 for a file. Everything is borrowed except the words
	 * of its command, which a harness has created. */
	struct pmdiff_measured measured;
	PM_VEC(char *) words;
};

struct pmdiff_side {
	char *name; /* file or revision, for people */
	char *commit; /* full hash, NULL: unknown */
	char *subject; /* of the commit, NULL: unknown */
	char *root; /* directory that contained its sources, NULL: unknown */
	PM_VEC(struct pm_stat) stats; /* owned; none if there are cases */
	bool explains; /* as for a case */
	PM_VEC(struct pmdiff_side_case) cases;
};

/* The case with that name; NULL: there is none. */
struct pmdiff_side_case *pmdiff_side_find_case(const struct pmdiff_side *side,
					       const char *name);
/* Adds the case unless it exists. NULL without memory. */
struct pmdiff_side_case *pmdiff_side_add_case(struct pmdiff_side *side, const char *name,
					      const char *group);
void pmdiff_side_release(struct pmdiff_side *side);
/* Drops everything but the counts of the whole program, if functions
 * are only explanations. */
void pmdiff_side_forget_functions(struct pmdiff_side *side);
