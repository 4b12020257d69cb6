/* SPDX-License-Identifier: MIT */
/* Pairs the events of many documents, and collects the values of one event in all
 * runs. */
#include "compare-internal.h"

#include <math.h>
#include <string.h>

void pm_event_pairs_release(struct pm_event_pairs *pairs)
{
	for (size_t i = 0; i < pairs->list.len; i++)
		free(pairs->list.data[i].name);
	pm_vec_release(&pairs->list);
	for (size_t side = 0; side < PM_SIDES; side++) {
		for (size_t i = 0; pairs->at[side] && i < pairs->docs[side]; i++)
			free(pairs->at[side][i]);
		free(pairs->at[side]);
		pairs->at[side] = NULL;
	}
}

/* ---- events ------------------------------------------------------------------------- */

struct finder {
	struct pm_event_pairs *pairs;
	struct pm_index index;
};

static bool is_pair_called(const void *table, uint32_t id, const void *key)
{
	return strcmp(((const struct pm_event_pairs *)table)->list.data[id].name, key) ==
	       0;
}

static int find_or_add_pair(struct finder *finder, char **name, uint32_t *out)
{
	uint64_t hash = pm_hash_bytes(*name, strlen(*name));
	uint32_t id =
		pm_index_find(&finder->index, hash, is_pair_called, finder->pairs, *name);

	if (id == PM_INDEX_NONE) {
		id = (uint32_t)finder->pairs->list.len;
		if (pm_vec_push(&finder->pairs->list,
				(struct pm_event_pair){ .name = *name }) < 0)
			return -ENOMEM;
		*name = NULL;
		if (pm_index_add(&finder->index, hash, id) < 0)
			return -ENOMEM;
	}
	*out = id;
	return 0;
}

static int add_event_to_pair(struct finder *finder, unsigned int side,
			     const struct pm_stat *stat, uint32_t event, uint32_t *ids)
{
	PM_AUTO_FREE char *name = NULL;
	struct pm_event_pair *pair;
	uint32_t id;

	if (pm_event_shown(&name, &stat->events.data[event]) < 0 ||
	    find_or_add_pair(finder, &name, &id) < 0)
		return -ENOMEM;
	pair = &finder->pairs->list.data[id];
	if (!pair->of[side])
		pair->of[side] = &stat->events.data[event];
	ids[event] = id;
	return 0;
}

/* Maps the events of each document to pairs; turn_round() then maps pairs to events. */
static int add_events_to_pairs(struct finder *finder, const struct pm_side *sides,
			       uint32_t ***ids)
{
	for (unsigned int side = 0; side < PM_SIDES; side++) {
		for (size_t i = 0; i < sides[side].len; i++) {
			const struct pm_stat *stat = sides[side].docs[i];

			ids[side][i] = calloc(stat->events.len + 1, sizeof(uint32_t));
			if (!ids[side][i])
				return -ENOMEM;
			for (uint32_t e = 0; e < stat->events.len; e++)
				if (add_event_to_pair(finder, side, stat, e,
						      ids[side][i]) < 0)
					return -ENOMEM;
		}
	}
	return 0;
}

static int turn_round(struct pm_event_pairs *pairs, const struct pm_side *side,
		      uint32_t **at, uint32_t *const *ids)
{
	for (size_t i = 0; i < side->len; i++) {
		size_t len = pairs->list.len;

		at[i] = malloc((len + 1) * sizeof(uint32_t));
		if (!at[i])
			return -ENOMEM;
		memset(at[i], 0xff, (len + 1) * sizeof(uint32_t));
		/* If an event was requested twice, use the first one. */
		for (size_t e = side->docs[i]->events.len; e-- > 0;)
			at[i][ids[i][e]] = (uint32_t)e;
	}
	return 0;
}

int pm_event_pairs_find(struct pm_event_pairs *pairs, const struct pm_side *sides)
{
	struct finder finder = { .pairs = pairs };
	uint32_t **ids[PM_SIDES] = { NULL };
	int ret = 0;

	for (unsigned int side = 0; side < PM_SIDES; side++) {
		pairs->docs[side] = sides[side].len;
		pairs->at[side] = calloc(sides[side].len + 1, sizeof(uint32_t *));
		ids[side] = calloc(sides[side].len + 1, sizeof(uint32_t *));
		if (!pairs->at[side] || !ids[side])
			ret = -ENOMEM;
	}
	if (ret == 0)
		ret = add_events_to_pairs(&finder, sides, ids);
	for (unsigned int side = 0; side < PM_SIDES && ret == 0; side++)
		ret = turn_round(pairs, &sides[side], pairs->at[side], ids[side]);
	for (unsigned int side = 0; side < PM_SIDES; side++) {
		for (size_t i = 0; ids[side] && i < sides[side].len; i++)
			free(ids[side][i]);
		free(ids[side]);
	}
	pm_index_release(&finder.index);
	return ret;
}

/* ---- values ------------------------------------------------------------------------- */

/* The values that are collected for one row. */
struct gathering {
	struct pm_compare_row *row;
	const struct pm_event_pairs *pairs;
	size_t event;
	PM_VEC(double) values;
	PM_VEC(uint64_t) begins; /* for each value, the time when the run started */
	/* The state of the first missing value, and its event. */
	enum pm_stat_state state;
	const struct pm_stat_event *without;
	bool multiplexed, at_least;
	double lost; /* as a fraction of all hits */
};

static int add_value(struct gathering *to, const struct pm_stat_run *run, double value)
{
	int ret = pm_vec_push(&to->values, value);

	if (ret < 0)
		return ret;
	return pm_vec_push(&to->begins, run->begin_ns);
}

static int gather_value(struct gathering *to, const struct pm_stat *stat, uint32_t event,
			const struct pm_stat_run *run, const struct pm_stat_value *values)
{
	const struct pm_stat_event *of;

	if (event == PM_INDEX_NONE)
		return 0;
	of = &stat->events.data[event];
	/* The factor of a hostile document can make it infinite. */
	if (pm_stat_has_value(&values[event]) &&
	    isfinite((double)values[event].value * of->scale)) {
		to->multiplexed = to->multiplexed ||
				  (values[event].state == PM_STAT_MULTIPLEXED &&
				   values[event].running_ns < values[event].enabled_ns);
		return add_value(to, run, (double)values[event].value * of->scale);
	}
	if (!to->without) {
		to->without = of;
		if (pm_stat_has_value(&values[event]))
			to->state = PM_STAT_NOT_COUNTED;
		else
			to->state = values[event].state;
	}
	return 0;
}

static int gather_program(struct gathering *to, const struct pm_side *side,
			  uint32_t *const *at)
{
	for (size_t i = 0; i < side->len; i++) {
		const struct pm_stat *stat = side->docs[i];

		for (size_t r = 0; r < stat->runs.len; r++)
			if (pm_side_counts(side, &stat->runs.data[r]) &&
			    gather_value(to, stat, at[i][to->event], &stat->runs.data[r],
					 stat->runs.data[r].values) < 0)
				return -ENOMEM;
	}
	return 0;
}

static int gather_scope(struct gathering *to, const struct pm_side *side,
			unsigned int which, uint32_t *const *at,
			const struct pm_scope_group *group)
{
	bool calls = to->event == to->pairs->list.len;
	int ret = 0;

	for (size_t i = 0; i < group->members.len && ret == 0; i++) {
		const struct pm_scope_member *member = &group->members.data[i];
		const struct pm_stat *stat;
		const struct pm_stat_scope *scope;
		const struct pm_stat_run *run;

		if (member->side != which)
			continue;
		stat = side->docs[member->doc];
		scope = &stat->scopes.data[member->scope];
		to->at_least = to->at_least ||
			       (calls ? !scope->calls_exact && !scope->calls_unknown
				      : scope->lost > 0);
		if (scope->lost > 0)
			to->lost = fmax(to->lost,
					(double)scope->lost / ((double)scope->lost +
							       (double)scope->calls));
		run = &stat->runs.data[scope->run];
		if (!calls)
			ret = gather_value(to, stat, at[member->doc][to->event], run,
					   scope->values);
		else if (!scope->calls_unknown)
			ret = add_value(to, run, (double)scope->calls);
	}
	return ret;
}

static void give_gathered_values(struct gathering *from, struct pm_compare_side *to)
{
	to->known = from->values.len > 0;
	to->values = from->values.data;
	to->len = from->values.len;
	to->begins = from->begins.data;
	to->lost = from->lost;
	from->values.data = NULL;
	from->values.len = from->values.cap = 0;
	from->begins.data = NULL;
	from->begins.len = from->begins.cap = 0;
	to->median = to->min = to->max = NAN;
	for (size_t i = 0; i < to->len; i++) {
		if (i == 0)
			to->min = to->max = to->values[i];
		to->min = fmin(to->min, to->values[i]);
		to->max = fmax(to->max, to->values[i]);
	}
}

static const char *state_words(enum pm_stat_state state)
{
	if (state == PM_STAT_NOT_SUPPORTED)
		return "is not supported";
	if (state == PM_STAT_NOT_PERMITTED)
		return "is not permitted";
	if (state == PM_STAT_NOT_KNOWN)
		return "is not known";
	return "was not counted";
}

static int tell_missing(struct pm_compare_row *row, const struct gathering *gathering,
			const char *side)
{
	const char *state = "was not counted", *why = NULL;

	if (row->why)
		return 0;
	if (gathering->without) {
		why = gathering->without->why;
		state = state_words(gathering->state);
	}
	return pm_compare_why(row, "It %s on the %s%s%s", state, side, why ? ": " : ".",
			      pm_text_or_empty(why));
}

/* ---- rows --------------------------------------------------------------------------- */

static int copy_series_text(char **out, const char *from)
{
	return pm_stat_text(out, from);
}

static int fill_scope(struct pm_compare_row *row, const struct pm_scope_group *group)
{
	const struct pm_stat_scope *scope =
		group->of[PM_NEW] ? group->of[PM_NEW] : group->of[PM_BASE];
	size_t len;
	const char *module = pm_module_name(scope->module, &len);

	row->subject = PM_COMPARE_SCOPE;
	row->line = scope->line;
	row->inlined_base =
		group->of[PM_BASE] && group->of[PM_BASE]->kind == PM_STAT_INLINED;
	row->inlined_new =
		group->of[PM_NEW] && group->of[PM_NEW]->kind == PM_STAT_INLINED;
	if (scope->module && !(row->module = strdup(module)))
		return -ENOMEM;
	if (copy_series_text(&row->scope, scope->name) == 0 &&
	    copy_series_text(&row->symbol, scope->symbol) == 0)
		return copy_series_text(&row->file, scope->file);
	return -ENOMEM;
}

static int fill_event(struct pm_compare_row *row, const struct pm_event_pairs *pairs,
		      size_t event)
{
	const struct pm_event_pair *pair;
	const struct pm_stat_event *of;

	if (event == pairs->list.len) {
		row->class = PM_STAT_EXACT;
		row->better = -1;
		if (copy_series_text(&row->event, "calls") != 0)
			return -ENOMEM;
		return copy_series_text(&row->unit, "");
	}
	pair = &pairs->list.data[event];
	of = pair->of[PM_NEW] ? pair->of[PM_NEW] : pair->of[PM_BASE];
	row->class = of->class;
	row->better = of->better;
	if (copy_series_text(&row->event, pair->name) != 0)
		return -ENOMEM;
	return copy_series_text(&row->unit, of->unit);
}

/* Adjusts the class of the row: a value that was scaled, or is a lower bound, is less
 * exact than its class says. */
static void lower_row_class(struct pm_compare_row *row, const struct gathering *gathering)
{
	if (gathering->multiplexed)
		row->class = PM_STAT_NOISY;
	else if (gathering->at_least && row->class == PM_STAT_EXACT)
		row->class = PM_STAT_LOW_NOISE;
}

static int fill_gathered_side(struct pm_compare_row *row, const struct pm_side *sides,
			      unsigned int which, const struct pm_scope_group *group,
			      const struct pm_event_pairs *pairs, size_t event)
{
	struct gathering gathering = { .row = row, .pairs = pairs, .event = event };
	struct pm_compare_side *to = which == PM_BASE ? &row->base : &row->new;
	int ret;

	if (!group)
		ret = gather_program(&gathering, &sides[which], pairs->at[which]);
	else
		ret = gather_scope(&gathering, &sides[which], which, pairs->at[which],
				   group);
	if (ret == 0)
		lower_row_class(row, &gathering);
	give_gathered_values(&gathering, to);
	if (ret == 0 && !to->known && !(group && !group->of[which]))
		ret = tell_missing(row, &gathering,
				   which == PM_BASE ? "base" : "new side");
	return ret;
}

int pm_compare_row_fill(struct pm_compare_row *row, const struct pm_side *sides,
			const struct pm_scope_group *group,
			const struct pm_event_pairs *pairs, size_t event)
{
	int ret;

	*row = (struct pm_compare_row){
		.change = NAN,
		.low = NAN,
		.high = NAN,
		.difference = NAN,
		.difference_low = NAN,
		.difference_high = NAN,
		.p = NAN,
		.p_holm = NAN,
		.base = { .median = NAN,
			  .min = NAN,
			  .max = NAN,
			  .share = NAN,
			  .weight = NAN },
		.new = { .median = NAN,
			 .min = NAN,
			 .max = NAN,
			 .share = NAN,
			 .weight = NAN },
	};
	if ((group && fill_scope(row, group) < 0) || fill_event(row, pairs, event) < 0)
		return -ENOMEM;
	if (group && group->repeated)
		return pm_compare_why(row,
				      "Several of this name are in one run: which of "
				      "them is which cannot be told.");
	ret = fill_gathered_side(row, sides, PM_BASE, group, pairs, event);
	if (ret == 0)
		ret = fill_gathered_side(row, sides, PM_NEW, group, pairs, event);
	/* A value that varies is not exact, whatever its class. */
	if (row->class == PM_STAT_EXACT &&
	    (row->base.min < row->base.max || row->new.min < row->new.max))
		row->class = PM_STAT_LOW_NOISE;
	if (ret == 0 && row->base.known && row->new.known)
		ret = pm_compare_pairs_find(row);
	if (ret == 0 && group && !group->of[PM_BASE] != !group->of[PM_NEW]) {
		if (group->of[PM_NEW])
			row->verdict = PM_VERDICT_NEW;
		else
			row->verdict = PM_VERDICT_GONE;
	}
	return ret;
}
