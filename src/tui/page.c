/* SPDX-License-Identifier: MIT */
/*
 * Pages: computed when they are shown, and again when the view has changed.
 *
 * For trees, decides which nodes have rows, and walks through all nodes.
 *
 * For texts, formats the lines and instructions of one function as in the text report.
 */
#include "tui-internal.h"

#include <string.h>

void page_release(struct page *page)
{
	pm_table_release(&page->table);
	pm_function_set_release(&page->only);
	free(page->function);
	pm_tree_free(page->tree);
	pm_vec_release(&page->open);
	pm_str_release(&page->text);
	pm_vec_release(&page->rows);
	*page = (struct page){ 0 };
}

unsigned tui_body_rows(const struct pm_tui *tui)
{
	enum {
		/* Three rows of heading, one of column headings, one of keys. */
		AROUND = 5,
	};

	if (tui->rows > AROUND)
		return tui->rows - AROUND;
	return 1;
}

void page_select(struct pm_tui *tui, struct page *page, size_t row)
{
	unsigned body = tui_body_rows(tui);
	size_t last = PM_SUB_OR_0(page->rows.len, body);

	if (row >= page->rows.len)
		row = PM_SUB_OR_0(page->rows.len, 1);
	if (page->kind == PAGE_TEXT) {
		/* Pages of text have no selected row: the page itself scrolls. */
		page->top = page->selected = PM_MIN(row, last);
		return;
	}
	page->selected = row;
	if (page->top > row)
		page->top = row;
	if (page->top + body <= row)
		page->top = row - body + 1;
	if (page->top > last)
		page->top = last;
}

/* ---- tables ------------------------------------------------------------------------------ */

static int page_make_table(struct pm_tui *tui, struct page *page)
{
	struct pm_keys keys = { .key = { page->key }, .len = 1 };
	uint32_t selected = PM_PROFILE_NONE;
	bool had_one = page->made > 0 && page->rows.len > 0 && page->selected > 0;
	size_t at = 0;
	int ret;

	if (had_one)
		selected = page_table_row(page, page->selected)->id;
	pm_table_release(&page->table);
	page->table = (struct pm_table){ 0 };
	pm_vec_clear(&page->rows);
	page->hidden = 0;
	ret = pm_table_init_keys(&page->table, tui->view, &keys, tui->by_total);
	for (size_t i = 0; ret == 0 && i < page->table.rows.len; i++) {
		const struct pm_row *row = &page->table.rows.data[i];
		const struct pm_weight *weight = tui->by_total ? &row->total : &row->self;

		if (pm_weight_percent(weight, &tui->view->total) < tui->limit) {
			page->hidden++;
			continue;
		}
		if (had_one && row->id == selected)
			at = page->rows.len;
		ret = pm_vec_push(&page->rows, (struct page_row){ .id = (uint32_t)i });
	}
	page_select(tui, page, at);
	return ret;
}

/* ---- trees ------------------------------------------------------------------------------- */

/* The functions from the selected node to the root, to find the node in another tree. */
struct path {
	PM_VEC(uint32_t) functions; /* innermost first */
};

static int page_selected_path(struct path *path, const struct page *page)
{
	int ret = 0;

	if (!page->tree || page->rows.len == 0)
		return 0;
	for (uint32_t node = page->rows.data[page->selected].id; ret == 0 && node != 0;
	     node = page->tree->nodes.data[node].parent)
		ret = pm_vec_push(&path->functions,
				  page->tree->nodes.data[node].function);
	return ret;
}

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

/* Returns the next sibling of @node that is not below the limit, or 0. */
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

/* Sets *out to the next node in reading order. */
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

/* Sets *out to the last node below @node, or to @node itself. */
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

/* Sets *out to the node at the end of the path, or to the last one of the path that
 * exists. */
static int follow_tree_path(const struct pm_tui *tui, struct page *page,
			    const struct path *path, uint32_t *out)
{
	uint32_t node = 0;

	for (size_t i = path->functions.len; i-- > 0;) {
		uint32_t shown, child = 0;
		int ret = tree_shown(tui, page, node, &shown);

		if (ret < 0)
			return ret;
		for (uint32_t c = 0; c < shown && child == 0; c++) {
			uint32_t id = page->tree->nodes.data[node].first_child + c;

			if (page->tree->nodes.data[id].function ==
			    path->functions.data[i])
				child = id;
		}
		if (child == 0)
			break;
		node = child;
	}
	*out = node;
	return 0;
}

static int page_make_tree(struct pm_tui *tui, struct page *page)
{
	struct path path = { 0 };
	struct pm_tree *tree = NULL;
	uint32_t node = 0;
	int ret = page_selected_path(&path, page);

	if (ret == 0)
		ret = pm_tree_new(&tree, tui->view, page->tree_kind,
				  page->only.set ? &page->only : NULL, true);
	pm_tree_free(page->tree);
	page->tree = tree;
	pm_vec_clear(&page->open);
	pm_vec_clear(&page->rows);
	if (ret == 0)
		ret = follow_tree_path(tui, page, &path, &node);
	if (ret == 0 && node == 0 && page->made == 0 &&
	    page->tree->nodes.data[0].children > 0) {
		/* Initially select the heaviest child. */
		ret = tree_open(tui, page, page->tree->nodes.data[0].first_child);
		node = page->tree->nodes.data[0].first_child;
	}
	if (ret == 0)
		ret = tree_show(tui, page, node);
	pm_vec_release(&path.functions);
	return ret;
}

/* ---- texts ------------------------------------------------------------------------------- */

static int page_split_lines(struct page *page)
{
	size_t start = 0;
	int ret = 0;

	pm_vec_clear(&page->rows);
	if (page->text.failed || page->text.len > UINT32_MAX)
		return -ENOMEM;
	for (size_t i = 0; ret == 0 && i < page->text.len; i++) {
		if (page->text.data[i] != '\n')
			continue;
		page->text.data[i] = '\0';
		ret = pm_vec_push(&page->rows,
				  (struct page_row){ .id = (uint32_t)start });
		start = i + 1;
	}
	if (ret == 0 && start < page->text.len)
		ret = pm_vec_push(&page->rows,
				  (struct page_row){ .id = (uint32_t)start });
	return ret;
}

/* Makes the page of information: the heading of the text report, which contains all
 * warnings. */
static int page_make_information(struct pm_tui *tui, struct page *page)
{
	struct pm_report report = tui->report;
	char *text = NULL;
	size_t len = 0;
	FILE *stream = open_memstream(&text, &len);
	int ret;

	if (!stream)
		return -ENOMEM;
	report.filter = &tui->filter;
	report.show = PM_SHOW_TABLE;
	report.color = false;
	report.width = tui_room(tui, 2, 0);
	ret = pm_output_heading(&report, stream, NULL);
	if (fclose(stream) != 0)
		ret = -ENOMEM;
	if (ret == 0)
		pm_str_append(&page->text, text, len);
	free(text);
	return ret;
}

enum {
	CONTEXT_ROWS = 5, /* shown above the hottest row */
};

bool line_percent(const char *line, double *out, unsigned *columns)
{
	char *end;

	if (line[strspn(line, " 0123456789")] != '.')
		return false;
	*out = strtod(line, &end);
	*columns = (unsigned)(end - line) + 1;
	return *end == '%';
}

int tui_annotate_report(struct pm_tui *tui, const struct page *page, unsigned width,
			FILE *to, struct pm_error *err)
{
	struct pm_report report = tui->report;

	report.event = tui->event;
	report.filter = &tui->filter;
	report.show = PM_SHOW_ANNOTATE;
	report.annotate = tui->annotate;
	report.function = page->function;
	report.quiet = width > 0;
	report.color = false;
	report.width = width;
	return pm_output_text(&report, to, err);
}

static int tui_annotate_lines(struct pm_tui *tui, struct page *page)
{
	struct pm_error err = { .offset = -1 };
	char *text = NULL;
	size_t len = 0;
	FILE *stream = open_memstream(&text, &len);
	int ret;

	if (!stream)
		return -ENOMEM;
	ret = tui_annotate_report(tui, page, tui_room(tui, 1, 1), stream, &err);
	if (fclose(stream) != 0)
		ret = -ENOMEM;
	if (ret == 0 && text)
		pm_str_append(&page->text, text, len);
	else if (ret < 0 && ret != -ENOMEM)
		pm_str_printf(&page->text, "! %s\n", err.text);
	free(text);
	if (ret == -ENOMEM || page->text.failed)
		return -ENOMEM;
	return 0;
}

void tui_show_hottest(struct pm_tui *tui, struct page *page)
{
	double percent, most = 0;
	size_t hottest = 0;
	unsigned columns;

	for (size_t i = 0; i < page->rows.len; i++) {
		if (!line_percent(page_line(page, i), &percent, &columns) ||
		    percent <= most)
			continue;
		most = percent;
		hottest = i;
	}
	page_select(tui, page, PM_SUB_OR_0(hottest, CONTEXT_ROWS));
}

int tui_push_annotate(struct pm_tui *tui, const char *function)
{
	struct page page = { .kind = PAGE_TEXT, .text_kind = TEXT_ANNOTATE };
	int ret;

	page.function = strdup(function);
	if (!page.function)
		return -ENOMEM;
	ret = tui_push(tui, &page);
	if (ret == 0)
		tui_show_hottest(tui, tui_page(tui));
	return ret;
}

static int page_make_text(struct pm_tui *tui, struct page *page)
{
	int ret;

	pm_str_clear(&page->text);
	page->found = 0;
	if (page->text_kind == TEXT_HELP)
		ret = tui_help_lines(tui, page);
	else if (page->text_kind == TEXT_ANNOTATE)
		ret = tui_annotate_lines(tui, page);
	else
		ret = page_make_information(tui, page);
	if (ret == 0)
		ret = page_split_lines(page);
	page_select(tui, page, page->selected);
	return ret;
}

int page_make(struct pm_tui *tui, struct page *page)
{
	int ret = 0;

	if (page->made == tui->generation)
		return 0;
	switch (page->kind) {
	case PAGE_TABLE:
		ret = page_make_table(tui, page);
		break;
	case PAGE_TREE:
		ret = page_make_tree(tui, page);
		break;
	case PAGE_TEXT:
		ret = page_make_text(tui, page);
		break;
	}
	page->made = tui->generation;
	return ret;
}

/* ---- the stack of pages ------------------------------------------------------------------ */

int tui_push(struct pm_tui *tui, struct page *page)
{
	int ret = page_make(tui, page);

	if (ret == 0)
		ret = pm_vec_push(&tui->pages, *page);
	if (ret < 0)
		page_release(page);
	return ret;
}

void tui_pop(struct pm_tui *tui)
{
	page_release(tui_page(tui));
	tui->pages.len--;
}

static int page_replace_current(struct pm_tui *tui, struct page *page)
{
	int ret = tui_push(tui, page);

	if (ret < 0)
		return ret;
	while (tui->pages.len > 1) {
		page_release(&tui->pages.data[tui->pages.len - 2]);
		tui->pages.data[tui->pages.len - 2] = tui->pages.data[tui->pages.len - 1];
		tui->pages.len--;
	}
	return 0;
}

int tui_show_table(struct pm_tui *tui, enum pm_key key)
{
	struct page page = { .kind = PAGE_TABLE, .key = key };

	return page_replace_current(tui, &page);
}

int tui_show_tree(struct pm_tui *tui, enum pm_tree_kind kind)
{
	struct page page = { .kind = PAGE_TREE, .tree_kind = kind };

	return page_replace_current(tui, &page);
}

int tui_push_function(struct pm_tui *tui, uint32_t function, enum pm_tree_kind kind)
{
	struct page page = { .kind = PAGE_TREE, .tree_kind = kind };
	struct pm_str name = { 0 };

	pm_put_function(&name, tui->profile, function, 0, tui->report.ascii);
	page.only.set = calloc(tui->profile->functions.len + 1, sizeof(bool));
	if (name.failed || !name.data || !page.only.set) {
		pm_str_release(&name);
		page_release(&page);
		return -ENOMEM;
	}
	page.only.set[function] = true;
	page.only.len = page.only.names = 1;
	page.function = name.data;
	return tui_push(tui, &page);
}

int tui_push_text(struct pm_tui *tui, enum text_kind kind)
{
	struct page page = { .kind = PAGE_TEXT, .text_kind = kind };

	return tui_push(tui, &page);
}

/* ---- objects of a row -------------------------------------------------------------------- */

uint32_t row_place(const struct pm_profile *profile, enum pm_key key,
		   const struct pm_row *row)
{
	if (key == PM_KEY_LINE)
		return row->id;
	if (key == PM_KEY_ADDRESS)
		return profile->levels.data[profile->frames.data[row->id].first_level];
	if (key == PM_KEY_FUNCTION)
		return row->place;
	return PM_PROFILE_NONE;
}

uint32_t page_function(const struct pm_tui *tui, const struct page *page)
{
	const struct pm_row *row;

	if (page->kind == PAGE_TEXT || page->rows.len == 0)
		return PM_PROFILE_NONE;
	if (page->kind == PAGE_TREE)
		return page->tree->nodes.data[page->rows.data[page->selected].id]
			.function;
	row = page_table_row(page, page->selected);
	if (page->key == PM_KEY_FUNCTION)
		return row->id;
	if (page->key == PM_KEY_LINE || page->key == PM_KEY_ADDRESS)
		return tui->profile->places.data[row_place(tui->profile, page->key, row)]
			.function;
	return PM_PROFILE_NONE;
}

bool page_module(const struct pm_tui *tui, const struct page *page, uint32_t *out)
{
	uint32_t function = page_function(tui, page);

	if (function != PM_PROFILE_NONE)
		*out = tui->profile->functions.data[function].module;
	else if (page->kind == PAGE_TABLE && page->key == PM_KEY_MODULE &&
		 page->rows.len > 0)
		*out = page_table_row(page, page->selected)->id;
	else
		return false;
	return true;
}
