/* SPDX-License-Identifier: MIT */
/* State common to all pages: the event, the filter and their view. Also creates and frees
 * the browser. */
#include "tui-internal.h"

#include "pm/annotate.h"

#include <stdarg.h>
#include <string.h>

static void PM_PRINTF(3, 0) tui_set_message(struct pm_tui *tui, bool warning,
					    const char *format, va_list args)
{
	vsnprintf(tui->message, sizeof(tui->message), format, args);
	tui->warning = warning;
}

void tui_say(struct pm_tui *tui, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	tui_set_message(tui, false, format, args);
	va_end(args);
}

void tui_warn(struct pm_tui *tui, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	tui_set_message(tui, true, format, args);
	va_end(args);
}

/* ---- the view --------------------------------------------------------------------------- */

/* Switches to the view of @event and @filter. Changes nothing on failure. */
static int tui_switch_view(struct pm_tui *tui, uint32_t event,
			   const struct pm_filter *filter, struct pm_error *err)
{
	struct pm_view *view = NULL;
	int ret = pm_view_new(&view, tui->profile, event, filter, err);

	if (ret < 0)
		return ret;
	pm_view_free(tui->view);
	tui->view = view;
	tui->event = event;
	tui->filter = *filter;
	tui->generation++;
	return 0;
}

int tui_set_event(struct pm_tui *tui, uint32_t event)
{
	struct pm_filter filter = tui->filter;
	struct pm_error err = { .offset = -1 };
	int ret = tui_switch_view(tui, event, &filter, &err);

	if (ret < 0 && ret != -ENOMEM)
		tui_warn(tui, "%s", err.text);
	if (ret == -ENOMEM)
		return ret;
	return 0;
}

/* ---- zooming --------------------------------------------------------------------------- */

static void tui_forget_zoom(struct pm_tui *tui, enum zoom_kind kind)
{
	size_t kept = 0;

	for (size_t i = 0; i < tui->zooms_len; i++)
		if (tui->zooms[i] != kind)
			tui->zooms[kept++] = tui->zooms[i];
	tui->zooms_len = kept;
}

/* Zooms in with @filter. Takes ownership of the strings @first and @second. */
static int tui_zoom_in(struct pm_tui *tui, enum zoom_kind kind,
		       const struct pm_filter *filter, char *first, char *second)
{
	struct pm_error err = { .offset = -1 };
	char **of_first = kind == ZOOM_THREAD ? &tui->zoom_pid : &tui->zoom_module;
	int ret = tui_switch_view(tui, tui->event, filter, &err);

	if (ret < 0) {
		free(first);
		free(second);
		if (ret != -ENOMEM)
			tui_warn(tui, "%s", err.text);
		if (ret == -ENOMEM)
			return ret;
		return 0;
	}
	free(*of_first);
	*of_first = first;
	if (kind == ZOOM_THREAD) {
		free(tui->zoom_tid);
		tui->zoom_tid = second;
	}
	tui_forget_zoom(tui, kind);
	if (first)
		tui->zooms[tui->zooms_len++] = kind;
	return 0;
}

int tui_zoom_thread(struct pm_tui *tui, uint32_t pid, const uint32_t *tid)
{
	struct pm_filter filter = tui->filter;
	char *pid_text = NULL, *tid_text = NULL;

	if (pid == PM_FILE_NONE || (tid && *tid == PM_FILE_NONE)) {
		tui_warn(tui, "its id is unknown: there is no filter for it");
		return 0;
	}
	if (asprintf(&pid_text, "%u", pid) < 0)
		return -ENOMEM;
	if (tid && asprintf(&tid_text, "%u", *tid) < 0) {
		free(pid_text);
		return -ENOMEM;
	}
	filter.pid = pid_text;
	filter.tid = tui->report.filter->tid;
	if (tid_text)
		filter.tid = tid_text;
	return tui_zoom_in(tui, ZOOM_THREAD, &filter, pid_text, tid_text);
}

int tui_zoom_module(struct pm_tui *tui, const char *list)
{
	struct pm_filter filter = tui->filter;
	char *copy = strdup(list);

	if (!copy)
		return -ENOMEM;
	filter.module = copy;
	return tui_zoom_in(tui, ZOOM_MODULE, &filter, copy, NULL);
}

bool tui_zoomed(const struct pm_tui *tui, enum zoom_kind kind)
{
	for (size_t i = 0; i < tui->zooms_len; i++)
		if (tui->zooms[i] == kind)
			return true;
	return false;
}

int tui_zoom_out(struct pm_tui *tui, enum zoom_kind kind)
{
	struct pm_filter filter = tui->filter;

	if (kind == ZOOM_MODULE) {
		filter.module = tui->report.filter->module;
	} else {
		filter.pid = tui->report.filter->pid;
		filter.tid = tui->report.filter->tid;
	}
	return tui_zoom_in(tui, kind, &filter, NULL, NULL);
}

/* ---- creation and release ---------------------------------------------------------------- */

/* Pushes the page of callees, callers or lines of one function above the table. */
static int tui_push_requested_page(struct pm_tui *tui, struct pm_error *err)
{
	const struct pm_report *report = &tui->report;
	PM_CLEANUP(pm_annotate_choices_release)
	struct pm_annotate_choices choices = { 0 };
	struct page page = { .kind = PAGE_TREE, .tree_kind = PM_TREE_TOP_DOWN };
	int ret = pm_annotate_choose(&choices, tui->view, report->function, err);

	if (ret < 0)
		return ret;
	if (report->show == PM_SHOW_ANNOTATE)
		return tui_push_annotate(tui, report->function);
	ret = pm_function_set_init(&page.only, tui->profile, report->function, err);
	if (ret < 0)
		return ret;
	if (report->show == PM_SHOW_CALLERS)
		page.tree_kind = PM_TREE_BOTTOM_UP;
	page.function = strdup(report->function);
	if (!page.function) {
		page_release(&page);
		return -ENOMEM;
	}
	return tui_push(tui, &page);
}

static int tui_start(struct pm_tui *tui, struct pm_error *err)
{
	const struct pm_report *report = &tui->report;
	uint32_t event = report->event == PM_PROFILE_NONE ? 0 : report->event;
	int ret;

	if (tui->profile->events.len == 0)
		return pm_error_set(err, -ENOENT, "the recording has no event");
	ret = tui_switch_view(tui, event, report->filter, err);
	if (ret < 0)
		return ret;
	if (report->show == PM_SHOW_TREE)
		ret = tui_show_tree(tui, PM_TREE_TOP_DOWN);
	else if (report->show == PM_SHOW_BOTTOM_UP)
		ret = tui_show_tree(tui, PM_TREE_BOTTOM_UP);
	else if (report->show == PM_SHOW_TABLE)
		ret = tui_show_table(tui, report->key);
	else
		ret = tui_show_table(tui, PM_KEY_FUNCTION);
	if (ret == 0 &&
	    (report->show == PM_SHOW_CALLERS || report->show == PM_SHOW_CALLEES ||
	     report->show == PM_SHOW_ANNOTATE))
		ret = tui_push_requested_page(tui, err);
	return ret;
}

int pm_tui_new(struct pm_tui **out, const struct pm_report *report, struct pm_error *err)
{
	static const struct pm_filter none;
	struct pm_tui *tui = calloc(1, sizeof(*tui));
	int ret;

	if (!tui)
		return pm_error_set(err, -ENOMEM, "out of memory");
	tui->report = *report;
	if (!tui->report.filter)
		tui->report.filter = &none;
	tui->profile = report->profile;
	tui->by_total = report->by_total;
	tui->annotate = report->annotate;
	tui->limit = PM_MAX(report->limit, 0);
	tui->rows = 24;
	tui->columns = 80;
	ret = tui_start(tui, err);
	if (ret < 0) {
		pm_tui_free(tui);
		if (ret == -ENOMEM)
			return pm_error_set(err, ret, "out of memory");
		return ret;
	}
	*out = tui;
	return 0;
}

void pm_tui_free(struct pm_tui *tui)
{
	if (!tui)
		return;
	while (tui->pages.len > 0)
		tui_pop(tui);
	pm_vec_release(&tui->pages);
	pm_view_free(tui->view);
	free(tui->zoom_pid);
	free(tui->zoom_tid);
	free(tui->zoom_module);
	pm_str_release(&tui->typed);
	pm_str_release(&tui->pattern);
	pm_vec_release(&tui->frame.cells);
	pm_str_release(&tui->frame.text);
	free(tui);
}

void pm_tui_resize(struct pm_tui *tui, unsigned rows, unsigned columns)
{
	/* Texts are formatted for the width of the screen. */
	for (size_t i = 0; i < tui->pages.len && columns != tui->columns; i++)
		if (tui->pages.data[i].kind == PAGE_TEXT)
			tui->pages.data[i].made = 0;
	tui->rows = rows;
	tui->columns = columns;
	page_select(tui, tui_page(tui), tui_page(tui)->selected);
}
