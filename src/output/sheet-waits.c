/* SPDX-License-Identifier: MIT */
/* Blocked time: which functions waited, for how long, and in which calls. */
#include "sheet.h"

enum {
	PEOPLE_MAX = 30, /* rows, unless more are requested */
	PEOPLE_MIN = 10, /* the same if all rows are below the limit */
	KERNEL_COLUMNS = 10, /* on a narrow screen, as functions need the room more */
	SOURCE_COLUMNS = 26,
	WIDE_COLUMNS = 110,
};
#define PEOPLE_PERCENT 0.5

bool pm_section_is_waits(const struct pm_section *section)
{
	const struct pm_report *report = section->report;

	return report->show == PM_SHOW_TABLE &&
	       (report->key == PM_KEY_FUNCTION || report->key == PM_KEY_LINE) &&
	       report->more_keys_len == 0 && !report->by_total &&
	       pm_profile_is_blocked_time(
		       &report->profile->events.data[section->view->event]);
}

static void waits_add_columns(struct pm_sheet *sheet, unsigned width, bool lines)
{
	bool narrow = width > 0 && width < WIDE_COLUMNS;

	sheet->name = "waits";
	pm_sheet_column(sheet, "blocked_ns", "blocked", PM_SHEET_NS, 0);
	pm_sheet_column(sheet, "percent", "share", PM_SHEET_PERCENT, 0);
	pm_sheet_column(sheet, "waits", "waits", PM_SHEET_COUNT, 0);
	pm_sheet_column(sheet, "longest_ns", "longest", PM_SHEET_NS, 0);
	pm_sheet_column(sheet, "function", "function", PM_SHEET_NAME, 0);
	pm_sheet_column(sheet, "module", NULL, PM_SHEET_TEXT, 0);
	if (lines) {
		pm_sheet_column(sheet, "file", NULL, PM_SHEET_TEXT, 0);
		pm_sheet_column(sheet, "line", NULL, PM_SHEET_ID, 0);
		pm_sheet_column(sheet, NULL, "source", PM_SHEET_TAIL, SOURCE_COLUMNS);
	}
	pm_sheet_column(sheet, "call", "waits in", PM_SHEET_NAME, 0);
	if (!narrow)
		pm_sheet_column(sheet, "kernel", "kernel", PM_SHEET_TAIL, 0);
	else if (lines) /* they replace the least informative column */
		pm_sheet_column(sheet, "kernel", NULL, PM_SHEET_TAIL, KERNEL_COLUMNS);
	else
		pm_sheet_column(sheet, "kernel", "kernel", PM_SHEET_TAIL, KERNEL_COLUMNS);
}

static int waits_add_function(struct pm_sheet *sheet, const struct pm_profile *profile,
			      uint32_t id)
{
	const struct pm_profile_function *function;

	if (id == PM_PROFILE_NONE)
		return pm_sheet_text(sheet, NULL);
	function = &profile->functions.data[id];
	return pm_vec_push(&sheet->cells,
			   (struct pm_sheet_cell){ .known = !function->unknown,
						   .text = function->name,
						   .start = function->start });
}

/* Adds a function without its start: only one function of a row may be identified by its
 * start. */
static int add_call(struct pm_sheet *sheet, const struct pm_profile *profile, uint32_t id)
{
	int ret = waits_add_function(sheet, profile, id);

	if (ret == 0)
		sheet->cells.data[sheet->cells.len - 1].start = 0;
	return ret;
}

static int add_source(struct pm_sheet *sheet, const struct pm_profile_place *place)
{
	PM_CLEANUP(pm_str_release) struct pm_str source = { 0 };
	const char *kept = NULL;
	int ret = pm_sheet_text(sheet, place->file);

	if (ret == 0)
		ret = pm_sheet_number(sheet, place->line > 0, place->line);
	if (ret < 0)
		return ret;
	pm_put_source(&source, place);
	if (source.len > 0)
		kept = pm_sheet_keep(sheet, source.data);
	if (source.failed || (source.len > 0 && !kept))
		return -ENOMEM;
	return pm_sheet_text(sheet, kept);
}

static int waits_add_row(struct pm_sheet *sheet, const struct pm_profile *profile,
			 const struct pm_wait *wait, double percent)
{
	uint32_t module = profile->functions.data[wait->function].module;
	const char *kernel;
	int ret = pm_sheet_number(sheet, true, wait->weight.period);

	if (ret == 0)
		ret = pm_sheet_percent(sheet, percent);
	if (ret == 0)
		ret = pm_sheet_number(sheet, true, wait->weight.samples);
	if (ret == 0)
		ret = pm_sheet_number(sheet, true, wait->longest);
	if (ret == 0)
		ret = waits_add_function(sheet, profile, wait->function);
	if (ret == 0)
		ret = pm_sheet_text(sheet, pm_module_known_name(profile, module));
	if (ret == 0 && wait->place != PM_PROFILE_NONE)
		ret = add_source(sheet, &profile->places.data[wait->place]);
	if (ret == 0)
		ret = add_call(sheet, profile, wait->call);
	if (ret < 0)
		return ret;
	if (!wait->kernel)
		return pm_sheet_text(sheet, NULL);
	kernel = pm_sheet_keep(sheet, wait->kernel);
	if (kernel)
		return pm_sheet_text(sheet, kernel);
	return -ENOMEM;
}

int pm_sheet_waits(struct pm_sheet *sheet, const struct pm_section *section)
{
	const struct pm_view *view = section->view;
	double limit = section->report->limit;
	PM_CLEANUP(pm_waits_release) struct pm_waits waits = { 0 };
	bool lines = section->report->key == PM_KEY_LINE;
	int ret = pm_waits_init(&waits, view, lines);

	if (ret < 0)
		return ret;
	waits_add_columns(sheet, section->report->width, lines);
	for (size_t i = 0; ret == 0 && i < waits.rows.len; i++) {
		double percent =
			pm_weight_percent(&waits.rows.data[i].weight, &view->total);

		/* Sorted by time: all following rows are below the limit, too. */
		if (percent < limit)
			break;
		if (percent >= PEOPLE_PERCENT && sheet->people < PEOPLE_MAX)
			sheet->people++;
		ret = waits_add_row(sheet, view->profile, &waits.rows.data[i], percent);
	}
	if (sheet->people == 0)
		sheet->people = PEOPLE_MIN;
	return ret;
}
