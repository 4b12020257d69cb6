/* SPDX-License-Identifier: MIT */
/* The hottest path from the root, in a few lines. */
#include "output-internal.h"

#include <string.h>

#include "pm/base-text.h"

enum {
	DEPTH_MAX = 5,
	BRANCHES_MAX = 3,
	LINK_COLUMNS = 32, /* columns of a name in a long chain */
	GAP_COLUMNS = 14, /* " → … 123 more", between the first and the last name */
	SELF_COLUMNS = 12, /* "  12.3% self" */
};
#define SAME_PERCENT   95.0 /* a callee with this share of its caller is the same path */
#define SELF_PERCENT   0.5
#define BRANCH_PERCENT 5.0 /* of all samples; a lighter branch is not shown */

struct path {
	struct pm_text *text;
	struct pm_tree *tree;
	PM_VEC(uint32_t) chain; /* nodes of the current line */
	bool waits; /* the tree shows blocked time */
};

static void path_release(struct path *path)
{
	pm_tree_free(path->tree);
	pm_vec_release(&path->chain);
}

static double path_percent(const struct path *path, const struct pm_weight *weight)
{
	return pm_weight_percent(weight, &path->tree->view->total);
}

/* Follows the path from @node while a single callee has nearly all of the weight. */
static int path_follow(struct path *path, uint32_t node)
{
	struct pm_weight whole = path->tree->nodes.data[node].total;

	pm_vec_clear(&path->chain);
	for (;;) {
		const struct pm_tree_node *at, *child;
		int ret = pm_vec_push(&path->chain, node);

		if (ret == 0)
			ret = pm_tree_expand(path->tree, node);
		if (ret < 0)
			return ret;
		at = &path->tree->nodes.data[node];
		if (at->children == 0)
			return 0;
		child = &path->tree->nodes.data[at->first_child];
		if (pm_weight_percent(&child->total, &whole) < SAME_PERCENT)
			return 0;
		node = at->first_child;
	}
}

/* A part of the chain, in the direction of the calls. */
struct links {
	const struct path *path;
	size_t first, len;
};

static void put_link(struct pm_str *str, const struct links *links, size_t at,
		     size_t columns)
{
	const struct path *path = links->path;
	const struct pm_report *report = path->text->report;
	uint32_t node = path->chain.data[links->first + at];

	if (at > 0)
		pm_str_puts(str, pm_text_arrow(path->text, false));
	pm_put_function(str, report->profile, path->tree->nodes.data[node].function,
			report->width > 0 ? columns : 0, report->ascii);
}

static size_t link_columns(const struct links *links, size_t at)
{
	struct pm_str link = { 0 };
	size_t columns;

	put_link(&link, links, at, LINK_COLUMNS);
	columns = pm_str_columns(&link);
	pm_str_release(&link);
	return columns;
}

/*
 * Writes the first name and as many of the last ones as fit into @room; names in between
 * are counted. If not even two fit, only the last one is written, which matters most.
 */
static void put_links(struct pm_str *str, const struct links *links, size_t room)
{
	const struct pm_text *text = links->path->text;
	bool bounded = text->report->width > 0;
	size_t len = links->len, from = len, used = link_columns(links, 0);
	size_t gap = len > 2 ? GAP_COLUMNS : 0;

	if (len == 1) {
		put_link(str, links, 0, room);
		return;
	}
	if (bounded && used + gap + link_columns(links, len - 1) > room) {
		pm_str_printf(str, "%s %zu more", pm_text_ellipsis(text), len - 1);
		put_link(str, links, len - 1,
			 room > 2 * GAP_COLUMNS ? room - GAP_COLUMNS : GAP_COLUMNS);
		return;
	}
	while (from > 1) {
		size_t more = link_columns(links, from - 1);

		if (bounded && used + more + (from > 2 ? gap : 0) > room)
			break;
		used += more;
		from--;
	}
	put_link(str, links, 0, LINK_COLUMNS);
	if (from > 1)
		pm_str_printf(str, "%s%s %zu more", pm_text_arrow(text, false),
			      pm_text_ellipsis(text), from - 1);
	for (size_t i = from; i < len; i++)
		put_link(str, links, i, LINK_COLUMNS);
}

/* Returns the index of the program's last function before the kernel, in a chain that
 * ends with waiting: it must never be left out. Returns the length of the chain if there
 * is none. */
static size_t last_of_program(const struct path *path)
{
	const struct pm_profile *profile = path->tree->view->profile;
	size_t at = path->chain.len;

	while (at-- > 0) {
		uint32_t node = path->chain.data[at];
		uint32_t function = path->tree->nodes.data[node].function;
		uint32_t module = profile->functions.data[function].module;

		if (module == PM_PROFILE_NONE || !profile->modules.data[module].kernel) {
			if (at + 1 < path->chain.len)
				return at;
			return path->chain.len;
		}
	}
	return path->chain.len;
}

static size_t path_room_after(const struct path *path, size_t used)
{
	size_t width = path->text->report->width;

	if (width > used + SELF_COLUMNS + LINK_COLUMNS)
		return width - used - SELF_COLUMNS;
	return LINK_COLUMNS;
}

/* Prints a chain: one line, or two for a wait. @prefix has the rails of the levels
 * above. */
static int print_chain(const struct path *path, const char *prefix, const char *branch)
{
	struct pm_text *text = path->text;
	const struct pm_tree_node *nodes = path->tree->nodes.data;
	const struct pm_tree_node *leaf = &nodes[path->chain.data[path->chain.len - 1]];
	size_t used = 9 + pm_columns(prefix) + pm_columns(branch);
	size_t split = path->waits ? last_of_program(path) : path->chain.len;
	struct links before = { path, 0, split == 0 ? path->chain.len : split };
	struct pm_str line = { 0 };
	bool failed;

	fputc(' ', text->to);
	pm_text_percent(text, path_percent(path, &nodes[path->chain.data[0]].total));
	fputs("  ", text->to);
	pm_text_put(text, PM_COLOR_DIM, prefix);
	pm_text_put(text, PM_COLOR_DIM, branch);
	put_links(&line, &before, path_room_after(path, used));
	if (before.len < path->chain.len) {
		struct links after = { path, split, path->chain.len - split };

		pm_str_printf(&line, "\n%*s", (int)used, "");
		pm_str_puts(&line, pm_text_arrow(text, false));
		put_links(&line, &after, path_room_after(path, used + 3));
	}
	failed = line.failed;
	if (!failed) {
		fputs(line.data, text->to);
		if (path_percent(path, &leaf->self) >= SELF_PERCENT)
			fprintf(text->to, "  %.1f%% self",
				path_percent(path, &leaf->self));
		fputc('\n', text->to);
	}
	pm_str_release(&line);
	if (failed)
		return -ENOMEM;
	return 0;
}

/* Prints the heaviest branches at the end of the chain, and recurses into the first one,
 * at most DEPTH_MAX times. */
static int print_branches(struct path *path, const char *prefix, unsigned depth)
{
	static const char *const branches[2][2] = { { "├─ ", "└─ " }, { "|- ", "`- " } };
	static const char *const rails[2] = { "│  ", "|  " };
	const struct pm_tree_node *leaf =
		&path->tree->nodes.data[path->chain.data[path->chain.len - 1]];
	uint32_t first = leaf->first_child, count = leaf->children, shown = 0;
	bool ascii = path->text->report->ascii;
	int ret = 0;

	while (shown < count && shown < BRANCHES_MAX &&
	       path_percent(path, &path->tree->nodes.data[first + shown].total) >=
		       BRANCH_PERCENT)
		shown++;
	for (uint32_t i = 0; ret == 0 && i < shown; i++) {
		bool last = i + 1 == shown;
		PM_CLEANUP(pm_str_release) struct pm_str below = { 0 };

		ret = path_follow(path, first + i);
		if (ret == 0)
			ret = print_chain(path, prefix, branches[ascii][last]);
		if (ret < 0 || i > 0 || depth == DEPTH_MAX)
			continue;
		pm_str_printf(&below, "%s%s", prefix, last ? "   " : rails[ascii]);
		if (below.failed)
			ret = -ENOMEM;
		else
			ret = print_branches(path, below.data, depth + 1);
	}
	return ret;
}

int pm_text_hottest(struct pm_text *text, const struct pm_section *section)
{
	const struct pm_profile *profile = section->view->profile;
	PM_CLEANUP(path_release)
	struct path path = {
		.text = text,
		.waits = pm_event_is_time(&profile->events.data[section->view->event]),
	};
	int ret = pm_tree_new(&path.tree, section->view, PM_TREE_TOP_DOWN, NULL, true);

	if (ret < 0)
		return ret;
	if (path.tree->nodes.data[0].children == 0)
		return 0;
	fputc('\n', text->to);
	pm_text_put(text, PM_COLOR_HEAD, "hottest path");
	fputc('\n', text->to);
	ret = path_follow(&path, path.tree->nodes.data[0].first_child);
	if (ret == 0)
		ret = print_chain(&path, "", "");
	if (ret == 0)
		ret = print_branches(&path, "", 1);
	return ret;
}
