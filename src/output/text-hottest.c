/* SPDX-License-Identifier: MIT */
/* Where most of the time goes, from the root on, in a few lines. */
#include "output-internal.h"

#include <string.h>

enum {
	DEPTH_MAX = 5,
	BRANCHES_MAX = 3,
	LINK_COLUMNS = 32, /* of one name in a chain of many */
	GAP_COLUMNS = 14, /* " → … 123 more", between the first and the last */
	SELF_COLUMNS = 12, /* "  12.3% self" */
};
#define SAME_PERCENT   95.0 /* a callee that has this much of its caller is the same path */
#define SELF_PERCENT   0.5
#define BRANCH_PERCENT 5.0 /* of all samples: less is no part of a hottest path */

struct path {
	struct pm_text *text;
	struct pm_tree *tree;
	PM_VEC(uint32_t) chain; /* nodes of the line at hand */
};

static void path_release(struct path *path)
{
	pm_tree_free(path->tree);
	pm_vec_release(&path->chain);
}

static double percent_of(const struct path *path, const struct pm_weight *weight)
{
	return pm_weight_percent(weight, &path->tree->view->total);
}

/* From @node on, as long as one callee has nearly all of it. */
static int follow(struct path *path, uint32_t node)
{
	struct pm_weight whole = path->tree->nodes.data[node].total;

	pm_vec_clear(&path->chain);
	for (;;) {
		const struct pm_tree_node *at, *child;
		int r = pm_vec_push(&path->chain, node);

		if (r == 0)
			r = pm_tree_expand(path->tree, node);
		if (r < 0)
			return r;
		at = &path->tree->nodes.data[node];
		if (at->children == 0)
			return 0;
		child = &path->tree->nodes.data[at->first_child];
		if (pm_weight_percent(&child->total, &whole) < SAME_PERCENT)
			return 0;
		node = at->first_child;
	}
}

static void put_link(struct pm_str *str, const struct path *path, size_t at,
		     size_t columns)
{
	const struct pm_report *report = path->text->report;

	if (at > 0)
		pm_str_puts(str, pm_text_arrow(path->text, false));
	pm_put_function(str, report->profile,
			path->tree->nodes.data[path->chain.data[at]].function,
			report->width > 0 ? columns : 0, report->ascii);
}

static size_t link_columns(const struct path *path, size_t at)
{
	struct pm_str link = { 0 };
	size_t columns;

	put_link(&link, path, at, LINK_COLUMNS);
	columns = link.data ? pm_columns(link.data) : 0;
	pm_str_release(&link);
	return columns;
}

/*
 * The first name and as many of the last as fit in @room; what is between is counted. Where
 * not even two fit, the last alone: it is what the line is about.
 */
static void put_chain(struct pm_str *str, const struct path *path, size_t room)
{
	bool bounded = path->text->report->width > 0;
	size_t len = path->chain.len, from = len, used = link_columns(path, 0);
	size_t gap = len > 2 ? GAP_COLUMNS : 0;

	if (len == 1) {
		put_link(str, path, 0, room);
		return;
	}
	if (bounded && used + gap + link_columns(path, len - 1) > room) {
		pm_str_printf(str, "%s %zu more", pm_text_ellipsis(path->text), len - 1);
		put_link(str, path, len - 1,
			 room > 2 * GAP_COLUMNS ? room - GAP_COLUMNS : GAP_COLUMNS);
		return;
	}
	while (from > 1) {
		size_t more = link_columns(path, from - 1);

		if (bounded && used + more + (from > 2 ? gap : 0) > room)
			break;
		used += more;
		from--;
	}
	put_link(str, path, 0, LINK_COLUMNS);
	if (from > 1)
		pm_str_printf(str, "%s%s %zu more", pm_text_arrow(path->text, false),
			      pm_text_ellipsis(path->text), from - 1);
	for (size_t i = from; i < len; i++)
		put_link(str, path, i, LINK_COLUMNS);
}

/* One line; @prefix holds the rails of the levels above. */
static int print_chain(const struct path *path, const char *prefix, const char *branch)
{
	struct pm_text *text = path->text;
	const struct pm_report *report = text->report;
	const struct pm_tree_node *nodes = path->tree->nodes.data;
	const struct pm_tree_node *leaf = &nodes[path->chain.data[path->chain.len - 1]];
	size_t used = 9 + pm_columns(prefix) + pm_columns(branch);
	struct pm_str line = { 0 };
	bool failed;

	fputc(' ', text->to);
	pm_text_percent(text, percent_of(path, &nodes[path->chain.data[0]].total));
	fputs("  ", text->to);
	pm_text_put(text, PM_COLOR_DIM, prefix);
	pm_text_put(text, PM_COLOR_DIM, branch);
	put_chain(&line, path,
		  report->width > used + SELF_COLUMNS + LINK_COLUMNS
			  ? report->width - used - SELF_COLUMNS
			  : LINK_COLUMNS);
	failed = line.failed;
	if (!failed) {
		fputs(line.data, text->to);
		if (percent_of(path, &leaf->self) >= SELF_PERCENT)
			fprintf(text->to, "  %.1f%% self", percent_of(path, &leaf->self));
		fputc('\n', text->to);
	}
	pm_str_release(&line);
	return failed ? -ENOMEM : 0;
}

/* The branches at the end of the chain: each is named, the heaviest is followed. Recurses
 * DEPTH_MAX times at most. */
static int print_branches(struct path *path, const char *prefix, unsigned depth)
{
	static const char *const branches[2][2] = { { "├─ ", "└─ " }, { "|- ", "`- " } };
	static const char *const rails[2] = { "│  ", "|  " };
	const struct pm_tree_node *leaf =
		&path->tree->nodes.data[path->chain.data[path->chain.len - 1]];
	uint32_t first = leaf->first_child, count = leaf->children, shown = 0;
	bool ascii = path->text->report->ascii;
	int r = 0;

	while (shown < count && shown < BRANCHES_MAX &&
	       percent_of(path, &path->tree->nodes.data[first + shown].total) >=
		       BRANCH_PERCENT)
		shown++;
	for (uint32_t i = 0; r == 0 && i < shown; i++) {
		bool last = i + 1 == shown;
		char below[DEPTH_MAX * sizeof("│  ") + 1];

		r = follow(path, first + i);
		if (r == 0)
			r = print_chain(path, prefix, branches[ascii][last]);
		if (r < 0 || i > 0 || depth == DEPTH_MAX)
			continue;
		snprintf(below, sizeof(below), "%s%s", prefix,
			 last ? "   " : rails[ascii]);
		r = print_branches(path, below, depth + 1);
	}
	return r;
}

int pm_text_hottest(struct pm_text *text, const struct pm_section *section)
{
	PM_CLEANUP(path_release) struct path path = { .text = text };
	int r = pm_tree_new(&path.tree, section->view, PM_TREE_TOP_DOWN, NULL, true);

	if (r < 0)
		return r;
	if (path.tree->nodes.data[0].children == 0)
		return 0;
	fputc('\n', text->to);
	pm_text_put(text, PM_COLOR_HEAD, "hottest path");
	fputc('\n', text->to);
	r = follow(&path, path.tree->nodes.data[0].first_child);
	if (r == 0)
		r = print_chain(&path, "", "");
	if (r == 0)
		r = print_branches(&path, "", 1);
	return r;
}
