/* SPDX-License-Identifier: MIT */
/* Tables by several keys, and by what only single samples know. */
#include "profile-internal.h"

#include <string.h>

/* What differs in a key for samples of one cell. */
struct group {
	uint32_t cell, cpu, parallelism;
	struct pm_weight weight;
};

struct work {
	const struct pm_view *view;
	const struct pm_keys *keys;
	struct pm_table table;
	struct pm_index rows, groups_index;
	PM_VEC(struct group) groups;
	PM_VEC(uint32_t) last; /* by row: the group, plus 1, that was added to it last */
	uint32_t *addresses; /* by frame, see pm_table_addresses() */
	uint32_t *comm_of; /* by thread: the first one of its name */
	bool by_stack, by_level; /* a key is one of frames; of levels of frames */
	bool by_sample;
	bool functions; /* a key is one of functions */
};

static void work_release(struct work *work)
{
	pm_table_release(&work->table);
	pm_index_release(&work->rows);
	pm_index_release(&work->groups_index);
	pm_vec_release(&work->groups);
	pm_vec_release(&work->last);
	free(work->addresses);
	free(work->comm_of);
}

static bool name_equal(const void *table, uint32_t id, const void *key)
{
	return ((const struct pm_profile *)table)->threads.data[id].comm == key;
}

/* Names are pooled: one pointer for one text. */
static int find_names(struct work *work)
{
	const struct pm_profile *profile = work->view->profile;
	PM_CLEANUP(pm_index_release) struct pm_index index = { 0 };

	work->comm_of = calloc(profile->threads.len + 1, sizeof(uint32_t));
	if (!work->comm_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile->threads.len; i++) {
		const char *comm = profile->threads.data[i].comm;
		uint64_t hash = pm_hash_mix((uintptr_t)comm, 0);
		uint32_t id = pm_index_find(&index, hash, name_equal, profile, comm);

		if (id == PM_INDEX_NONE) {
			id = i;
			if (pm_index_add(&index, hash, id) < 0)
				return -ENOMEM;
		}
		work->comm_of[i] = id;
	}
	return 0;
}

/* ---- groups ------------------------------------------------------------------------------ */

static bool group_equal(const void *table, uint32_t id, const void *key)
{
	const struct group *have = &((const struct work *)table)->groups.data[id];
	const struct group *wanted = key;

	return have->cell == wanted->cell && have->cpu == wanted->cpu &&
	       have->parallelism == wanted->parallelism;
}

static int add_group(struct work *work, const struct group *group)
{
	uint64_t hash =
		pm_hash_mix(group->cell, (uint64_t)group->cpu << 32 | group->parallelism);
	uint32_t id = pm_index_find(&work->groups_index, hash, group_equal, work, group);
	int r;

	if (id != PM_INDEX_NONE) {
		pm_weight_add(&work->groups.data[id].weight, &group->weight);
		return 0;
	}
	r = pm_vec_push(&work->groups, *group);
	if (r == 0)
		r = pm_index_add(&work->groups_index, hash,
				 (uint32_t)work->groups.len - 1);
	return r;
}

/* Samples that differ in nothing that a key asks for are one. */
static int group_samples(struct work *work)
{
	const struct pm_profile *profile = work->view->profile;
	PM_AUTO_FREE bool *passed = calloc(profile->cells.len + 1, sizeof(*passed));
	bool cpus = false, parallelism = false;

	if (!passed)
		return -ENOMEM;
	for (uint32_t i = 0; i < work->keys->len; i++) {
		cpus |= work->keys->key[i] == PM_KEY_CPU;
		parallelism |= work->keys->key[i] == PM_KEY_PARALLELISM;
	}
	for (size_t i = 0; i < work->view->cells.len; i++)
		passed[work->view->cells.data[i]] = true;
	for (size_t i = 0; i < profile->samples.len; i++) {
		const struct pm_profile_sample *sample = &profile->samples.data[i];
		struct group group = {
			.cell = sample->cell,
			.cpu = cpus ? sample->cpu : 0,
			.weight = { .samples = 1, .period = sample->period },
		};
		int r;

		if (!passed[sample->cell])
			continue;
		if (parallelism && i < profile->parallelism.len)
			group.parallelism = profile->parallelism.data[i];
		r = add_group(work, &group);
		if (r < 0)
			return r;
	}
	return 0;
}

static int group_cells(struct work *work)
{
	const struct pm_view *view = work->view;

	for (size_t i = 0; i < view->cells.len; i++) {
		uint32_t cell = view->cells.data[i];
		int r = pm_vec_push(
			&work->groups,
			(struct group){ .cell = cell,
					.weight =
						view->profile->cells.data[cell].weight });

		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- rows ------------------------------------------------------------------------------ */

static bool row_equal(const void *table, uint32_t id, const void *key)
{
	const struct work *work = table;
	const struct pm_row *have = &work->table.rows.data[id];
	const struct pm_row *wanted = key;

	return have->id == wanted->id &&
	       memcmp(have->more, wanted->more, sizeof(have->more)) == 0;
}

static int find_row(struct work *work, const struct pm_row *wanted, uint32_t *ret)
{
	uint64_t hash = wanted->id;
	uint32_t id;
	int r;

	for (size_t i = 0; i < PM_ARRAY_LEN(wanted->more); i++)
		hash = pm_hash_mix(hash, wanted->more[i]);
	id = pm_index_find(&work->rows, hash, row_equal, work, wanted);
	if (id == PM_INDEX_NONE) {
		id = (uint32_t)work->table.rows.len;
		r = pm_vec_push(&work->table.rows, *wanted);
		if (r == 0)
			r = pm_vec_push(&work->last, 0);
		if (r == 0)
			r = pm_index_add(&work->rows, hash, id);
		if (r < 0)
			return r;
	}
	*ret = id;
	return 0;
}

static uint32_t key_of(const struct work *work, enum pm_key key,
		       const struct group *group, uint32_t stack, uint32_t level)
{
	const struct pm_profile *profile = work->view->profile;
	uint32_t thread = profile->cells.data[group->cell].thread;
	uint32_t frame = profile->stacks.data[stack].frame;

	switch (key) {
	case PM_KEY_FUNCTION:
		return pm_profile_level_function(profile, stack, level);
	case PM_KEY_LINE:
		return pm_profile_level_place(profile, stack, level);
	case PM_KEY_MODULE:
		return profile->frames.data[frame].module;
	case PM_KEY_ADDRESS:
		return work->addresses[frame];
	case PM_KEY_THREAD:
		return thread;
	case PM_KEY_PROCESS:
		return profile->threads.data[thread].process;
	case PM_KEY_COMM:
		return work->comm_of[thread];
	case PM_KEY_CPU:
		return group->cpu;
	case PM_KEY_PARALLELISM:
		return group->parallelism;
	}
	return PM_PROFILE_NONE;
}

static int add_level(struct work *work, uint32_t number, uint32_t stack, uint32_t level)
{
	const struct pm_profile *profile = work->view->profile;
	const struct group *group = &work->groups.data[number];
	struct pm_row wanted = { .place = PM_PROFILE_NONE, .inlined = work->functions };
	struct pm_row *row;
	uint32_t id;
	int r;

	wanted.id = key_of(work, work->keys->key[0], group, stack, level);
	for (uint32_t i = 1; i < work->keys->len; i++)
		wanted.more[i - 1] =
			key_of(work, work->keys->key[i], group, stack, level);
	r = find_row(work, &wanted, &id);
	if (r < 0)
		return r;
	row = &work->table.rows.data[id];
	if (work->last.data[id] != number + 1) {
		work->last.data[id] = number + 1;
		pm_weight_add(&row->total, &group->weight);
	}
	if (level == 0 && stack == profile->cells.data[group->cell].stack)
		pm_weight_add(&row->self, &group->weight);
	if (level + 1 == pm_profile_levels(profile, stack))
		row->inlined = false;
	return 0;
}

static int add_group_rows(struct work *work, uint32_t number)
{
	const struct pm_profile *profile = work->view->profile;
	uint32_t at = profile->cells.data[work->groups.data[number].cell].stack;

	/* Parents come before their children: this ends. */
	for (; at != PM_PROFILE_NONE; at = profile->stacks.data[at].parent) {
		uint32_t levels = work->by_level ? pm_profile_levels(profile, at) : 1;

		for (uint32_t i = 0; i < levels; i++) {
			int r = add_level(work, number, at, i);

			if (r < 0)
				return r;
		}
		if (!work->by_stack)
			return 0;
	}
	return 0;
}

static int work_init(struct work *work)
{
	int r = find_names(work);

	for (uint32_t i = 0; r == 0 && i < work->keys->len; i++) {
		switch (work->keys->key[i]) {
		case PM_KEY_FUNCTION:
		case PM_KEY_LINE:
			work->by_level = work->by_stack = true;
			work->functions |= work->keys->key[i] == PM_KEY_FUNCTION;
			break;
		case PM_KEY_ADDRESS:
			work->addresses = pm_table_addresses(work->view->profile);
			r = work->addresses ? 0 : -ENOMEM;
			work->by_stack = true;
			break;
		case PM_KEY_MODULE:
			work->by_stack = true;
			break;
		case PM_KEY_CPU:
		case PM_KEY_PARALLELISM:
			work->by_sample = true;
			break;
		case PM_KEY_THREAD:
		case PM_KEY_PROCESS:
		case PM_KEY_COMM:
			break;
		}
	}
	return r;
}

int pm_table_init_keys(struct pm_table *ret, const struct pm_view *view,
		       const struct pm_keys *keys, bool by_total)
{
	PM_CLEANUP(work_release) struct work work = { .view = view, .keys = keys };
	int r;

	if (keys->len == 1 && keys->key[0] <= PM_KEY_ADDRESS)
		return pm_table_init(ret, view, keys->key[0], by_total);
	r = work_init(&work);
	if (r == 0)
		r = work.by_sample ? group_samples(&work) : group_cells(&work);
	for (uint32_t i = 0; r == 0 && i < work.groups.len; i++)
		r = add_group_rows(&work, i);
	if (r < 0)
		return r;
	pm_table_sort(&work.table, by_total);
	*ret = work.table;
	work.table = (struct pm_table){ 0 };
	return 0;
}
