/* SPDX-License-Identifier: MIT */
/*
 * Flame graphs. Nodes are first created in some order, parents first, with the weight of
 * the samples that end in each of them. Then they are summed, sorted and put into
 * preorder.
 */
#include "pm/flame.h"

#include <string.h>

enum {
	/* Limits of an inverted graph, which has a node for each suffix of a stack. */
	NODES_MAX = 4000000,
	STEPS_MAX = 40000000,
};

struct weights {
	struct pm_weight own, base;
};

/* A stack that is walked outwards, for the inverted graph. */
struct cursor {
	uint32_t path;
	uint32_t node; /* its current node; PM_PROFILE_NONE: it has ended */
	struct weights weights;
};

struct growing {
	const struct pm_merged *merged;
	const struct pm_flame_options *options;
	double least; /* smallest period of a node that is drawn */
	struct weights *self; /* by path */
	PM_VEC(struct pm_flame_node) nodes;
	struct pm_index children;
	/* For the inverted graph, by function: the child, and the node that the child was
	 * made for. */
	uint32_t *child_of, *made_for;
	PM_VEC(struct cursor) cursors, spare;
	bool cut;
	/* The children of node n are order[first[n]] up to order[first[n + 1]]. */
	uint32_t *first, *order;
};

static void growing_release(struct growing *growing)
{
	free(growing->self);
	pm_vec_release(&growing->nodes);
	pm_index_release(&growing->children);
	free(growing->child_of);
	free(growing->made_for);
	pm_vec_release(&growing->cursors);
	pm_vec_release(&growing->spare);
	free(growing->first);
	free(growing->order);
}

static void node_add_weights(struct pm_flame_node *node, const struct weights *weights)
{
	pm_weight_add(&node->self, &weights->own);
	pm_weight_add(&node->base_self, &weights->base);
}

static bool are_weights_empty(const struct weights *weights)
{
	return weights->own.samples == 0 && weights->base.samples == 0;
}

static int growing_add_node(struct growing *growing, uint32_t parent, uint32_t function,
			    uint32_t *out)
{
	struct pm_flame_node node = {
		.function = function,
		.parent = parent,
		.inlined = function != PM_PROFILE_NONE,
	};

	*out = (uint32_t)growing->nodes.len;
	return pm_vec_push(&growing->nodes, node);
}

/* ---- from the root ------------------------------------------------------------------------ */

static bool flame_child_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_flame_node *have =
		&((const struct growing *)table)->nodes.data[id];
	const struct pm_flame_node *wanted = key;

	return have->parent == wanted->parent && have->function == wanted->function;
}

static int find_or_add_flame_child(struct growing *growing, uint32_t parent,
				   uint32_t function, uint32_t *out)
{
	struct pm_flame_node wanted = { .parent = parent, .function = function };
	uint64_t hash = pm_hash_mix(parent, function);
	uint32_t id = pm_index_find(&growing->children, hash, flame_child_equal, growing,
				    &wanted);

	if (id == PM_INDEX_NONE &&
	    (growing_add_node(growing, parent, function, &id) < 0 ||
	     pm_index_add(&growing->children, hash, id) < 0))
		return -ENOMEM;
	*out = id;
	return 0;
}

/* Returns, by path, whether the path or any below it has weight. NULL without memory. */
static bool *find_used_paths(const struct growing *growing)
{
	const struct pm_merged *merged = growing->merged;
	bool *used = calloc(merged->paths.len + 1, sizeof(*used));

	for (size_t i = merged->paths.len; used && i-- > 0;) {
		uint32_t parent = merged->paths.data[i].parent;

		used[i] |= !are_weights_empty(&growing->self[i]);
		if (used[i] && parent != PM_PROFILE_NONE)
			used[parent] = true;
	}
	return used;
}

static int grow_flame_down(struct growing *growing)
{
	const struct pm_merged *merged = growing->merged;
	PM_AUTO_FREE bool *used = find_used_paths(growing);
	PM_AUTO_FREE uint32_t *node_of = calloc(merged->paths.len + 1, sizeof(*node_of));

	if (!used || !node_of)
		return -ENOMEM;
	for (size_t i = 0; i < merged->paths.len; i++) {
		const struct pm_path *path = &merged->paths.data[i];
		uint32_t above, id;

		if (!used[i])
			continue;
		if (path->parent == PM_PROFILE_NONE)
			above = 0;
		else
			above = node_of[path->parent];
		if (find_or_add_flame_child(growing, above, path->function, &id) < 0)
			return -ENOMEM;
		node_of[i] = id;
		growing->nodes.data[id].inlined &= path->inlined;
		node_add_weights(&growing->nodes.data[id], &growing->self[i]);
	}
	return 0;
}

/* ---- from the sampled functions ----------------------------------------------------------- */

/* Moves each cursor to the node of its caller, which is created if needed. */
static int grow_flame_level(struct growing *growing)
{
	const struct pm_path *paths = growing->merged->paths.data;

	for (size_t i = 0; i < growing->cursors.len; i++) {
		struct cursor *cursor = &growing->cursors.data[i];
		uint32_t function, at = cursor->path;

		if (cursor->node != 0)
			at = paths[cursor->path].parent;

		if (at == PM_PROFILE_NONE) {
			node_add_weights(&growing->nodes.data[cursor->node],
					 &cursor->weights);
			cursor->node = PM_PROFILE_NONE;
			continue;
		}
		function = paths[at].function;
		if (growing->made_for[function] != cursor->node) {
			growing->made_for[function] = cursor->node;
			if (growing_add_node(growing, cursor->node, function,
					     &growing->child_of[function]) < 0)
				return -ENOMEM;
		}
		cursor->path = at;
		cursor->node = growing->child_of[function];
		growing->nodes.data[cursor->node].inlined &= paths[at].inlined;
		/* for now, the total is the weight that continues outwards */
		pm_weight_add(&growing->nodes.data[cursor->node].total,
			      &cursor->weights.own);
	}
	return 0;
}

/* Sorts the cursors by node. Cursors at nodes that are too light end at these. */
static int regroup_cursors(struct growing *growing, size_t first)
{
	size_t count = growing->nodes.len - first;
	PM_AUTO_FREE size_t *ends = calloc(count + 1, sizeof(*ends));
	size_t kept = 0;

	if (!ends)
		return -ENOMEM;
	for (size_t i = 0; i < growing->cursors.len; i++) {
		struct cursor *cursor = &growing->cursors.data[i];
		struct pm_flame_node *node;

		if (cursor->node == PM_PROFILE_NONE)
			continue;
		node = &growing->nodes.data[cursor->node];
		if ((double)node->total.period < growing->least) {
			node_add_weights(node, &cursor->weights);
			cursor->node = PM_PROFILE_NONE;
			continue;
		}
		ends[cursor->node - first + 1]++;
		kept++;
	}
	for (size_t i = 1; i <= count; i++)
		ends[i] += ends[i - 1];
	for (size_t i = 0; i < growing->cursors.len; i++) {
		const struct cursor *cursor = &growing->cursors.data[i];

		if (cursor->node != PM_PROFILE_NONE)
			growing->spare.data[ends[cursor->node - first]++] = *cursor;
	}
	memcpy(growing->cursors.data, growing->spare.data,
	       kept * sizeof(*growing->cursors.data));
	growing->cursors.len = kept;
	return 0;
}

static int add_first_cursors(struct growing *growing)
{
	for (uint32_t i = 0; i < growing->merged->paths.len; i++) {
		struct cursor cursor = { .path = i, .weights = growing->self[i] };

		if (!are_weights_empty(&cursor.weights) &&
		    pm_vec_push(&growing->cursors, cursor) < 0)
			return -ENOMEM;
	}
	if (growing->cursors.len == 0)
		return 0;
	return pm_vec_reserve(&growing->spare, growing->cursors.len);
}

static int grow_flame_up(struct growing *growing)
{
	size_t functions = growing->merged->functions.len, steps = 0;
	int ret = add_first_cursors(growing);

	growing->child_of = calloc(functions + 1, sizeof(uint32_t));
	growing->made_for = malloc((functions + 1) * sizeof(uint32_t));
	if (ret < 0 || !growing->child_of || !growing->made_for)
		return -ENOMEM;
	memset(growing->made_for, 0xff, (functions + 1) * sizeof(uint32_t));
	while (growing->cursors.len > 0) {
		size_t first = growing->nodes.len;

		steps += growing->cursors.len;
		if (first > NODES_MAX || steps > STEPS_MAX) {
			growing->cut = true;
			for (size_t i = 0; i < growing->cursors.len; i++)
				node_add_weights(
					&growing->nodes
						 .data[growing->cursors.data[i].node],
					&growing->cursors.data[i].weights);
			break;
		}
		ret = grow_flame_level(growing);
		if (ret == 0)
			ret = regroup_cursors(growing, first);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* ---- sums and order ------------------------------------------------------------------------ */

static void sum_flame_nodes(struct growing *growing)
{
	for (size_t i = 0; i < growing->nodes.len; i++) {
		growing->nodes.data[i].total = growing->nodes.data[i].self;
		growing->nodes.data[i].base_total = growing->nodes.data[i].base_self;
	}
	for (size_t i = growing->nodes.len; i-- > 1;) {
		struct pm_flame_node *node = &growing->nodes.data[i];
		struct pm_flame_node *parent = &growing->nodes.data[node->parent];

		pm_weight_add(&parent->total, &node->total);
		pm_weight_add(&parent->base_total, &node->base_total);
	}
}

static int compare_flame_nodes(const void *a, const void *b, void *context)
{
	const struct growing *growing = context;
	uint32_t left_id = *(const uint32_t *)a, right_id = *(const uint32_t *)b;
	const struct pm_flame_node *left = &growing->nodes.data[left_id];
	const struct pm_flame_node *right = &growing->nodes.data[right_id];
	const struct pm_merged_function *functions = growing->merged->functions.data;
	int ret;

	if (left->total.period != right->total.period)
		return PM_COMPARE(right->total.period, left->total.period);
	ret = strcmp(functions[left->function].name, functions[right->function].name);
	if (ret != 0)
		return ret;
	return PM_COMPARE(left_id, right_id);
}

static int sort_flame_children(struct growing *growing)
{
	size_t count = growing->nodes.len;
	uint32_t *first = calloc(count + 2, sizeof(*first)), *ends;

	growing->first = first;
	growing->order = calloc(count + 1, sizeof(*growing->order));
	if (!first || !growing->order)
		return -ENOMEM;
	/* Count two places ahead: filling in then moves each end to its final place. */
	ends = first + 1;
	for (size_t i = 1; i < count; i++)
		ends[growing->nodes.data[i].parent + 1]++;
	for (size_t i = 1; i <= count; i++)
		ends[i] += ends[i - 1];
	for (uint32_t i = 1; i < count; i++)
		growing->order[ends[growing->nodes.data[i].parent]++] = i;
	for (size_t i = 0; i < count; i++)
		if (first[i + 1] - first[i] > 1)
			qsort_r(growing->order + first[i], first[i + 1] - first[i],
				sizeof(uint32_t), compare_flame_nodes, growing);
	return 0;
}

/* Whether the node is drawn. */
static bool is_node_drawn(const struct growing *growing, const struct pm_flame_node *node)
{
	return node->total.samples > 0 && (double)node->total.period >= growing->least;
}

static int flame_put_nodes_in_order(struct pm_flame *out, struct growing *growing)
{
	size_t count = growing->nodes.len;
	PM_AUTO_FREE uint32_t *next = malloc(count * sizeof(*next));
	PM_AUTO_FREE uint32_t *renamed = malloc(count * sizeof(*renamed));
	uint32_t at = 0;
	int ret;

	if (!next || !renamed)
		return -ENOMEM;
	memcpy(next, growing->first, count * sizeof(*next));
	renamed[0] = 0;
	ret = pm_vec_push(&out->nodes, growing->nodes.data[0]);
	while (ret == 0) {
		struct pm_flame_node node;
		uint32_t child;

		/* The children are sorted: the first one that is too light ends the
		 * group. */
		if (next[at] < growing->first[at + 1])
			child = growing->order[next[at]++];
		else
			child = 0;
		if (child == 0 || !is_node_drawn(growing, &growing->nodes.data[child])) {
			if (at == 0)
				break;
			at = growing->nodes.data[at].parent;
			continue;
		}
		node = growing->nodes.data[child];
		node.parent = renamed[at];
		node.depth = out->nodes.data[node.parent].depth + 1;
		if (node.depth > out->deepest)
			out->deepest = node.depth;
		renamed[child] = (uint32_t)out->nodes.len;
		ret = pm_vec_push(&out->nodes, node);
		at = child;
	}
	out->left_out = count - out->nodes.len;
	return ret;
}

/* ---- all of it --------------------------------------------------------------------------- */

static void weigh_paths(struct growing *growing, const struct pm_view *view,
			unsigned which)
{
	const struct pm_profile *profile = view->profile;

	for (size_t i = 0; i < view->cells.len; i++) {
		const struct pm_profile_cell *cell =
			&profile->cells.data[view->cells.data[i]];
		struct weights *weights =
			&growing->self[growing->merged->map[which].paths[cell->stack]];

		if (which == 0)
			pm_weight_add(&weights->own, &cell->weight);
		else
			pm_weight_add(&weights->base, &cell->weight);
	}
}

int pm_flame_init(struct pm_flame *out, const struct pm_merged *merged,
		  const struct pm_view *view, const struct pm_view *base,
		  const struct pm_flame_options *options)
{
	PM_CLEANUP(pm_flame_release) struct pm_flame flame = { 0 };
	PM_CLEANUP(growing_release)
	struct growing growing = {
		.merged = merged,
		.options = options,
		.least = options->least / 100 * (double)view->total.period,
	};
	uint32_t top;
	int ret;

	growing.self = calloc(merged->paths.len + 1, sizeof(*growing.self));
	if (!growing.self || growing_add_node(&growing, 0, PM_PROFILE_NONE, &top) < 0)
		return -ENOMEM;
	weigh_paths(&growing, view, 0);
	if (base)
		weigh_paths(&growing, base, 1);
	if (options->inverted)
		ret = grow_flame_up(&growing);
	else
		ret = grow_flame_down(&growing);
	if (ret < 0)
		return ret;
	sum_flame_nodes(&growing);
	if (sort_flame_children(&growing) < 0 ||
	    flame_put_nodes_in_order(&flame, &growing) < 0)
		return -ENOMEM;
	flame.cut = growing.cut;
	*out = flame;
	flame = (struct pm_flame){ 0 };
	return 0;
}

void pm_flame_release(struct pm_flame *flame)
{
	pm_vec_release(&flame->nodes);
}
