/* SPDX-License-Identifier: MIT */
#include "profile-internal.h"

#include <string.h>

/* ---- keys ------------------------------------------------------------------------------ */

struct keys {
	enum pm_key key;
	const struct pm_profile *profile;
	size_t len; /* all keys are below this */
	bool by_level; /* each level of a frame has a key, not each frame */
	const uint32_t *of; /* keys by row of profile->levels, or by frame */
	uint32_t *owned; /* `of`, if it was allocated; otherwise NULL */
};

static uint32_t frame_function(const struct pm_profile *profile,
			       const struct pm_profile_frame *frame)
{
	return profile->places.data[profile->levels.data[frame->first_level]].function;
}

/* Frames are equal if address, module and function are: two files with the same path and
 * without build-ids may have different code at one address. */
static bool frame_key_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_profile *profile = table;
	const struct pm_profile_frame *have = &profile->frames.data[id];
	const struct pm_profile_frame *wanted = key;

	return have->address == wanted->address && have->module == wanted->module &&
	       frame_function(profile, have) == frame_function(profile, wanted);
}

uint32_t *pm_profile_addresses(const struct pm_profile *profile)
{
	PM_CLEANUP(pm_index_release) struct pm_index index = { 0 };
	PM_AUTO_FREE uint32_t *address_of =
		calloc(profile->frames.len + 1, sizeof(*address_of));

	for (size_t i = 0; address_of && i < profile->frames.len; i++) {
		const struct pm_profile_frame *frame = &profile->frames.data[i];
		uint64_t hash = pm_hash_mix(frame->address,
					    (uint64_t)frame->module << 32 |
						    frame_function(profile, frame));
		uint32_t id =
			pm_index_find(&index, hash, frame_key_equal, profile, frame);

		if (id == PM_INDEX_NONE) {
			id = (uint32_t)i;
			if (pm_index_add(&index, hash, id) < 0)
				return NULL;
		}
		address_of[i] = id;
	}
	return PM_TAKE_PTR(address_of);
}

static bool thread_comm_equal(const void *table, uint32_t id, const void *key)
{
	return ((const struct pm_profile *)table)->threads.data[id].comm == key;
}

/* Names are pooled: equal strings have the same pointer. */
uint32_t *pm_profile_comms(const struct pm_profile *profile)
{
	PM_CLEANUP(pm_index_release) struct pm_index index = { 0 };
	PM_AUTO_FREE uint32_t *comm_of =
		calloc(profile->threads.len + 1, sizeof(*comm_of));

	for (uint32_t i = 0; comm_of && i < profile->threads.len; i++) {
		const char *comm = profile->threads.data[i].comm;
		uint64_t hash = pm_hash_mix((uintptr_t)comm, 0);
		uint32_t id =
			pm_index_find(&index, hash, thread_comm_equal, profile, comm);

		if (id == PM_INDEX_NONE) {
			id = i;
			if (pm_index_add(&index, hash, id) < 0)
				return NULL;
		}
		comm_of[i] = id;
	}
	return PM_TAKE_PTR(comm_of);
}

static uint32_t *functions_by_level(const struct pm_profile *profile)
{
	uint32_t *functions = malloc((profile->levels.len + 1) * sizeof(*functions));

	for (size_t i = 0; functions && i < profile->levels.len; i++)
		functions[i] = profile->places.data[profile->levels.data[i]].function;
	return functions;
}

static uint32_t *modules_by_frame(const struct pm_profile *profile)
{
	uint32_t *modules = malloc((profile->frames.len + 1) * sizeof(*modules));

	for (size_t i = 0; modules && i < profile->frames.len; i++) {
		uint32_t module = profile->frames.data[i].module;

		if (module == PM_PROFILE_NONE)
			modules[i] = (uint32_t)profile->modules.len;
		else
			modules[i] = module;
	}
	return modules;
}

static int keys_init(struct keys *keys, const struct pm_profile *profile, enum pm_key key)
{
	*keys = (struct keys){ .key = key, .profile = profile };
	switch (key) {
	case PM_KEY_FUNCTION:
		keys->len = profile->functions.len;
		keys->by_level = true;
		keys->owned = functions_by_level(profile);
		break;
	case PM_KEY_LINE:
		keys->len = profile->places.len;
		keys->by_level = true;
		keys->of = profile->levels.data;
		return 0;
	case PM_KEY_MODULE:
		keys->len = profile->modules.len + 1;
		keys->owned = modules_by_frame(profile);
		break;
	case PM_KEY_ADDRESS:
		keys->len = profile->frames.len;
		keys->owned = pm_profile_addresses(profile);
		break;
	case PM_KEY_THREAD:
		keys->len = profile->threads.len;
		return 0;
	case PM_KEY_PROCESS:
		keys->len = profile->processes.len;
		return 0;
	case PM_KEY_COMM: /* pm_table_init_keys() handles these */
	case PM_KEY_CPU:
	case PM_KEY_PARALLELISM:
		return -EINVAL;
	}
	keys->of = keys->owned;
	if (!keys->owned)
		return -ENOMEM;
	return 0;
}

static void keys_release(struct keys *keys)
{
	free(keys->owned);
}

/* Returns the keys of the frame of @stack, innermost first, and their number. */
static uint32_t keys_of_stack(const struct keys *keys, uint32_t stack,
			      const uint32_t **out)
{
	uint32_t id = keys->profile->stacks.data[stack].frame;
	const struct pm_profile_frame *frame = &keys->profile->frames.data[id];

	*out = keys->of + (keys->by_level ? frame->first_level : id);
	if (keys->by_level)
		return frame->levels;
	return 1;
}

/* ---- sums ------------------------------------------------------------------------------ */

struct sums {
	struct pm_weight *self, *total; /* by key */
	uint32_t *active; /* by key: occurrences on the path from the root */
	bool *proper; /* by key: has occurred without being inlined */
};

static void table_sums_release(struct sums *sums)
{
	free(sums->self);
	free(sums->total);
	free(sums->active);
	free(sums->proper);
}

static int table_sums_init(struct sums *sums, size_t len)
{
	sums->self = calloc(len + 1, sizeof(*sums->self));
	sums->total = calloc(len + 1, sizeof(*sums->total));
	sums->active = calloc(len + 1, sizeof(*sums->active));
	sums->proper = calloc(len + 1, sizeof(*sums->proper));
	if (!sums->self || !sums->total || !sums->active || !sums->proper)
		return -ENOMEM;
	return 0;
}

static void enter_stack_keys(const struct pm_view *view, const struct keys *keys,
			     struct sums *sums, uint32_t stack)
{
	const uint32_t *key;
	uint32_t count = keys_of_stack(keys, stack, &key);

	for (uint32_t i = 0; i < count; i++)
		if (sums->active[key[i]]++ == 0)
			pm_weight_add(&sums->total[key[i]], &view->sum[stack]);
	if (view->self[stack].samples > 0)
		pm_weight_add(&sums->self[key[0]], &view->self[stack]);
	sums->proper[key[count - 1]] = true;
}

static void leave_stack_keys(const struct keys *keys, struct sums *sums, uint32_t stack)
{
	const uint32_t *key;
	uint32_t count = keys_of_stack(keys, stack, &key);

	for (uint32_t i = 0; i < count; i++)
		sums->active[key[i]]--;
}

/*
 * Walks the stack tree depth first, without recursion, because the depth is that of the
 * file. The active counts show whether a key is already on the path, so that each sample
 * is counted once.
 */
static void walk_stack_sums(const struct pm_view *view, const struct keys *keys,
			    struct sums *sums)
{
	const struct pm_profile_stack *stacks = view->profile->stacks.data;
	uint32_t at = view->profile->first_root;

	while (at != PM_PROFILE_NONE) {
		if (view->sum[at].samples > 0) {
			enter_stack_keys(view, keys, sums, at);
			if (stacks[at].first_child != PM_PROFILE_NONE) {
				at = stacks[at].first_child;
				continue;
			}
			leave_stack_keys(keys, sums, at);
		}
		while (stacks[at].next == PM_PROFILE_NONE &&
		       stacks[at].parent != PM_PROFILE_NONE) {
			at = stacks[at].parent;
			leave_stack_keys(keys, sums, at);
		}
		at = stacks[at].next;
	}
}

/* Sums the cells for keys that do not depend on stacks: threads and processes. */
static void sum_cell_keys(const struct pm_view *view, const struct keys *keys,
			  struct sums *sums)
{
	const struct pm_profile *profile = view->profile;

	for (size_t i = 0; i < view->cells.len; i++) {
		const struct pm_profile_cell *cell =
			&profile->cells.data[view->cells.data[i]];
		uint32_t key = cell->thread;

		if (keys->key == PM_KEY_PROCESS)
			key = profile->threads.data[key].process;
		pm_weight_add(&sums->self[key], &cell->weight);
		pm_weight_add(&sums->total[key], &cell->weight);
	}
}

static int compute_sums(const struct pm_view *view, const struct keys *keys,
			struct sums *sums)
{
	int ret = table_sums_init(sums, keys->len);

	if (ret < 0)
		return ret;
	if (keys->key == PM_KEY_THREAD || keys->key == PM_KEY_PROCESS)
		sum_cell_keys(view, keys, sums);
	else
		walk_stack_sums(view, keys, sums);
	return 0;
}

/* ---- rows ------------------------------------------------------------------------------ */

static int compare_weights(const struct pm_weight *a, const struct pm_weight *b)
{
	if (a->period != b->period)
		return PM_COMPARE(b->period, a->period);
	return PM_COMPARE(b->samples, a->samples);
}

static int compare_ids(const struct pm_row *a, const struct pm_row *b)
{
	for (uint32_t i = 0; i < PM_KEYS_MAX; i++) {
		uint32_t left = pm_row_id(a, i), right = pm_row_id(b, i);

		if (left != right)
			return PM_COMPARE(left, right);
	}
	return 0;
}

static int compare_rows_by_self(const void *a, const void *b)
{
	const struct pm_row *left = a, *right = b;
	int ret = compare_weights(&left->self, &right->self);

	if (ret == 0)
		ret = compare_weights(&left->total, &right->total);
	if (ret != 0)
		return ret;
	return compare_ids(left, right);
}

static int compare_rows_by_total(const void *a, const void *b)
{
	const struct pm_row *left = a, *right = b;
	int ret = compare_weights(&left->total, &right->total);

	if (ret == 0)
		ret = compare_weights(&left->self, &right->self);
	if (ret != 0)
		return ret;
	return compare_ids(left, right);
}

/* Finds the heaviest line of each function. */
static int table_add_places(struct pm_table *table, const struct pm_view *view)
{
	const struct pm_profile *profile = view->profile;
	PM_CLEANUP(keys_release) struct keys keys = { 0 };
	PM_CLEANUP(table_sums_release) struct sums sums = { 0 };
	PM_AUTO_FREE uint32_t *best =
		malloc((profile->functions.len + 1) * sizeof(*best));
	int ret;

	if (!best)
		return -ENOMEM;
	memset(best, 0xff, (profile->functions.len + 1) * sizeof(*best));
	ret = keys_init(&keys, profile, PM_KEY_LINE);
	if (ret == 0)
		ret = compute_sums(view, &keys, &sums);
	if (ret < 0)
		return ret;
	for (uint32_t i = 0; i < profile->places.len; i++) {
		uint32_t *have = &best[profile->places.data[i].function];
		int order;

		if (sums.total[i].samples == 0)
			continue;
		if (*have != PM_PROFILE_NONE) {
			order = compare_weights(&sums.self[*have], &sums.self[i]);
			if (order == 0)
				order = compare_weights(&sums.total[*have],
							&sums.total[i]);
			if (order <= 0)
				continue;
		}
		*have = i;
	}
	for (size_t i = 0; i < table->rows.len; i++)
		table->rows.data[i].place = best[table->rows.data[i].id];
	return 0;
}

void pm_table_sort(struct pm_table *table, bool total_first)
{
	if (table->rows.len > 0)
		qsort(table->rows.data, table->rows.len, sizeof(*table->rows.data),
		      total_first ? compare_rows_by_total : compare_rows_by_self);
}

int pm_table_init(struct pm_table *out, const struct pm_view *view, enum pm_key key,
		  bool total_first)
{
	const struct pm_profile *profile = view->profile;
	PM_CLEANUP(pm_table_release) struct pm_table table = { 0 };
	PM_CLEANUP(keys_release) struct keys keys = { 0 };
	PM_CLEANUP(table_sums_release) struct sums sums = { 0 };
	int ret = keys_init(&keys, profile, key);

	if (ret == 0)
		ret = compute_sums(view, &keys, &sums);
	for (uint32_t i = 0; ret == 0 && i < keys.len; i++) {
		struct pm_row row = { .id = i,
				      .self = sums.self[i],
				      .total = sums.total[i],
				      .place = PM_PROFILE_NONE };

		if (row.total.samples == 0)
			continue;
		if (key == PM_KEY_FUNCTION)
			row.inlined = !sums.proper[i];
		if (key == PM_KEY_MODULE && i == profile->modules.len)
			row.id = PM_PROFILE_NONE;
		ret = pm_vec_push(&table.rows, row);
	}
	if (ret == 0 && key == PM_KEY_FUNCTION)
		ret = table_add_places(&table, view);
	if (ret < 0)
		return ret;
	pm_table_sort(&table, total_first);
	*out = table;
	table = (struct pm_table){ 0 };
	return 0;
}

void pm_table_release(struct pm_table *table)
{
	pm_vec_release(&table->rows);
}
