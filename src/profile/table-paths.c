/* SPDX-License-Identifier: MIT */
/* Finds which values of frame keys occur on each stack, and where each occurs first, for
 * tables by several keys. */
#include "profile-internal.h"

#include <string.h>

/* The state of the walk: the parts on the path from the root. */
struct walk {
	struct pm_table_paths *paths;
	const struct pm_view *view;
	const struct pm_keys *keys;
	bool by_level; /* the levels of a frame may differ in a key */
	uint32_t *addresses; /* by frame, see pm_profile_addresses() */
	struct pm_index index; /* of parts */
	PM_VEC(uint32_t) active; /* parts, with repetition */
};

static void path_walk_release(struct walk *walk)
{
	free(walk->addresses);
	pm_index_release(&walk->index);
	pm_vec_release(&walk->active);
}

bool pm_table_is_frame_key(enum pm_key key)
{
	return key == PM_KEY_FUNCTION || key == PM_KEY_LINE || key == PM_KEY_MODULE ||
	       key == PM_KEY_ADDRESS;
}

static uint32_t key_of_level(const struct walk *walk, enum pm_key key, uint32_t stack,
			     uint32_t level)
{
	const struct pm_profile *profile = walk->view->profile;
	uint32_t frame = profile->stacks.data[stack].frame;

	if (key == PM_KEY_FUNCTION)
		return pm_profile_level_function(profile, stack, level);
	if (key == PM_KEY_LINE)
		return pm_profile_level_place(profile, stack, level);
	if (key == PM_KEY_MODULE)
		return profile->frames.data[frame].module;
	if (key == PM_KEY_ADDRESS)
		return walk->addresses[frame];
	return 0;
}

static bool path_part_equal(const void *table, uint32_t id, const void *key)
{
	return memcmp(((const struct pm_table_paths *)table)->parts.data[id].of, key,
		      sizeof(((struct pm_table_part *)0)->of)) == 0;
}

static int find_or_add_part(struct walk *walk, uint32_t stack, uint32_t level,
			    uint32_t *out)
{
	struct pm_table_paths *paths = walk->paths;
	struct pm_table_part part = { 0 };
	uint64_t hash = 0;
	int ret = 0;

	for (uint32_t i = 0; i < walk->keys->len; i++) {
		part.of[i] = key_of_level(walk, walk->keys->key[i], stack, level);
		hash = pm_hash_mix(hash, part.of[i]);
	}
	*out = pm_index_find(&walk->index, hash, path_part_equal, paths, part.of);
	if (*out == PM_INDEX_NONE) {
		*out = (uint32_t)paths->parts.len;
		ret = pm_vec_push(&paths->parts, part);
		if (ret == 0)
			ret = pm_index_add(&walk->index, hash, *out);
	}
	return ret;
}

static uint32_t counted_levels_of_stack(const struct walk *walk, uint32_t stack)
{
	if (!walk->by_level)
		return 1;
	return pm_profile_levels(walk->view->profile, stack);
}

static int enter_path_parts(struct walk *walk, uint32_t stack)
{
	struct pm_table_paths *paths = walk->paths;
	struct pm_table_node *node = &paths->nodes[stack];
	uint32_t parent = walk->view->profile->stacks.data[stack].parent;
	uint32_t levels = counted_levels_of_stack(walk, stack);

	node->first = (uint32_t)paths->firsts.len;
	if (parent == PM_PROFILE_NONE || paths->nodes[parent].len > 0)
		node->up = parent;
	else
		node->up = paths->nodes[parent].up;
	for (uint32_t i = 0; i < levels; i++) {
		struct pm_table_first first = { 0 };
		struct pm_table_part *part;
		int ret = find_or_add_part(walk, stack, i, &first.part);

		if (ret == 0)
			ret = pm_vec_push(&walk->active, first.part);
		if (ret < 0)
			return ret;
		part = &paths->parts.data[first.part];
		first.counts = part->active++ == 0;
		first.proper = i + 1 == levels && part->proper++ == 0;
		if (first.counts || first.proper)
			ret = pm_vec_push(&paths->firsts, first);
		if (ret < 0)
			return ret;
		if (i == 0)
			node->leaf = first.part;
	}
	node->len = (uint32_t)paths->firsts.len - node->first;
	return 0;
}

static void leave_path_parts(struct walk *walk, uint32_t stack)
{
	struct pm_table_part *parts = walk->paths->parts.data;
	uint32_t levels = counted_levels_of_stack(walk, stack);

	parts[walk->active.data[walk->active.len - 1]].proper--;
	for (uint32_t i = 0; i < levels; i++)
		parts[walk->active.data[--walk->active.len]].active--;
}

/* Walks the stack tree depth first, as in table.c, but only where the view has
 * samples. */
static int walk_path_stacks(struct walk *walk)
{
	const struct pm_profile *profile = walk->view->profile;
	const struct pm_profile_stack *stacks = profile->stacks.data;
	uint32_t at = profile->first_root;

	while (at != PM_PROFILE_NONE) {
		if (walk->view->sum[at].samples > 0) {
			int ret = enter_path_parts(walk, at);

			if (ret < 0)
				return ret;
			if (stacks[at].first_child != PM_PROFILE_NONE) {
				at = stacks[at].first_child;
				continue;
			}
			leave_path_parts(walk, at);
		}
		while (stacks[at].next == PM_PROFILE_NONE &&
		       stacks[at].parent != PM_PROFILE_NONE) {
			at = stacks[at].parent;
			leave_path_parts(walk, at);
		}
		at = stacks[at].next;
	}
	return 0;
}

int pm_table_paths_init(struct pm_table_paths *paths, const struct pm_view *view,
			const struct pm_keys *keys)
{
	PM_CLEANUP(path_walk_release)
	struct walk walk = { .paths = paths, .view = view, .keys = keys };

	*paths = (struct pm_table_paths){
		.nodes = calloc(view->profile->stacks.len + 1, sizeof(*paths->nodes)),
	};
	if (!paths->nodes)
		return -ENOMEM;
	for (uint32_t i = 0; i < keys->len; i++) {
		walk.by_level |=
			keys->key[i] == PM_KEY_FUNCTION || keys->key[i] == PM_KEY_LINE;
		if (keys->key[i] != PM_KEY_ADDRESS)
			continue;
		walk.addresses = pm_profile_addresses(view->profile);
		if (!walk.addresses)
			return -ENOMEM;
	}
	return walk_path_stacks(&walk);
}

void pm_table_paths_release(struct pm_table_paths *paths)
{
	pm_vec_release(&paths->parts);
	pm_vec_release(&paths->firsts);
	free(paths->nodes);
}
