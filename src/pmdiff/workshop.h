/* SPDX-License-Identifier: MIT */
/* The place where two revisions are built and measured, shared by `run` and `bisect`. */
#pragma once

#include "guard.h"
#include "measure.h"

struct pmdiff_workshop {
	struct pmdiff_repository repository;
	struct pmdiff_commit commits[2];
	struct pmdiff_folder folder;
	struct pmdiff_meter meter;
	struct pmdiff_tree trees[2];
};

/* Finds the revisions, enters the guard, and checks both out. @roles are their names for
 * people. */
int pmdiff_workshop_open(struct pmdiff_workshop *out,
			 const struct pmdiff_options *options, const char *const roles[2],
			 struct pm_error *err);
/* Does not remove the directory, which the guard does. */
void pmdiff_workshop_release(struct pmdiff_workshop *workshop);
