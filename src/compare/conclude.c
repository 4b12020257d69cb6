/* SPDX-License-Identifier: MIT */
/* Sorts the rows, and finds the verdict of the comparison. */
#include "compare-internal.h"

#include <math.h>
#include <string.h>

static int rank_of(enum pm_verdict verdict)
{
	static const int ranks[] = {
		[PM_VERDICT_WORSE] = 0,        [PM_VERDICT_ACCEPTED] = 1,
		[PM_VERDICT_CHANGED] = 2,      [PM_VERDICT_BETTER] = 3,
		[PM_VERDICT_INCONCLUSIVE] = 4, [PM_VERDICT_UNKNOWN] = 5,
		[PM_VERDICT_NEW] = 6,          [PM_VERDICT_GONE] = 7,
		[PM_VERDICT_SAME] = 8,
	};

	return ranks[verdict];
}

/* Returns the size of a change relative to one that may be chance; in a recording,
 * relative to the whole. */
static double weight_of(const struct pm_compare_row *row)
{
	double noise = fmax(row->gate, (row->high - row->low) / 2);

	if (isnan(row->change))
		return 0;
	if (strcmp(row->unit, "%") == 0)
		return 100 * fabs(row->change);
	if (row->base.samples + row->new.samples > 0)
		return fabs(row->base.share > 0 ? row->base.share * row->change
						: row->new.share);
	return fabs(row->change) / fmax(noise, 1e-9);
}

static int compare_row_texts(const char *a, const char *b)
{
	return strcmp(pm_text_or_empty(a), pm_text_or_empty(b));
}

/* Sorts a function's self before the totals that its callers inherit from it (in a
 * recording). */
static int depth_of(const struct pm_compare_row *row)
{
	size_t len = strlen(row->event), self = strlen(" self");

	if (row->base.samples + row->new.samples == 0 ||
	    (len > self && strcmp(row->event + len - self, " self") == 0))
		return 0;
	if (row->subject == PM_COMPARE_PROGRAM)
		return 1;
	return 2;
}

static int compare_rows(const void *first, const void *second)
{
	const struct pm_compare_row *a = first, *b = second;
	double x = weight_of(a), y = weight_of(b);
	int rank = rank_of(a->verdict) - rank_of(b->verdict);

	if (a->case_at != b->case_at)
		return PM_COMPARE(a->case_at, b->case_at);
	if (a->gated != b->gated)
		return a->gated ? -1 : 1;
	if (rank != 0)
		return rank;
	rank = depth_of(a) - depth_of(b);
	if (rank != 0)
		return rank;
	if (x < y || x > y)
		return PM_COMPARE(y, x);
	rank = compare_row_texts(a->scope, b->scope);
	if (rank == 0)
		rank = compare_row_texts(a->module, b->module);
	if (rank != 0)
		return rank;
	return compare_row_texts(a->event, b->event);
}

/* Whether it is unknown if the row passes: a gate names a function that is gone, or a
 * number is missing. This does not apply to a history gate that waits for its first
 * commits, whose row says so. */
static bool is_open(const struct pm_compare_row *row)
{
	if (row->too_early)
		return false;
	return row->verdict == PM_VERDICT_INCONCLUSIVE ||
	       row->verdict == PM_VERDICT_UNKNOWN || row->verdict == PM_VERDICT_GONE;
}

static bool has_decided(const struct pm_compare_row *row)
{
	return row->verdict == PM_VERDICT_SAME || row->verdict == PM_VERDICT_BETTER ||
	       row->verdict == PM_VERDICT_CHANGED || row->verdict == PM_VERDICT_ACCEPTED;
}

/*
 * Returns the verdict of the rows. Only gated rows count, or all rows if none is gated.
 * An open row with a default gate makes the verdict inconclusive only if no other row has
 * an answer: on a busy machine, wall-time never has one, but CPU time does.
 */
static enum pm_verdict verdict_of_rows(const struct pm_compare_row *rows, size_t len)
{
	bool gated = false, decided = false, open = false;
	bool open_asked = false, better = false, changed = false;

	for (size_t i = 0; i < len; i++)
		gated = gated || rows[i].gated;
	for (size_t i = 0; i < len; i++) {
		const struct pm_compare_row *row = &rows[i];

		if (gated && !row->gated)
			continue;
		if (row->verdict == PM_VERDICT_WORSE && gated)
			return PM_VERDICT_WORSE;
		open_asked = open_asked ||
			     (row->gated && !pm_gate_is_default(row) && is_open(row));
		open = open || is_open(row);
		decided = decided || has_decided(row);
		better = better || row->verdict == PM_VERDICT_BETTER;
		changed = changed || row->verdict == PM_VERDICT_CHANGED ||
			  row->verdict == PM_VERDICT_ACCEPTED ||
			  row->verdict == PM_VERDICT_WORSE;
	}
	if (open_asked || (open && !decided))
		return PM_VERDICT_INCONCLUSIVE;
	if (changed)
		return PM_VERDICT_CHANGED;
	if (better)
		return PM_VERDICT_BETTER;
	return PM_VERDICT_SAME;
}

static void sort_rows(struct pm_comparison *comparison)
{
	if (comparison->rows.len > 0)
		qsort(comparison->rows.data, comparison->rows.len,
		      sizeof(*comparison->rows.data), compare_rows);
}

/* ---- cases -------------------------------------------------------------------------- */

/* Finds the rows of each case, which are adjacent. */
static void find_rows_of_cases(struct pm_comparison *comparison)
{
	for (size_t i = 0; i < comparison->cases.len; i++)
		comparison->cases.data[i].first = comparison->cases.data[i].len = 0;
	for (size_t i = comparison->rows.len; i-- > 0;) {
		struct pm_compare_case *one =
			&comparison->cases.data[comparison->rows.data[i].case_at];

		one->first = i;
		one->len++;
	}
}

/* A case that is not compared keeps its verdict, unless a hard limit is exceeded. */
static void conclude_case(const struct pm_comparison *comparison,
			  struct pm_compare_case *one)
{
	enum pm_verdict of_rows =
		verdict_of_rows(comparison->rows.data + one->first, one->len);
	bool compared = one->base.documents > 0 && one->new.documents > 0 && !one->why;

	if (compared || of_rows == PM_VERDICT_WORSE ||
	    (one->verdict == PM_VERDICT_GONE && of_rows == PM_VERDICT_INCONCLUSIVE &&
	     one->len > 0 && comparison->rows.data[one->first].gated))
		one->verdict = of_rows;
}

static int compare_cases(const void *first, const void *second)
{
	const struct pm_compare_case *a = first, *b = second;
	int rank = rank_of(a->verdict) - rank_of(b->verdict);

	/* For cases with rows, `first` is still in the order of the cases. */
	if (rank == 0)
		rank = PM_COMPARE(a->first, b->first);
	if (rank != 0)
		return rank;
	return strcmp(a->name, b->name);
}

/* Returns the verdict of all cases together. */
static enum pm_verdict verdict_of_cases(const struct pm_comparison *comparison)
{
	bool seen[PM_VERDICT_GONE + 1] = { 0 };

	for (size_t i = 0; i < comparison->cases.len; i++)
		seen[comparison->cases.data[i].verdict] = true;
	if (seen[PM_VERDICT_WORSE])
		return PM_VERDICT_WORSE;
	if (seen[PM_VERDICT_INCONCLUSIVE] || seen[PM_VERDICT_UNKNOWN])
		return PM_VERDICT_INCONCLUSIVE;
	if (seen[PM_VERDICT_CHANGED])
		return PM_VERDICT_CHANGED;
	if (seen[PM_VERDICT_BETTER])
		return PM_VERDICT_BETTER;
	return PM_VERDICT_SAME;
}

/* Updates the rows' indices of cases after the cases were sorted. The names that rows
 * borrow stay valid. */
static void number_cases(struct pm_comparison *comparison)
{
	for (size_t i = 0; i < comparison->cases.len; i++) {
		const struct pm_compare_case *one = &comparison->cases.data[i];

		for (size_t j = 0; j < one->len; j++)
			comparison->rows.data[one->first + j].case_at = i;
	}
}

void pm_compare_conclude(struct pm_comparison *comparison)
{
	sort_rows(comparison);
	if (comparison->cases.len == 0) {
		comparison->verdict =
			verdict_of_rows(comparison->rows.data, comparison->rows.len);
		return;
	}
	find_rows_of_cases(comparison);
	for (size_t i = 0; i < comparison->cases.len; i++)
		conclude_case(comparison, &comparison->cases.data[i]);
	qsort(comparison->cases.data, comparison->cases.len,
	      sizeof(*comparison->cases.data), compare_cases);
	number_cases(comparison);
	sort_rows(comparison);
	find_rows_of_cases(comparison);
	comparison->verdict = verdict_of_cases(comparison);
}
