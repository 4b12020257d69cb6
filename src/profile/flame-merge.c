/* SPDX-License-Identifier: MIT */
/* Merges two profiles under one set of ids. */
#include "pm/flame.h"

#include <string.h>

/* The state of a merge. */
struct merging {
	struct pm_merged *merged;
	struct pm_index modules, functions, paths, threads;
};

static void merging_release(struct merging *merging)
{
	pm_index_release(&merging->modules);
	pm_index_release(&merging->functions);
	pm_index_release(&merging->paths);
	pm_index_release(&merging->threads);
}

static uint64_t hash_text(const char *text, uint64_t with)
{
	return pm_hash_mix(pm_hash_bytes(text, strlen(text)), with);
}

/* ---- modules and functions ---------------------------------------------------------------- */

static bool merged_module_equal(const void *table, uint32_t id, const void *key)
{
	return strcmp(((const struct pm_merged *)table)->modules.data[id].name, key) == 0;
}

/* Returns the module that the command names, or PM_PROFILE_NONE. */
static uint32_t find_main_module(const struct pm_profile *profile)
{
	const char *command;

	if (profile->command.len == 0)
		return PM_PROFILE_NONE;
	command = profile->command.data[0];
	for (uint32_t i = 0; command[0] != '\0' && i < profile->modules.len; i++)
		if (strcmp(profile->modules.data[i].name, pm_path_name(command)) == 0)
			return i;
	return PM_PROFILE_NONE;
}

/* Adds a module. If several modules look the same, the first one stays in the index. */
static int merging_add_module(struct merging *merging, unsigned which, uint32_t i)
{
	struct pm_merged *merged = merging->merged;
	const struct pm_profile_module *module = &merged->of[which]->modules.data[i];
	uint64_t hash = hash_text(module->name, 0);
	uint32_t id = pm_index_find(&merging->modules, hash, merged_module_equal, merged,
				    module->name);

	/* prog-old and prog-new: the main programs are compared even if their names
	 * differ. */
	if (which == 1 && id == PM_INDEX_NONE && i == find_main_module(merged->of[1]) &&
	    find_main_module(merged->of[0]) != PM_PROFILE_NONE)
		id = find_main_module(merged->of[0]);
	if (which == 0 || id == PM_INDEX_NONE) {
		bool known = id != PM_INDEX_NONE;

		id = (uint32_t)merged->modules.len;
		if (pm_vec_push(&merged->modules, *module) < 0 ||
		    (!known && pm_index_add(&merging->modules, hash, id) < 0))
			return -ENOMEM;
	}
	merged->map[which].modules[i] = id;
	return 0;
}

/* Returns the name that stands for the module when functions are matched: modules with
 * the same name count as one. */
static const char *merged_module_name(const struct pm_merged *merged, uint32_t module)
{
	if (module == PM_PROFILE_NONE)
		return "";
	return merged->modules.data[module].name;
}

static bool merged_function_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_merged *merged = table;
	const struct pm_merged_function *have = &merged->functions.data[id];
	const struct pm_merged_function *wanted = key;

	return have->unknown == wanted->unknown &&
	       strcmp(have->name, wanted->name) == 0 &&
	       strcmp(merged_module_name(merged, have->module),
		      merged_module_name(merged, wanted->module)) == 0;
}

static enum pm_flame_kind flame_kind_of_function(
	const struct pm_profile_function *function,
	const struct pm_profile_module *module)
{
	if (function->unknown)
		return PM_FLAME_UNKNOWN;
	if (!module)
		return PM_FLAME_USER;
	if (module->kernel)
		return PM_FLAME_KERNEL;
	if (strcmp(module->kind, "jit") == 0 || strcmp(module->kind, "anon") == 0)
		return PM_FLAME_GENERATED;
	return PM_FLAME_USER;
}

static int merging_add_function(struct merging *merging, unsigned which, uint32_t i)
{
	struct pm_merged *merged = merging->merged;
	const struct pm_profile *profile = merged->of[which];
	const struct pm_profile_function *from = &profile->functions.data[i];
	const struct pm_profile_module *module = NULL;
	struct pm_merged_function function = {
		.name = from->name,
		.module = PM_PROFILE_NONE,
		.unknown = from->unknown,
	};
	uint32_t id = PM_INDEX_NONE;
	uint64_t hash = 0;

	if (from->module != PM_PROFILE_NONE) {
		module = &profile->modules.data[from->module];
		function.module = merged->map[which].modules[from->module];
	}
	function.kind = flame_kind_of_function(from, module);

	/* A single profile needs no comparison of names. */
	if (merged->of[1]) {
		const char *name = merged_module_name(merged, function.module);

		hash = hash_text(function.name, pm_hash_bytes(name, strlen(name)));
		id = pm_index_find(&merging->functions, hash, merged_function_equal,
				   merged, &function);
	}
	if (which == 0 || id == PM_INDEX_NONE) {
		bool known = id != PM_INDEX_NONE || !merged->of[1];

		id = (uint32_t)merged->functions.len;
		if (pm_vec_push(&merged->functions, function) < 0 ||
		    (!known && pm_index_add(&merging->functions, hash, id) < 0))
			return -ENOMEM;
	}
	merged->map[which].functions[i] = id;
	return 0;
}

/* ---- paths ----------------------------------------------------------------------------- */

static bool merged_path_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_path *have = &((const struct pm_merged *)table)->paths.data[id];
	const struct pm_path *wanted = key;

	return have->parent == wanted->parent && have->function == wanted->function &&
	       have->inlined == wanted->inlined;
}

static int merging_add_path(struct merging *merging, const struct pm_path *path,
			    uint32_t *out)
{
	struct pm_merged *merged = merging->merged;
	uint64_t hash =
		pm_hash_mix((uint64_t)path->parent << 32 | path->function, path->inlined);
	uint32_t id =
		pm_index_find(&merging->paths, hash, merged_path_equal, merged, path);

	if (id == PM_INDEX_NONE) {
		id = (uint32_t)merged->paths.len;
		if (pm_vec_push(&merged->paths, *path) < 0 ||
		    pm_index_add(&merging->paths, hash, id) < 0)
			return -ENOMEM;
	}
	*out = id;
	return 0;
}

/* Adds the paths of a profile. Those of the first one are unchanged, and only a second
 * profile needs the index. */
static int merging_take_paths(struct merging *merging, struct pm_paths *paths)
{
	struct pm_merged *merged = merging->merged;
	uint32_t id;
	int ret = 0;

	merged->map[0].paths = PM_TAKE_PTR(paths->of_stack);
	if (!merged->of[1]) {
		merged->paths.data = paths->paths.data;
		merged->paths.len = paths->paths.len;
		merged->paths.cap = paths->paths.cap;
		paths->paths.data = NULL;
		paths->paths.len = paths->paths.cap = 0;
		return 0;
	}
	for (size_t i = 0; ret == 0 && i < paths->paths.len; i++)
		ret = merging_add_path(merging, &paths->paths.data[i], &id);
	return ret;
}

static int merge_paths(struct merging *merging, struct pm_paths *paths)
{
	struct pm_merged_map *map = &merging->merged->map[1];
	PM_AUTO_FREE uint32_t *ids = calloc(paths->paths.len + 1, sizeof(*ids));
	int ret = 0;

	if (!ids)
		return -ENOMEM;
	for (size_t i = 0; ret == 0 && i < paths->paths.len; i++) {
		struct pm_path path = paths->paths.data[i];

		path.function = map->functions[path.function];
		if (path.parent != PM_PROFILE_NONE)
			path.parent = ids[path.parent];
		ret = merging_add_path(merging, &path, &ids[i]);
	}
	map->paths = PM_TAKE_PTR(paths->of_stack);
	for (size_t i = 0; ret == 0 && i < merging->merged->of[1]->stacks.len; i++)
		map->paths[i] = ids[map->paths[i]];
	return ret;
}

/* ---- threads ---------------------------------------------------------------------------- */

/* A thread, identified as the nth one of its name. */
struct namesake {
	const char *comm;
	uint32_t number;
};

struct namesakes {
	PM_VEC(struct namesake) rows; /* by thread */
};

static bool namesake_equal(const void *table, uint32_t id, const void *key)
{
	const struct namesake *have = &((const struct namesakes *)table)->rows.data[id];
	const struct namesake *wanted = key;

	return have->number == wanted->number && strcmp(have->comm, wanted->comm) == 0;
}

struct comm_count {
	const char *comm;
	uint32_t count;
};

struct comm_counts {
	PM_VEC(struct comm_count) rows;
	struct pm_index index;
};

static bool comm_count_equal(const void *table, uint32_t id, const void *key)
{
	return strcmp(((const struct comm_counts *)table)->rows.data[id].comm, key) == 0;
}

/* Returns the number of earlier threads with that name; negative without memory. */
static int64_t count_comm(struct comm_counts *counts, const char *comm)
{
	uint64_t hash = hash_text(comm, 0);
	uint32_t id = pm_index_find(&counts->index, hash, comm_count_equal, counts, comm);

	if (id == PM_INDEX_NONE) {
		id = (uint32_t)counts->rows.len;
		if (pm_vec_push(&counts->rows, (struct comm_count){ .comm = comm }) < 0 ||
		    pm_index_add(&counts->index, hash, id) < 0)
			return -ENOMEM;
	}
	return counts->rows.data[id].count++;
}

static int merging_add_threads(struct merging *merging, unsigned which,
			       struct namesakes *namesakes)
{
	struct pm_merged *merged = merging->merged;
	const struct pm_profile *profile = merged->of[which];
	struct comm_counts counts = { 0 };
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < profile->threads.len; i++) {
		const struct pm_profile_thread *thread = &profile->threads.data[i];
		int64_t number = count_comm(&counts, thread->comm);
		struct namesake row = { .comm = thread->comm,
					.number = (uint32_t)number };
		uint64_t hash = hash_text(row.comm, row.number);
		uint32_t id = pm_index_find(&merging->threads, hash, namesake_equal,
					    namesakes, &row);

		if (id == PM_INDEX_NONE) {
			id = (uint32_t)merged->threads.len;
			if (number < 0 || pm_vec_push(&merged->threads, *thread) < 0 ||
			    pm_vec_push(&namesakes->rows, row) < 0 ||
			    pm_index_add(&merging->threads, hash, id) < 0)
				ret = -ENOMEM;
		}
		merged->map[which].threads[i] = id;
	}
	pm_vec_release(&counts.rows);
	pm_index_release(&counts.index);
	return ret;
}

/* ---- all of it -------------------------------------------------------------------------- */

/* Adds a stop reason. There are at most 64. */
static int merging_add_stop(struct pm_merged *merged, unsigned which, uint32_t i)
{
	const char *stop = merged->of[which]->stops.data[i];
	uint32_t id = 0;

	if (i == 0 && merged->stops.len > 0)
		id = 0;
	else if (which == 0)
		id = (uint32_t)merged->stops.len;
	else
		for (id = 1; id < merged->stops.len; id++)
			if (strcmp(merged->stops.data[id], stop) == 0)
				break;
	merged->map[which].stops[i] = id;
	if (id == merged->stops.len)
		return pm_vec_push(&merged->stops, stop);
	return 0;
}

static int merged_map_init(struct pm_merged_map *map, const struct pm_profile *profile)
{
	map->functions = calloc(profile->functions.len + 1, sizeof(uint32_t));
	map->modules = calloc(profile->modules.len + 1, sizeof(uint32_t));
	map->threads = calloc(profile->threads.len + 1, sizeof(uint32_t));
	map->stops = calloc(profile->stops.len + 1, sizeof(uint32_t));
	if (!map->functions || !map->modules || !map->threads || !map->stops)
		return -ENOMEM;
	return 0;
}

static int merging_add_profile(struct merging *merging, unsigned which,
			       struct namesakes *namesakes, struct pm_error *err)
{
	struct pm_merged *merged = merging->merged;
	const struct pm_profile *profile = merged->of[which];
	PM_CLEANUP(pm_paths_release) struct pm_paths paths = { 0 };
	int ret = merged_map_init(&merged->map[which], profile);

	for (uint32_t i = 0; ret == 0 && i < profile->modules.len; i++)
		ret = merging_add_module(merging, which, i);
	for (uint32_t i = 0; ret == 0 && i < profile->functions.len; i++)
		ret = merging_add_function(merging, which, i);
	for (uint32_t i = 0; ret == 0 && i < profile->stops.len; i++)
		ret = merging_add_stop(merged, which, i);
	if (ret == 0)
		ret = merging_add_threads(merging, which, namesakes);
	if (ret == 0)
		ret = pm_paths_init(&paths, profile, err);
	if (ret == 0) {
		if (which == 0)
			ret = merging_take_paths(merging, &paths);
		else
			ret = merge_paths(merging, &paths);
	}
	return ret;
}

int pm_merged_init(struct pm_merged *out, const struct pm_profile *profile,
		   const struct pm_profile *base, struct pm_error *err)
{
	PM_CLEANUP(pm_merged_release)
	struct pm_merged merged = { .of = { profile, base } };
	PM_CLEANUP(merging_release) struct merging merging = { .merged = &merged };
	struct namesakes namesakes = { 0 };
	int ret = merging_add_profile(&merging, 0, &namesakes, err);

	if (ret == 0 && base)
		ret = merging_add_profile(&merging, 1, &namesakes, err);
	pm_vec_release(&namesakes.rows);
	if (ret < 0)
		return ret;
	*out = merged;
	merged = (struct pm_merged){ 0 };
	return 0;
}

void pm_merged_release(struct pm_merged *merged)
{
	pm_vec_release(&merged->modules);
	pm_vec_release(&merged->functions);
	pm_vec_release(&merged->threads);
	pm_vec_release(&merged->stops);
	pm_vec_release(&merged->paths);
	for (size_t i = 0; i < PM_ARRAY_LEN(merged->map); i++) {
		struct pm_merged_map *map = &merged->map[i];

		free(map->functions);
		free(map->modules);
		free(map->threads);
		free(map->stops);
		free(map->paths);
		*map = (struct pm_merged_map){ 0 };
	}
}
