/* SPDX-License-Identifier: MIT */
/* Judges rows: computes the change, whether it is more than chance, and the verdict. */
#include "compare-internal.h"
#include "pm/stats.h"

#include <math.h>
#include <string.h>

/* With this level, none of 200 comparisons of an unchanged program reported it slower (20
 * runs a side, a busy machine of two processors); with 1 in 20, one of 50 did. */
#define ALPHA      0.01
#define CONFIDENCE 0.95

enum {
	RUNS_MAX = 64, /* the most that a message suggests */
	/* Fewer pairs have too few combinations of signs; the same number of unpaired
	 * values has more. */
	PAIRS_LEAST = 10,
};

enum pm_verdict pm_compare_direction(const struct pm_compare_row *row, double change)
{
	if (row->both)
		return PM_VERDICT_WORSE;
	if (row->better == 0) {
		if (row->gated)
			return PM_VERDICT_WORSE;
		return PM_VERDICT_CHANGED;
	}
	if ((row->better < 0) == (change > 0))
		return PM_VERDICT_WORSE;
	return PM_VERDICT_BETTER;
}

/* ---- one row ------------------------------------------------------------------------ */

/* Returns @by as a fraction of @of; infinite if @of is 0. */
static double signed_fraction(double by, double of)
{
	if (by == 0)
		return 0;
	if (of == 0)
		return copysign(INFINITY, by);
	return by / fabs(of);
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

/* Returns the difference below which a change is ignored; 0 if the user has set the
 * gate. */
static double floor_of(const struct pm_compare_row *row)
{
	if (pm_gate_is_default(row))
		return pm_compare_floor(row->event);
	return 0;
}

static bool is_beyond(const struct pm_compare_row *row, double change)
{
	return fabs(change) > row->gate &&
	       !(fabs(row->new.median - row->base.median) < floor_of(row));
}

/* Whether more than one in ten values of @side lie in the middle half of the other: in
 * many runs, some are always disturbed. */
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
		signed_fraction(new->median - base->median, base->median);
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

/* Sets the interval as fractions of the base's median. */
static void set_interval(struct pm_compare_row *row, const struct pm_stats_shift *shift)
{
	row->difference = shift->shift;
	row->difference_low = shift->low;
	row->difference_high = shift->high;
	row->change = signed_fraction(shift->shift, row->base.median);
	if (isnan(shift->ratio_low)) {
		row->low = signed_fraction(shift->low, row->base.median);
		row->high = signed_fraction(shift->high, row->base.median);
	} else {
		row->low = shift->ratio_low - 1;
		row->high = shift->ratio_high - 1;
	}
}

static int measure_values(struct pm_compare_row *row, uint64_t seed)
{
	struct pm_stats_shift shift;
	int ret = pm_stats_shift(row->base.values, row->base.len, row->new.values,
				 row->new.len, CONFIDENCE, seed, &shift);

	if (ret == 0)
		ret = pm_stats_mann_whitney(row->base.values, row->base.len,
					    row->new.values, row->new.len, &row->p);
	if (ret == 0)
		set_interval(row, &shift);
	row->method = "Hodges-Lehmann";
	return ret;
}

/* Disturbances multiply times. Therefore each pair gives one ratio, and logarithms of
 * ratios are added up. */
static int measure_pairs(struct pm_compare_row *row)
{
	PM_AUTO_FREE double *logs = calloc(row->pairs.len, sizeof(*logs));
	struct pm_stats_paired paired;
	int ret;

	if (!logs)
		return -ENOMEM;
	for (size_t i = 0; i < row->pairs.len; i++)
		logs[i] = log(row->new.values[row->pairs.data[i].new] /
			      row->base.values[row->pairs.data[i].base]);
	ret = pm_stats_signed_rank(logs, row->pairs.len, CONFIDENCE, &paired);
	if (ret < 0)
		return ret;
	row->change = expm1(paired.shift);
	row->low = expm1(paired.low);
	row->high = expm1(paired.high);
	row->difference = row->change * row->base.median;
	row->difference_low = row->low * row->base.median;
	row->difference_high = row->high * row->base.median;
	row->p = paired.p;
	row->method = PM_COMPARE_BY_PAIRS;
	return 0;
}

static bool are_positive(const struct pm_compare_side *side)
{
	return side->min > 0 && isfinite(side->max);
}

static double least_p_of_pairs(const struct pm_compare_row *row)
{
	return ldexp(2, -(int)fmin((double)row->pairs.len, 1000));
}

/* Whether the test can use pairs: nearly all runs have pairs, the pairs have ratios, and
 * there are enough for the level. */
static bool are_pairs_enough(const struct pm_compare_row *row, size_t family,
			     double alpha)
{
	size_t shorter = PM_MIN(row->base.len, row->new.len);

	return row->pairs.len >= PAIRS_LEAST && row->pairs.len * 4 >= shorter * 3 &&
	       are_positive(&row->base) && are_positive(&row->new) &&
	       least_p_of_pairs(row) * (double)family < alpha;
}

int pm_compare_measure(struct pm_compare_row *row, size_t family, double alpha,
		       uint64_t seed)
{
	if (are_pairs_enough(row, family, alpha))
		return measure_pairs(row);
	return measure_values(row, seed);
}

/* Sets the medians, and judges all rows except noisy ones. */
static int judge_first(struct pm_compare_row *row, size_t family, uint64_t seed)
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
	if (row->class == PM_STAT_NOISY)
		return pm_compare_measure(row, family, ALPHA, seed);
	if (row->class == PM_STAT_EXACT)
		row->method = "exact";
	else
		row->method = "medians";
	return judge_steady(row, &base, &new);
}

/* ---- rows judged together ----------------------------------------------------------- */

/* Whether the gate limits the value, and not its change, so that there is nothing to
 * test. */
static bool has_only_hard_limit(const struct pm_compare_row *row)
{
	return !isnan(row->at_most) && isinf(row->gate);
}

static bool is_counted_row_tested(const struct pm_compare_row *row)
{
	return row->class == PM_STAT_NOISY && row->base.known && row->new.known &&
	       !has_only_hard_limit(row);
}

double pm_compare_least_p_of_values(size_t a, size_t b)
{
	double ways = 1;

	for (size_t i = 1; i <= a; i++)
		ways *= (double)(b + i) / (double)i;
	return 2 / ways;
}

size_t pm_compare_runs_needed(size_t family, double alpha)
{
	size_t runs = 2;

	while (runs < RUNS_MAX &&
	       pm_compare_least_p_of_values(runs, runs) * (double)family >= alpha)
		runs++;
	return runs;
}

double pm_compare_least_p(const struct pm_compare_row *row)
{
	if (strcmp(row->method, PM_COMPARE_BY_PAIRS) == 0)
		return least_p_of_pairs(row);
	return pm_compare_least_p_of_values(row->base.len, row->new.len);
}

/* Whether the row is one of those that are corrected together: the gated rows, or all if
 * none is gated. */
static bool is_counted_row_in_family(const struct pm_compare_row *row, bool any_gated)
{
	return is_counted_row_tested(row) && (row->gated || !any_gated);
}

struct family {
	bool any_gated;
	size_t len;
};

static struct family find_family(const struct pm_comparison *comparison)
{
	struct family family = { 0 };

	for (size_t i = 0; i < comparison->rows.len; i++)
		family.any_gated = family.any_gated || comparison->rows.data[i].gated;
	for (size_t i = 0; i < comparison->rows.len; i++)
		family.len += is_counted_row_in_family(&comparison->rows.data[i],
						       family.any_gated);
	return family;
}

/* Returns the number of rows for which @row is corrected. */
static size_t family_len(const struct family *family, const struct pm_compare_row *row)
{
	if (is_counted_row_in_family(row, family->any_gated))
		return family->len;
	return 1;
}

static int correct_case_rows(struct pm_comparison *comparison,
			     const struct family *family)
{
	PM_AUTO_FREE double *p = calloc(comparison->rows.len + 1, sizeof(*p));
	size_t len = 0, at = 0;

	if (!p)
		return -ENOMEM;
	for (size_t i = 0; i < comparison->rows.len; i++) {
		struct pm_compare_row *row = &comparison->rows.data[i];

		row->p_holm = row->p;
		if (is_counted_row_in_family(row, family->any_gated))
			p[len++] = row->p;
	}
	if (pm_stats_holm(p, len) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < comparison->rows.len; i++)
		if (is_counted_row_in_family(&comparison->rows.data[i],
					     family->any_gated))
			comparison->rows.data[i].p_holm = p[at++];
	return 0;
}

static int tell_few(struct pm_compare_row *row, size_t family)
{
	size_t runs = pm_compare_runs_needed(family, ALPHA);

	row->verdict = PM_VERDICT_INCONCLUSIVE;
	return pm_compare_why(
		row, "Too few runs: %zu a side are the least that could tell.", runs);
}

/* Whether the interval contains changes that the gate does not allow. */
static bool may_be_beyond(const struct pm_compare_row *row)
{
	bool up = row->high > row->gate, down = row->low < -row->gate;

	if (row->both || row->better == 0)
		return up || down;
	if (row->better < 0)
		return up;
	return down;
}

static int judge_noisy(struct pm_compare_row *row, size_t family)
{
	/* Neither side varies, and their values are equal. */
	if (row->low == 0 && row->high == 0) {
		row->verdict = PM_VERDICT_SAME;
		return 0;
	}
	if (pm_compare_least_p(row) * (double)family >= ALPHA)
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

/* Lost hits mean that the true value is larger. If the new side lost hits and is worse
 * because it is larger, its true value is worse still, and the verdict stands. */
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

/* Judges a hard limit, which needs no base: it also applies to new rows, and to rows that
 * exceeded it before. */
static int judge_limit(struct pm_compare_row *row)
{
	if (isnan(row->at_most) || !row->new.known)
		return 0;
	if (row->new.median > row->at_most) {
		row->verdict = PM_VERDICT_WORSE;
		return pm_compare_why(row, "It is more than the hard limit allows.");
	}
	if (row->new.lost > 0 && row->verdict != PM_VERDICT_WORSE &&
	    row->new.median > row->at_most *(1 - row->new.lost)) {
		row->verdict = PM_VERDICT_INCONCLUSIVE;
		return pm_compare_why(row,
				      "Hits are lost, %.2g %% on the new side: with "
				      "them it may be more than the hard limit allows.",
				      100 * row->new.lost);
	}
	if (has_only_hard_limit(row) && row->verdict == PM_VERDICT_UNKNOWN)
		row->verdict = PM_VERDICT_SAME;
	return 0;
}

int pm_compare_judge(struct pm_comparison *comparison, uint64_t seed)
{
	struct family family = find_family(comparison);

	for (size_t i = 0; i < comparison->rows.len; i++) {
		struct pm_compare_row *row = &comparison->rows.data[i];

		if (judge_first(row, family_len(&family, row), seed) < 0)
			return -ENOMEM;
	}
	if (correct_case_rows(comparison, &family) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < comparison->rows.len; i++) {
		struct pm_compare_row *row = &comparison->rows.data[i];

		if (is_counted_row_tested(row) &&
		    judge_noisy(row, family_len(&family, row)) < 0)
			return -ENOMEM;
		if (doubt_lost(row) < 0 || judge_limit(row) < 0)
			return -ENOMEM;
	}
	return 0;
}
