/* SPDX-License-Identifier: MIT */
/* What the values of a row say: its change, whether that is more than chance, its verdict. */
#include "compare-internal.h"
#include "pm/stats.h"

#include <math.h>
#include <string.h>

/*
 * Measured on a busy machine of two processors with 20 runs a side in turns: a program against
 * itself is called slower in less than 1 of 200, and one that is 5 % slower is found by its
 * task-clock in all. At 1 in 20 the former were one in 50.
 */
#define ALPHA      0.01
#define CONFIDENCE 0.95

enum {
	RUNS_MAX = 64, /* that a message asks for */
};

enum pm_verdict pm_compare_direction(const struct pm_compare_row *row, double change)
{
	if (row->both)
		return PM_VERDICT_WORSE;
	if (row->better == 0)
		return row->gated ? PM_VERDICT_WORSE : PM_VERDICT_CHANGED;
	return (row->better < 0) == (change > 0) ? PM_VERDICT_WORSE : PM_VERDICT_BETTER;
}

/* ---- one row ------------------------------------------------------------------------ */

/* @by of @of: of nothing it is infinite. */
static double fraction(double by, double of)
{
	return by == 0 ? 0 : of == 0 ? copysign(INFINITY, by) : by / fabs(of);
}

double pm_compare_floor(const char *event)
{
	static const char *const few[] = { "page-faults", "minor-faults", "major-faults",
					   "sim.I1m",     "sim.D1m",      "sim.ILm",
					   "sim.DLm",     "sim.Bcm",      "sim.Bim" };

	for (size_t i = 0; i < PM_ARRAY_LEN(few); i++)
		if (strncmp(event, few[i], strlen(few[i])) == 0)
			return 16;
	return 0;
}

/* Not told where a person has set the gate. */
static double floor_of(const struct pm_compare_row *row)
{
	return pm_gate_is_default(row) ? pm_compare_floor(row->event) : 0;
}

static bool is_beyond(const struct pm_compare_row *row, double change)
{
	return fabs(change) > row->gate &&
	       !(fabs(row->new.median - row->base.median) < floor_of(row));
}

/* Whether more than one in ten values of @side lie in the middle half of the other: of many runs
 * some are always disturbed. */
static bool reaches_into(const struct pm_compare_side *side,
			 const struct pm_stats_summary *other)
{
	size_t inside = 0;

	for (size_t i = 0; i < side->len; i++)
		inside += side->values[i] >= other->q1 && side->values[i] <= other->q3;
	return inside * 10 > side->len;
}

static int judge_steady(struct pm_compare_row *row, const struct pm_stats_summary *base,
			const struct pm_stats_summary *new)
{
	row->change = row->low = row->high =
		fraction(new->median - base->median, base->median);
	if (!is_beyond(row, row->change)) {
		row->verdict = PM_VERDICT_SAME;
	} else if (row->class != PM_STAT_EXACT &&
		   (reaches_into(&row->base, new) || reaches_into(&row->new, base))) {
		row->verdict = PM_VERDICT_INCONCLUSIVE;
		return pm_compare_why(row,
				      "Values of one side are among the middle half of "
				      "the other's: more runs would tell.");
	} else {
		row->verdict = pm_compare_direction(row, row->change);
	}
	return 0;
}

/* The interval as fractions of the base's median. */
static void set_interval(struct pm_compare_row *row, const struct pm_stats_shift *shift)
{
	row->change = fraction(shift->shift, row->base.median);
	if (isnan(shift->ratio_low)) {
		row->low = fraction(shift->low, row->base.median);
		row->high = fraction(shift->high, row->base.median);
	} else {
		row->low = shift->ratio_low - 1;
		row->high = shift->ratio_high - 1;
	}
}

static int measure_noisy(struct pm_compare_row *row, uint64_t seed)
{
	struct pm_stats_shift shift;
	int r = pm_stats_shift(row->base.values, row->base.len, row->new.values,
			       row->new.len, CONFIDENCE, seed, &shift);

	if (r == 0)
		r = pm_stats_mann_whitney(row->base.values, row->base.len,
					  row->new.values, row->new.len, &row->p);
	if (r == 0)
		set_interval(row, &shift);
	return r;
}

/* Medians, and what the class really is: values that vary are not exact. */
static int judge_first(struct pm_compare_row *row, uint64_t seed)
{
	struct pm_stats_summary base, new;

	if (pm_stats_summarize(row->base.values, row->base.len, &base) < 0 ||
	    pm_stats_summarize(row->new.values, row->new.len, &new) < 0)
		return -ENOMEM;
	row->base.median = base.median;
	row->new.median = new.median;
	if (!row->base.known || !row->new.known) {
		row->method = "none";
		if (row->verdict != PM_VERDICT_NEW && row->verdict != PM_VERDICT_GONE)
			row->verdict = PM_VERDICT_UNKNOWN;
		return 0;
	}
	if (row->class == PM_STAT_NOISY) {
		row->method = "Hodges-Lehmann";
		return measure_noisy(row, seed);
	}
	row->method = row->class == PM_STAT_EXACT ? "exact" : "medians";
	return judge_steady(row, &base, &new);
}

/* ---- rows that need each other ------------------------------------------------------ */

static bool is_tested(const struct pm_compare_row *row)
{
	return row->class == PM_STAT_NOISY && row->base.known && row->new.known;
}

/* The least probability that so many values can have. */
static double least_p(size_t a, size_t b)
{
	double ways = 1;

	for (size_t i = 1; i <= a; i++)
		ways *= (double)(b + i) / (double)i;
	return 2 / ways;
}

/* Rows that decide are corrected for each other; the others, for all that there are. */
static size_t family_of(const struct pm_comparison *comparison, bool gated)
{
	size_t len = 0;

	for (size_t i = 0; i < comparison->rows.len; i++)
		len += is_tested(&comparison->rows.data[i]) &&
		       (!gated || comparison->rows.data[i].gated);
	return len;
}

static int correct(struct pm_comparison *comparison, bool gated)
{
	size_t len = family_of(comparison, gated), at = 0;
	PM_AUTO_FREE double *p = calloc(len + 1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	for (size_t i = 0; i < comparison->rows.len; i++) {
		const struct pm_compare_row *row = &comparison->rows.data[i];

		if (is_tested(row) && (!gated || row->gated))
			p[at++] = row->p;
	}
	if (pm_stats_holm(p, len) < 0)
		return -ENOMEM;
	at = 0;
	for (size_t i = 0; i < comparison->rows.len; i++) {
		struct pm_compare_row *row = &comparison->rows.data[i];

		if (is_tested(row) && (!gated || row->gated)) {
			row->p_holm = p[at];
			at++;
		}
	}
	return 0;
}

static int tell_few(struct pm_compare_row *row, size_t family)
{
	size_t runs = 2;

	while (runs < RUNS_MAX && least_p(runs, runs) * (double)family >= ALPHA)
		runs++;
	row->verdict = PM_VERDICT_INCONCLUSIVE;
	return pm_compare_why(
		row, "Too few runs: %zu a side are the least that could tell.", runs);
}

/* Whether the interval has changes in it that the gate would not let pass. */
static bool may_be_beyond(const struct pm_compare_row *row)
{
	bool up = row->high > row->gate, down = row->low < -row->gate;

	if (row->both || row->better == 0)
		return up || down;
	return row->better < 0 ? up : down;
}

static int judge_noisy(struct pm_compare_row *row, size_t family)
{
	/* Neither side varies, and both are the same. */
	if (row->low == 0 && row->high == 0) {
		row->verdict = PM_VERDICT_SAME;
		return 0;
	}
	if (least_p(row->base.len, row->new.len) * (double)family >= ALPHA)
		return tell_few(row, family);
	row->verdict = PM_VERDICT_SAME;
	if (row->p_holm < ALPHA && (row->low > row->gate || row->high < -row->gate)) {
		row->verdict = pm_compare_direction(row, row->change);
	} else if (may_be_beyond(row)) {
		row->verdict = PM_VERDICT_INCONCLUSIVE;
		return pm_compare_why(row,
				      "What chance leaves open reaches beyond the gate: "
				      "more runs, or a quieter machine, would tell.");
	}
	return 0;
}

/* More than the new side's number is worse all the more, if less of it is better. */
static int doubt_lost(struct pm_compare_row *row)
{
	bool base = row->base.lost > row->gate / 2, new = row->new.lost > row->gate / 2;

	if ((!base && !new) || !(row->base.known && row->new.known) ||
	    (row->verdict == PM_VERDICT_WORSE && !base && row->change > 0))
		return 0;
	row->verdict = PM_VERDICT_INCONCLUSIVE;
	return pm_compare_why(row,
			      "Hits are lost, %.2g %% on the base and %.2g %% on the new "
			      "side: the numbers are larger than these.",
			      100 * row->base.lost, 100 * row->new.lost);
}

int pm_compare_judge(struct pm_comparison *comparison, uint64_t seed)
{
	size_t all = family_of(comparison, false), gated = family_of(comparison, true);

	for (size_t i = 0; i < comparison->rows.len; i++)
		if (judge_first(&comparison->rows.data[i], seed) < 0)
			return -ENOMEM;
	if (correct(comparison, false) < 0 || correct(comparison, true) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < comparison->rows.len; i++) {
		struct pm_compare_row *row = &comparison->rows.data[i];

		if (is_tested(row) && judge_noisy(row, row->gated ? gated : all) < 0)
			return -ENOMEM;
		if (doubt_lost(row) < 0)
			return -ENOMEM;
	}
	return 0;
}
