/* SPDX-License-Identifier: MIT */
/* Merges the functions of two recordings into one set of ids, and computes their
 * weights. */
#include "functions.h"

#include <string.h>

#include "compare-internal.h"

void pm_functions_release(struct pm_functions *functions)
{
	pm_merged_release(&functions->merged);
	pm_vec_release(&functions->list);
	for (size_t i = 0; i < functions->names.len; i++)
		free(functions->names.data[i]);
	pm_vec_release(&functions->names);
	free(functions->of[0]);
	free(functions->of[1]);
}

/* ---- one set of ids ----------------------------------------------------------------- */

static bool is_function(const void *table, uint32_t id, const void *key)
{
	const struct pm_functions *functions = table;
	const struct pm_function *have = &functions->list.data[id], *wanted = key;

	return have->name_len == wanted->name_len && have->module == wanted->module &&
	       memcmp(have->name, wanted->name, have->name_len) == 0;
}

/* Returns the first module with the same name; all of these count as one. */
static uint32_t first_module_of_name(const struct pm_merged *merged, uint32_t module)
{
	for (uint32_t i = 0; module != PM_PROFILE_NONE && i < module; i++)
		if (strcmp(merged->modules.data[i].name,
			   merged->modules.data[module].name) == 0)
			return i;
	return module;
}

static int group_functions(struct pm_functions *functions, uint32_t *group_of)
{
	struct pm_index index PM_CLEANUP(pm_index_release) = { 0 };
	const struct pm_merged *merged = &functions->merged;
	PM_AUTO_FREE uint32_t *modules =
		calloc(merged->modules.len + 1, sizeof(*modules));

	if (!modules)
		return -ENOMEM;
	for (uint32_t i = 0; i < merged->modules.len; i++)
		modules[i] = first_module_of_name(merged, i);
	for (size_t i = 0; i < merged->functions.len; i++) {
		const struct pm_merged_function *from = &merged->functions.data[i];
		struct pm_function key = {
			.name = from->name,
			.name_len = pm_base_name_len(from->name),
			.module = from->module == PM_PROFILE_NONE ? PM_PROFILE_NONE
								  : modules[from->module],
		};
		uint64_t hash =
			pm_hash_mix(pm_hash_bytes(key.name, key.name_len), key.module);
		uint32_t id = pm_index_find(&index, hash, is_function, functions, &key);

		if (id == PM_INDEX_NONE) {
			id = (uint32_t)functions->list.len;
			if (pm_vec_push(&functions->list, key) < 0 ||
			    pm_index_add(&index, hash, id) < 0)
				return -ENOMEM;
		}
		group_of[i] = id;
	}
	return 0;
}

/* ---- lambdas ------------------------------------------------------------------------ */

/* A set of functions whose names differ only in their numbers. */
struct numbered {
	struct pm_function key; /* the name without numbers */
	uint32_t first; /* index in the list of the first one */
	size_t len;
	bool alone; /* one of the functions is on only one side */
};

struct folding {
	struct pm_functions *functions;
	PM_VEC(struct numbered) list;
	struct pm_index index;
	uint32_t *of; /* by function: index in the list, or PM_INDEX_NONE */
	uint8_t *sides; /* by function: a bit for each side that has it */
};

static void folding_release(struct folding *folding)
{
	pm_vec_release(&folding->list);
	pm_index_release(&folding->index);
	free(folding->of);
	free(folding->sides);
}

static bool is_numbered(const void *table, uint32_t id, const void *wanted)
{
	const struct pm_function *have =
		&((const struct folding *)table)->list.data[id].key;
	const struct pm_function *key = wanted;

	return have->module == key->module && have->name_len == key->name_len &&
	       memcmp(have->name, key->name, key->name_len) == 0;
}

static int add_numbered(struct folding *folding, uint32_t function)
{
	struct pm_functions *functions = folding->functions;
	const struct pm_function *from = &functions->list.data[function];
	struct pm_function key = { .module = from->module };
	char *name;
	uint64_t hash;
	uint32_t id;

	if (pm_name_without_numbers(&name, from->name, from->name_len) < 0)
		return -ENOMEM;
	if (!name)
		return 0;
	if (pm_vec_push(&functions->names, name) < 0) {
		free(name);
		return -ENOMEM;
	}
	key.name = name;
	key.name_len = strlen(name);
	hash = pm_hash_mix(pm_hash_bytes(name, key.name_len), key.module);
	id = pm_index_find(&folding->index, hash, is_numbered, folding, &key);
	if (id == PM_INDEX_NONE) {
		id = (uint32_t)folding->list.len;
		if (pm_vec_push(&folding->list,
				(struct numbered){ .key = key, .first = function }) < 0 ||
		    pm_index_add(&folding->index, hash, id) < 0)
			return -ENOMEM;
	}
	folding->list.data[id].len++;
	if (folding->sides[function] != (1 << PM_PROFILES) - 1)
		folding->list.data[id].alone = true;
	folding->of[function] = id;
	return 0;
}

/* Merges lambdas, after both sides have their ids. */
static int fold_lambdas(struct pm_functions *functions)
{
	size_t len = functions->list.len;
	struct folding folding PM_CLEANUP(folding_release) = { .functions = functions };

	folding.of = malloc((len + 1) * sizeof(*folding.of));
	folding.sides = calloc(len + 1, sizeof(*folding.sides));
	if (!folding.of || !folding.sides)
		return -ENOMEM;
	memset(folding.of, 0xff, (len + 1) * sizeof(*folding.of));
	for (unsigned int side = 0; side < PM_PROFILES; side++)
		for (size_t i = 0; i < functions->merged.of[side]->functions.len; i++)
			folding.sides[functions->of[side][i]] |= (uint8_t)(1 << side);
	for (uint32_t i = 0; i < len; i++)
		if (add_numbered(&folding, i) < 0)
			return -ENOMEM;
	for (unsigned int side = 0; side < PM_PROFILES; side++)
		for (size_t i = 0; i < functions->merged.of[side]->functions.len; i++) {
			uint32_t *id = &functions->of[side][i];
			const struct numbered *to =
				folding.of[*id] != PM_INDEX_NONE
					? &folding.list.data[folding.of[*id]]
					: NULL;

			if (!to || to->len < 2 || !to->alone)
				continue;
			*id = to->first;
			functions->list.data[*id].name = to->key.name;
			functions->list.data[*id].name_len = to->key.name_len;
		}
	return 0;
}

int pm_functions_init(struct pm_functions *out, const struct pm_profile *base,
		      const struct pm_profile *new, struct pm_error *err)
{
	struct pm_functions functions PM_CLEANUP(pm_functions_release) = { 0 };
	PM_AUTO_FREE uint32_t *group_of = NULL;
	int ret = pm_merged_init(&functions.merged, base, new, err);

	if (ret < 0)
		return ret;
	group_of = calloc(functions.merged.functions.len + 1, sizeof(*group_of));
	if (!group_of || group_functions(&functions, group_of) < 0)
		return -ENOMEM;
	for (unsigned int side = 0; side < PM_PROFILES; side++) {
		const struct pm_profile *of = functions.merged.of[side];

		functions.of[side] = calloc(of->functions.len + 1, sizeof(uint32_t));
		if (!functions.of[side])
			return -ENOMEM;
		for (size_t i = 0; i < of->functions.len; i++)
			functions.of[side][i] =
				group_of[functions.merged.map[side].functions[i]];
	}
	if (fold_lambdas(&functions) < 0)
		return -ENOMEM;
	*out = functions;
	functions = (struct pm_functions){ 0 };
	return 0;
}

/* ---- weights ------------------------------------------------------------------------ */

/* A walk over all stacks, callers first. */
struct walk {
	const struct pm_functions *functions;
	const struct pm_view *view;
	const uint32_t *of;
	struct pm_function_weight *weights;
	uint32_t *on_stack; /* by function: number of its occurrences on the current
	                     * stack */
	bool *proper; /* by function: it also occurred without being inlined */
	uint64_t *heaviest; /* by function: weight of its heaviest place so far */
};

static void enter_stack(struct walk *walk, uint32_t stack)
{
	const struct pm_profile *profile = walk->view->profile;
	const struct pm_weight *self = &walk->view->self[stack];
	uint32_t levels = pm_profile_levels(profile, stack);

	for (uint32_t level = levels; level-- > 0;) {
		uint32_t place = pm_profile_level_place(profile, stack, level);
		uint32_t id = walk->of[profile->places.data[place].function];
		struct pm_function_weight *weight = &walk->weights[id];

		if (walk->on_stack[id]++ == 0)
			pm_weight_add(&weight->total, &walk->view->sum[stack]);
		if (walk->view->sum[stack].samples == 0)
			continue;
		if (level + 1 == levels)
			walk->proper[id] = true;
		if (walk->view->sum[stack].period > walk->heaviest[id]) {
			walk->heaviest[id] = walk->view->sum[stack].period;
			weight->place = place;
		}
	}
	if (self->samples > 0 && levels > 0)
		pm_weight_add(&walk->weights[walk->of[pm_profile_level_function(
						     profile, stack, 0)]]
				       .self,
			      self);
}

static void leave_stack(struct walk *walk, uint32_t stack)
{
	const struct pm_profile *profile = walk->view->profile;

	for (uint32_t level = pm_profile_levels(profile, stack); level-- > 0;)
		walk->on_stack[walk->of[pm_profile_level_function(profile, stack,
								  level)]]--;
}

static void walk_stacks(struct walk *walk)
{
	const struct pm_profile *profile = walk->view->profile;
	uint32_t at = profile->first_root;

	while (at != PM_PROFILE_NONE) {
		const struct pm_profile_stack *stack = &profile->stacks.data[at];

		enter_stack(walk, at);
		if (stack->first_child != PM_PROFILE_NONE) {
			at = stack->first_child;
			continue;
		}
		leave_stack(walk, at);
		while (stack->next == PM_PROFILE_NONE &&
		       stack->parent != PM_PROFILE_NONE) {
			at = stack->parent;
			stack = &profile->stacks.data[at];
			leave_stack(walk, at);
		}
		at = stack->next;
	}
}

struct pm_function_weight *pm_functions_weigh(const struct pm_functions *functions,
					      const struct pm_view *view,
					      unsigned int side)
{
	size_t len = functions->list.len + 1;
	PM_AUTO_FREE struct pm_function_weight *weights = calloc(len, sizeof(*weights));
	PM_AUTO_FREE uint32_t *on_stack = calloc(len, sizeof(*on_stack));
	PM_AUTO_FREE uint64_t *heaviest = calloc(len, sizeof(*heaviest));
	PM_AUTO_FREE bool *proper = calloc(len, sizeof(*proper));
	struct walk walk = {
		.functions = functions,
		.view = view,
		.of = functions->of[side],
		.weights = weights,
		.on_stack = on_stack,
		.proper = proper,
		.heaviest = heaviest,
	};

	if (!weights || !on_stack || !heaviest || !proper)
		return NULL;
	for (size_t i = 0; i < len; i++)
		weights[i].place = PM_PROFILE_NONE;
	walk_stacks(&walk);
	for (size_t i = 0; i < functions->list.len; i++)
		weights[i].inlined = weights[i].total.samples > 0 && !proper[i];
	return PM_TAKE_PTR(weights);
}
