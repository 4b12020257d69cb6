/* SPDX-License-Identifier: MIT */
/* Searches for the next row after the selected one that contains a text. */
#include "tui-internal.h"

#include <ctype.h>
#include <string.h>

/*
 * The search text matches literally, or as an extended regular expression if it is a
 * valid one. Case matters only if the text contains a capital letter.
 */
struct needle {
	const char *text;
	bool exact_case, has_regex;
	regex_t regex;
};

static void needle_init(struct needle *needle, const char *text)
{
	int flags = REG_EXTENDED | REG_NOSUB;

	*needle = (struct needle){ .text = text };
	for (const char *c = text; *c; c++)
		needle->exact_case |= isupper((unsigned char)*c) != 0;
	if (!needle->exact_case)
		flags |= REG_ICASE;
	needle->has_regex = regcomp(&needle->regex, text, flags) == 0;
}

static void needle_release(struct needle *needle)
{
	if (needle->has_regex)
		regfree(&needle->regex);
}

static bool text_matches_needle(const struct needle *needle, const char *text)
{
	const char *found;

	if (needle->exact_case)
		found = strstr(text, needle->text);
	else
		found = strcasestr(text, needle->text);
	if (found)
		return true;
	return needle->has_regex && regexec(&needle->regex, text, 0, NULL, 0) == 0;
}

static void say_search_wrapped(struct pm_tui *tui, bool backwards)
{
	if (backwards)
		tui_say(tui, "from the end again");
	else
		tui_say(tui, "from the beginning again");
}

static int say_not_found(struct pm_tui *tui, const struct needle *needle)
{
	struct pm_str shown = { 0 };

	pm_put_cut(&shown, needle->text, 40, false, tui->report.ascii);
	tui_warn(tui, "not found: %s", pm_str_text(&shown));
	pm_str_release(&shown);
	return 0;
}

/* ---- rows --------------------------------------------------------------------------------- */

void row_words(const struct pm_tui *tui, const struct page *page, size_t row,
	       struct pm_str *str)
{
	const struct pm_profile *profile = tui->profile;
	const struct pm_row *data = page_table_row(page, row);
	uint32_t place = row_place(profile, page->key, data);
	uint32_t function = PM_PROFILE_NONE;

	if (page->key == PM_KEY_FUNCTION)
		function = data->id;
	else if (place != PM_PROFILE_NONE)
		function = profile->places.data[place].function;

	if (page->key == PM_KEY_THREAD) {
		const struct pm_profile_thread *thread = &profile->threads.data[data->id];

		pm_str_printf(str, "%u %u %s", thread->pid, thread->tid, thread->comm);
	} else if (page->key == PM_KEY_PROCESS) {
		const struct pm_profile_process *process =
			&profile->processes.data[data->id];

		pm_str_printf(str, "%u %s", process->pid, process->comm);
	} else if (page->key == PM_KEY_MODULE && data->id == PM_PROFILE_NONE) {
		pm_str_puts(str, pm_profile_module_name(profile, data->id));
	} else if (page->key == PM_KEY_MODULE) {
		pm_str_puts(str, profile->modules.data[data->id].path);
	}

	if (page->key == PM_KEY_COMM)
		pm_str_puts(str, profile->threads.data[data->id].comm);
	else if (page->key == PM_KEY_CPU || page->key == PM_KEY_PARALLELISM)
		pm_str_u64(str, data->id);
	if (function != PM_PROFILE_NONE)
		pm_str_printf(str, "%s %s", profile->functions.data[function].name,
			      pm_profile_module_name(
				      profile, profile->functions.data[function].module));
	if (place != PM_PROFILE_NONE) {
		pm_str_putc(str, ' ');
		pm_put_source(str, &profile->places.data[place]);
	}
}

/* Returns the row to search from. In a text it is the last line found, as long as it is
 * visible, because the last lines cannot be scrolled to the top. */
static size_t search_from(const struct pm_tui *tui, const struct page *page)
{
	bool seen =
		page->found > page->top && page->found <= page->top + tui_body_rows(tui);

	if (page->kind == PAGE_TEXT && seen)
		return page->found - 1;
	return page->selected;
}

static int search_page_rows(struct pm_tui *tui, struct page *page,
			    const struct needle *needle, bool backwards)
{
	PM_CLEANUP(pm_str_release) struct pm_str words = { 0 };
	size_t count = page->rows.len, from = search_from(tui, page);

	for (size_t i = 1; i <= count; i++) {
		size_t row = (from + i) % count;
		bool wrapped = row < from;
		const char *text;

		if (backwards) {
			row = (from + count - i) % count;
			wrapped = row > from;
		}

		pm_str_clear(&words);
		if (page->kind == PAGE_TABLE)
			row_words(tui, page, row, &words);
		if (words.failed)
			return -ENOMEM;
		if (page->kind == PAGE_TABLE)
			text = words.data;
		else
			text = page_line(page, row);
		if (!text || !text_matches_needle(needle, text))
			continue;
		if (i < count && wrapped)
			say_search_wrapped(tui, backwards);
		page_select(tui, page, row);
		page->found = page->kind == PAGE_TEXT ? row + 1 : 0;
		return 0;
	}
	return say_not_found(tui, needle);
}

/* ---- trees -------------------------------------------------------------------------------- */

enum answer {
	NOT_ASKED,
	NO,
	YES,
};

static bool function_matches_needle(const struct pm_tui *tui, const struct needle *needle,
				    unsigned char *answers, uint32_t function)
{
	if (answers[function] == NOT_ASKED) {
		if (text_matches_needle(needle,
					tui->profile->functions.data[function].name))
			answers[function] = YES;
		else
			answers[function] = NO;
	}
	return answers[function] == YES;
}

/* Searches all nodes, also closed ones, and opens the parents of the result. */
static int search_page_tree(struct pm_tui *tui, struct page *page,
			    const struct needle *needle, bool backwards)
{
	PM_AUTO_FREE unsigned char *answers =
		calloc(tui->profile->functions.len + 1, sizeof(*answers));
	uint32_t begin, node;
	bool wrapped = false;

	if (!answers)
		return -ENOMEM;
	if (page->rows.len == 0)
		return say_not_found(tui, needle);
	node = begin = page->rows.data[page->selected].id;
	for (unsigned steps = 0; steps < SEARCH_STEPS_MAX; steps++) {
		int ret = tree_step(tui, page, node, backwards, &node);

		if (ret < 0)
			return ret;
		if (node == 0 && wrapped)
			return say_not_found(tui, needle);
		if (node == 0) {
			wrapped = true;
			continue;
		}
		if (function_matches_needle(tui, needle, answers,
					    page->tree->nodes.data[node].function)) {
			if (wrapped && node != begin)
				say_search_wrapped(tui, backwards);
			return tree_show(tui, page, node);
		}
		if (node == begin)
			return say_not_found(tui, needle);
	}
	tui_warn(tui, "not found in the next %u nodes of the tree", SEARCH_STEPS_MAX);
	return 0;
}

int tui_search(struct pm_tui *tui, bool backwards)
{
	struct page *page = tui_page(tui);
	struct needle needle;
	int ret;

	needle_init(&needle, tui->pattern.data);
	if (page->kind == PAGE_TREE)
		ret = search_page_tree(tui, page, &needle, backwards);
	else
		ret = search_page_rows(tui, page, &needle, backwards);
	needle_release(&needle);
	return ret;
}
