/* SPDX-License-Identifier: MIT */
/*
 * What is compared with what: the documents of each side, wherever they come from.
 */
#pragma once

#include "options.h"
#include "pm/stat.h"

/* One case on one side. */
struct pmdiff_side_case {
	char *name;
	const char *group; /* the case of the configuration that it is of; NULL: none */
	char *failure; /* why it has no documents, one sentence; NULL: it is not there */
	bool explains; /* functions were measured to tell where a change comes from */
	PM_VEC(struct pm_stat) stats; /* owned */
	/* How it was measured; of a file all 0. Borrows all but the words of its command, which
	 * a harness has made. */
	struct pmdiff_measured measured;
	PM_VEC(char *) words;
};

struct pmdiff_side {
	char *name; /* file or revision, for people */
	char *commit; /* full hash, NULL: unknown */
	char *subject; /* of the commit, NULL: unknown */
	char *root; /* folder that its sources were in, NULL: unknown */
	PM_VEC(struct pm_stat) stats; /* owned; none where there are cases */
	bool explains; /* as of a case */
	PM_VEC(struct pmdiff_side_case) cases;
};

/* The case of that name, NULL: there is none. */
struct pmdiff_side_case *pmdiff_side_find_case(const struct pmdiff_side *side,
					       const char *name);
/* Adds it where it is not there yet. NULL without memory. */
struct pmdiff_side_case *pmdiff_side_add_case(struct pmdiff_side *side, const char *name,
					      const char *group);
void pmdiff_side_release(struct pmdiff_side *side);
/* Leaves what was counted of the whole program, where functions only explain. */
void pmdiff_side_forget_functions(struct pmdiff_side *side);
