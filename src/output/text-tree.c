/* SPDX-License-Identifier: MIT */
/* Call trees for people. A chain of single callees stays in one column: only branches
 * indent, so that deep stacks fit. */
#include "output-internal.h"

#include <string.h>

enum {
	BRANCH_COLUMNS = 3,
	NAME_MIN = 20, /* columns of a name, however deep */
};

/* What the children of the node at some depth need to know. */
struct rung {
	size_t prefix_len; /* bytes of the prefix that they share */
	size_t prefix_columns;
	uint32_t shown; /* how many of them are above the limit */
};

struct drawing {
	struct pm_text *text;
	const struct pm_section *section;
	struct pm_tree *tree;
	double limit;
	struct pm_str prefix;
	PM_VEC(struct rung) rungs; /* by depth */
};

static void drawing_release(struct drawing *drawing)
{
	pm_tree_free(drawing->tree);
	pm_str_release(&drawing->prefix);
	pm_vec_release(&drawing->rungs);
}

/* ---- a line ------------------------------------------------------------------------------ */

static double percent_of(const struct pm_tree *tree, const struct pm_weight *weight)
{
	return pm_weight_percent(weight, &tree->view->total);
}

static void put_marks(struct pm_str *str, const struct pm_tree_node *node)
{
	if (node->inlined)
		pm_str_puts(str, " (inlined)");
	if (node->recursive)
		pm_str_puts(str, " (recursive)");
}

/* The module, where it is another one than the caller's. */
static void put_new_module(struct pm_str *str, const struct pm_tree *tree,
			   const struct pm_tree_node *node)
{
	const struct pm_profile *profile = tree->view->profile;
	const struct pm_profile_function *functions = profile->functions.data;
	const struct pm_tree_node *parent = &tree->nodes.data[node->parent];
	uint32_t module = functions[node->function].module;

	if (functions[node->function].unknown || module == PM_PROFILE_NONE ||
	    (parent->function != PM_PROFILE_NONE &&
	     functions[parent->function].module == module))
		return;
	pm_str_puts(str, "  ");
	pm_put_cut(str, profile->modules.data[module].name, NAME_MIN, false, true);
}

static int print_node(struct drawing *drawing, uint32_t id, size_t used)
{
	struct pm_text *text = drawing->text;
	const struct pm_report *report = text->report;
	const struct pm_tree_node *node = &drawing->tree->nodes.data[id];
	struct pm_str name = { 0 }, marks = { 0 }, module = { 0 };
	size_t room = 0, width = report->width;
	bool failed;

	put_marks(&marks, node);
	put_new_module(&module, drawing->tree, node);
	if (width > 0) {
		room = width > used + marks.len + NAME_MIN ? width - used - marks.len
							   : NAME_MIN;
	}
	pm_put_function(&name, report->profile, node->function, room, report->ascii);
	failed = name.failed || marks.failed || module.failed;
	if (!failed) {
		fprintf(text->to, "%s%s", name.data, marks.data ? marks.data : "");
		used += pm_columns(name.data) + marks.len;
		if (module.len > 0 &&
		    (width == 0 || used + pm_columns(module.data) <= width))
			pm_text_put(text, PM_COLOR_DIM, module.data);
		fputc('\n', text->to);
	}
	pm_str_release(&name);
	pm_str_release(&marks);
	pm_str_release(&module);
	return failed ? -ENOMEM : 0;
}

static size_t print_numbers(const struct drawing *drawing, uint32_t id)
{
	const struct pm_tree_node *node = &drawing->tree->nodes.data[id];
	bool with_self = drawing->tree->kind == PM_TREE_TOP_DOWN;

	fputc(' ', drawing->text->to);
	pm_text_percent(drawing->text, percent_of(drawing->tree, &node->total));
	if (with_self) {
		fputs("  ", drawing->text->to);
		pm_text_percent(drawing->text, percent_of(drawing->tree, &node->self));
	}
	fputs("  ", drawing->text->to);
	return with_self ? 17 : 9;
}

/* ---- branches ---------------------------------------------------------------------------- */

static uint32_t count_shown(const struct drawing *drawing, const struct pm_tree_node *of)
{
	uint32_t shown = 0;

	while (shown < of->children &&
	       percent_of(drawing->tree,
			  &drawing->tree->nodes.data[of->first_child + shown].total) >=
		       drawing->limit)
		shown++;
	return shown;
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
	size_t used;

	if (id == parent->first_child)
		above->shown = count_shown(drawing, parent);
	branch = above->shown > 1 && node.depth > 1;
	last = id + 1 == parent->first_child + above->shown;
	if (node.depth == 1 && id != parent->first_child)
		fputc('\n', drawing->text->to); /* another tree */
	used = print_numbers(drawing, id);
	drawing->prefix.len = above->prefix_len;
	pm_text_color(drawing->text, PM_COLOR_DIM);
	fwrite(drawing->prefix.data, 1, above->prefix_len, drawing->text->to);
	if (branch)
		fputs(branches[report->ascii][last], drawing->text->to);
	pm_text_color(drawing->text, PM_COLOR_PLAIN);
	used += above->prefix_columns + (branch ? BRANCH_COLUMNS : 0);

	/* Half of the screen is for names: deeper branches indent no more. */
	own = (struct rung){ .prefix_columns = above->prefix_columns };
	if (branch && (report->width == 0 || own.prefix_columns < report->width / 2)) {
		pm_str_puts(&drawing->prefix, last ? "   " : rails[report->ascii]);
		own.prefix_columns += BRANCH_COLUMNS;
	}
	own.prefix_len = drawing->prefix.len;
	drawing->rungs.len = node.depth;
	if (drawing->prefix.failed || pm_vec_push(&drawing->rungs, own) < 0)
		return -ENOMEM;
	return print_node(drawing, id, used);
}

/* ---- the whole tree ------------------------------------------------------------------------ */

static void print_title(const struct drawing *drawing)
{
	const struct pm_report *report = drawing->text->report;
	bool top_down = drawing->tree->kind == PM_TREE_TOP_DOWN;
	const char *what = report->show == PM_SHOW_CALLERS   ? "callers of "
			   : report->show == PM_SHOW_CALLEES ? "what is called by "
							     : NULL;

	if (what) {
		struct pm_str line = { 0 };

		pm_str_puts(&line, what);
		pm_put_cut(&line, report->function, 0, false, report->ascii);
		pm_str_printf(
			&line, ": %.1f%% of all samples, ",
			percent_of(drawing->tree, &drawing->tree->nodes.data[0].total));
		pm_put_count(&line, drawing->tree->nodes.data[0].total.samples);
		pm_text_wrap(drawing->text, "", 2, line.failed ? what : line.data);
		pm_str_release(&line);
		fputc('\n', drawing->text->to);
	}
	pm_text_put(drawing->text, PM_COLOR_HEAD,
		    top_down ? "  total     self  function\n" : "  share  function\n");
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
	bool any = false;
	int r = pm_section_tree(section, true, &drawing.tree);

	pm_str_puts(&drawing.prefix, "");
	if (r == 0)
		r = pm_vec_push(&drawing.rungs, (struct rung){ 0 });
	if (r < 0)
		return r;
	print_title(&drawing);
	while ((r = pm_tree_next(drawing.tree, drawing.limit, &node)) > 0) {
		r = draw_node(&drawing, node);
		if (r < 0)
			return r;
		any = true;
	}
	if (r < 0)
		return r;
	if (!any && drawing.tree->nodes.data[0].total.samples == 0)
		fputs("  no sample passes through it\n", text->to);
	if (drawing.limit > 0 && !text->report->quiet) {
		char line[96];

		snprintf(line, sizeof(line),
			 "  %s branches below %g%% are left out (--limit 0 shows all)\n",
			 pm_text_ellipsis(text), drawing.limit);
		pm_text_put(text, PM_COLOR_DIM, line);
	}
	return 0;
}
