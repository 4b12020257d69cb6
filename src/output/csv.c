/* SPDX-License-Identifier: MIT */
/* Tables and trees for spreadsheets and scripts. */
#include "sheet.h"

#include <string.h>

#include "pm/base-text.h"

struct csv {
	const struct pm_section *section;
	const char *separator;
	FILE *to;
	struct pm_str out;
	bool inside; /* the line has a field already */
};

/* ---- fields ---------------------------------------------------------------------------- */

static void csv_put_separator(struct csv *csv)
{
	if (csv->inside)
		pm_str_puts(&csv->out, csv->separator);
	csv->inside = true;
}

static void csv_end_line(struct csv *csv)
{
	pm_str_putc(&csv->out, '\n');
	csv->inside = false;
	pm_flush_some(&csv->out, csv->to);
}

static void csv_put_text(struct csv *csv, const char *text)
{
	csv_put_separator(csv);
	pm_put_field(&csv->out, text, csv->separator);
}

static void csv_put_number(struct csv *csv, uint64_t number)
{
	csv_put_separator(csv);
	pm_str_u64(&csv->out, number);
}

static void csv_put_titles(struct csv *csv, const char *const *titles, size_t len)
{
	for (size_t i = 0; i < len; i++)
		csv_put_text(csv, titles[i]);
}

/* ---- fields of all lines ----------------------------------------------------------------- */

static const char *const weight_titles[] = {
	"self_percent",  "total_percent", "self_samples",
	"total_samples", "self_period",   "total_period",
};

static void put_weights(struct csv *csv, const struct pm_weight *self,
			const struct pm_weight *total)
{
	const struct pm_weight *whole = &csv->section->view->total;

	csv_put_separator(csv);
	pm_str_printf(&csv->out, "%.4f", pm_weight_percent(self, whole));
	csv_put_separator(csv);
	pm_str_printf(&csv->out, "%.4f", pm_weight_percent(total, whole));
	csv_put_number(csv, self->samples);
	csv_put_number(csv, total->samples);
	csv_put_number(csv, self->period);
	csv_put_number(csv, total->period);
}

static void csv_put_event(struct csv *csv)
{
	const struct pm_section *section = csv->section;
	struct pm_str name = { 0 };

	pm_put_event(&name, section->report->profile, section->view->event);
	csv_put_text(csv, pm_str_complete_or(&name, ""));
	csv->out.failed |= name.failed;
	pm_str_release(&name);
}

static void csv_put_function(struct csv *csv, uint32_t id)
{
	const struct pm_profile *profile = csv->section->report->profile;
	const struct pm_profile_function *function = &profile->functions.data[id];

	csv_put_text(csv, function->name);
	csv_put_text(csv, pm_profile_module_name(profile, function->module));
}

/* ---- tables ---------------------------------------------------------------------------- */

static void csv_put_value(struct csv *csv, const struct pm_row_value *value)
{
	if (value->kind == PM_VALUE_TEXT) {
		csv_put_text(csv, value->text);
		return;
	}
	csv_put_separator(csv);
	if (value->kind == PM_VALUE_ADDRESS)
		pm_str_hex(&csv->out, value->number);
	else if (value->known)
		pm_str_u64(&csv->out, value->number);
}

static int csv_put_table(struct csv *csv, bool titles, double limit)
{
	const struct pm_report *report = csv->section->report;
	const struct pm_view *view = csv->section->view;
	PM_CLEANUP(pm_table_release) struct pm_table table = { 0 };
	struct pm_row_column columns[PM_FIELDS];
	struct pm_keys keys;
	size_t columns_len;
	int ret;

	pm_report_keys(report, &keys);
	columns_len = pm_row_fields(&keys, columns);
	ret = pm_table_init_keys(&table, view, &keys, report->by_total);
	if (ret < 0)
		return ret;
	if (titles) {
		csv_put_text(csv, "event");
		csv_put_titles(csv, weight_titles, PM_ARRAY_LEN(weight_titles));
		for (size_t i = 0; i < columns_len; i++)
			csv_put_text(csv, columns[i].name);
		csv_end_line(csv);
	}
	for (size_t i = 0; i < table.rows.len; i++) {
		const struct pm_row *row = &table.rows.data[i];

		if (pm_weight_percent(report->by_total ? &row->total : &row->self,
				      &view->total) < limit)
			continue;
		csv_put_event(csv);
		put_weights(csv, &row->self, &row->total);
		for (size_t c = 0; c < columns_len; c++) {
			struct pm_row_value value;

			pm_row_get(report->profile, &columns[c], row, &value);
			csv_put_value(csv, &value);
		}
		csv_end_line(csv);
	}
	return 0;
}

/* ---- trees ----------------------------------------------------------------------------- */

static int csv_put_tree(struct csv *csv, bool titles, double limit)
{
	static const char *const node_titles[] = { "depth", "function", "module",
						   "inlined" };
	struct pm_tree *tree;
	uint32_t id = 0;
	int ret = pm_section_tree(csv->section, false, &tree);

	if (ret < 0)
		return ret;
	if (titles) {
		csv_put_text(csv, "event");
		csv_put_titles(csv, weight_titles, PM_ARRAY_LEN(weight_titles));
		csv_put_titles(csv, node_titles, PM_ARRAY_LEN(node_titles));
		csv_end_line(csv);
	}
	while ((ret = pm_tree_next(tree, limit, &id)) > 0) {
		const struct pm_tree_node *node = &tree->nodes.data[id];

		csv_put_event(csv);
		put_weights(csv, &node->self, &node->total);
		csv_put_number(csv, node->depth - 1);
		csv_put_function(csv, node->function);
		csv_put_number(csv, node->inlined);
		csv_end_line(csv);
	}
	pm_tree_free(tree);
	return ret;
}

/* ---- lists ----------------------------------------------------------------------------- */

static int csv_put_list(struct csv *csv, struct pm_section *section, bool titles,
			struct pm_error *err)
{
	PM_CLEANUP(pm_sheet_release) struct pm_sheet sheet = { 0 };
	struct pm_str event = { 0 };
	int ret = pm_sheet_make(&sheet, section, err);

	if (ret < 0)
		return ret;
	pm_put_event(&event, section->report->profile, section->view->event);
	pm_sheet_csv(&sheet, pm_str_complete_or(&event, ""), csv->separator, titles,
		     &csv->out);
	csv->out.failed |= event.failed;
	pm_str_release(&event);
	pm_flush_some(&csv->out, csv->to);
	return 0;
}

int pm_output_csv(const struct pm_report *report, const char *separator, FILE *to,
		  struct pm_error *err)
{
	double limit = PM_MAX(report->limit, 0);
	struct csv csv = { .separator = separator, .to = to };
	uint32_t first, end;
	int ret = 0;

	pm_report_events(report, &first, &end);
	for (uint32_t event = first; ret == 0 && event < end; event++) {
		PM_CLEANUP(pm_section_release) struct pm_section section = { 0 };

		ret = pm_section_init(&section, report, event, err);
		if (ret < 0) {
			pm_str_release(&csv.out);
			return ret;
		}
		csv.section = &section;
		if (pm_report_is_sheet(report))
			ret = csv_put_list(&csv, &section, event == first, err);
		else if (report->show == PM_SHOW_ANNOTATE)
			ret = pm_csv_annotate(&csv.out, to, separator, &section,
					      event == first);
		else if (report->show == PM_SHOW_TABLE)
			ret = csv_put_table(&csv, event == first, limit);
		else
			ret = csv_put_tree(&csv, event == first, limit);
	}
	if (ret < 0) {
		pm_str_release(&csv.out);
		if (pm_report_is_sheet(report))
			return ret;
		return pm_section_failed(ret, err);
	}
	return pm_flush_all(&csv.out, to, err);
}
