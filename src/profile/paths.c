/* SPDX-License-Identifier: MIT */
#include "profile-internal.h"

enum {
	/* Real stacks have two or three paths per frame. */
	PATHS_MAX = 1 << 22,
	PATHS_OF_STACK = 8,
};

static bool paths_path_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_path *have = &((const struct pm_paths *)table)->paths.data[id];
	const struct pm_path *wanted = key;

	return have->parent == wanted->parent && have->function == wanted->function &&
	       have->inlined == wanted->inlined;
}

static int intern_path(struct pm_paths *paths, struct pm_index *index,
		       const struct pm_path *path, uint32_t *out)
{
	uint64_t hash =
		pm_hash_mix((uint64_t)path->parent << 32 | path->function, path->inlined);
	uint32_t id = pm_index_find(index, hash, paths_path_equal, paths, path);
	int ret;

	if (id == PM_INDEX_NONE) {
		id = (uint32_t)paths->paths.len;
		ret = pm_vec_push(&paths->paths, *path);
		if (ret == 0)
			ret = pm_index_add(index, hash, id);
		if (ret < 0)
			return ret;
	}
	*out = id;
	return 0;
}

static int check_paths_len(const struct pm_paths *paths, size_t most,
			   struct pm_error *err)
{
	if (paths->paths.len <= most)
		return 0;
	pm_error_set(err, -E2BIG,
		     "its stacks have too many inlined calls: over %zu in all", most);
	pm_error_fix(err, "--no-inlines");
	return -E2BIG;
}

int pm_paths_init(struct pm_paths *out, const struct pm_profile *profile,
		  struct pm_error *err)
{
	PM_CLEANUP(pm_paths_release) struct pm_paths paths = { 0 };
	PM_CLEANUP(pm_index_release) struct pm_index index = { 0 };
	size_t most = PATHS_MAX + PATHS_OF_STACK * profile->stacks.len;

	paths.of_stack = calloc(profile->stacks.len + 1, sizeof(*paths.of_stack));
	if (!paths.of_stack)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile->stacks.len; i++) {
		uint32_t parent = profile->stacks.data[i].parent;
		uint32_t levels = pm_profile_levels(profile, i);
		uint32_t at = parent == PM_PROFILE_NONE ? parent : paths.of_stack[parent];

		for (uint32_t l = levels; l-- > 0;) {
			struct pm_path path = {
				.parent = at,
				.function = pm_profile_level_function(profile, i, l),
				.inlined = l + 1 < levels,
			};
			int ret = intern_path(&paths, &index, &path, &at);

			if (ret < 0)
				return ret;
		}
		paths.of_stack[i] = at;
		if (check_paths_len(&paths, most, err) < 0)
			return -E2BIG;
	}
	*out = paths;
	paths = (struct pm_paths){ 0 };
	return 0;
}

void pm_paths_release(struct pm_paths *paths)
{
	pm_vec_release(&paths->paths);
	free(paths->of_stack);
	paths->of_stack = NULL;
}
