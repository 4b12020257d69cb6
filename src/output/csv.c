/* SPDX-License-Identifier: MIT */
/* Tables and trees for spreadsheets and scripts; quoting as in RFC 4180 §2. */
#include "output-internal.h"

#include <string.h>

struct csv {
	const struct pm_section *section;
	const char *separator;
	FILE *to;
	struct pm_str out;
	bool inside; /* of a line, behind a field */
};

/* ---- fields ---------------------------------------------------------------------------- */

static void separate(struct csv *csv)
{
	if (csv->inside)
		pm_str_puts(&csv->out, csv->separator);
	csv->inside = true;
}

static void end_line(struct csv *csv)
{
	pm_str_putc(&csv->out, '\n');
	csv->inside = false;
	pm_flush_some(&csv->out, csv->to);
}

/* Lines and tabs are data. What else moves a cursor is escaped: names are foreign, and who
 * looks at this on a terminal shall not obey them. */
static void put_tame(struct pm_str *out, const char *text)
{
	for (size_t len; *text; text += len) {
		len = strcspn(text, "\t\n");
		pm_str_printable(out, text, len);
		if (text[len] != '\0')
			pm_str_putc(out, text[len++]);
	}
}

static void put_text(struct csv *csv, const char *text)
{
	struct pm_str tame = { 0 };

	separate(csv);
	put_tame(&tame, text);
	text = tame.failed || !tame.data ? "" : tame.data;
	if (!strpbrk(text, "\"\n") && !strstr(text, csv->separator)) {
		pm_str_puts(&csv->out, text);
	} else {
		pm_str_putc(&csv->out, '"');
		for (const char *c = text; *c; c++) {
			if (*c == '"')
				pm_str_putc(&csv->out, '"');
			pm_str_putc(&csv->out, *c);
		}
		pm_str_putc(&csv->out, '"');
	}
	csv->out.failed |= tame.failed;
	pm_str_release(&tame);
}

static void put_number(struct csv *csv, uint64_t number)
{
	separate(csv);
	pm_str_u64(&csv->out, number);
}

/* Nothing when it is not known. */
static void put_id(struct csv *csv, uint32_t id)
{
	separate(csv);
	if (id != PM_FILE_NONE)
		pm_str_u64(&csv->out, id);
}

static void put_titles(struct csv *csv, const char *const *titles, size_t len)
{
	for (size_t i = 0; i < len; i++)
		put_text(csv, titles[i]);
}

/* ---- what all lines have ----------------------------------------------------------------- */

static const char *const weight_titles[] = {
	"self_percent",  "total_percent", "self_samples",
	"total_samples", "self_period",   "total_period",
};

static void put_weights(struct csv *csv, const struct pm_weight *self,
			const struct pm_weight *total)
{
	const struct pm_weight *whole = &csv->section->view->total;

	separate(csv);
	pm_str_printf(&csv->out, "%.4f", pm_weight_percent(self, whole));
	separate(csv);
	pm_str_printf(&csv->out, "%.4f", pm_weight_percent(total, whole));
	put_number(csv, self->samples);
	put_number(csv, total->samples);
	put_number(csv, self->period);
	put_number(csv, total->period);
}

static void put_event(struct csv *csv)
{
	const struct pm_section *section = csv->section;
	struct pm_str name = { 0 };

	pm_put_event(&name, section->report->profile, section->view->event);
	put_text(csv, name.data && !name.failed ? name.data : "");
	csv->out.failed |= name.failed;
	pm_str_release(&name);
}

static void put_function(struct csv *csv, uint32_t id)
{
	const struct pm_profile *profile = csv->section->report->profile;
	const struct pm_profile_function *function = &profile->functions.data[id];

	put_text(csv, function->name);
	put_text(csv, pm_profile_module_name(profile, function->module));
}

static void put_place(struct csv *csv, uint32_t id)
{
	const struct pm_profile_place *places =
		csv->section->report->profile->places.data;

	put_text(csv, id != PM_PROFILE_NONE && places[id].file ? places[id].file : "");
	separate(csv);
	if (id != PM_PROFILE_NONE && places[id].line > 0)
		pm_str_u64(&csv->out, places[id].line);
}

/* ---- tables ---------------------------------------------------------------------------- */

static void put_key_titles(struct csv *csv, enum pm_key key)
{
	static const char *const function[] = { "function", "module", "file", "line",
						"inlined" };
	static const char *const module[] = { "module", "path", "build_id" };
	static const char *const thread[] = { "pid", "tid", "comm" };
	static const char *const process[] = { "pid", "comm" };
	static const char *const line[] = { "file", "line", "function", "module" };
	static const char *const address[] = { "address", "function", "module", "file",
					       "line" };

	switch (key) {
	case PM_KEY_FUNCTION:
		put_titles(csv, function, PM_ARRAY_LEN(function));
		break;
	case PM_KEY_MODULE:
		put_titles(csv, module, PM_ARRAY_LEN(module));
		break;
	case PM_KEY_THREAD:
		put_titles(csv, thread, PM_ARRAY_LEN(thread));
		break;
	case PM_KEY_PROCESS:
		put_titles(csv, process, PM_ARRAY_LEN(process));
		break;
	case PM_KEY_LINE:
		put_titles(csv, line, PM_ARRAY_LEN(line));
		break;
	case PM_KEY_ADDRESS:
		put_titles(csv, address, PM_ARRAY_LEN(address));
		break;
	}
}

static void put_module(struct csv *csv, uint32_t id)
{
	const struct pm_profile *profile = csv->section->report->profile;
	const struct pm_profile_module *module =
		id == PM_PROFILE_NONE ? NULL : &profile->modules.data[id];

	put_text(csv, pm_profile_module_name(profile, id));
	put_text(csv, module ? module->path : "");
	put_text(csv, module && module->build_id ? module->build_id : "");
}

static void put_key(struct csv *csv, enum pm_key key, const struct pm_row *row)
{
	const struct pm_profile *profile = csv->section->report->profile;
	const struct pm_profile_frame *frame;
	uint32_t place;

	switch (key) {
	case PM_KEY_FUNCTION:
		put_function(csv, row->id);
		put_place(csv, row->place);
		put_number(csv, row->inlined);
		break;
	case PM_KEY_MODULE:
		put_module(csv, row->id);
		break;
	case PM_KEY_THREAD:
		put_id(csv, profile->threads.data[row->id].pid);
		put_id(csv, profile->threads.data[row->id].tid);
		put_text(csv, profile->threads.data[row->id].comm);
		break;
	case PM_KEY_PROCESS:
		put_id(csv, profile->processes.data[row->id].pid);
		put_text(csv, profile->processes.data[row->id].comm);
		break;
	case PM_KEY_LINE:
		put_place(csv, row->id);
		put_function(csv, profile->places.data[row->id].function);
		break;
	case PM_KEY_ADDRESS:
		frame = &profile->frames.data[row->id];
		place = profile->levels.data[frame->first_level];
		separate(csv);
		pm_str_hex(&csv->out, frame->address);
		put_function(csv, profile->places.data[place].function);
		put_place(csv, place);
		break;
	}
}

static int put_table(struct csv *csv, bool titles, double limit)
{
	const struct pm_report *report = csv->section->report;
	const struct pm_view *view = csv->section->view;
	PM_CLEANUP(pm_table_release) struct pm_table table = { 0 };
	int r = pm_table_init(&table, view, report->key, report->by_total);

	if (r < 0)
		return r;
	if (titles) {
		put_text(csv, "event");
		put_titles(csv, weight_titles, PM_ARRAY_LEN(weight_titles));
		put_key_titles(csv, report->key);
		end_line(csv);
	}
	for (size_t i = 0; i < table.rows.len; i++) {
		const struct pm_row *row = &table.rows.data[i];

		if (pm_weight_percent(report->by_total ? &row->total : &row->self,
				      &view->total) < limit)
			continue;
		put_event(csv);
		put_weights(csv, &row->self, &row->total);
		put_key(csv, report->key, row);
		end_line(csv);
	}
	return 0;
}

/* ---- trees ----------------------------------------------------------------------------- */

static int put_tree(struct csv *csv, bool titles, double limit)
{
	static const char *const node_titles[] = { "depth", "function", "module",
						   "inlined" };
	struct pm_tree *tree;
	uint32_t id = 0;
	int r = pm_section_tree(csv->section, false, &tree);

	if (r < 0)
		return r;
	if (titles) {
		put_text(csv, "event");
		put_titles(csv, weight_titles, PM_ARRAY_LEN(weight_titles));
		put_titles(csv, node_titles, PM_ARRAY_LEN(node_titles));
		end_line(csv);
	}
	while ((r = pm_tree_next(tree, limit, &id)) > 0) {
		const struct pm_tree_node *node = &tree->nodes.data[id];

		put_event(csv);
		put_weights(csv, &node->self, &node->total);
		put_number(csv, node->depth - 1);
		put_function(csv, node->function);
		put_number(csv, node->inlined);
		end_line(csv);
	}
	pm_tree_free(tree);
	return r;
}

int pm_output_csv(const struct pm_report *report, const char *separator, FILE *to,
		  struct pm_error *err)
{
	double limit = report->limit < 0 ? 0 : report->limit;
	struct csv csv = { .separator = separator, .to = to };
	uint32_t first, end;
	int r = 0;

	pm_report_events(report, &first, &end);
	for (uint32_t event = first; r == 0 && event < end; event++) {
		PM_CLEANUP(pm_section_release) struct pm_section section = { 0 };

		r = pm_section_init(&section, report, event, err);
		if (r < 0) {
			pm_str_release(&csv.out);
			return r;
		}
		csv.section = &section;
		r = report->show == PM_SHOW_TABLE ? put_table(&csv, event == first, limit)
						  : put_tree(&csv, event == first, limit);
	}
	if (r < 0) {
		pm_str_release(&csv.out);
		return pm_error_set(err, r, "out of memory");
	}
	return pm_flush_all(&csv.out, to, err);
}
