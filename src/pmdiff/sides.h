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
	char *failure; /* one sentence: why it has no documents; NULL: there is no such
	                * case */
	bool explains; /* functions were only measured to explain changes */
	PM_VEC(struct pm_stat) stats; /* owned */
	/* How it was measured; all 0 for a file. Everything is borrowed except the words
	 * of its command if a harness has created these. */
	struct pmdiff_measured measured;
	PM_VEC(char *) words;
};

struct pmdiff_side {
	char *name; /* file or revision, for people */
	char *commit; /* full hash, NULL: unknown */
	char *subject; /* of the commit, NULL: unknown */
	char *root; /* directory that contained its sources, NULL: unknown */
	PM_VEC(struct pm_stat) stats; /* owned; none if there are cases */
	bool explains; /* see struct pmdiff_side_case */
	PM_VEC(struct pmdiff_side_case) cases;
};

/* Returns the case with that name, or NULL if there is none. */
struct pmdiff_side_case *pmdiff_side_find_case(const struct pmdiff_side *side,
					       const char *name);
/* Adds the case unless it exists. Returns it, or NULL if memory runs out. */
struct pmdiff_side_case *pmdiff_side_add_case(struct pmdiff_side *side, const char *name,
					      const char *group);
void pmdiff_side_release(struct pmdiff_side *side);
/* If functions were only measured to explain changes, drops them, and keeps the counts of
 * the whole program. */
void pmdiff_side_forget_functions(struct pmdiff_side *side);
