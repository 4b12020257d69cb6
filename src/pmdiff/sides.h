/* SPDX-License-Identifier: MIT */
/*
 * What is compared with what: the documents of each side, wherever they come from.
 */
#pragma once

#include "pm/stat.h"

struct pmdiff_side {
	char *name; /* file or revision, for people */
	char *commit; /* full hash, NULL: unknown */
	char *subject; /* of the commit, NULL: unknown */
	char *root; /* folder that its sources were in, NULL: unknown */
	PM_VEC(struct pm_stat) stats; /* owned */
};

void pmdiff_side_release(struct pmdiff_side *side);
/* Leaves what was counted of the whole program. */
void pmdiff_side_forget_functions(struct pmdiff_side *side);
