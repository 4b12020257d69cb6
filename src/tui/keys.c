/* SPDX-License-Identifier: MIT */
/* The action of each key. Letters that perf report uses have the same meaning here. */
#include "tui-internal.h"

#include <string.h>

typedef int (*act_fn)(struct pm_tui *tui, uint32_t key);

enum {
	ENDED = 0,
	GOES_ON = 1,
};

static int continue_unless_failed(int r)
{
	if (r < 0)
		return r;
	return GOES_ON;
}

/* ---- moving ------------------------------------------------------------------------------ */

static int move_selection(struct pm_tui *tui, uint32_t key)
{
	struct page *page = tui_page(tui);
	size_t body = tui_body_rows(tui), at = page->selected;

	switch (key) {
	case PM_TUI_UP:
		at -= at > 0;
		break;
	case PM_TUI_DOWN:
		at++;
		break;
	case PM_TUI_PAGE_UP:
		at -= PM_MIN(at, body);
		break;
	case PM_TUI_PAGE_DOWN:
	case ' ':
		at += body;
		break;
	case PM_TUI_HOME:
		at = 0;
		break;
	default:
		at = page->rows.len;
		break;
	}
	page_select(tui, page, at);
	return GOES_ON;
}

/* ---- other pages ------------------------------------------------------------------------- */

static int show_requested_page(struct pm_tui *tui, uint32_t key)
{
	static const enum pm_key keys[] = { PM_KEY_MODULE, PM_KEY_THREAD, PM_KEY_PROCESS,
					    PM_KEY_LINE, PM_KEY_ADDRESS };

	if (key == '1')
		return continue_unless_failed(tui_show_table(tui, PM_KEY_FUNCTION));
	if (key == '2')
		return continue_unless_failed(tui_show_tree(tui, PM_TREE_TOP_DOWN));
	if (key == '3')
		return continue_unless_failed(tui_show_tree(tui, PM_TREE_BOTTOM_UP));
	return continue_unless_failed(tui_show_table(tui, keys[key - '4']));
}

static int push_function_page(struct pm_tui *tui, uint32_t key)
{
	uint32_t function = page_function(tui, tui_page(tui));
	enum pm_tree_kind kind = key == '<' ? PM_TREE_BOTTOM_UP : PM_TREE_TOP_DOWN;

	if (function == PM_PROFILE_NONE) {
		tui_warn(tui, "this is about no function");
		return GOES_ON;
	}
	return continue_unless_failed(tui_push_function(tui, function, kind));
}

static int push_annotate_page(struct pm_tui *tui, uint32_t key)
{
	uint32_t id = page_function(tui, tui_page(tui));
	const struct pm_profile_function *function;

	if (id == PM_PROFILE_NONE) {
		tui_warn(tui, "this is about no function");
		return GOES_ON;
	}
	function = &tui->profile->functions.data[id];
	if (function->unknown && function->start == 0) {
		tui_warn(tui, "a function without a name: 8 lists its addresses");
		return GOES_ON;
	}
	return continue_unless_failed(tui_push_annotate(tui, function->name));
}

static int show_hottest(struct pm_tui *tui, uint32_t key)
{
	struct page *page = tui_page(tui);

	if (page->kind == PAGE_TEXT && page->text_kind == TEXT_ANNOTATE)
		tui_show_hottest(tui, page);
	return GOES_ON;
}

static int push_text_page(struct pm_tui *tui, uint32_t key)
{
	enum text_kind kind = key == 'i' ? TEXT_INFORMATION : TEXT_HELP;
	const struct page *page = tui_page(tui);

	if (page->kind == PAGE_TEXT && page->text_kind == kind) {
		tui_pop(tui);
		return GOES_ON;
	}
	return continue_unless_failed(tui_push_text(tui, kind));
}

static int leave_page(struct pm_tui *tui, uint32_t key)
{
	if (tui->pages.len > 1) {
		tui_pop(tui);
		return continue_unless_failed(page_make(tui, tui_page(tui)));
	}
	if (key == 'q')
		return ENDED;
	if (tui->zooms_len > 0)
		return continue_unless_failed(
			tui_zoom_out(tui, tui->zooms[tui->zooms_len - 1]));
	tui_say(tui, "q ends");
	return GOES_ON;
}

static int end_browsing(struct pm_tui *tui, uint32_t key)
{
	return ENDED;
}

/* ---- which samples ------------------------------------------------------------------------ */

static int switch_event(struct pm_tui *tui, uint32_t key)
{
	uint32_t count = (uint32_t)tui->profile->events.len, steps = 1;

	if (count < 2) {
		tui_say(tui, "there is one event only");
		return GOES_ON;
	}
	if (key != PM_TUI_TAB)
		steps = count - 1; /* one step backwards, modulo @count */
	return continue_unless_failed(tui_set_event(tui, (tui->event + steps) % count));
}

/* Zooms into the thread or process of the selected row; on other pages, shows the table
 * of threads. */
static int zoom_thread(struct pm_tui *tui, uint32_t key)
{
	const struct page *page = tui_page(tui);
	const struct pm_profile *profile = tui->profile;
	uint32_t id;

	if (tui_zoomed(tui, ZOOM_THREAD))
		return continue_unless_failed(tui_zoom_out(tui, ZOOM_THREAD));
	if (page->kind != PAGE_TABLE ||
	    (page->key != PM_KEY_THREAD && page->key != PM_KEY_PROCESS)) {
		int ret = tui_show_table(tui, PM_KEY_THREAD);

		tui_say(tui, "which thread? Enter zooms into it");
		return continue_unless_failed(ret);
	}
	if (page->rows.len == 0)
		return GOES_ON;
	id = page_table_row(page, page->selected)->id;
	if (page->key == PM_KEY_PROCESS)
		return continue_unless_failed(
			tui_zoom_thread(tui, profile->processes.data[id].pid, NULL));
	return continue_unless_failed(tui_zoom_thread(tui, profile->threads.data[id].pid,
						      &profile->threads.data[id].tid));
}

/* Appends the name of a module to the list of a filter. Returns false if the name would
 * have another meaning there. */
static bool append_module_to_list(struct pm_str *list, const struct pm_profile *profile,
				  uint32_t id)
{
	const char *name = pm_profile_module_name(profile, id);

	if (id != PM_PROFILE_NONE && profile->modules.data[id].path[0] != '\0')
		name = profile->modules.data[id].path;
	if (strchr(name, ',') || name[0] == '!' || name[0] == '\0')
		return false;
	if (list->len > 0)
		pm_str_putc(list, ',');
	pm_str_puts(list, name);
	return true;
}

static int zoom_to_module_list(struct pm_tui *tui, struct pm_str *list)
{
	int ret = 0;

	if (list->failed)
		ret = -ENOMEM;
	else if (list->len > 0)
		ret = tui_zoom_module(tui, list->data);
	pm_str_release(list);
	return continue_unless_failed(ret);
}

static int zoom_module(struct pm_tui *tui, uint32_t key)
{
	struct pm_str list = { 0 };
	uint32_t id;

	if (tui_zoomed(tui, ZOOM_MODULE))
		return continue_unless_failed(tui_zoom_out(tui, ZOOM_MODULE));
	if (!page_module(tui, tui_page(tui), &id))
		tui_warn(tui, "this is about no module; 4 lists them");
	else if (!append_module_to_list(&list, tui->profile, id))
		tui_warn(tui, "there is no filter for a name like this");
	return zoom_to_module_list(tui, &list);
}

static int zoom_kernel(struct pm_tui *tui, uint32_t key)
{
	struct pm_str list = { 0 };

	if (tui_zoomed(tui, ZOOM_MODULE))
		return continue_unless_failed(tui_zoom_out(tui, ZOOM_MODULE));
	for (uint32_t i = 0; i < tui->profile->modules.len; i++)
		if (tui->profile->modules.data[i].kernel)
			append_module_to_list(&list, tui->profile, i);
	if (list.len == 0)
		tui_warn(tui, "no sample of this recording is in the kernel");
	return zoom_to_module_list(tui, &list);
}

/* ---- how it is shown ---------------------------------------------------------------------- */

/* Changes the sort order of a table, or which parts of an annotated function are
 * shown. */
static int switch_sort_order(struct pm_tui *tui, uint32_t key)
{
	static const enum pm_annotate_show next[] = {
		[PM_ANNOTATE_BOTH] = PM_ANNOTATE_SOURCE,
		[PM_ANNOTATE_SOURCE] = PM_ANNOTATE_CODE,
		[PM_ANNOTATE_CODE] = PM_ANNOTATE_BOTH,
	};
	struct page *page = tui_page(tui);

	if (page->kind == PAGE_TEXT) {
		if (page->text_kind != TEXT_ANNOTATE)
			return GOES_ON;
		tui->annotate = next[tui->annotate];
		page->made = 0;
		if (page_make(tui, page) < 0)
			return -ENOMEM;
		tui_show_hottest(tui, page);
		return GOES_ON;
	}
	tui->by_total = !tui->by_total;
	tui->generation++;
	tui_say(tui, "sorted by %s", tui->by_total ? "total" : "self");
	return GOES_ON;
}

static int switch_percent_base(struct pm_tui *tui, uint32_t key)
{
	tui->of_all = !tui->of_all;
	if (tui->of_all)
		tui_say(tui, "percent of all samples of the event");
	else
		tui_say(tui, "percent of the samples that pass the filters");
	return GOES_ON;
}

static int name_modules(struct pm_tui *tui, uint32_t key)
{
	tui->modules = !tui->modules;
	return GOES_ON;
}

/* ---- trees -------------------------------------------------------------------------------- */

/* Sets *out to the selected node. Returns false if there is none. */
static bool selected_node(struct pm_tui *tui, uint32_t *out)
{
	const struct page *page = tui_page(tui);

	if (page->kind != PAGE_TREE || page->rows.len == 0)
		return false;
	*out = page->rows.data[page->selected].id;
	return true;
}

static int open_node(struct pm_tui *tui, uint32_t key)
{
	struct page *page = tui_page(tui);
	uint32_t node;
	int ret;

	if (!selected_node(tui, &node)) {
		if (key == '+')
			return push_function_page(tui, '<');
		return GOES_ON;
	}
	if (key == '+' && tree_is_open(page, node)) {
		tree_close(page, node);
		return continue_unless_failed(tree_rows(tui, page, node));
	}
	if (tree_is_open(page, node))
		return move_selection(tui, PM_TUI_DOWN);
	ret = tree_open(tui, page, node);
	if (ret < 0)
		return ret;
	return continue_unless_failed(tree_rows(tui, page, node));
}

/* Closes the selected node, or moves to its parent if it is closed already. */
static int close_node(struct pm_tui *tui, uint32_t key)
{
	struct page *page = tui_page(tui);
	uint32_t node;

	if (!selected_node(tui, &node)) {
		if (key == PM_TUI_LEFT)
			return leave_page(tui, PM_TUI_ESCAPE);
		return GOES_ON;
	}
	if (!tree_is_open(page, node)) {
		uint32_t parent = page->tree->nodes.data[node].parent;

		if (parent == 0)
			return GOES_ON;
		return continue_unless_failed(tree_rows(tui, page, parent));
	}
	tree_close(page, node);
	return continue_unless_failed(tree_rows(tui, page, node));
}

/* Opens everything below @top, and keeps @node selected. */
static int open_tree_below(struct pm_tui *tui, uint32_t top, uint32_t node)
{
	struct page *page = tui_page(tui);
	bool cut;
	int ret = tree_open_all(tui, page, top, &cut);

	if (ret < 0)
		return ret;
	if (cut)
		tui_warn(tui, "not all of it: %u rows at a time; L sets a limit",
			 TREE_ROWS_MAX);
	return continue_unless_failed(tree_rows(tui, page, node));
}

/* Opens everything below one node. */
static int open_nodes_below(struct pm_tui *tui, uint32_t key)
{
	uint32_t node;

	if (!selected_node(tui, &node))
		return GOES_ON;
	return open_tree_below(tui, node, node);
}

static int open_all_nodes(struct pm_tui *tui, uint32_t key)
{
	uint32_t node;

	if (!selected_node(tui, &node))
		return GOES_ON;
	return open_tree_below(tui, 0, node);
}

static int close_nodes_below(struct pm_tui *tui, uint32_t key)
{
	struct page *page = tui_page(tui);
	uint32_t node;

	if (!selected_node(tui, &node))
		return GOES_ON;
	if (key == 'C') {
		while (page->tree->nodes.data[node].parent != 0)
			node = page->tree->nodes.data[node].parent;
		pm_vec_clear(&page->open);
		return continue_unless_failed(tree_rows(tui, page, node));
	}
	/* Nodes below a node have higher ids, but not all higher ids are below it. */
	for (uint32_t i = node; i < page->open.len; i++) {
		uint32_t up = i;

		while (up > node)
			up = page->tree->nodes.data[up].parent;
		if (up == node)
			page->open.data[i] = false;
	}
	return continue_unless_failed(tree_rows(tui, page, node));
}

/* ---- Enter ---------------------------------------------------------------------------------- */

static int open_selected_row(struct pm_tui *tui, uint32_t key)
{
	const struct page *page = tui_page(tui);
	size_t zooms = tui->zooms_len;
	int ret;

	if (page->kind == PAGE_TREE)
		return open_node(tui, '+');
	if (page->kind == PAGE_TEXT)
		return move_selection(tui, PM_TUI_DOWN);
	if (page_function(tui, page) != PM_PROFILE_NONE)
		return push_function_page(tui, '<');
	/* Shows the functions of a module, thread or process. */
	if (page->key == PM_KEY_MODULE)
		ret = zoom_module(tui, 'd');
	else
		ret = zoom_thread(tui, 't');
	if (ret < 0 || tui->zooms_len <= zooms)
		return ret;
	return show_requested_page(tui, '1');
}

static int open_prompt(struct pm_tui *tui, uint32_t key)
{
	char text[64] = "";
	int number = 1;

	if (key == '/')
		return continue_unless_failed(tui_prompt(tui, PROMPT_SEARCH, ""));
	if (key == 'L') {
		snprintf(text, sizeof(text), "%g", tui->limit);
		return continue_unless_failed(tui_prompt(tui, PROMPT_LIMIT, text));
	}
	do
		snprintf(text, sizeof(text), "pmreport-%d.txt", number);
	while (access(text, F_OK) == 0 && number++ < 1000);
	return continue_unless_failed(tui_prompt(tui, PROMPT_FILE, text));
}

static int search_again(struct pm_tui *tui, uint32_t key)
{
	if (tui->pattern.len == 0) {
		tui_say(tui, "/ searches first");
		return GOES_ON;
	}
	return continue_unless_failed(tui_search(tui, key == 'N'));
}

/* ---- all keys ------------------------------------------------------------------------------- */

static const struct {
	uint32_t key;
	act_fn act;
} bindings[] = {
	{ PM_TUI_UP, move_selection },
	{ PM_TUI_DOWN, move_selection },
	{ PM_TUI_PAGE_UP, move_selection },
	{ PM_TUI_PAGE_DOWN, move_selection },
	{ ' ', move_selection },
	{ PM_TUI_HOME, move_selection },
	{ PM_TUI_END, move_selection },
	{ PM_TUI_ENTER, open_selected_row },
	{ PM_TUI_RIGHT, open_node },
	{ PM_TUI_LEFT, close_node },
	{ '+', open_node },
	{ '-', close_node },
	{ 'e', open_nodes_below },
	{ 'E', open_all_nodes },
	{ 'c', close_nodes_below },
	{ 'C', close_nodes_below },
	{ '1', show_requested_page },
	{ '2', show_requested_page },
	{ '3', show_requested_page },
	{ '4', show_requested_page },
	{ '5', show_requested_page },
	{ '6', show_requested_page },
	{ '7', show_requested_page },
	{ '8', show_requested_page },
	{ 'a', push_annotate_page },
	{ 'H', show_hottest },
	{ '<', push_function_page },
	{ '>', push_function_page },
	{ PM_TUI_TAB, switch_event },
	{ PM_TUI_BACK_TAB, switch_event },
	{ 't', zoom_thread },
	{ 'd', zoom_module },
	{ 'k', zoom_kernel },
	{ 's', switch_sort_order },
	{ 'F', switch_percent_base },
	{ 'V', name_modules },
	{ 'L', open_prompt },
	{ 'P', open_prompt },
	{ '/', open_prompt },
	{ 'n', search_again },
	{ 'N', search_again },
	{ 'i', push_text_page },
	{ 'h', push_text_page },
	{ '?', push_text_page },
	{ PM_TUI_F1, push_text_page },
	{ PM_TUI_ESCAPE, leave_page },
	{ 'q', leave_page },
	{ 'Q', end_browsing },
};

int pm_tui_press(struct pm_tui *tui, uint32_t key)
{
	int ret = GOES_ON;

	tui->message[0] = '\0';
	if (tui->prompt != PROMPT_NONE)
		return continue_unless_failed(tui_prompt_press(tui, key));
	for (size_t i = 0; i < PM_ARRAY_LEN(bindings); i++) {
		if (bindings[i].key != key)
			continue;
		ret = bindings[i].act(tui, key);
		if (ret <= 0)
			return ret;
		return continue_unless_failed(page_make(tui, tui_page(tui)));
	}
	tui_say(tui, "no key of this browser: h lists them");
	return GOES_ON;
}
