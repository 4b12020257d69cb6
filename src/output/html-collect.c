/* SPDX-License-Identifier: MIT */
/* Collects the contents of the HTML page: the cells of all events, with common ids, and
 * only the data that these cells use. */
#include "html-internal.h"

#include <string.h>

enum {
	TOP_ROWS = 20
};

/* ---- cells ------------------------------------------------------------------------------ */

static bool page_cell_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_page_cell *have =
		&((const struct pm_page_cells *)table)->rows.data[id];
	const struct pm_page_cell *wanted = key;

	return have->path == wanted->path && have->thread == wanted->thread &&
	       have->event == wanted->event && have->stop == wanted->stop;
}

static int page_add_cell(struct pm_page_cells *cells, const struct pm_page_cell *cell,
			 uint32_t *out)
{
	uint64_t hash = pm_hash_mix((uint64_t)cell->path << 32 | cell->thread,
				    (uint64_t)cell->event << 32 | cell->stop);
	uint32_t id = pm_index_find(&cells->index, hash, page_cell_equal, cells, cell);

	if (id == PM_INDEX_NONE) {
		id = (uint32_t)cells->rows.len;
		if (pm_vec_push(&cells->rows, *cell) < 0 ||
		    pm_index_add(&cells->index, hash, id) < 0)
			return -ENOMEM;
	} else {
		pm_weight_add(&cells->rows.data[id].weight, &cell->weight);
	}
	*out = id;
	return 0;
}

/* Adds the cells of a view, which shows the page's event @event. */
static int page_add_cells(struct pm_page *page, unsigned which, uint32_t event,
			  const struct pm_view *view)
{
	const struct pm_merged_map *map = &page->merged.map[which];
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < view->cells.len; i++) {
		uint32_t id = view->cells.data[i];
		const struct pm_profile_cell *from = &view->profile->cells.data[id];
		struct pm_page_cell cell = {
			.event = event,
			.thread = map->threads[from->thread],
			.path = map->paths[from->stack],
			.stop = map->stops[from->stop],
			.weight = from->weight,
		};

		ret = page_add_cell(&page->cells[which], &cell,
				    &page->cells[which].of[id]);
	}
	return ret;
}

/* ---- the heaviest functions -------------------------------------------------------------- */

static int page_put_top(struct pm_page *page, struct pm_section *section)
{
	const struct pm_profile *profile = page->report->profile;
	const struct pm_table *table = pm_section_functions(section);
	struct pm_str *out = &page->top, event = { 0 };

	if (!table)
		return -ENOMEM;
	pm_put_event(&event, profile, section->view->event);
	pm_str_puts(out, "<table>\n<caption>");
	pm_put_markup(out, pm_str_text(&event));
	pm_str_puts(out,
		    ": the heaviest functions</caption>\n<tr><th>self</th><th>total</th>"
		    "<th>function</th><th>module</th></tr>\n");
	for (size_t i = 0; i < table->rows.len && i < TOP_ROWS; i++) {
		const struct pm_row *row = &table->rows.data[i];
		const struct pm_profile_function *function =
			&profile->functions.data[row->id];

		pm_str_printf(out, "<tr><td>%.1f%%</td><td>%.1f%%</td><td>",
			      pm_weight_percent(&row->self, &section->view->total),
			      pm_weight_percent(&row->total, &section->view->total));
		pm_put_markup(out, function->name);
		pm_str_puts(out, "</td><td>");
		pm_put_markup(out, pm_profile_module_name(profile, function->module));
		pm_str_puts(out, "</td></tr>\n");
	}
	pm_str_puts(out, "</table>\n");
	out->failed |= event.failed;
	pm_str_release(&event);
	return 0;
}

/* ---- events ------------------------------------------------------------------------------ */

uint32_t pm_base_event(const struct pm_report *report, uint32_t event)
{
	const struct pm_profile_event *wanted = &report->profile->events.data[event];
	uint32_t near = PM_PROFILE_NONE;

	for (uint32_t i = 0; i < report->base->events.len; i++) {
		const struct pm_profile_event *have = &report->base->events.data[i];

		if (strcmp(have->actual, wanted->actual) != 0)
			continue;
		/* Two requested events may have been replaced by the same one if there is
		 * no PMU. */
		if (strcmp(have->requested, wanted->requested) == 0)
			return i;
		if (near == PM_PROFILE_NONE)
			near = i;
	}
	return near;
}

/* Adds the notes about an event, and its line, which says that all is well or accompanies
 * the warnings. */
static void add_notes(struct pm_notes *notes, struct pm_section *section)
{
	size_t before = notes->notes.len, at = 0;
	struct pm_str line = { 0 }, words = { 0 };

	pm_notes_add_event(notes, section);
	pm_put_event_line(&line, section);
	/* Three blanks separate columns in that line. */
	while (!line.failed && at < line.len) {
		const char *gap = strstr(line.data + at, "   ");
		size_t len = gap ? (size_t)(gap - line.data) - at : line.len - at;

		pm_str_append(&words, line.data + at, len);
		if (gap)
			pm_str_puts(&words, ", ");
		at += len + (gap ? 3 : 0);
	}
	if (line.failed || words.failed)
		notes->failed = true;
	else
		pm_notes_add(notes,
			     notes->notes.len == before ? PM_NOTE_GOOD : PM_NOTE_WARN,
			     "%s", words.data);
	pm_str_release(&line);
	pm_str_release(&words);
}

static int add_base_event(struct pm_page *page, struct pm_page_event *event,
			  struct pm_error *err)
{
	PM_CLEANUP(pm_section_release) struct pm_section section = { 0 };
	uint32_t id = (uint32_t)page->events.len;
	int ret;

	event->base = pm_base_event(page->report, event->event);
	if (event->base == PM_PROFILE_NONE) {
		const char *name =
			page->report->profile->events.data[event->event].actual;

		pm_notes_add(&page->notes[1], PM_NOTE_BAD,
			     "it has no event %s: there is nothing to compare", name);
		return 0;
	}
	ret = pm_section_init(&section, &page->base_report, event->base, err);
	if (ret < 0) {
		pm_error_where(err, "the base", -1);
		return ret;
	}
	event->base_total = section.view->total;
	add_notes(&page->notes[1], &section);
	return page_add_cells(page, 1, id, section.view);
}

static int page_add_event(struct pm_page *page, uint32_t event, struct pm_error *err)
{
	PM_CLEANUP(pm_section_release) struct pm_section section = { 0 };
	struct pm_page_event row = { .event = event, .base = PM_PROFILE_NONE };
	int ret = pm_section_init(&section, page->report, event, err);

	if (ret < 0)
		return ret;
	row.total = section.view->total;
	add_notes(&page->notes[0], &section);
	ret = page_add_cells(page, 0, (uint32_t)page->events.len, section.view);
	if (ret == 0 && row.total.samples > 0)
		ret = page_put_top(page, &section);
	if (ret == 0)
		ret = pm_page_choose_sources(page, &section);
	if (ret == 0 && page->report->base)
		ret = add_base_event(page, &row, err);
	if (ret < 0)
		return ret;
	return pm_vec_push(&page->events, row);
}

/* ---- what is used ------------------------------------------------------------------------ */

static int ids_init(struct pm_page_ids *ids, size_t len)
{
	ids->ids = malloc((len + 1) * sizeof(*ids->ids));
	if (!ids->ids)
		return -ENOMEM;
	memset(ids->ids, 0xff, (len + 1) * sizeof(*ids->ids));
	return 0;
}

/* Numbers the ids that were marked with any value. */
static void ids_number_marked(struct pm_page_ids *ids, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (ids->ids[i] != PM_PROFILE_NONE)
			ids->ids[i] = ids->count++;
}

static int page_find_used(struct pm_page *page)
{
	const struct pm_merged *merged = &page->merged;

	if (ids_init(&page->paths, merged->paths.len) < 0 ||
	    ids_init(&page->functions, merged->functions.len) < 0 ||
	    ids_init(&page->threads, merged->threads.len) < 0)
		return -ENOMEM;
	for (size_t which = 0; which < 2; which++) {
		for (size_t i = 0; i < page->cells[which].rows.len; i++) {
			page->paths.ids[page->cells[which].rows.data[i].path] = 0;
			page->threads.ids[page->cells[which].rows.data[i].thread] = 0;
		}
	}
	for (size_t i = merged->paths.len; i-- > 0;) {
		if (page->paths.ids[i] == PM_PROFILE_NONE)
			continue;
		page->functions.ids[merged->paths.data[i].function] = 0;
		if (merged->paths.data[i].parent != PM_PROFILE_NONE)
			page->paths.ids[merged->paths.data[i].parent] = 0;
	}
	ids_number_marked(&page->paths, merged->paths.len);
	ids_number_marked(&page->functions, merged->functions.len);
	ids_number_marked(&page->threads, merged->threads.len);
	return 0;
}

/* ---- the whole page ---------------------------------------------------------------------- */

static int cells_init(struct pm_page_cells *cells, const struct pm_profile *profile)
{
	cells->of = malloc((profile->cells.len + 1) * sizeof(*cells->of));
	if (!cells->of)
		return -ENOMEM;
	memset(cells->of, 0xff, (profile->cells.len + 1) * sizeof(*cells->of));
	return 0;
}

static int page_collect(struct pm_page *page, struct pm_error *err)
{
	const struct pm_report *report = page->report;
	uint32_t event, end;
	int ret = pm_merged_init(&page->merged, report->profile, report->base, err);

	if (ret == 0)
		ret = cells_init(&page->cells[0], report->profile);
	if (ret == 0 && report->base)
		ret = cells_init(&page->cells[1], report->base);
	if (ret < 0)
		return ret;
	pm_notes_add_file(&page->notes[0]);
	if (report->base)
		pm_notes_add_file(&page->notes[1]);
	pm_report_events(report, &event, &end);
	for (; ret == 0 && event < end; event++)
		ret = page_add_event(page, event, err);
	if (ret == 0)
		ret = page_find_used(page);
	if (ret == 0)
		ret = pm_page_read_sources(page);
	if (ret < 0)
		return ret;
	if (page->notes[0].failed || page->notes[1].failed || page->top.failed)
		return -ENOMEM;
	return 0;
}

int pm_page_init(struct pm_page *out, const struct pm_report *report,
		 struct pm_error *err)
{
	int ret;

	*out = (struct pm_page){ .report = report, .base_report = *report };
	out->base_report.profile = report->base;
	out->base_report.base = NULL;
	out->notes[0].report = report;
	out->notes[1].report = &out->base_report;
	ret = page_collect(out, err);
	if (ret < 0)
		pm_page_release(out);
	if (ret == -ENOMEM)
		return pm_error_set(err, ret, "out of memory");
	return ret;
}

void pm_page_release(struct pm_page *page)
{
	pm_merged_release(&page->merged);
	pm_vec_release(&page->events);
	pm_page_sources_release(page);
	for (size_t i = 0; i < 2; i++) {
		pm_vec_release(&page->cells[i].rows);
		pm_index_release(&page->cells[i].index);
		free(page->cells[i].of);
		page->cells[i].of = NULL;
		pm_notes_release(&page->notes[i]);
	}
	free(page->paths.ids);
	free(page->functions.ids);
	free(page->threads.ids);
	page->paths.ids = page->functions.ids = page->threads.ids = NULL;
	pm_str_release(&page->top);
}
