/* SPDX-License-Identifier: MIT */
/* Call trees for people. A chain of single callees stays in one column: only branches
 * indent, and deep stacks fit. */
#include "output-internal.h"

#include <string.h>

#include "pm/base-text.h"

enum {
	BRANCH_COLUMNS = 3,
	NAME_MIN = 20, /* columns of a name at any depth */
	NAMES_MAX = 1000, /* limit of a line if the width is unlimited */
};
#define INVISIBLE_PERCENT 0.05 /* shares are printed with one digit */

/* The state of a node at some depth, for its children. */
struct rung {
	size_t prefix_len; /* bytes of the prefix that the children share */
	size_t prefix_columns;
	uint32_t shown; /* number of children above the limit */
};

/* The current line. */
struct line {
	uint32_t first, last; /* nodes; 0: none */
	size_t columns;
	struct pm_str rails, names;
};

struct drawing {
	struct pm_text *text;
	const struct pm_section *section;
	struct pm_tree *tree;
	double limit;
	struct pm_str prefix;
	PM_VEC(struct rung) rungs; /* by depth */
	struct line line;
};

static void drawing_release(struct drawing *drawing)
{
	pm_tree_free(drawing->tree);
	pm_str_release(&drawing->prefix);
	pm_vec_release(&drawing->rungs);
	pm_str_release(&drawing->line.rails);
	pm_str_release(&drawing->line.names);
}

/* ---- a line ------------------------------------------------------------------------------ */

static double node_percent(const struct pm_tree *tree, const struct pm_weight *weight)
{
	return pm_weight_percent(weight, &tree->view->total);
}

/* [unknown] stands for many functions: recursion of it has no meaning. */
static void put_node_marks(struct pm_str *str, const struct pm_tree *tree,
			   const struct pm_tree_node *node)
{
	const struct pm_profile_function *function =
		&tree->view->profile->functions.data[node->function];

	if (node->inlined)
		pm_str_puts(str, " (inlined)");
	if (node->recursive && (!function->unknown || function->start > 0))
		pm_str_puts(str, " (recursive)");
}

/* Appends the module, if it is not the caller's. */
static void put_new_module(struct pm_str *str, const struct pm_tree *tree,
			   const struct pm_tree_node *node)
{
	const struct pm_profile *profile = tree->view->profile;
	const struct pm_profile_function *functions = profile->functions.data;
	const struct pm_tree_node *parent = &tree->nodes.data[node->parent];
	uint32_t module = functions[node->function].module;
	const char *name;
	bool bracketed;

	if (functions[node->function].unknown || module == PM_PROFILE_NONE ||
	    (parent->function != PM_PROFILE_NONE &&
	     functions[parent->function].module == module))
		return;
	name = profile->modules.data[module].name;
	bracketed = name[0] == '[';
	pm_str_puts(str, " ");
	if (!bracketed)
		pm_str_puts(str, "[");
	pm_put_cut(str, name, NAME_MIN, false, true);
	if (!bracketed)
		pm_str_puts(str, "]");
}

/* Appends "f (inlined) [module]" in at most @room columns (0: no limit), or more if @room
 * is very small. */
static void put_node_name(struct pm_str *str, const struct drawing *drawing, uint32_t id,
			  size_t room)
{
	const struct pm_report *report = drawing->text->report;
	const struct pm_tree_node *node = &drawing->tree->nodes.data[id];
	struct pm_str marks = { 0 }, module = { 0 };

	put_node_marks(&marks, drawing->tree, node);
	put_new_module(&module, drawing->tree, node);
	if (room > 0) {
		if (room < marks.len + module.len + NAME_MIN)
			pm_str_clear(&module);
		if (room > marks.len + module.len + NAME_MIN)
			room = room - marks.len - module.len;
		else
			room = NAME_MIN;
	}
	pm_put_function(str, report->profile, node->function, room, report->ascii);
	if (marks.failed || module.failed)
		str->failed = true;
	pm_str_append(str, marks.data, marks.len);
	pm_str_append(str, module.data, module.len);
	pm_str_release(&marks);
	pm_str_release(&module);
}

static void print_line(struct drawing *drawing)
{
	const struct pm_text *text = drawing->text;
	struct line *line = &drawing->line;
	const struct pm_tree_node *nodes = drawing->tree->nodes.data;

	if (line->first == 0)
		return;
	fputc(' ', text->to);
	pm_text_percent(text, node_percent(drawing->tree, &nodes[line->first].total));
	if (drawing->tree->kind == PM_TREE_TOP_DOWN) {
		fputs("  ", text->to);
		pm_text_percent(text,
				node_percent(drawing->tree, &nodes[line->last].self));
	}
	fputs("  ", text->to);
	pm_text_put(text, PM_COLOR_DIM, line->rails.data);
	fprintf(text->to, "%s\n", line->names.data);
	line->first = 0;
}

/*
 * Whether the node continues the line. A single callee that has all of its caller's
 * weight is put on the caller's line, if it fits. The line then has the total weight of
 * its first function and the self weight of its last one.
 */
static bool line_continues(const struct drawing *drawing, uint32_t id, bool only_child)
{
	const struct line *line = &drawing->line;
	const struct pm_tree_node *nodes = drawing->tree->nodes.data;
	double more = node_percent(drawing->tree, &nodes[line->last].total) -
		      node_percent(drawing->tree, &nodes[id].total);

	return line->first != 0 && only_child && nodes[id].parent == line->last &&
	       more < INVISIBLE_PERCENT;
}

static bool append_node(struct drawing *drawing, uint32_t id)
{
	struct line *line = &drawing->line;
	bool back = drawing->tree->kind == PM_TREE_BOTTOM_UP;
	const char *arrow = pm_text_arrow(drawing->text, back);
	struct pm_str name = { 0 };
	size_t width = drawing->text->report->width, columns;
	bool fits;

	if (width == 0)
		width = NAMES_MAX - 1;
	put_node_name(&name, drawing, id, 0);
	columns = pm_columns(arrow) + pm_str_columns(&name);
	fits = !name.failed && line->columns + columns <= width;
	if (fits) {
		pm_str_puts(&line->names, arrow);
		pm_str_append(&line->names, name.data, name.len);
		line->columns += columns;
		line->last = id;
	}
	pm_str_release(&name);
	return fits;
}

/* ---- branches ---------------------------------------------------------------------------- */

static uint32_t count_shown(const struct drawing *drawing, const struct pm_tree_node *of)
{
	uint32_t shown = 0;

	while (shown < of->children &&
	       node_percent(drawing->tree,
			    &drawing->tree->nodes.data[of->first_child + shown].total) >=
		       drawing->limit)
		shown++;
	return shown;
}

static void start_line(struct drawing *drawing, uint32_t id, const struct rung *above,
		       const char *branch, bool follows)
{
	struct line *line = &drawing->line;
	bool back = drawing->tree->kind == PM_TREE_BOTTOM_UP;
	size_t width = drawing->text->report->width;
	size_t used = 9 + above->prefix_columns + pm_columns(branch), room = 0;

	if (drawing->tree->kind == PM_TREE_TOP_DOWN)
		used += 8; /* a second column of percentages */
	line->first = line->last = id;
	pm_str_clear(&line->rails);
	pm_str_clear(&line->names);
	pm_str_append(&line->rails, drawing->prefix.data, above->prefix_len);
	pm_str_puts(&line->rails, branch);
	if (follows) { /* the arrow without the blank before it */
		pm_str_puts(&line->rails, pm_text_arrow(drawing->text, back) + 1);
		used += 2;
	}
	if (width > used)
		room = width - used;
	else if (width > 0)
		room = 1;
	put_node_name(&line->names, drawing, id, room);
	line->columns = used + pm_str_columns(&line->names);
}

static int draw_node(struct drawing *drawing, uint32_t id)
{
	static const char *const branches[2][2] = { { "├─ ", "└─ " }, { "|- ", "`- " } };
	static const char *const rails[2] = { "│  ", "|  " };
	const struct pm_report *report = drawing->text->report;
	struct pm_tree_node node = drawing->tree->nodes.data[id];
	const struct pm_tree_node *parent = &drawing->tree->nodes.data[node.parent];
	struct rung *above = &drawing->rungs.data[node.depth - 1], own;
	bool branch, last;

	if (id == parent->first_child)
		above->shown = count_shown(drawing, parent);
	branch = above->shown > 1 && node.depth > 1;
	last = id + 1 == parent->first_child + above->shown;
	drawing->prefix.len = above->prefix_len;
	if (!line_continues(drawing, id, above->shown == 1) ||
	    !append_node(drawing, id)) {
		print_line(drawing);
		if (node.depth == 1 && id != parent->first_child)
			fputc('\n', drawing->text->to); /* a blank line between trees */
		start_line(drawing, id, above,
			   branch ? branches[report->ascii][last] : "",
			   !branch && node.depth > 1);
	}
	/* Half of the screen is reserved for names: deeper branches are not indented
	 * further. */
	own = (struct rung){ .prefix_columns = above->prefix_columns };
	if (branch && (report->width == 0 || own.prefix_columns < report->width / 2)) {
		pm_str_puts(&drawing->prefix, last ? "   " : rails[report->ascii]);
		own.prefix_columns += BRANCH_COLUMNS;
	}
	own.prefix_len = drawing->prefix.len;
	drawing->rungs.len = node.depth;
	if (drawing->prefix.failed || drawing->line.names.failed ||
	    drawing->line.rails.failed)
		return -ENOMEM;
	return pm_vec_push(&drawing->rungs, own);
}

/* ---- the whole tree ------------------------------------------------------------------------ */

static void print_title(const struct drawing *drawing)
{
	const struct pm_report *report = drawing->text->report;
	bool top_down = drawing->tree->kind == PM_TREE_TOP_DOWN;
	const char *what = NULL;

	if (report->show == PM_SHOW_CALLERS)
		what = "callers of ";
	else if (report->show == PM_SHOW_CALLEES)
		what = "what is called by ";
	if (what) {
		struct pm_str line = { 0 };

		pm_str_puts(&line, what);
		pm_put_cut(&line, report->function, 0, false, report->ascii);
		pm_str_printf(
			&line, ": %.1f%% of all samples, ",
			node_percent(drawing->tree, &drawing->tree->nodes.data[0].total));
		pm_put_count(&line, drawing->tree->nodes.data[0].total.samples);
		pm_text_wrap(drawing->text, PM_COLOR_PLAIN, "", 2, 1,
			     pm_str_complete_or(&line, what));
		pm_str_release(&line);
		fputc('\n', drawing->text->to);
	}
	if (drawing->tree->nodes.data[0].children == 0)
		fputs("  no sample passes through it", drawing->text->to);
	else
		pm_text_put(drawing->text, PM_COLOR_HEAD,
			    top_down ? "  total     self  function"
				     : "  share  function");
	fputc('\n', drawing->text->to);
}

int pm_text_tree(struct pm_text *text, const struct pm_section *section)
{
	PM_CLEANUP(drawing_release)
	struct drawing drawing = {
		.text = text,
		.section = section,
		.limit = text->report->limit < 0 ? 0.5 : text->report->limit,
	};
	uint32_t node = 0;
	int ret = pm_section_tree(section, true, &drawing.tree);

	pm_str_puts(&drawing.prefix, "");
	if (ret == 0)
		ret = pm_vec_push(&drawing.rungs, (struct rung){ 0 });
	if (ret < 0)
		return ret;
	print_title(&drawing);
	while ((ret = pm_tree_next(drawing.tree, drawing.limit, &node)) > 0) {
		ret = draw_node(&drawing, node);
		if (ret < 0)
			return ret;
	}
	print_line(&drawing);
	if (ret < 0)
		return ret;
	if (drawing.limit > 0 && drawing.tree->nodes.data[0].children > 0 &&
	    !text->report->quiet) {
		char line[96];

		snprintf(line, sizeof(line),
			 "  %s branches below %g%% are left out (--limit 0 shows all)\n",
			 pm_text_ellipsis(text), drawing.limit);
		pm_text_put(text, PM_COLOR_DIM, line);
	}
	return 0;
}
