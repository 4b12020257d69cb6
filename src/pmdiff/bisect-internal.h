/* SPDX-License-Identifier: MIT */
/* The parts of a bisection: the row that is looked at, the commits in between, what is told. */
#pragma once

#include "bisect.h"
#include "workshop.h"

/* ---- the row ------------------------------------------------------------------------- */

/* Which row it is, and what it was at both ends. */
struct pmdiff_moved {
	enum pm_compare_subject subject;
	char *scope, *module, *event, *unit;
	enum pm_stat_class class;
	double before, after; /* medians */
};

void pmdiff_moved_release(struct pmdiff_moved *moved);
/* The one that --row names, or the heaviest that got worse, between the two sides. -ERANGE: there
 * is none; functions that got worse though the program did not are named then. */
int pmdiff_moved_find(struct pmdiff_moved *ret, const struct pmdiff_side sides[2],
		      const struct pmdiff_meter *meter, struct pm_error *err);
/* The rows of two sides, without any gate. */
int pmdiff_compare_sides(struct pm_comparison *ret, const struct pmdiff_side sides[2],
			 const struct pmdiff_options *options, struct pm_error *err);
/* The function after @last (NULL: the first) whose @event moved, sorted by its own part
 * of the change, the largest first. @event NULL: functions that got worse in any event.
 * NULL: there are no more. */
const struct pm_compare_row *pmdiff_next_function(const struct pm_comparison *comparison,
						  const char *event,
						  const struct pm_compare_row *last);
/* The same row there, NULL: it has none with a value on both sides. */
const struct pm_compare_row *pmdiff_moved_in(const struct pmdiff_moved *moved,
					     const struct pm_comparison *comparison);

/* ---- the commits --------------------------------------------------------------------- */

struct pmdiff_hashes {
	PM_VEC(char *) list;
};

struct pmdiff_range {
	char *bad; /* the earliest that is known to be */
	struct pmdiff_hashes good; /* known to be */
	struct pmdiff_hashes skipped; /* cannot be told */
};

void pmdiff_range_release(struct pmdiff_range *range);
int pmdiff_range_init(struct pmdiff_range *ret, const char *good, const char *bad,
		      struct pm_error *err);
/* The commit that halves the range best, of those that were not skipped: *ret NULL when there is
 * none left. *ret_left: how many could be it still, `bad` among them. */
int pmdiff_range_next(char **ret, size_t *ret_left, const struct pmdiff_range *range,
		      struct pm_error *err);
int pmdiff_range_add(struct pmdiff_hashes *hashes, const char *hash,
		     struct pm_error *err);
/* All that it may be still. */
int pmdiff_range_left(struct pmdiff_hashes *ret, const struct pmdiff_range *range,
		      struct pm_error *err);
void pmdiff_hashes_release(struct pmdiff_hashes *hashes);

/* ---- what is told -------------------------------------------------------------------- */

/* The commit, and the row in front of it and behind. @steps: what was measured there once more,
 * NULL: it could not be. */
void pmdiff_tell_commit(FILE *to, const struct pmdiff_commit *commit,
			const struct pmdiff_moved *moved,
			const struct pm_comparison *steps);
