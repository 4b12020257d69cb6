/* SPDX-License-Identifier: MIT */
/*
 * Detects the sum of many small steps: compares the new side with the level of earlier
 * commits, in a separate row. The level is the median of the last commits: a single bad
 * or good commit does not move it, and after a lasting change it follows within half of
 * them.
 */
#include "compare-internal.h"
#include "pm/stats.h"

#include <math.h>
#include <string.h>

enum {
	LEVEL_COMMITS = 50, /* the number of last commits */
	LEVEL_COMMITS_MIN = 5,
};
/* A change of more than this times the noise is not caused by the noise of the
 * history. */
#define NOISE_TIMES 3
/* Sigma is this times the median of |differences| of adjacent values: 1.4826 /
 * sqrt(2). */
#define SIGMA_OF_MEDIAN 1.0484

/* The last medians of @row, oldest first. */
struct level {
	double values[LEVEL_COMMITS];
	size_t len;
	size_t commits; /* number of commits that were measured in the same way, with or
	                 * without the row */
	double median, noise;
};

static int compare_level_values(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	if (x < y)
		return -1;
	return x > y;
}

static double sort_and_find_median(double *values, size_t len)
{
	qsort(values, len, sizeof(*values), compare_level_values);
	return pm_stats_quantile(values, len, 0.5);
}

static int find_level(struct level *out, const struct pm_compare_row *row,
		      const struct pm_stat *const *history, size_t len,
		      const struct pm_stat *like)
{
	double room[LEVEL_COMMITS];

	*out = (struct level){ .median = NAN, .noise = NAN };
	for (size_t i = len; i-- > 0 && out->len < LEVEL_COMMITS;) {
		double median;
		int ret;

		if (!pm_history_is_like(history[i], like))
			continue;
		out->commits++;
		ret = pm_history_median(history[i], row, &median);
		if (ret < 0)
			return ret;
		if (isfinite(median))
			out->values[out->len++] = median;
	}
	if (out->len < LEVEL_COMMITS_MIN)
		return 0;
	for (size_t i = 0; i + 1 < out->len; i++)
		room[i] = fabs(out->values[i + 1] - out->values[i]);
	out->noise = SIGMA_OF_MEDIAN * sort_and_find_median(room, out->len - 1);
	memcpy(room, out->values, out->len * sizeof(*room));
	out->median = sort_and_find_median(room, out->len);
	for (size_t i = 0; i < out->len / 2; i++) {
		double value = out->values[i];

		out->values[i] = out->values[out->len - 1 - i];
		out->values[out->len - 1 - i] = value;
	}
	return 0;
}

static double *copy_values(const double *values, size_t len)
{
	double *copy = malloc((len > 0 ? len : 1) * sizeof(*copy));

	if (copy && len > 0)
		memcpy(copy, values, len * sizeof(*copy));
	return copy;
}

/* Copies the row, with copies of its strings. The base of the copy is the level. */
static int copy_row(struct pm_compare_row *out, const struct pm_compare_row *row,
		    const struct level *level)
{
	*out = *row;
	out->scope = out->symbol = out->module = out->file = NULL;
	out->event = out->unit = out->why = NULL;
	memset(&out->pairs, 0, sizeof(out->pairs));
	out->base = (struct pm_compare_side){ .known = level->len >= LEVEL_COMMITS_MIN,
					      .len = level->len,
					      .median = level->median,
					      .min = INFINITY,
					      .max = -INFINITY,
					      .share = NAN,
					      .weight = NAN };
	out->new.begins = NULL;
	out->base.values = copy_values(level->values, level->len);
	out->new.values = copy_values(row->new.values, row->new.len);
	for (size_t i = 0; i < level->len; i++) {
		out->base.min = fmin(out->base.min, level->values[i]);
		out->base.max = fmax(out->base.max, level->values[i]);
	}
	out->change = out->low = out->high = NAN;
	out->difference = out->difference_low = out->difference_high = NAN;
	out->p = out->p_holm = out->at_most = NAN;
	out->inlined_base = out->inlined_new = false;
	out->ack = NULL;
	if (!out->base.values || !out->new.values ||
	    pm_stat_text(&out->scope, row->scope) < 0 ||
	    pm_stat_text(&out->symbol, row->symbol) < 0 ||
	    pm_stat_text(&out->module, row->module) < 0 ||
	    pm_stat_text(&out->file, row->file) < 0 ||
	    pm_stat_text(&out->event, row->event) < 0)
		return -ENOMEM;
	return pm_stat_text(&out->unit, row->unit);
}

static int judge_row(struct pm_compare_row *row, const struct level *level)
{
	double by = row->new.median - level->median;

	if (!row->new.known) {
		row->verdict = PM_VERDICT_UNKNOWN;
		return pm_compare_why(row, "The new side has no number of it.");
	}
	if (!row->base.known) {
		row->verdict = PM_VERDICT_UNKNOWN;
		return pm_compare_why(row,
				      "The history has %zu commits with it that were "
				      "measured so: %d are the least that have a level.",
				      level->len, LEVEL_COMMITS_MIN);
	}
	if (by == 0)
		row->change = 0;
	else if (level->median == 0)
		row->change = copysign(INFINITY, by);
	else
		row->change = by / fabs(level->median);
	row->low = row->high = row->change;
	row->verdict = PM_VERDICT_SAME;
	if (!(fabs(row->change) > row->gate))
		return 0;
	if (row->class != PM_STAT_EXACT && fabs(by) <= NOISE_TIMES * level->noise) {
		row->verdict = PM_VERDICT_INCONCLUSIVE;
		return pm_compare_why(row,
				      "It is beyond the gate, but the commits of the "
				      "history differ as much.");
	}
	row->verdict = pm_compare_direction(row, row->change);
	return pm_compare_why(row, "Against the median of the last %zu commits.",
			      level->len);
}

static int add_history_row(struct pm_comparison *comparison, size_t at,
			   const struct pm_gate *gate,
			   const struct pm_stat *const *history, size_t history_len,
			   const struct pm_stat *like)
{
	const struct pm_compare_row *row = &comparison->rows.data[at];
	struct pm_compare_row added;
	struct level level;
	int ret = find_level(&level, row, history, history_len, like);

	if (ret < 0)
		return ret;
	ret = copy_row(&added, row, &level);
	added.of_history = true;
	added.too_early = level.commits < LEVEL_COMMITS_MIN;
	added.method = "history";
	added.gated = true;
	added.gate = gate->limit;
	added.both = gate->both;
	added.gate_source = gate->source;
	if (ret == 0)
		ret = judge_row(&added, &level);
	if (ret == 0)
		ret = pm_vec_push(&comparison->rows, added);
	if (ret < 0)
		pm_compare_row_free(&added);
	return ret;
}

/* Returns the last gate that matches. */
static const struct pm_gate *find_gate(const struct pm_gates *gates, bool *used,
				       const struct pm_compare_row *row,
				       const char *group)
{
	struct pm_gate_target target = { .scope = row->scope,
					 .symbol = row->symbol,
					 .event = row->event };
	const struct pm_gate *found = NULL;

	for (size_t i = 0; i < gates->list.len; i++) {
		const struct pm_gate *gate = &gates->list.data[i];

		if (!pm_gate_fits_case(gate, row->case_name, group) ||
		    !pm_gate_fits(gate, &target))
			continue;
		used[i] = true;
		found = gate;
	}
	return found;
}

/* Whether a row has to report that the gate cannot be applied, because the new side has
 * no number. As with direct gates, some of the rows that a pattern matches may be gone,
 * and a case that is gone has its own verdict. */
static bool is_missed_by_history_gate(const struct pm_compare_row *row,
				      const struct pm_gate *gate)
{
	bool pattern = gate->scope && strpbrk(gate->scope, "*?") &&
		       (!row->scope || strcmp(gate->scope, row->scope) != 0);

	return !row->new.known && row->verdict != PM_VERDICT_GONE && !pattern;
}

/* Checks that all gates were used. Gates of a file may be for other machines; only a typo
 * is an error. */
static int check_used(const struct pm_comparison *comparison,
		      const struct pm_gates *gates, const bool *used,
		      struct pm_error *err)
{
	for (size_t i = 0; i < gates->list.len; i++) {
		const struct pm_gate *gate = &gates->list.data[i];

		if (!used[i] && (strcmp(gate->source, "--history-gate") == 0 ||
				 pm_gate_near(gate, comparison)))
			return pm_gate_not_found(gate, comparison, err);
	}
	return 0;
}

int pm_history_rows_add(struct pm_comparison *comparison,
			const struct pm_compare_input *inputs,
			const struct pm_gates *gates, struct pm_error *err)
{
	size_t len = comparison->rows.len;
	PM_AUTO_FREE bool *used = NULL;
	int ret = 0;

	if (!gates || gates->list.len == 0)
		return 0;
	used = calloc(gates->list.len, sizeof(*used));
	for (size_t i = 0; used && i < len && ret == 0; i++) {
		const struct pm_compare_row *row = &comparison->rows.data[i];
		const struct pm_compare_input *input = &inputs[row->case_at];
		const struct pm_gate *gate = find_gate(gates, used, row, input->group);

		/* The only document of `ab` contains both sides. */
		if (gate && (row->new.known || is_missed_by_history_gate(row, gate)))
			ret = add_history_row(
				comparison, i, gate, input->history, input->history_len,
				input->new_len > 0 ? input->new[0] : input->base[0]);
	}
	if (!used || ret < 0)
		return pm_error_set(err, -ENOMEM, "out of memory");
	return check_used(comparison, gates, used, err);
}
