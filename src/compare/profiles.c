/* SPDX-License-Identifier: MIT */
/* Compares recordings: the weight of each function, and whether a change exceeds the
 * difference between two recordings of the same program. */
#include "pm/stats.h"

#include <math.h>
#include <string.h>

#include "compare-internal.h"
#include "functions.h"
#include "recordings.h"

#define ALPHA       0.01
#define GATE_POINTS 0.01 /* as a fraction of the total */
/* A function's weight must also change by this much: the recordings were not made in
 * turns, and then the times of an unchanged program differ by as much. */
#define GATE_OWN   0.1
#define NORMAL_975 1.959963984540054
/* If a larger part of the samples was lost, the others do not represent the whole. */
#define LOST_MAX 0.01

/* One event of both recordings. */
struct pair {
	const struct pm_profile_event *of[PM_PROFILES];
	struct pm_view *views[PM_PROFILES];
	struct pm_function_weight *weights[PM_PROFILES];
	bool absolute; /* weights can be compared, and not only shares */
};

static void pair_release(struct pair *pair)
{
	for (unsigned int side = 0; side < PM_PROFILES; side++) {
		pm_view_free(pair->views[side]);
		free(pair->weights[side]);
	}
}

struct work {
	struct pm_comparison *comparison;
	const struct pm_compare_options *options;
	const struct pm_profile *of[PM_PROFILES];
	struct pm_functions functions;
	bool *used; /* by gate */
};

static void profiles_work_release(struct work *work)
{
	pm_functions_release(&work->functions);
	free(work->used);
}

/* ---- pairs of events ------------------------------------------------------------------ */

/* Whether the whole program was recorded, from its start to its end. */
static bool is_whole(const struct pm_profile *profile,
		     const struct pm_profile_event *event)
{
	const struct pm_profile_info *info = &profile->info;

	return profile->command.len > 0 && info->exited && info->exit == 0 &&
	       !info->cut && !profile->latency && !event->filter &&
	       event->total.samples > 0 &&
	       (double)info->lost <= LOST_MAX * (double)event->total.samples;
}

static int pair_init(struct pair *pair, struct work *work,
		     const struct pm_profile_event *a, const struct pm_profile_event *b,
		     struct pm_error *err)
{
	*pair = (struct pair){ .of = { a, b } };
	pair->absolute = is_whole(work->of[0], a) && is_whole(work->of[1], b);
	for (unsigned int side = 0; side < PM_PROFILES; side++) {
		uint32_t id = (uint32_t)(pair->of[side] - work->of[side]->events.data);
		int ret = pm_view_new(&pair->views[side], work->of[side], id, NULL, err);

		if (ret < 0)
			return ret;
		pair->weights[side] =
			pm_functions_weigh(&work->functions, pair->views[side], side);
		if (!pair->weights[side])
			return -ENOMEM;
	}
	return 0;
}

/* ---- one row ------------------------------------------------------------------------ */

static int set_function_gate(struct work *work, struct pm_compare_row *row,
			     const struct pm_profile_event *event, const char *which)
{
	const struct pm_gates *gates = work->options->gates;
	struct pm_gate_target target = {
		.scope = row->scope,
		.event = row->event,
		.requested = { event->name, which },
	};

	row->at_most = NAN;
	row->gate = row->unit[0] == '%' ? GATE_POINTS : GATE_OWN;
	row->gate_source = "default";
	for (size_t i = 0; gates && i < gates->list.len; i++) {
		const struct pm_gate *gate = &gates->list.data[i];

		/* A hard limit is for counts, and a number of samples is not one. */
		if (!isnan(gate->at_most) || !pm_gate_fits(gate, &target))
			continue;
		work->used[i] = true;
		row->gated = true;
		row->gate = gate->limit;
		row->both = gate->both;
		row->gate_source = gate->source;
	}
	return 0;
}

static int fill_weight_side(struct pm_compare_side *side, const struct pm_weight *weight,
			    const struct pm_view *view, bool absolute)
{
	side->values = malloc(sizeof(*side->values));
	if (!side->values)
		return -ENOMEM;
	side->len = 1;
	side->known = true;
	side->samples = weight->samples;
	side->share = pm_weight_percent(weight, &view->total);
	side->weight = (double)weight->period;
	if (absolute)
		side->values[0] = (double)weight->period;
	else
		side->values[0] = side->share;
	side->median = side->min = side->max = side->values[0];
	return 0;
}

static int fill_names(struct pm_compare_row *row, const struct work *work,
		      size_t function, const struct pair *pair)
{
	const struct pm_function *of = &work->functions.list.data[function];
	unsigned int side =
		pair->weights[PM_NEW][function].total.samples > 0 ? PM_NEW : PM_BASE;
	uint32_t place = pair->weights[side][function].place;

	row->scope = strndup(of->name, of->name_len);
	if (!row->scope ||
	    (of->module != PM_PROFILE_NONE &&
	     pm_stat_text(&row->module,
			  work->functions.merged.modules.data[of->module].name) < 0))
		return -ENOMEM;
	if (place == PM_PROFILE_NONE)
		return 0;
	row->line = work->of[side]->places.data[place].line;
	return pm_stat_text(&row->file, work->of[side]->places.data[place].file);
}

/* Judges by the number of samples. Weights are sums of periods. Each sample represents
 * the mean period, and the number of samples is subject to chance. One recording does not
 * show the additional noise of the program. */
static void judge_weights(struct pm_compare_row *row, const struct pair *pair)
{
	double per_sample[PM_PROFILES], base = row->base.median, new = row->new.median;
	double sigma;

	for (unsigned int side = 0; side < PM_PROFILES; side++)
		per_sample[side] = (double)pair->views[side]->total.period /
				   fmax(1, (double)pair->views[side]->total.samples);
	sigma = sqrt(base * per_sample[PM_BASE] + new *per_sample[PM_NEW]);
	row->method = "weights of samples";
	row->p = pm_stats_two_counts(row->base.samples, per_sample[PM_BASE],
				     row->new.samples, per_sample[PM_NEW]);
	if (base > 0) {
		row->change = (new - base) / base;
		row->low = fmax(-1, row->change - NORMAL_975 * sigma / base);
		row->high = row->change + NORMAL_975 * sigma / base;
	} else {
		row->change = new > 0 ? INFINITY : 0;
		row->low = row->high = row->change;
	}
}

static void judge_shares(struct pm_compare_row *row, const struct pair *pair)
{
	struct pm_stats_share shares[PM_PROFILES];
	struct pm_stats_two_shares two;

	for (unsigned int side = 0; side < PM_PROFILES; side++) {
		const struct pm_compare_side *of =
			side == PM_BASE ? &row->base : &row->new;

		shares[side] =
			(struct pm_stats_share){ of->samples,
						 pair->views[side]->total.samples };
	}
	pm_stats_two_shares(&shares[PM_BASE], &shares[PM_NEW], &two);
	row->method = "shares of samples";
	row->p = two.p;
	/* The change is that of the weights; only the interval comes from the numbers of
	 * samples. */
	row->change = (row->new.share - row->base.share) / 100;
	row->low = row->change + (two.low - two.difference);
	row->high = row->change + (two.high - two.difference);
}

static int add_function_row(struct work *work, const struct pair *pair, size_t function,
			    const struct pm_weight *base, const struct pm_weight *new,
			    const char *which)
{
	const struct pm_profile_event *event = pair->of[PM_NEW];
	struct pm_compare_row row = {
		.subject = PM_COMPARE_FUNCTION,
		.class = PM_STAT_NOISY,
		.better = pair->absolute ? -1 : 0,
		.inlined_base = pair->weights[PM_BASE][function].inlined,
		.inlined_new = pair->weights[PM_NEW][function].inlined,
		.p_holm = NAN,
	};
	const char *weight_unit = "";

	if (event->unit && strcmp(event->unit, "ns") == 0)
		weight_unit = "ns";
	if (!pair->absolute)
		row.weight_unit = weight_unit;
	if (asprintf(&row.event, "%s %s", event->actual, which) < 0)
		row.event = NULL;
	if (!row.event ||
	    pm_stat_text(&row.unit, pair->absolute ? weight_unit : "%") < 0 ||
	    fill_names(&row, work, function, pair) < 0 ||
	    fill_weight_side(&row.base, base, pair->views[PM_BASE], pair->absolute) < 0 ||
	    fill_weight_side(&row.new, new, pair->views[PM_NEW], pair->absolute) < 0 ||
	    set_function_gate(work, &row, event, which) < 0)
		goto no_memory;
	if (pair->absolute)
		judge_weights(&row, pair);
	else
		judge_shares(&row, pair);
	if (pair->weights[PM_BASE][function].total.samples == 0)
		row.verdict = PM_VERDICT_NEW;
	else if (pair->weights[PM_NEW][function].total.samples == 0)
		row.verdict = PM_VERDICT_GONE;
	if (pm_vec_push(&work->comparison->rows, row) == 0)
		return 0;
no_memory:
	pm_compare_row_free(&row);
	return -ENOMEM;
}

/* Adds a row for the total: one recording on each side is not enough to judge it, but
 * people want to see it. */
static int add_total(struct work *work, const struct pair *pair)
{
	struct pm_compare_row row = {
		.subject = PM_COMPARE_PROGRAM,
		.class = PM_STAT_NOISY,
		.better = -1,
		.p_holm = NAN,
	};
	bool ns = pair->of[PM_NEW]->unit && strcmp(pair->of[PM_NEW]->unit, "ns") == 0;

	if (!pair->absolute)
		return 0;
	if (pm_stat_text(&row.event, pair->of[PM_NEW]->actual) < 0 ||
	    pm_stat_text(&row.unit, ns ? "ns" : "") < 0 ||
	    fill_weight_side(&row.base, &pair->views[PM_BASE]->total,
			     pair->views[PM_BASE], true) < 0 ||
	    fill_weight_side(&row.new, &pair->views[PM_NEW]->total, pair->views[PM_NEW],
			     true) < 0 ||
	    set_function_gate(work, &row, pair->of[PM_NEW], NULL) < 0)
		goto no_memory;
	judge_weights(&row, pair);
	if (pm_vec_push(&work->comparison->rows, row) == 0)
		return 0;
no_memory:
	pm_compare_row_free(&row);
	return -ENOMEM;
}

static int add_pair(struct work *work, const struct pair *pair)
{
	const struct pm_function_weight *base = pair->weights[PM_BASE];
	const struct pm_function_weight *new = pair->weights[PM_NEW];
	int ret = add_total(work, pair);

	for (size_t i = 0; i < work->functions.list.len && ret == 0; i++) {
		if (base[i].total.samples + new[i].total.samples == 0)
			continue;
		ret = add_function_row(work, pair, i, &base[i].total, &new[i].total,
				       "total");
		if (ret == 0 && base[i].self.samples + new[i].self.samples > 0)
			ret = add_function_row(work, pair, i, &base[i].self, &new[i].self,
					       "self");
	}
	return ret;
}

/* ---- verdicts ----------------------------------------------------------------------- */

/*
 * Whether the row takes part in the correction. Rows that are so rare on both sides that
 * they cannot change by more than the gate do not. This choice depends on how rare rows
 * are, not on how much they differ.
 */
static bool is_function_row_tested(const struct pm_compare_row *row)
{
	return row->gated || row->base.share + row->new.share >= 100 * GATE_POINTS;
}

static int correct_function_rows(struct pm_comparison *comparison)
{
	PM_AUTO_FREE double *p = calloc(comparison->rows.len + 1, sizeof(*p));
	size_t len = 0;

	if (!p)
		return -ENOMEM;
	for (size_t i = 0; i < comparison->rows.len; i++)
		if (is_function_row_tested(&comparison->rows.data[i]))
			p[len++] = comparison->rows.data[i].p;
	if (pm_stats_holm(p, len) < 0)
		return -ENOMEM;
	len = 0;
	for (size_t i = 0; i < comparison->rows.len; i++)
		if (is_function_row_tested(&comparison->rows.data[i]))
			comparison->rows.data[i].p_holm = p[len++];
	return 0;
}

/* For a default gate: whether the change is large relative to the total. */
static bool is_change_large(const struct pm_compare_row *row)
{
	double whole = 100, difference;

	if (!pm_gate_is_default(row))
		return true;
	if (row->unit[0] != '%' && row->base.share > 0)
		whole = row->base.median / row->base.share * 100;
	else if (row->unit[0] != '%')
		whole = row->new.median / row->new.share * 100;
	difference = fabs(row->new.median - row->base.median);
	return difference > GATE_POINTS * whole;
}

/* As with noisy counts, a gate fails if the whole interval is beyond it. */
static int judge_gated(struct pm_compare_row *row, bool significant)
{
	bool up = row->high > row->gate, down = row->low < -row->gate;

	if (significant && (row->low > row->gate || row->high < -row->gate)) {
		row->verdict = pm_compare_direction(row, row->change);
	} else if (row->both || row->better == 0 ? up || down : up) {
		row->verdict = PM_VERDICT_INCONCLUSIVE;
		return pm_compare_why(row, "What chance leaves open reaches beyond the "
					   "gate: record longer.");
	}
	return 0;
}

static int judge_function_row(struct pm_compare_row *row)
{
	enum pm_verdict only = row->verdict; /* the verdict if it is on one side only;
	                                      * otherwise SAME */
	bool significant = row->p_holm < ALPHA;

	row->verdict = PM_VERDICT_SAME;
	if (row->gated && only == PM_VERDICT_SAME)
		return judge_gated(row, significant);
	if (fabs(row->change) <= row->gate || !is_change_large(row))
		return 0;
	if (significant)
		row->verdict = only != PM_VERDICT_SAME
				       ? only
				       : pm_compare_direction(row, row->change);
	else if (row->gated)
		row->verdict = PM_VERDICT_INCONCLUSIVE;
	if (row->verdict == PM_VERDICT_INCONCLUSIVE)
		return pm_compare_why(row, "Too few samples to tell it from chance: "
					   "record longer.");
	return 0;
}

/* Checks gates. Those of a repository may be for counting: one warning is enough for all
 * of them. */
static int check_recording_gates(struct work *work, struct pm_error *err)
{
	const struct pm_gates *gates = work->options->gates;
	struct pm_str names = { 0 };
	const char *source = NULL;
	int ret = 0;

	for (size_t i = 0; gates && i < gates->list.len && ret == 0; i++) {
		const struct pm_gate *gate = &gates->list.data[i];

		if (work->used[i])
			continue;
		if (strcmp(gate->source, "--gate") == 0)
			ret = pm_gate_not_found(gate, work->comparison, err);
		pm_str_printf(&names, "%s%s%s%s", pm_text_if(source, ", "),
			      pm_text_or_empty(gate->scope), pm_text_if(gate->scope, ":"),
			      gate->event);
		source = gate->source;
	}
	if (ret == 0 && source &&
	    (names.failed || pm_compare_warn(work->comparison,
					     "Of %s these gates mean nothing that was "
					     "recorded: %s.",
					     source, names.data) < 0))
		ret = pm_error_set(err, -ENOMEM, "out of memory");
	pm_str_release(&names);
	return ret;
}

static int finish_recordings(struct work *work, struct pm_error *err)
{
	struct pm_comparison *comparison = work->comparison;
	int ret = check_recording_gates(work, err);

	if (ret < 0)
		return ret;
	if (correct_function_rows(comparison) < 0)
		return pm_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < comparison->rows.len; i++)
		if (judge_function_row(&comparison->rows.data[i]) < 0)
			return pm_error_set(err, -ENOMEM, "out of memory");
	pm_compare_conclude(comparison);
	return 0;
}

/* ---- the whole ---------------------------------------------------------------------- */

static int add_profile_events(struct work *work, struct pm_error *err)
{
	size_t pairs = 0;
	int ret = 0;

	for (size_t i = 0; i < work->of[0]->events.len && ret == 0; i++) {
		const struct pm_profile_event *a = &work->of[0]->events.data[i];
		const struct pm_profile_event *b = pm_recordings_event(work->of[1], a);
		struct pair pair PM_CLEANUP(pair_release) = { 0 };

		if (!b || a->total.samples == 0 || b->total.samples == 0)
			continue;
		pairs++;
		ret = pair_init(&pair, work, a, b, err);
		if (ret == 0)
			ret = add_pair(work, &pair);
	}
	if (ret == 0 && pairs == 0)
		return pm_error_set(err, -EINVAL,
				    "the recordings have no event in common that both "
				    "have samples of");
	if (ret != -ENOMEM)
		return ret;
	return pm_error_set(err, ret, "out of memory");
}

static int check_recordings(struct work *work, struct pm_error *err)
{
	struct pm_comparison *comparison = work->comparison;
	int ret = pm_recordings_check(comparison, work->of);

	if (ret < 0)
		return pm_error_set(err, ret, "out of memory");
	comparison->forced = comparison->differences.len > 0 && work->options->force;
	if (comparison->differences.len > 0 && !work->options->force)
		return pm_compare_refuse(comparison, err);
	return 0;
}

int pm_compare_profiles(struct pm_comparison *out, const struct pm_profile *base,
			const struct pm_profile *new,
			const struct pm_compare_options *options, struct pm_error *err)
{
	struct pm_comparison comparison PM_CLEANUP(
		pm_comparison_release) = { .recordings = true };
	struct work work PM_CLEANUP(profiles_work_release) = { .comparison = &comparison,
							       .options = options,
							       .of = { base, new } };
	int ret = check_recordings(&work, err);

	if (ret == 0) {
		work.used = calloc((options->gates ? options->gates->list.len : 0) + 1,
				   sizeof(*work.used));
		if (work.used)
			ret = pm_functions_init(&work.functions, base, new, err);
		else
			ret = -ENOMEM;
		if (ret == -ENOMEM)
			pm_error_set(err, ret, "out of memory");
	}
	if (ret == 0)
		ret = add_profile_events(&work, err);
	if (ret == 0)
		ret = finish_recordings(&work, err);
	/* On refusal, the comparison has the reasons. */
	if (ret < 0 && ret != -EXDEV)
		return ret;
	*out = comparison;
	comparison = (struct pm_comparison){ 0 };
	return ret;
}
