/* SPDX-License-Identifier: MIT */
/* Collects values of an event, and scopes of a function, over several runs. */
#include "stat-show.h"

#include <string.h>

void pm_stat_series_release(struct pm_stat_series *series)
{
	pm_vec_release(&series->of[0]);
	pm_vec_release(&series->of[1]);
}

/* ---- scopes ---------------------------------------------------------------------------- */

void pm_stat_groups_release(struct pm_stat_groups *groups)
{
	for (size_t i = 0; i < groups->list.len; i++)
		pm_vec_release(&groups->list.data[i].members);
	pm_vec_release(&groups->list);
}

static bool same_optional_text(const char *a, const char *b)
{
	if (a && b)
		return strcmp(a, b) == 0;
	return a == b;
}

/* Whether two scopes are the same function. In the two programs of `ab`, a function has
 * different addresses. Within one program, scopes with the same name are distinguished by
 * their addresses. */
static bool same_scope(const struct pm_stat *stat, const struct pm_stat_scope *a,
		       const struct pm_stat_scope *b)
{
	bool one_program =
		stat->runs.data[a->run].variant == stat->runs.data[b->run].variant;

	return a->kind == b->kind && strcmp(a->name, b->name) == 0 &&
	       a->places == b->places &&
	       (!one_program || (a->low == b->low && a->high == b->high &&
				 same_optional_text(a->module, b->module)));
}

struct seeker {
	const struct pm_stat *stat;
	const struct pm_stat_groups *groups;
};

static bool stat_group_equal(const void *table, uint32_t id, const void *key)
{
	const struct seeker *seeker = table;
	const struct pm_stat_group *group = &seeker->groups->list.data[id];
	const struct pm_stat_scope *scope = key;

	uint32_t last = group->members.data[group->members.len - 1];

	/* A group has one scope per run: a name that occurs twice in the other program
	 * has two groups. */
	return seeker->stat->scopes.data[last].run != scope->run &&
	       same_scope(seeker->stat, group->scope, scope);
}

int pm_stat_groups_find(struct pm_stat_groups *groups, const struct pm_stat *stat)
{
	PM_CLEANUP(pm_index_release) struct pm_index index = { 0 };
	struct seeker seeker = { stat, groups };

	for (uint32_t i = 0; i < stat->scopes.len; i++) {
		const struct pm_stat_scope *scope = &stat->scopes.data[i];
		uint64_t hash = pm_hash_bytes(scope->name, strlen(scope->name));
		uint32_t id =
			pm_index_find(&index, hash, stat_group_equal, &seeker, scope);

		if (id == PM_INDEX_NONE) {
			struct pm_stat_group group = { .scope = scope };

			id = (uint32_t)groups->list.len;
			if (pm_vec_push(&groups->list, group) < 0 ||
			    pm_index_add(&index, hash, id) < 0)
				return -ENOMEM;
		}
		if (pm_vec_push(&groups->list.data[id].members, i) < 0)
			return -ENOMEM;
	}
	return 0;
}

bool pm_stat_program_is_shown(const struct pm_stat *stat)
{
	for (size_t i = 0; i < stat->runs.len; i++)
		for (size_t j = 0; j < stat->events.len; j++)
			if (pm_stat_has_value(&stat->runs.data[i].values[j]))
				return true;
	return stat->scopes.len == 0;
}

/* ---- values ---------------------------------------------------------------------------- */

static int series_add_number(struct pm_stat_series *series, uint32_t variant,
			     double number)
{
	if (variant < PM_ARRAY_LEN(series->of))
		return pm_vec_push(&series->of[variant], number);
	return 0;
}

static int series_add_value(struct pm_stat_series *series, uint32_t variant,
			    const struct pm_stat_value *value)
{
	if (pm_stat_has_value(value))
		return series_add_number(series, variant,
					 (double)value->value * series->event->scale);
	if (series->state == PM_STAT_OK)
		series->state = value->state;
	return 0;
}

int pm_stat_series_get(struct pm_stat_series *out, const struct pm_stat *stat,
		       const struct pm_stat_group *group, size_t event)
{
	uint32_t ended = pm_stat_variants_ended(stat);
	int ret = 0;

	if (event < stat->events.len)
		out->event = &stat->events.data[event];
	for (size_t i = 0; ret == 0 && !group && i < stat->runs.len; i++)
		if (pm_stat_is_summed(ended, &stat->runs.data[i]))
			ret = series_add_value(out, stat->runs.data[i].variant,
					       &stat->runs.data[i].values[event]);
	for (size_t i = 0; ret == 0 && group && i < group->members.len; i++) {
		const struct pm_stat_scope *scope =
			&stat->scopes.data[group->members.data[i]];
		const struct pm_stat_run *run = &stat->runs.data[scope->run];
		uint32_t variant = run->variant;

		if (!pm_stat_is_summed(ended, run))
			continue;
		if (out->event)
			ret = series_add_value(out, variant, &scope->values[event]);
		else if (!scope->calls_unknown)
			ret = series_add_number(out, variant, (double)scope->calls);
		else if (out->state == PM_STAT_OK)
			out->state = PM_STAT_NOT_COUNTED;
	}
	return ret;
}
