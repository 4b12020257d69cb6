/* SPDX-License-Identifier: MIT */
/* The order of rows, and what all of them say together. */
#include "compare-internal.h"

#include <math.h>
#include <string.h>

static int rank_of(enum pm_verdict verdict)
{
	static const int ranks[] = {
		[PM_VERDICT_WORSE] = 0,   [PM_VERDICT_CHANGED] = 1,
		[PM_VERDICT_BETTER] = 2,  [PM_VERDICT_INCONCLUSIVE] = 3,
		[PM_VERDICT_UNKNOWN] = 4, [PM_VERDICT_NEW] = 5,
		[PM_VERDICT_GONE] = 6,    [PM_VERDICT_SAME] = 7,
	};

	return ranks[verdict];
}

/* How large a change is in units of what may be chance; of a recording, of everything. */
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

static int compare_texts(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

/* Of a recording: what a function does itself, before what all of its callers inherit. */
static int depth_of(const struct pm_compare_row *row)
{
	size_t len = strlen(row->event), self = strlen(" self");

	if (row->base.samples + row->new.samples == 0 ||
	    (len > self && strcmp(row->event + len - self, " self") == 0))
		return 0;
	return row->subject == PM_COMPARE_PROGRAM ? 1 : 2;
}

static int compare_rows(const void *first, const void *second)
{
	const struct pm_compare_row *a = first, *b = second;
	double x = weight_of(a), y = weight_of(b);
	int rank = rank_of(a->verdict) - rank_of(b->verdict);

	if (a->gated != b->gated)
		return a->gated ? -1 : 1;
	if (rank != 0)
		return rank;
	rank = depth_of(a) - depth_of(b);
	if (rank != 0)
		return rank;
	if (x < y || x > y)
		return x > y ? -1 : 1;
	rank = compare_texts(a->scope, b->scope);
	if (rank == 0)
		rank = compare_texts(a->module, b->module);
	return rank != 0 ? rank : compare_texts(a->event, b->event);
}

/* A function that is meant by its name and is gone, or a number that is not there: nobody knows
 * whether it passes. */
static bool is_open(const struct pm_compare_row *row)
{
	return row->verdict == PM_VERDICT_INCONCLUSIVE ||
	       row->verdict == PM_VERDICT_UNKNOWN || row->verdict == PM_VERDICT_GONE;
}

static bool has_decided(const struct pm_compare_row *row)
{
	return row->verdict == PM_VERDICT_SAME || row->verdict == PM_VERDICT_BETTER ||
	       row->verdict == PM_VERDICT_CHANGED;
}

/*
 * Rows that decide: the gated ones, all of them where there are none. An open row that was gated
 * by default leaves the whole open only where no other has an answer: on a busy machine the
 * wall-time never has one, and the processor's time does.
 */
void pm_compare_conclude(struct pm_comparison *comparison)
{
	bool gated = false, decided = false, open = false;
	bool open_asked = false, better = false, changed = false;

	if (comparison->rows.len > 0)
		qsort(comparison->rows.data, comparison->rows.len,
		      sizeof(*comparison->rows.data), compare_rows);
	for (size_t i = 0; i < comparison->rows.len; i++)
		gated = gated || comparison->rows.data[i].gated;
	for (size_t i = 0; i < comparison->rows.len; i++) {
		const struct pm_compare_row *row = &comparison->rows.data[i];

		if (gated && !row->gated)
			continue;
		if (row->verdict == PM_VERDICT_WORSE && gated) {
			comparison->verdict = PM_VERDICT_WORSE;
			return;
		}
		open_asked = open_asked ||
			     (row->gated && !pm_gate_is_default(row) && is_open(row));
		open = open || is_open(row);
		decided = decided || has_decided(row);
		better = better || row->verdict == PM_VERDICT_BETTER;
		changed = changed || row->verdict == PM_VERDICT_CHANGED ||
			  row->verdict == PM_VERDICT_WORSE;
	}
	comparison->verdict = open_asked || (open && !decided) ? PM_VERDICT_INCONCLUSIVE
			      : changed                        ? PM_VERDICT_CHANGED
			      : better                         ? PM_VERDICT_BETTER
							       : PM_VERDICT_SAME;
}
