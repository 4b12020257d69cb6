/* SPDX-License-Identifier: MIT */
/* `pmstat ab`: finds whether B has more or less of each number, and the number that
 * determines the verdict. */
#include "compare-internal.h"
#include "pm/stats.h"

#include <math.h>
#include <string.h>

/* A user who compares two programs once a day gets one false result in a year and a
 * half. */
#define ALPHA 0.002

enum {
	SEED = 1, /* Seed of the bootstraps, constant so that the same document always
	           * gives the same numbers. */
};

/* A row, from which a difference is computed. */
struct row {
	struct pm_compare_row of;
	const struct pm_stat_event *event; /* NULL: calls */
	bool tested;
};

struct work {
	struct pm_stat *stat;
	const struct pm_stat *doc; /* for functions that need a side */
	struct pm_side sides[PM_SIDES];
	struct pm_event_pairs pairs;
	struct pm_scope_groups groups;
	PM_VEC(struct row) rows; /* in the order of stat->differences */
};

static void ab_work_release(struct work *work)
{
	for (size_t i = 0; i < work->rows.len; i++)
		pm_compare_row_free(&work->rows.data[i].of);
	pm_vec_release(&work->rows);
	pm_event_pairs_release(&work->pairs);
	pm_scope_groups_release(&work->groups);
}

/* ---- rows ---------------------------------------------------------------------------- */

static bool does_ab_side_vary(const struct pm_compare_side *side)
{
	return side->min < side->max;
}

/* Returns the state of the first missing value. The side must have no other value. */
static enum pm_stat_state state_of(const struct work *work, const struct row *row,
				   const struct pm_scope_group *group, uint32_t event)
{
	uint32_t variant = row->of.base.known ? 1 : 0;
	const struct pm_stat *stat = work->stat;

	if (row->of.base.known && row->of.new.known)
		return PM_STAT_OK;
	for (size_t i = 0; !group && i < stat->runs.len; i++)
		if (stat->runs.data[i].variant == variant &&
		    !pm_stat_has_value(&stat->runs.data[i].values[event]))
			return stat->runs.data[i].values[event].state;
	for (size_t i = 0; group && i < group->members.len; i++) {
		const struct pm_scope_member *member = &group->members.data[i];
		const struct pm_stat_scope *scope = &stat->scopes.data[member->scope];

		if (member->side != variant)
			continue;
		if (!row->event)
			return PM_STAT_NOT_KNOWN;
		if (!pm_stat_has_value(&scope->values[event]))
			return scope->values[event].state;
	}
	return PM_STAT_NOT_COUNTED;
}

/* Whether the row lacks values that it should have. Functions have no values of events
 * that the tool measures only for whole programs. */
static bool is_ab_row_missed(const struct row *row, const struct pm_scope_group *group)
{
	return !group || !row->event || row->of.base.known || row->of.new.known ||
	       strcmp(row->event->source, "tool") != 0;
}

static int add_ab_row(struct work *work, const struct pm_scope_group *group,
		      uint32_t event)
{
	uint32_t events = (uint32_t)work->stat->events.len, pair = event;
	struct pm_stat_difference difference = { .event = event };
	struct row row = { 0 };
	int ret;

	if (event < events) {
		row.event = &work->stat->events.data[event];
		/* If an event was requested twice, use the first one. */
		for (pair = 0; pair < work->pairs.list.len; pair++)
			if (work->pairs.at[PM_BASE][0][pair] == event)
				break;
		if (pair == work->pairs.list.len)
			return 0;
	} else {
		pair = (uint32_t)work->pairs.list.len;
	}
	if (group)
		difference.scope = (int32_t)group->members.data[0].scope;
	else
		difference.scope = -1;
	ret = pm_compare_row_fill(&row.of, work->sides, group, &work->pairs, pair);
	if (ret == 0)
		difference.state = state_of(work, &row, group, event);
	else
		difference.state = PM_STAT_OK;
	if (ret == 0 && is_ab_row_missed(&row, group)) {
		ret = pm_vec_push(&work->stat->differences, difference);
		if (ret == 0)
			ret = pm_vec_push(&work->rows, row);
		if (ret == 0)
			return 0;
	}
	pm_compare_row_free(&row.of);
	return ret;
}

static bool program_is_known(const struct work *work)
{
	const struct pm_stat *stat = work->stat;

	for (size_t i = 0; i < stat->runs.len; i++)
		for (size_t e = 0; e < stat->events.len; e++)
			if (pm_stat_has_value(&stat->runs.data[i].values[e]))
				return true;
	return stat->scopes.len == 0;
}

static int add_ab_rows(struct work *work)
{
	uint32_t events = (uint32_t)work->stat->events.len;

	for (uint32_t e = 0; program_is_known(work) && e < events; e++)
		if (add_ab_row(work, NULL, e) < 0)
			return -ENOMEM;
	for (size_t g = 0; g < work->groups.list.len; g++)
		for (uint32_t e = 0; e <= events; e++)
			if (add_ab_row(work, &work->groups.list.data[g],
				       (events + e) % (events + 1)) < 0)
				return -ENOMEM;
	return 0;
}

/* ---- rows that decide ---------------------------------------------------------------- */

/* Whether measuring does not affect the row's numbers. Measuring functions takes time
 * itself; then only simulated numbers of the program are undisturbed. */
static bool is_ab_row_undisturbed(const struct work *work, const struct row *row)
{
	return row->of.scope || strcmp(work->stat->engine, "count") == 0 ||
	       (row->event && strcmp(row->event->source, "simulated") == 0);
}

static bool may_decide(const struct work *work, const struct row *row)
{
	return row->of.base.known && row->of.new.known &&is_ab_row_undisturbed(work, row);
}

static bool is_asked_for(const struct row *row)
{
	return !row->event || !row->event->default_set ||
	       row->event->class == PM_STAT_EXACT ||
	       strcmp(row->event->source, "simulated") == 0;
}

static void choose_deciding(struct work *work)
{
	bool asked = false;
	size_t best = PM_COMPARE_DECIDERS;

	for (size_t i = 0; i < work->stat->events.len; i++)
		asked = asked || !work->stat->events.data[i].default_set;
	for (size_t i = 0; i < work->rows.len && !asked; i++) {
		const struct row *row = &work->rows.data[i];
		size_t rank = row->event ? pm_compare_decider_rank(row->event->name)
					 : PM_COMPARE_DECIDERS;

		if (rank < best && may_decide(work, row))
			best = rank;
	}
	for (size_t i = 0; i < work->rows.len; i++) {
		const struct row *row = &work->rows.data[i];

		work->stat->differences.data[i].decides =
			may_decide(work, row) &&
			(is_asked_for(row) ||
			 (best < PM_COMPARE_DECIDERS &&
			  pm_compare_decider_rank(row->event->name) == best));
	}
}

/* ---- numbers ------------------------------------------------------------------------- */

/* Whether the row needs no test, because its values are equal in all runs. */
static bool is_certain(const struct row *row)
{
	return !does_ab_side_vary(&row->of.base) && !does_ab_side_vary(&row->of.new) &&
	       (!row->event || row->event->class == PM_STAT_EXACT ||
		row->of.base.min == row->of.new.min);
}

static bool is_ab_row_in_family(const struct work *work, size_t i)
{
	return work->stat->differences.data[i].decides &&
	       !is_certain(&work->rows.data[i]);
}

static void choose_tested(struct work *work, size_t family)
{
	for (size_t i = 0; i < work->rows.len; i++) {
		struct row *row = &work->rows.data[i];
		size_t of = is_ab_row_in_family(work, i) ? family : 1;
		double least =
			pm_compare_least_p_of_values(row->of.base.len, row->of.new.len);

		row->tested = least * (double)of < ALPHA;
		work->stat->differences.data[i].runs_needed =
			pm_compare_runs_needed(of, ALPHA);
	}
}

static int measure_row(struct work *work, size_t i, size_t family)
{
	struct pm_stat_difference *to = &work->stat->differences.data[i];
	struct row *row = &work->rows.data[i];
	struct pm_stats_summary base, new;

	to->runs[0] = row->of.base.len;
	to->runs[1] = row->of.new.len;
	if (pm_stats_summarize(row->of.base.values, row->of.base.len, &base) < 0 ||
	    pm_stats_summarize(row->of.new.values, row->of.new.len, &new) < 0)
		return -ENOMEM;
	row->of.base.median = to->median[0] = base.median;
	row->of.new.median = to->median[1] = new.median;
	if (row->of.base.known &&
	    row->of.new.known &&pm_compare_measure(&row->of, family, ALPHA, SEED) < 0)
		return -ENOMEM;
	to->by = row->of.difference;
	to->by_low = row->of.difference_low;
	to->by_high = row->of.difference_high;
	to->change = row->of.change;
	to->change_low = row->of.low;
	to->change_high = row->of.high;
	to->p = to->p_corrected = row->tested ? row->of.p : NAN;
	to->paired = row->of.method && strcmp(row->of.method, PM_COMPARE_BY_PAIRS) == 0;
	return 0;
}

static bool is_corrected(const struct work *work, size_t i)
{
	return is_ab_row_in_family(work, i) && work->rows.data[i].tested;
}

static int measure_ab_rows(struct work *work)
{
	PM_AUTO_FREE double *p = calloc(work->rows.len + 1, sizeof(*p));
	size_t family = 0, at = 0;

	if (!p)
		return -ENOMEM;
	for (size_t i = 0; i < work->rows.len; i++)
		family += is_ab_row_in_family(work, i);
	choose_tested(work, family);
	for (size_t i = 0; i < work->rows.len; i++) {
		if (measure_row(work, i, is_ab_row_in_family(work, i) ? family : 1) < 0)
			return -ENOMEM;
		if (is_corrected(work, i))
			p[at++] = work->stat->differences.data[i].p;
	}
	if (pm_stats_holm(p, at) < 0)
		return -ENOMEM;
	at = 0;
	for (size_t i = 0; i < work->rows.len; i++)
		if (is_corrected(work, i))
			work->stat->differences.data[i].p_corrected = p[at++];
	return 0;
}

static enum pm_stat_outcome outcome_of(const struct row *row,
				       const struct pm_stat_difference *difference)
{
	enum pm_stat_outcome seen = difference->by > 0 ? PM_STAT_MORE : PM_STAT_LESS;
	bool apart = difference->by_low > 0 || difference->by_high < 0;

	if (!row->of.base.known || !row->of.new.known)
		return PM_STAT_UNKNOWN;
	if (is_certain(row)) {
		if (row->of.base.min == row->of.new.min)
			return PM_STAT_EQUAL;
		return seen;
	}
	if (!row->tested)
		return PM_STAT_TOO_FEW;
	if (difference->p_corrected < ALPHA && apart)
		return seen;
	return PM_STAT_UNDECIDED;
}

/* ---- the whole ----------------------------------------------------------------------- */

static int compare_variants(struct work *work)
{
	uint32_t ended = pm_stat_variants_ended(work->stat);

	for (unsigned int side = 0; side < PM_SIDES; side++)
		work->sides[side] = (struct pm_side){ .docs = &work->doc,
						      .len = 1,
						      .variant = side,
						      .ended = ended >> side & 1 };
	if (pm_event_pairs_find(&work->pairs, work->sides) < 0 ||
	    pm_scope_groups_find(&work->groups, work->sides) < 0 || add_ab_rows(work) < 0)
		return -ENOMEM;
	choose_deciding(work);
	if (measure_ab_rows(work) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < work->rows.len; i++)
		work->stat->differences.data[i].outcome =
			outcome_of(&work->rows.data[i], &work->stat->differences.data[i]);
	return 0;
}

int pm_compare_ab(struct pm_stat *stat)
{
	struct work work PM_CLEANUP(ab_work_release) = { .stat = stat, .doc = stat };

	stat->differences.len = 0;
	return compare_variants(&work);
}
