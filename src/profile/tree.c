/* SPDX-License-Identifier: MIT */
/*
 * Call trees of functions, built on demand. A node holds the places in the stack tree
 * that it stands for. Expanding a node moves each of its places one step and groups the
 * results by function. Each step of each place is done once, so building the whole tree
 * costs as much as a walk of its stacks.
 */
#include "profile-internal.h"

#include <string.h>

/* A place is one level of a stack node. */
struct cursor {
	uint32_t stack, level;
	uint32_t next; /* next cursor of the same node, or in the free list */
	uint32_t node;
	struct pm_weight weight; /* bottom-up: of the samples that reach this place */
};

struct pm_tree_work {
	PM_VEC(struct cursor) cursors;
	uint32_t free_cursor;
	uint32_t *child_of; /* by function: node in the group that is being built */
	uint32_t *cursor_of; /* by stack: cursor in that group, bottom-up only */
	bool fold;
};

/* ---- cursors --------------------------------------------------------------------------- */

static int cursor_push(struct pm_tree *tree, uint32_t node, uint32_t stack,
		       uint32_t level, uint32_t *out)
{
	struct pm_tree_work *work = tree->work;
	struct pm_tree_node *owner = &tree->nodes.data[node];
	struct cursor cursor = {
		.stack = stack, .level = level, .next = PM_PROFILE_NONE, .node = node
	};
	uint32_t id = work->free_cursor;

	if (id != PM_PROFILE_NONE) {
		work->free_cursor = work->cursors.data[id].next;
		work->cursors.data[id] = cursor;
	} else {
		id = (uint32_t)work->cursors.len;
		if (id == PM_PROFILE_NONE || pm_vec_push(&work->cursors, cursor) < 0)
			return -ENOMEM;
	}
	if (owner->head == PM_PROFILE_NONE)
		owner->head = id;
	else
		work->cursors.data[owner->tail].next = id;
	owner->tail = id;
	*out = id;
	return 0;
}

static void cursors_free(struct pm_tree *tree, struct pm_tree_node *node)
{
	struct pm_tree_work *work = tree->work;

	if (node->head == PM_PROFILE_NONE)
		return;
	work->cursors.data[node->tail].next = work->free_cursor;
	work->free_cursor = node->head;
	node->head = node->tail = PM_PROFILE_NONE;
}

/* ---- grouping -------------------------------------------------------------------------- */

/* Finds or creates the child for @function in the group that starts at node @base. */
static int find_or_add_tree_child(struct pm_tree *tree, uint32_t parent, uint32_t base,
				  uint32_t function, uint32_t *out)
{
	uint32_t id = tree->work->child_of[function];
	struct pm_tree_node node = {
		.function = function,
		.parent = parent,
		.depth = tree->nodes.data[parent].depth + 1,
		.inlined = true, /* until a call that is not inlined is found */
		.head = PM_PROFILE_NONE,
		.tail = PM_PROFILE_NONE,
	};

	if (id < base || id >= tree->nodes.len) {
		id = (uint32_t)tree->nodes.len;
		if (id == PM_PROFILE_NONE || pm_vec_push(&tree->nodes, node) < 0)
			return -ENOMEM;
		tree->work->child_of[function] = id;
	}
	*out = id;
	return 0;
}

static int compare_nodes_by_weight(const void *a, const void *b)
{
	const struct pm_tree_node *left = a, *right = b;

	if (left->total.period != right->total.period)
		return PM_COMPARE(right->total.period, left->total.period);
	return PM_COMPARE(left->function, right->function);
}

static void finish_child_group(struct pm_tree *tree, uint32_t parent, uint32_t base)
{
	struct pm_tree_node *node = &tree->nodes.data[parent];

	node->expanded = true;
	node->first_child = base;
	node->children = (uint32_t)tree->nodes.len - base;
	qsort(tree->nodes.data + base, node->children, sizeof(*node),
	      compare_nodes_by_weight);
}

/* ---- top-down -------------------------------------------------------------------------- */

static bool is_function_proper(const struct pm_tree *tree, uint32_t stack, uint32_t level)
{
	return level + 1 == pm_profile_levels(tree->view->profile, stack);
}

typedef int (*step_fn)(struct pm_tree *tree, uint32_t node, uint32_t base, uint32_t stack,
		       uint32_t level);

/* Calls @step for each place that is called from this one or inlined into it. */
static int visit_each_callee(struct pm_tree *tree, uint32_t node, uint32_t base,
			     uint32_t stack, uint32_t level, step_fn step)
{
	const struct pm_profile_stack *stacks = tree->view->profile->stacks.data;

	if (level > 0)
		return step(tree, node, base, stack, level - 1);
	for (uint32_t child = stacks[stack].first_child; child != PM_PROFILE_NONE;
	     child = stacks[child].next) {
		uint32_t levels = pm_profile_levels(tree->view->profile, child);
		int ret = 0;

		if (tree->view->sum[child].samples > 0)
			ret = step(tree, node, base, child, levels - 1);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* Merges a direct recursive call into the node. */
static int fold_callee_into_node(struct pm_tree *tree, uint32_t node, uint32_t base,
				 uint32_t stack, uint32_t level)
{
	uint32_t function = tree->nodes.data[node].function, cursor;

	if (pm_profile_level_function(tree->view->profile, stack, level) != function)
		return 0;
	tree->nodes.data[node].recursive = true;
	return cursor_push(tree, node, stack, level, &cursor);
}

static int tree_add_top_down(struct pm_tree *tree, uint32_t node, uint32_t stack,
			     uint32_t level)
{
	struct pm_tree_work *work = tree->work;
	uint32_t at;
	int ret = cursor_push(tree, node, stack, level, &at);

	if (ret < 0)
		return ret;
	pm_weight_add(&tree->nodes.data[node].total, &tree->view->sum[stack]);
	/* Folded places are appended to the list, so they are visited as well. */
	for (; at != PM_PROFILE_NONE; at = work->cursors.data[at].next) {
		uint32_t s = work->cursors.data[at].stack;
		uint32_t l = work->cursors.data[at].level;

		if (l == 0)
			pm_weight_add(&tree->nodes.data[node].self, &tree->view->self[s]);
		if (is_function_proper(tree, s, l))
			tree->nodes.data[node].inlined = false;
		if (work->fold)
			ret = visit_each_callee(tree, node, 0, s, l,
						fold_callee_into_node);
		else
			ret = 0;
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int group_callee_by_function(struct pm_tree *tree, uint32_t parent, uint32_t base,
				    uint32_t stack, uint32_t level)
{
	uint32_t function = pm_profile_level_function(tree->view->profile, stack, level);
	uint32_t child;
	int ret;

	if (tree->work->fold && function == tree->nodes.data[parent].function)
		return 0; /* already part of the parent */
	ret = find_or_add_tree_child(tree, parent, base, function, &child);
	if (ret < 0)
		return ret;
	return tree_add_top_down(tree, child, stack, level);
}

/* ---- bottom-up --------------------------------------------------------------------------- */

/* Moves one step outwards. Returns false at the root. */
static bool step_to_caller_level(const struct pm_profile *profile, uint32_t *stack,
				 uint32_t *level)
{
	if (*level + 1 < pm_profile_levels(profile, *stack)) {
		(*level)++;
		return true;
	}
	if (profile->stacks.data[*stack].parent == PM_PROFILE_NONE)
		return false;
	*stack = profile->stacks.data[*stack].parent;
	*level = 0;
	return true;
}

static int tree_add_bottom_up(struct pm_tree *tree, uint32_t parent, uint32_t base,
			      uint32_t stack, uint32_t level,
			      const struct pm_weight *weight)
{
	const struct pm_profile *profile = tree->view->profile;
	struct pm_tree_work *work = tree->work;
	uint32_t function = pm_profile_level_function(profile, stack, level);
	uint32_t child, cursor;
	uint32_t outer = stack, outer_level = level;
	bool proper = is_function_proper(tree, stack, level), recursive = false;
	int ret = find_or_add_tree_child(tree, parent, base, function, &child);

	if (ret < 0)
		return ret;
	while (work->fold && step_to_caller_level(profile, &outer, &outer_level) &&
	       pm_profile_level_function(profile, outer, outer_level) == function) {
		stack = outer;
		level = outer_level;
		proper |= is_function_proper(tree, stack, level);
		recursive = true;
	}
	pm_weight_add(&tree->nodes.data[child].total, weight);
	if (proper)
		tree->nodes.data[child].inlined = false;
	tree->nodes.data[child].recursive |= recursive;
	/* Paths that meet continue as one cursor, so there are few cursors near the
	 * root. */
	cursor = work->cursor_of[stack];
	if (cursor >= work->cursors.len || work->cursors.data[cursor].node != child ||
	    work->cursors.data[cursor].stack != stack ||
	    work->cursors.data[cursor].level != level) {
		ret = cursor_push(tree, child, stack, level, &cursor);
		if (ret < 0)
			return ret;
		work->cursor_of[stack] = cursor;
	}
	pm_weight_add(&work->cursors.data[cursor].weight, weight);
	return 0;
}

/* ---- start ------------------------------------------------------------------------------- */

static int tree_start_everywhere(struct pm_tree *tree)
{
	const struct pm_view *view = tree->view;
	const struct pm_profile *profile = view->profile;
	int ret = 0;

	if (tree->kind == PM_TREE_TOP_DOWN) {
		for (uint32_t i = profile->first_root; ret == 0 && i != PM_PROFILE_NONE;
		     i = profile->stacks.data[i].next)
			if (view->sum[i].samples > 0)
				ret = group_callee_by_function(
					tree, 0, 1, i, pm_profile_levels(profile, i) - 1);
		return ret;
	}
	for (uint32_t i = 0; ret == 0 && i < profile->stacks.len; i++)
		if (view->self[i].samples > 0)
			ret = tree_add_bottom_up(tree, 0, 1, i, 0, &view->self[i]);
	return ret;
}

/* Starts the tree at the outermost of the given functions on each stack, so that each
 * sample counts once. */
static int tree_start_at_functions(struct pm_tree *tree,
				   const struct pm_function_set *only)
{
	const struct pm_view *view = tree->view;
	const struct pm_profile *profile = view->profile;
	PM_AUTO_FREE bool *seen = calloc(profile->stacks.len + 1, sizeof(*seen));
	int ret = 0;

	if (!seen)
		return -ENOMEM;
	for (uint32_t i = 0; ret == 0 && i < profile->stacks.len; i++) {
		uint32_t parent = profile->stacks.data[i].parent;

		seen[i] = parent != PM_PROFILE_NONE && seen[parent];
		for (uint32_t l = pm_profile_levels(profile, i); !seen[i] && l-- > 0;) {
			if (!only->set[pm_profile_level_function(profile, i, l)])
				continue;
			seen[i] = true;
			if (view->sum[i].samples == 0)
				break;
			if (tree->kind == PM_TREE_TOP_DOWN)
				ret = group_callee_by_function(tree, 0, 1, i, l);
			else
				ret = tree_add_bottom_up(tree, 0, 1, i, l, &view->sum[i]);
		}
	}
	return ret;
}

int pm_tree_new(struct pm_tree **out, const struct pm_view *view, enum pm_tree_kind kind,
		const struct pm_function_set *only, bool fold)
{
	const struct pm_profile *profile = view->profile;
	struct pm_tree_node top = { .function = PM_PROFILE_NONE,
				    .parent = PM_PROFILE_NONE,
				    .head = PM_PROFILE_NONE,
				    .tail = PM_PROFILE_NONE };
	struct pm_tree *tree = calloc(1, sizeof(*tree));
	struct pm_tree_work *work = calloc(1, sizeof(*work));
	int ret = -ENOMEM;

	if (!tree || !work) {
		free(tree);
		free(work);
		return -ENOMEM;
	}
	*tree = (struct pm_tree){ .view = view, .kind = kind, .work = work };
	work->fold = fold;
	work->free_cursor = PM_PROFILE_NONE;
	work->child_of = calloc(profile->functions.len + 1, sizeof(uint32_t));
	work->cursor_of = calloc(profile->stacks.len + 1, sizeof(uint32_t));
	if (work->child_of && work->cursor_of && pm_vec_push(&tree->nodes, top) == 0) {
		if (only)
			ret = tree_start_at_functions(tree, only);
		else
			ret = tree_start_everywhere(tree);
	}
	if (ret < 0) {
		pm_tree_free(tree);
		return ret;
	}
	finish_child_group(tree, 0, 1);
	/* If the tree starts at a function, its total may be less than the view's. */
	for (size_t i = 1; i < tree->nodes.len; i++)
		pm_weight_add(&tree->nodes.data[0].total, &tree->nodes.data[i].total);
	*out = tree;
	return 0;
}

void pm_tree_free(struct pm_tree *tree)
{
	if (!tree)
		return;
	pm_vec_release(&tree->nodes);
	pm_vec_release(&tree->work->cursors);
	free(tree->work->child_of);
	free(tree->work->cursor_of);
	free(tree->work);
	free(tree);
}

int pm_tree_expand(struct pm_tree *tree, uint32_t node)
{
	struct pm_tree_work *work = tree->work;
	uint32_t base = (uint32_t)tree->nodes.len;
	int ret = 0;

	if (tree->nodes.data[node].expanded)
		return 0;
	for (uint32_t at = tree->nodes.data[node].head; ret == 0 && at != PM_PROFILE_NONE;
	     at = work->cursors.data[at].next) {
		struct cursor cursor = work->cursors.data[at];

		if (tree->kind == PM_TREE_TOP_DOWN)
			ret = visit_each_callee(tree, node, base, cursor.stack,
						cursor.level, group_callee_by_function);
		else if (step_to_caller_level(tree->view->profile, &cursor.stack,
					      &cursor.level))
			ret = tree_add_bottom_up(tree, node, base, cursor.stack,
						 cursor.level, &cursor.weight);
	}
	if (ret < 0)
		return ret;
	cursors_free(tree, &tree->nodes.data[node]);
	finish_child_group(tree, node, base);
	return 0;
}
