/* SPDX-License-Identifier: MIT */
/* The parts of a bisection: the row, the commits between the ends, and the output. */
#pragma once

#include "bisect.h"
#include "workshop.h"

/* ---- the row ------------------------------------------------------------------------- */

/* The row that moved, and its values at both ends. */
struct pmdiff_moved {
	enum pm_compare_subject subject;
	char *scope, *module, *event, *unit;
	enum pm_stat_class class;
	double before, after; /* medians */
};

void pmdiff_moved_release(struct pmdiff_moved *moved);
/* Finds the row that changed between the two sides: the one that --row names, or the
 * heaviest one that got worse. Returns -ERANGE if there is none; if functions got worse
 * although the program did not, @err names them. */
int pmdiff_moved_find(struct pmdiff_moved *out, const struct pmdiff_side sides[2],
		      const struct pmdiff_meter *meter, struct pm_error *err);
/* Compares two sides without any gate. */
int pmdiff_compare_sides(struct pm_comparison *out, const struct pmdiff_side sides[2],
			 const struct pmdiff_options *options, struct pm_error *err);
/* Returns the next function whose @event changed, after @last (NULL: the first).
 * Functions are sorted by their own part of the change, the largest first. @event NULL:
 * functions that got worse in any event. Returns NULL after the last one. */
const struct pm_compare_row *pmdiff_next_function(const struct pm_comparison *comparison,
						  const char *event,
						  const struct pm_compare_row *last);
/* Returns the same row in @comparison, or NULL if no row has values on both sides. */
const struct pm_compare_row *pmdiff_moved_in(const struct pmdiff_moved *moved,
					     const struct pm_comparison *comparison);

/* ---- the commits --------------------------------------------------------------------- */

struct pmdiff_hashes {
	PM_VEC(char *) list;
};

struct pmdiff_range {
	char *bad; /* the earliest commit that is known to be bad */
	struct pmdiff_hashes good; /* commits known to be good */
	struct pmdiff_hashes skipped; /* commits that could not be measured */
};

void pmdiff_range_release(struct pmdiff_range *range);
int pmdiff_range_init(struct pmdiff_range *out, const char *good, const char *bad,
		      struct pm_error *err);
/* Chooses the commit that halves the range best, among those that were not skipped. Sets
 * *out to NULL if there is none left, and *ret_left to the number of remaining
 * candidates, including `bad`. */
int pmdiff_range_next(char **out, size_t *ret_left, const struct pmdiff_range *range,
		      struct pm_error *err);
int pmdiff_range_add(struct pmdiff_hashes *hashes, const char *hash,
		     struct pm_error *err);
/* Lists all remaining candidates. */
int pmdiff_range_left(struct pmdiff_hashes *out, const struct pmdiff_range *range,
		      struct pm_error *err);
void pmdiff_hashes_release(struct pmdiff_hashes *hashes);

/* ---- output -------------------------------------------------------------------------- */

/* Prints the commit, and the row before and after it. @steps is the new measurement of
 * the commit and its predecessor; NULL: it failed. */
void pmdiff_tell_commit(FILE *to, const struct pmdiff_commit *commit,
			const struct pmdiff_moved *moved,
			const struct pm_comparison *steps);
