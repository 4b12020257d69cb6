/* SPDX-License-Identifier: MIT */
/*
 * A report as one JSON document, whose schema is in pmreport(1) and only grows. Each row
 * is on one line. Trees are lists of nodes with the number of their parent, as readers
 * limit the nesting of documents.
 */
#include "sheet.h"

#include <string.h>

enum {
	SCHEMA_VERSION = 1
};

struct json {
	const struct pm_report *report;
	const struct pm_section *section;
	FILE *to;
	struct pm_str out;
};

static void put(struct json *json, const char *text)
{
	pm_str_puts(&json->out, text);
}

static void put_text(struct json *json, const char *key, const char *text)
{
	put(json, key);
	pm_str_json(&json->out, text);
}

static void put_number(struct json *json, const char *key, uint64_t number)
{
	put(json, key);
	pm_str_u64(&json->out, number);
}

/* Null if it is unknown. */
static void put_number_if(struct json *json, const char *key, bool known, uint64_t number)
{
	put(json, key);
	if (known)
		pm_str_u64(&json->out, number);
	else
		put(json, "null");
}

static void put_bool(struct json *json, const char *key, bool value)
{
	put(json, key);
	put(json, value ? "true" : "false");
}

static void put_weight(struct json *json, const char *key, const struct pm_weight *weight)
{
	put(json, key);
	put_number(json, "{\"samples\":", weight->samples);
	put_number(json, ",\"period\":", weight->period);
	pm_str_printf(&json->out, ",\"percent\":%.4f}",
		      pm_weight_percent(weight, &json->section->view->total));
}

/* ---- the recording ----------------------------------------------------------------------- */

static void put_texts(struct json *json, const char *key, const char *const *texts,
		      size_t len)
{
	put(json, key);
	for (size_t i = 0; i < len; i++) {
		put(json, i == 0 ? "" : ",");
		pm_str_json(&json->out, texts[i]);
	}
	put(json, "]");
}

static void put_recording(struct json *json)
{
	const struct pm_profile *profile = json->report->profile;
	const struct pm_profile_info *info = &profile->info;

	put_text(json, "{\"pmrec\":", info->pmrec);
	put_text(json, ",\"created\":", info->created);
	put_texts(json, ",\"command\":[", profile->command.data, profile->command.len);
	if (profile->target)
		put_text(json, ",\"target\":", profile->target);
	put_text(json, ",\n\"host\":{\"hostname\":", info->hostname);
	put_text(json, ",\"kernel\":", info->kernel);
	put_text(json, ",\"arch\":", info->arch);
	put_text(json, ",\"cpu_model\":", info->cpu_model);
	put_text(json, ",\"virt\":", info->virt);
	put_number_if(json, ",\"cpus\":", info->cpus > 0, info->cpus);
	put_text(json, "},\n\"call_graph\":", info->call_graph);
	put_number(json, ",\"duration_ns\":", info->duration_ns);
	put_number_if(json, ",\"cpu_ns\":", info->cpu_known, info->cpu_ns);
	put_number_if(json, ",\"exit_code\":", info->exited, info->exit);
	put_number_if(json, ",\"exit_signal\":", info->signalled, info->exit);
	put_number(json, ",\"processes\":", info->processes);
	put_number(json, ",\"threads\":", info->threads);
	put_number(json, ",\"lost\":", info->lost);
	put_number(json, ",\"throttled\":", info->throttled);
	put_bool(json, ",\"cut\":", info->cut);
	put_texts(json, ",\n\"notes\":[", profile->notes.data, profile->notes.len);
	if (info->notes_left_out > 0)
		put_number(json, ",\"notes_left_out\":", info->notes_left_out);
	if (info->stacks_cut > 0)
		put_number(json, ",\"stacks_cut\":", info->stacks_cut);
	put(json, "}");
}

/* ---- rows ------------------------------------------------------------------------------ */

/* The start of a function without a name; 0: unknown, or it has one. */
static void put_start(struct json *json, uint64_t start)
{
	if (start == 0)
		return;
	put(json, ",\"start\":\"");
	pm_str_hex(&json->out, start);
	put(json, "\"");
}

static void put_function(struct json *json, uint32_t id)
{
	const struct pm_profile *profile = json->report->profile;
	const struct pm_profile_function *function = &profile->functions.data[id];

	put_text(json, ",\"function\":", function->unknown ? NULL : function->name);
	put_start(json, function->start);
	put_text(json, ",\"module\":",
		 function->module == PM_PROFILE_NONE
			 ? NULL
			 : profile->modules.data[function->module].name);
}

static void put_value(struct json *json, const char *name,
		      const struct pm_row_value *value)
{
	pm_str_printf(&json->out, ",\"%s\":", name);
	if (!value->known)
		put(json, "null");
	else if (value->kind == PM_VALUE_TEXT)
		pm_str_json(&json->out, value->text);
	else if (value->kind == PM_VALUE_BOOL)
		put(json, value->number ? "true" : "false");
	else if (value->kind == PM_VALUE_NUMBER)
		pm_str_u64(&json->out, value->number);
	else {
		put(json, "\"");
		pm_str_hex(&json->out, value->number);
		put(json, "\"");
	}
	put_start(json, value->start);
}

static void put_keys(struct json *json, const struct pm_keys *keys)
{
	put(json, ",\n\"by\":\"");
	for (uint32_t i = 0; i < keys->len; i++) {
		put(json, i > 0 ? "," : "");
		put(json, pm_key_name(keys->key[i]));
	}
	put(json, "\"");
}

static int put_table(struct json *json, double limit)
{
	const struct pm_report *report = json->report;
	const struct pm_view *view = json->section->view;
	PM_CLEANUP(pm_table_release) struct pm_table table = { 0 };
	struct pm_row_column columns[PM_FIELDS];
	struct pm_keys keys;
	size_t columns_len;
	bool first = true;
	int r;

	pm_report_keys(report, &keys);
	columns_len = pm_row_fields(&keys, columns);
	r = pm_table_init_keys(&table, view, &keys, report->by_total);
	if (r < 0)
		return r;
	put_keys(json, &keys);
	put(json, ",\"rows\":[");
	for (size_t i = 0; i < table.rows.len; i++) {
		const struct pm_row *row = &table.rows.data[i];

		if (pm_weight_percent(report->by_total ? &row->total : &row->self,
				      &view->total) < limit)
			continue;
		put(json, first ? "\n" : ",\n");
		first = false;
		put_weight(json, "{\"self\":", &row->self);
		put_weight(json, ",\"total\":", &row->total);
		for (size_t c = 0; c < columns_len; c++) {
			struct pm_row_value value;

			pm_row_get(report->profile, &columns[c], row, &value);
			put_value(json, columns[c].name, &value);
		}
		put(json, "}");
		pm_flush_some(&json->out, json->to);
	}
	put(json, "]");
	return 0;
}

/* ---- trees ----------------------------------------------------------------------------- */

static const char *show_name(enum pm_report_show show)
{
	switch (show) {
	case PM_SHOW_TREE:
		return "top-down";
	case PM_SHOW_BOTTOM_UP:
		return "bottom-up";
	case PM_SHOW_CALLERS:
		return "callers";
	case PM_SHOW_CALLEES:
		return "callees";
	case PM_SHOW_TABLE:
	case PM_SHOW_ANNOTATE:
	case PM_SHOW_THREADS:
	case PM_SHOW_FIELDS:
	case PM_SHOW_PERCENTILES:
	case PM_SHOW_BRANCHES:
		break;
	}
	return "";
}

/* Nodes are numbered in the order in which they are written, without gaps. */
static int put_nodes(struct json *json, struct pm_tree *tree, double limit)
{
	PM_VEC(uint32_t) numbers = { 0 }; /* by depth: the node on the current path */
	uint32_t id = 0, number = 0;
	int r;

	while ((r = pm_tree_next(tree, limit, &id)) > 0) {
		const struct pm_tree_node *node = &tree->nodes.data[id];

		numbers.len = node->depth - 1;
		put_number(json, number == 0 ? "\n{\"id\":" : ",\n{\"id\":", number);
		put_number_if(json, ",\"parent\":", numbers.len > 0,
			      numbers.len > 0 ? numbers.data[numbers.len - 1] : 0);
		put_function(json, node->function);
		put_bool(json, ",\"inlined\":", node->inlined);
		if (tree->kind == PM_TREE_TOP_DOWN)
			put_weight(json, ",\"self\":", &node->self);
		put_weight(json, ",\"total\":", &node->total);
		put(json, "}");
		pm_flush_some(&json->out, json->to);
		r = pm_vec_push(&numbers, number);
		if (r < 0)
			break;
		number++;
	}
	pm_vec_release(&numbers);
	return r;
}

static int put_tree(struct json *json, double limit)
{
	struct pm_tree *tree;
	int r = pm_section_tree(json->section, false, &tree);

	if (r < 0)
		return r;
	put_text(json, ",\n\"tree\":", show_name(json->report->show));
	if (json->section->only.set)
		put_text(json, ",\"of\":", json->report->function);
	put(json, ",\"nodes\":[");
	r = put_nodes(json, tree, limit);
	put(json, "]");
	pm_tree_free(tree);
	return r;
}

/* ---- events ---------------------------------------------------------------------------- */

static void put_event(struct json *json)
{
	const struct pm_profile *profile = json->report->profile;
	const struct pm_view *view = json->section->view;
	const struct pm_profile_event *event = &profile->events.data[view->event];
	bool first = true;

	put_text(json, "{\"event\":", event->actual);
	put_text(json, ",\"name\":", event->name);
	put_text(json, ",\"requested\":", event->requested);
	put_text(json, ",\"unit\":", event->unit);
	put_number_if(json, ",\"freq\":", event->by_frequency, event->rate);
	put_number_if(json, ",\"fixed_period\":", !event->by_frequency, event->rate);
	if (event->filter)
		put_text(json, ",\"filter\":", event->filter);
	if (event->leader != view->event && event->leader < profile->events.len)
		put_text(json, ",\"group\":", profile->events.data[event->leader].actual);
	if (event->counted)
		put(json, ",\"counted\":true");
	put_number_if(json, ",\"lost\":", event->lost_known, event->lost);
	if (profile->latency)
		put_bool(json, ",\"wall_clock\":", event->divided);
	put_number(json, ",\n\"recorded\":{\"samples\":", view->all.samples);
	put_number(json, ",\"period\":", view->all.period);
	put(json, "}");
	put_weight(json, ",\"total\":", &view->total);
	put_weight(json, ",\"unknown\":", &view->unknown);
	put_weight(json, ",\"stitched\":", &view->stitched);
	put(json, ",\"stops\":{");
	for (size_t i = 0; i < profile->stops.len; i++) {
		const char *stop = profile->stops.data[i];

		if (view->stops[i].samples == 0)
			continue;
		put(json, first ? "" : ",");
		first = false;
		put_text(json, "", stop ? stop : "root");
		put_number(json, ":", view->stops[i].samples);
	}
	put(json, "}");
}

/* Added to the table by function. */
static int put_waits(struct json *json)
{
	PM_CLEANUP(pm_sheet_release) struct pm_sheet sheet = { 0 };
	int r = pm_sheet_waits(&sheet, json->section);

	if (r < 0)
		return r;
	put(json, ",\n\"waits\":");
	pm_sheet_json_rows(&sheet, &json->out);
	pm_flush_some(&json->out, json->to);
	return 0;
}

static int put_list(struct json *json, struct pm_section *section, struct pm_error *err)
{
	PM_CLEANUP(pm_sheet_release) struct pm_sheet sheet = { 0 };
	int r = pm_sheet_make(&sheet, section, err);

	if (r < 0)
		return r;
	pm_sheet_json(&sheet, &json->out);
	pm_flush_some(&json->out, json->to);
	return 0;
}

int pm_output_json(const struct pm_report *report, FILE *to, struct pm_error *err)
{
	double limit = report->limit < 0 ? 0 : report->limit;
	struct json json = { .report = report, .to = to };
	uint32_t first, end;
	int r = 0;

	pm_report_events(report, &first, &end);
	put(&json, "{\"format\":\"pmreport\"");
	put_number(&json, ",\"version\":", SCHEMA_VERSION);
	put(&json, ",\n\"recording\":");
	put_recording(&json);
	put(&json, ",\n\"events\":[");
	for (uint32_t event = first; r == 0 && event < end; event++) {
		PM_CLEANUP(pm_section_release) struct pm_section section = { 0 };

		r = pm_section_init(&section, report, event, err);
		if (r < 0) {
			pm_str_release(&json.out);
			return r;
		}
		json.section = &section;
		put(&json, event == first ? "\n" : ",\n");
		put_event(&json);
		if (pm_report_is_sheet(report))
			r = put_list(&json, &section, err);
		else if (report->show == PM_SHOW_ANNOTATE)
			r = pm_json_annotate(&json.out, to, &section);
		else
			r = report->show == PM_SHOW_TABLE ? put_table(&json, limit)
							  : put_tree(&json, limit);
		if (r == 0 && pm_section_is_waits(&section))
			r = put_waits(&json);
		put(&json, "}");
	}
	if (r < 0) {
		pm_str_release(&json.out);
		return pm_report_is_sheet(report) ? r : pm_section_failed(r, err);
	}
	put(&json, "]}\n");
	return pm_flush_all(&json.out, to, err);
}
