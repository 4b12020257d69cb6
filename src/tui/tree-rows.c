/* SPDX-License-Identifier: MIT */
/* Decides which nodes of a tree have rows, and walks through all nodes. */
#include "tui-internal.h"

int tree_shown(const struct pm_tui *tui, struct page *page, uint32_t node, uint32_t *out)
{
	int ret = pm_tree_expand(page->tree, node);
	const struct pm_tree_node *nodes = page->tree->nodes.data;
	uint32_t shown = 0;

	if (ret < 0)
		return ret;
	/* Children are sorted by weight, so those below the limit are at the end. */
	if (tui->limit <= 0)
		shown = nodes[node].children;
	while (shown < nodes[node].children &&
	       pm_weight_percent(&nodes[nodes[node].first_child + shown].total,
				 &tui->view->total) >= tui->limit)
		shown++;
	*out = shown;
	return 0;
}

bool tree_is_open(const struct page *page, uint32_t node)
{
	return node == 0 || (node < page->open.len && page->open.data[node]);
}

static int node_set_open(struct page *page, uint32_t node)
{
	int ret = 0;

	while (ret == 0 && page->open.len <= node)
		ret = pm_vec_push(&page->open, false);
	if (ret == 0)
		page->open.data[node] = true;
	return ret;
}

int tree_open(const struct pm_tui *tui, struct page *page, uint32_t node)
{
	uint32_t shown;
	int ret;

	for (unsigned i = 0; i < TREE_ROWS_MAX; i++) {
		ret = tree_shown(tui, page, node, &shown);
		if (ret < 0 || shown == 0)
			return ret;
		ret = node_set_open(page, node);
		if (ret < 0 || shown != 1)
			return ret;
		node = page->tree->nodes.data[node].first_child;
	}
	return 0;
}

void tree_close(struct page *page, uint32_t node)
{
	if (node < page->open.len)
		page->open.data[node] = false;
}

int tree_open_all(const struct pm_tui *tui, struct page *page, uint32_t node, bool *cut)
{
	PM_VEC(uint32_t) queue = { 0 };
	int ret = pm_vec_push(&queue, node);

	/* Breadth first, so that the deepest nodes stay closed if there are too many. */
	for (size_t i = 0; ret == 0 && i < queue.len && queue.len < TREE_ROWS_MAX; i++) {
		uint32_t at = queue.data[i], shown;

		ret = tree_shown(tui, page, at, &shown);
		if (ret == 0 && shown > 0 && at != 0)
			ret = node_set_open(page, at);
		for (uint32_t c = 0; ret == 0 && c < shown; c++)
			ret = pm_vec_push(&queue,
					  page->tree->nodes.data[at].first_child + c);
	}
	*cut = queue.len >= TREE_ROWS_MAX;
	pm_vec_release(&queue);
	return ret;
}

/* The next sibling of @node that is not below the limit, or 0. */
static uint32_t next_sibling(const struct pm_tui *tui, const struct page *page,
			     uint32_t node)
{
	const struct pm_tree_node *nodes = page->tree->nodes.data;
	const struct pm_tree_node *parent = &nodes[nodes[node].parent];

	if (node + 1 < parent->first_child + parent->children &&
	    pm_weight_percent(&nodes[node + 1].total, &tui->view->total) >= tui->limit)
		return node + 1;
	return 0;
}

enum tree_walk {
	WALK_OPEN_NODES,
	WALK_ALL_NODES, /* also enters closed nodes */
};

/* The next node in reading order. */
static int next_tree_node(const struct pm_tui *tui, struct page *page, uint32_t node,
			  enum tree_walk walk, uint32_t *out)
{
	uint32_t shown = 0, next = 0;
	int ret = 0;

	if (walk == WALK_ALL_NODES || tree_is_open(page, node))
		ret = tree_shown(tui, page, node, &shown);
	if (ret == 0 && shown > 0) {
		*out = page->tree->nodes.data[node].first_child;
		return 0;
	}
	while (ret == 0 && node != 0 && next == 0) {
		next = next_sibling(tui, page, node);
		node = page->tree->nodes.data[node].parent;
	}
	*out = next;
	return ret;
}

/* The last node below @node, or @node itself. */
static int last_node_below(const struct pm_tui *tui, struct page *page, uint32_t node,
			   uint32_t *out)
{
	uint32_t shown;
	int ret;

	while ((ret = tree_shown(tui, page, node, &shown)) == 0 && shown > 0)
		node = page->tree->nodes.data[node].first_child + shown - 1;
	*out = node;
	return ret;
}

int tree_step(const struct pm_tui *tui, struct page *page, uint32_t node, bool backwards,
	      uint32_t *out)
{
	uint32_t parent;

	if (!backwards)
		return next_tree_node(tui, page, node, WALK_ALL_NODES, out);
	if (node == 0)
		return last_node_below(tui, page, 0, out);
	parent = page->tree->nodes.data[node].parent;
	if (node > page->tree->nodes.data[parent].first_child)
		return last_node_below(tui, page, node - 1, out);
	*out = parent;
	return 0;
}

int tree_rows(struct pm_tui *tui, struct page *page, uint32_t node)
{
	uint32_t at = 0;
	size_t selected = 0;
	int ret;

	pm_vec_clear(&page->rows);
	while ((ret = next_tree_node(tui, page, at, WALK_OPEN_NODES, &at)) == 0 &&
	       at != 0) {
		struct page_row row = { .id = at,
					.indent = page->tree->nodes.data[at].depth - 1 };

		if (at == node)
			selected = page->rows.len;
		ret = pm_vec_push(&page->rows, row);
		if (ret < 0)
			return ret;
	}
	page_select(tui, page, selected);
	return ret;
}

int tree_show(struct pm_tui *tui, struct page *page, uint32_t node)
{
	int ret = 0;

	for (uint32_t at = node; ret == 0 && at != 0;) {
		at = page->tree->nodes.data[at].parent;
		if (at != 0)
			ret = node_set_open(page, at);
	}
	if (ret < 0)
		return ret;
	return tree_rows(tui, page, node);
}
