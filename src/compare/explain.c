/* SPDX-License-Identifier: MIT */
/* Finds the function that a change of the whole program comes from. */
#include "compare-internal.h"

#include <math.h>
#include <string.h>

/* Returns the change of a function. If it does not exist on one side, it costs nothing
 * there. */
static double change_of_scope(const struct pm_compare_row *row)
{
	if (row->verdict == PM_VERDICT_NEW)
		return row->new.median;
	if (row->verdict == PM_VERDICT_GONE)
		return -row->base.median;
	if (row->base.known && row->new.known)
		return row->new.median - row->base.median;
	return 0;
}

double pm_compare_own_part(const struct pm_compare_row *row)
{
	double by = fabs(change_of_scope(row)), most = 0;

	if (row->base.known)
		most = fabs(row->base.median);
	if (row->new.known)
		most = fmax(most, fabs(row->new.median));
	if (most > 0)
		return by * (by / most);
	return 0;
}

static const struct pm_compare_row *find_origin(const struct pm_comparison *comparison,
						const struct pm_compare_row *whole)
{
	const struct pm_compare_row *best = NULL;

	for (size_t i = 0; i < comparison->rows.len; i++) {
		const struct pm_compare_row *row = &comparison->rows.data[i];

		if (row->subject != PM_COMPARE_SCOPE || row->case_at != whole->case_at ||
		    strcmp(row->event, whole->event) != 0 ||
		    !(change_of_scope(row) / change_of_scope(whole) > 0.5))
			continue;
		if (!best || pm_compare_own_part(row) > pm_compare_own_part(best))
			best = row;
	}
	return best;
}

static int explain_whole_by_origin(struct pm_compare_row *whole,
				   const struct pm_compare_row *origin)
{
	const char *name = origin->scope ? origin->scope : "?";

	if (origin->verdict == PM_VERDICT_NEW || origin->verdict == PM_VERDICT_GONE)
		return pm_compare_why(whole, "Most of it is in %s, which is %s.", name,
				      pm_verdict_name(origin->verdict));
	return pm_compare_why(whole, "Most of it is in %s: %+.2f %%.", name,
			      100 * origin->change);
}

int pm_compare_explain(struct pm_comparison *comparison)
{
	for (size_t i = 0; i < comparison->rows.len; i++) {
		struct pm_compare_row *row = &comparison->rows.data[i];
		const struct pm_compare_row *origin;

		if (row->subject != PM_COMPARE_PROGRAM || row->why ||
		    (row->verdict != PM_VERDICT_WORSE &&
		     row->verdict != PM_VERDICT_BETTER &&
		     row->verdict != PM_VERDICT_CHANGED))
			continue;
		origin = find_origin(comparison, row);
		if (origin && explain_whole_by_origin(row, origin) < 0)
			return -ENOMEM;
	}
	return 0;
}
