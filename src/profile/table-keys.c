/* SPDX-License-Identifier: MIT */
/* Tables by several keys, and by properties of single samples. */
#include "profile-internal.h"

#include <string.h>

/*
 * A row is a pair: the values of its frame keys (the part of the path, see table-paths.c)
 * and those of its other keys (the context: thread, CPU, and so on). Samples are summed
 * by context, and within a context towards the root of the stacks, each node once. The
 * time is proportional to the number of rows, however deep the stacks are and however
 * many samples end in each.
 */

/* All samples of one cell that have equal keys. */
struct group {
	uint32_t cell, cpu, parallelism, context;
	struct pm_weight weight;
};

struct context {
	uint32_t of[PM_KEYS_MAX]; /* by key; 0 for keys of frames */
};

struct work {
	const struct pm_view *view;
	const struct pm_keys *keys;
	struct pm_table table;
	struct pm_index groups_index, contexts_index;
	PM_VEC(struct group) groups;
	PM_VEC(struct context) contexts;
	struct pm_table_paths paths; /* empty without frame keys */
	PM_VEC(uint32_t) visited; /* nodes of this context, parents first */
	uint32_t *comm_of; /* by thread: the first thread with the same name */
	bool by_stack, by_sample;
	bool functions; /* there is a key of functions */
};

static void table_work_release(struct work *work)
{
	pm_table_release(&work->table);
	pm_index_release(&work->groups_index);
	pm_index_release(&work->contexts_index);
	pm_vec_release(&work->groups);
	pm_vec_release(&work->contexts);
	pm_table_paths_release(&work->paths);
	pm_vec_release(&work->visited);
	free(work->comm_of);
}

/* ---- groups ------------------------------------------------------------------------------ */

static bool group_key_equal(const void *table, uint32_t id, const void *key)
{
	const struct group *have = &((const struct work *)table)->groups.data[id];
	const struct group *wanted = key;

	return have->cell == wanted->cell && have->cpu == wanted->cpu &&
	       have->parallelism == wanted->parallelism;
}

static int work_add_group(struct work *work, const struct group *group)
{
	uint64_t hash =
		pm_hash_mix(group->cell, (uint64_t)group->cpu << 32 | group->parallelism);
	uint32_t id =
		pm_index_find(&work->groups_index, hash, group_key_equal, work, group);
	int ret;

	if (id != PM_INDEX_NONE) {
		pm_weight_add(&work->groups.data[id].weight, &group->weight);
		return 0;
	}
	ret = pm_vec_push(&work->groups, *group);
	if (ret == 0)
		ret = pm_index_add(&work->groups_index, hash,
				   (uint32_t)work->groups.len - 1);
	return ret;
}

/* Merges the samples whose keys are all equal. */
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
		int ret;

		if (!passed[sample->cell])
			continue;
		if (parallelism && i < profile->parallelism.len)
			group.parallelism = profile->parallelism.data[i];
		ret = work_add_group(work, &group);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int group_cells(struct work *work)
{
	const struct pm_view *view = work->view;

	for (size_t i = 0; i < view->cells.len; i++) {
		uint32_t cell = view->cells.data[i];
		int ret = pm_vec_push(
			&work->groups,
			(struct group){ .cell = cell,
					.weight =
						view->profile->cells.data[cell].weight });

		if (ret < 0)
			return ret;
	}
	return 0;
}

/* ---- contexts ---------------------------------------------------------------------------- */

static bool context_key_equal(const void *table, uint32_t id, const void *key)
{
	return memcmp(&((const struct work *)table)->contexts.data[id], key,
		      sizeof(struct context)) == 0;
}

static uint32_t key_of_group(const struct work *work, enum pm_key key,
			     const struct group *group)
{
	const struct pm_profile *profile = work->view->profile;
	uint32_t thread = profile->cells.data[group->cell].thread;

	switch (key) {
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
	case PM_KEY_FUNCTION:
	case PM_KEY_LINE:
	case PM_KEY_MODULE:
	case PM_KEY_ADDRESS:
		break;
	}
	return 0;
}

static int find_or_add_context(struct work *work, struct group *group)
{
	struct context wanted = { 0 };
	uint64_t hash = 0;
	int ret;

	for (uint32_t i = 0; i < work->keys->len; i++) {
		wanted.of[i] = key_of_group(work, work->keys->key[i], group);
		hash = pm_hash_mix(hash, wanted.of[i]);
	}
	group->context = pm_index_find(&work->contexts_index, hash, context_key_equal,
				       work, &wanted);
	if (group->context != PM_INDEX_NONE)
		return 0;
	group->context = (uint32_t)work->contexts.len;
	ret = pm_vec_push(&work->contexts, wanted);
	if (ret < 0)
		return ret;
	return pm_index_add(&work->contexts_index, hash, group->context);
}

static int compare_groups_by_context(const void *a, const void *b)
{
	const struct group *left = a, *right = b;

	return PM_COMPARE(left->context, right->context);
}

static int find_all_contexts(struct work *work)
{
	for (size_t i = 0; i < work->groups.len; i++) {
		int ret = find_or_add_context(work, &work->groups.data[i]);

		if (ret < 0)
			return ret;
	}
	if (work->groups.len > 0)
		qsort(work->groups.data, work->groups.len, sizeof(*work->groups.data),
		      compare_groups_by_context);
	return 0;
}

/* ---- rows ------------------------------------------------------------------------------ */

static int work_add_row(struct work *work, uint32_t context, const uint32_t *frame_keys,
			uint32_t *out)
{
	const uint32_t *others = work->contexts.data[context].of;
	struct pm_row row = { .place = PM_PROFILE_NONE, .inlined = work->functions };
	int ret;

	if (work->table.rows.len >= PM_TABLE_ROWS_MAX)
		return -E2BIG;
	row.id = others[0] | frame_keys[0];
	for (size_t i = 1; i < PM_KEYS_MAX; i++)
		row.more[i - 1] = others[i] | frame_keys[i];
	ret = pm_vec_push(&work->table.rows, row);
	if (ret == 0)
		*out = (uint32_t)work->table.rows.len - 1;
	return ret;
}

static int find_or_add_part_row(struct work *work, uint32_t context, uint32_t part_id,
				struct pm_row **out)
{
	struct pm_table_part *part = &work->paths.parts.data[part_id];

	if (part->context != context + 1) {
		int ret = work_add_row(work, context, part->of, &part->row);

		if (ret < 0)
			return ret;
		part->context = context + 1;
	}
	*out = &work->table.rows.data[part->row];
	return 0;
}

/* Adds @group to the node where its stack ends. Appends that node and its ancestors to
 * `visited` unless they are already there. */
static int visit_group_nodes(struct work *work, const struct group *group)
{
	const struct pm_table_node *nodes = work->paths.nodes;
	uint32_t stack = work->view->profile->cells.data[group->cell].stack;
	uint32_t at = nodes[stack].len > 0 ? stack : nodes[stack].up;
	size_t first = work->visited.len;
	struct pm_row *row;
	int ret = find_or_add_part_row(work, group->context, nodes[stack].leaf, &row);

	if (ret < 0)
		return ret;
	pm_weight_add(&row->self, &group->weight);
	pm_weight_add(&work->paths.nodes[at].weight, &group->weight);
	for (; at != PM_PROFILE_NONE && nodes[at].context != group->context + 1;
	     at = nodes[at].up) {
		work->paths.nodes[at].context = group->context + 1;
		ret = pm_vec_push(&work->visited, at);
		if (ret < 0)
			return ret;
	}
	for (size_t last = work->visited.len; first + 1 < last; first++) {
		uint32_t other = work->visited.data[--last];

		work->visited.data[last] = work->visited.data[first];
		work->visited.data[first] = other;
	}
	return 0;
}

/* Sums children before their parents. */
static int sum_visited_nodes(struct work *work, uint32_t context)
{
	struct pm_table_paths *paths = &work->paths;

	while (work->visited.len > 0) {
		struct pm_table_node *node =
			&paths->nodes[work->visited.data[--work->visited.len]];

		for (uint32_t i = 0; i < node->len; i++) {
			const struct pm_table_first *first =
				&paths->firsts.data[node->first + i];
			struct pm_row *row;
			int ret = find_or_add_part_row(work, context, first->part, &row);

			if (ret < 0)
				return ret;
			if (first->counts)
				pm_weight_add(&row->total, &node->weight);
			if (first->proper)
				row->inlined = false;
		}
		if (node->up != PM_PROFILE_NONE)
			pm_weight_add(&paths->nodes[node->up].weight, &node->weight);
		node->weight = (struct pm_weight){ 0 };
	}
	return 0;
}

static int add_frame_rows(struct work *work)
{
	for (size_t i = 0; i < work->groups.len; i++) {
		uint32_t context = work->groups.data[i].context;
		bool last = i + 1 == work->groups.len ||
			    work->groups.data[i + 1].context != context;
		int ret = visit_group_nodes(work, &work->groups.data[i]);

		if (ret == 0 && last)
			ret = sum_visited_nodes(work, context);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int add_context_rows(struct work *work)
{
	static const uint32_t no_frame_keys[PM_KEYS_MAX];
	uint32_t row = 0;

	for (size_t i = 0; i < work->groups.len; i++) {
		const struct group *group = &work->groups.data[i];

		if (i == 0 || group->context != work->groups.data[i - 1].context) {
			int ret = work_add_row(work, group->context, no_frame_keys, &row);

			if (ret < 0)
				return ret;
		}
		pm_weight_add(&work->table.rows.data[row].self, &group->weight);
		pm_weight_add(&work->table.rows.data[row].total, &group->weight);
	}
	return 0;
}

static int make_table_rows(struct work *work)
{
	int ret;

	for (uint32_t i = 0; i < work->keys->len; i++) {
		enum pm_key key = work->keys->key[i];

		work->by_sample |= key == PM_KEY_CPU || key == PM_KEY_PARALLELISM;
		work->by_stack |= pm_table_is_frame_key(key);
		work->functions |= key == PM_KEY_FUNCTION;
	}
	work->comm_of = pm_profile_comms(work->view->profile);
	if (!work->comm_of)
		return -ENOMEM;
	if (work->by_sample)
		ret = group_samples(work);
	else
		ret = group_cells(work);
	if (ret == 0)
		ret = find_all_contexts(work);
	if (ret == 0 && work->by_stack)
		ret = pm_table_paths_init(&work->paths, work->view, work->keys);
	if (ret == 0) {
		if (work->by_stack)
			ret = add_frame_rows(work);
		else
			ret = add_context_rows(work);
	}
	return ret;
}

int pm_table_init_keys(struct pm_table *out, const struct pm_view *view,
		       const struct pm_keys *keys, bool by_total)
{
	PM_CLEANUP(table_work_release) struct work work = { .view = view, .keys = keys };
	int ret;

	if (keys->len == 1 && keys->key[0] <= PM_KEY_ADDRESS)
		return pm_table_init(out, view, keys->key[0], by_total);
	ret = make_table_rows(&work);
	if (ret < 0)
		return ret;
	pm_table_sort(&work.table, by_total);
	*out = work.table;
	work.table = (struct pm_table){ 0 };
	return 0;
}
