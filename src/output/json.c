/* SPDX-License-Identifier: MIT */
/*
 * A report as one JSON document. Its schema is in pmreport(1), and new versions only add
 * to it. Each row is on one line. Trees are lists of nodes with the number of their
 * parent, because readers limit the nesting of documents.
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

static void json_put(struct json *json, const char *text)
{
	pm_str_puts(&json->out, text);
}

static void json_put_text(struct json *json, const char *key, const char *text)
{
	json_put(json, key);
	pm_str_json(&json->out, text);
}

static void json_put_number(struct json *json, const char *key, uint64_t number)
{
	json_put(json, key);
	pm_str_u64(&json->out, number);
}

/* Writes a number, or null if it is unknown. */
static void json_put_number_if(struct json *json, const char *key, bool known,
			       uint64_t number)
{
	json_put(json, key);
	if (known)
		pm_str_u64(&json->out, number);
	else
		json_put(json, "null");
}

static void json_put_bool(struct json *json, const char *key, bool value)
{
	json_put(json, key);
	json_put(json, value ? "true" : "false");
}

static void json_put_weight(struct json *json, const char *key,
			    const struct pm_weight *weight)
{
	json_put(json, key);
	json_put_number(json, "{\"samples\":", weight->samples);
	json_put_number(json, ",\"period\":", weight->period);
	pm_str_printf(&json->out, ",\"percent\":%.4f}",
		      pm_weight_percent(weight, &json->section->view->total));
}

/* ---- the recording ----------------------------------------------------------------------- */

static void json_put_texts(struct json *json, const char *key, const char *const *texts,
			   size_t len)
{
	json_put(json, key);
	for (size_t i = 0; i < len; i++) {
		if (i > 0)
			json_put(json, ",");
		pm_str_json(&json->out, texts[i]);
	}
	json_put(json, "]");
}

static void json_put_recording(struct json *json)
{
	const struct pm_profile *profile = json->report->profile;
	const struct pm_profile_info *info = &profile->info;

	json_put_text(json, "{\"pmrec\":", info->pmrec);
	json_put_text(json, ",\"created\":", info->created);
	json_put_texts(json, ",\"command\":[", profile->command.data,
		       profile->command.len);
	if (profile->target)
		json_put_text(json, ",\"target\":", profile->target);
	json_put_text(json, ",\n\"host\":{\"hostname\":", info->hostname);
	json_put_text(json, ",\"kernel\":", info->kernel);
	json_put_text(json, ",\"arch\":", info->arch);
	json_put_text(json, ",\"cpu_model\":", info->cpu_model);
	json_put_text(json, ",\"virt\":", info->virt);
	json_put_number_if(json, ",\"cpus\":", info->cpus > 0, info->cpus);
	json_put_text(json, "},\n\"call_graph\":", info->call_graph);
	json_put_number(json, ",\"duration_ns\":", info->duration_ns);
	json_put_number_if(json, ",\"cpu_ns\":", info->cpu_known, info->cpu_ns);
	json_put_number_if(json, ",\"exit_code\":", info->exited, info->exit);
	json_put_number_if(json, ",\"exit_signal\":", info->signalled, info->exit);
	json_put_number(json, ",\"processes\":", info->processes);
	json_put_number(json, ",\"threads\":", info->threads);
	json_put_number(json, ",\"lost\":", info->lost);
	json_put_number(json, ",\"throttled\":", info->throttled);
	json_put_bool(json, ",\"cut\":", info->cut);
	json_put_texts(json, ",\n\"notes\":[", profile->notes.data, profile->notes.len);
	if (info->notes_left_out > 0)
		json_put_number(json, ",\"notes_left_out\":", info->notes_left_out);
	if (info->stacks_cut > 0)
		json_put_number(json, ",\"stacks_cut\":", info->stacks_cut);
	json_put(json, "}");
}

/* ---- rows ------------------------------------------------------------------------------ */

/* Writes the start of a function without a name. @start 0: unknown, or the function has a
 * name. */
static void json_put_start(struct json *json, uint64_t start)
{
	if (start == 0)
		return;
	json_put(json, ",\"start\":\"");
	pm_str_hex(&json->out, start);
	json_put(json, "\"");
}

static void json_put_function(struct json *json, uint32_t id)
{
	const struct pm_profile *profile = json->report->profile;
	const struct pm_profile_function *function = &profile->functions.data[id];

	json_put_text(json, ",\"function\":", pm_function_known_name(function));
	json_put_start(json, function->start);
	json_put_text(json,
		      ",\"module\":", pm_module_known_name(profile, function->module));
}

static void json_put_value(struct json *json, const char *name,
			   const struct pm_row_value *value)
{
	pm_str_printf(&json->out, ",\"%s\":", name);
	if (!value->known)
		json_put(json, "null");
	else if (value->kind == PM_VALUE_TEXT)
		pm_str_json(&json->out, value->text);
	else if (value->kind == PM_VALUE_BOOL)
		json_put_bool(json, "", value->number);
	else if (value->kind == PM_VALUE_NUMBER)
		pm_str_u64(&json->out, value->number);
	else {
		json_put(json, "\"");
		pm_str_hex(&json->out, value->number);
		json_put(json, "\"");
	}
	json_put_start(json, value->start);
}

static void json_put_keys(struct json *json, const struct pm_keys *keys)
{
	json_put(json, ",\n\"by\":\"");
	for (uint32_t i = 0; i < keys->len; i++) {
		if (i > 0)
			json_put(json, ",");
		json_put(json, pm_key_name(keys->key[i]));
	}
	json_put(json, "\"");
}

static int json_put_table(struct json *json, double limit)
{
	const struct pm_report *report = json->report;
	const struct pm_view *view = json->section->view;
	PM_CLEANUP(pm_table_release) struct pm_table table = { 0 };
	struct pm_row_column columns[PM_FIELDS];
	struct pm_keys keys;
	size_t columns_len;
	bool first = true;
	int ret;

	pm_report_keys(report, &keys);
	columns_len = pm_row_fields(&keys, columns);
	ret = pm_table_init_keys(&table, view, &keys, report->by_total);
	if (ret < 0)
		return ret;
	json_put_keys(json, &keys);
	json_put(json, ",\"rows\":[");
	for (size_t i = 0; i < table.rows.len; i++) {
		const struct pm_row *row = &table.rows.data[i];

		if (pm_weight_percent(report->by_total ? &row->total : &row->self,
				      &view->total) < limit)
			continue;
		if (!first)
			json_put(json, ",");
		json_put(json, "\n");
		first = false;
		json_put_weight(json, "{\"self\":", &row->self);
		json_put_weight(json, ",\"total\":", &row->total);
		for (size_t c = 0; c < columns_len; c++) {
			struct pm_row_value value;

			pm_row_get(report->profile, &columns[c], row, &value);
			json_put_value(json, columns[c].name, &value);
		}
		json_put(json, "}");
		pm_flush_some(&json->out, json->to);
	}
	json_put(json, "]");
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

/* Writes the nodes, which are numbered in the order of writing, without gaps. */
static int json_put_nodes(struct json *json, struct pm_tree *tree, double limit)
{
	PM_VEC(uint32_t) numbers = { 0 }; /* by depth: the node on the current path */
	uint32_t id = 0, number = 0;
	int ret;

	while ((ret = pm_tree_next(tree, limit, &id)) > 0) {
		const struct pm_tree_node *node = &tree->nodes.data[id];

		numbers.len = node->depth - 1;
		if (number > 0)
			json_put(json, ",");
		json_put_number(json, "\n{\"id\":", number);
		if (numbers.len > 0)
			json_put_number(json,
					",\"parent\":", numbers.data[numbers.len - 1]);
		else
			json_put(json, ",\"parent\":null");
		json_put_function(json, node->function);
		json_put_bool(json, ",\"inlined\":", node->inlined);
		if (tree->kind == PM_TREE_TOP_DOWN)
			json_put_weight(json, ",\"self\":", &node->self);
		json_put_weight(json, ",\"total\":", &node->total);
		json_put(json, "}");
		pm_flush_some(&json->out, json->to);
		ret = pm_vec_push(&numbers, number);
		if (ret < 0)
			break;
		number++;
	}
	pm_vec_release(&numbers);
	return ret;
}

static int json_put_tree(struct json *json, double limit)
{
	struct pm_tree *tree;
	int ret = pm_section_tree(json->section, false, &tree);

	if (ret < 0)
		return ret;
	json_put_text(json, ",\n\"tree\":", show_name(json->report->show));
	if (json->section->only.set)
		json_put_text(json, ",\"of\":", json->report->function);
	json_put(json, ",\"nodes\":[");
	ret = json_put_nodes(json, tree, limit);
	json_put(json, "]");
	pm_tree_free(tree);
	return ret;
}

/* ---- events ---------------------------------------------------------------------------- */

static void json_put_event(struct json *json)
{
	const struct pm_profile *profile = json->report->profile;
	const struct pm_view *view = json->section->view;
	const struct pm_profile_event *event = &profile->events.data[view->event];
	bool first = true;

	json_put_text(json, "{\"event\":", event->actual);
	json_put_text(json, ",\"name\":", event->name);
	json_put_text(json, ",\"requested\":", event->requested);
	json_put_text(json, ",\"unit\":", event->unit);
	json_put_number_if(json, ",\"freq\":", event->by_frequency, event->rate);
	json_put_number_if(json, ",\"fixed_period\":", !event->by_frequency, event->rate);
	if (event->filter)
		json_put_text(json, ",\"filter\":", event->filter);
	if (event->leader != view->event && event->leader < profile->events.len)
		json_put_text(json,
			      ",\"group\":", profile->events.data[event->leader].actual);
	if (event->counted)
		json_put(json, ",\"counted\":true");
	json_put_number_if(json, ",\"lost\":", event->lost_known, event->lost);
	if (profile->latency)
		json_put_bool(json, ",\"wall_clock\":", event->divided);
	json_put_number(json, ",\n\"recorded\":{\"samples\":", view->all.samples);
	json_put_number(json, ",\"period\":", view->all.period);
	json_put(json, "}");
	json_put_weight(json, ",\"total\":", &view->total);
	json_put_weight(json, ",\"unknown\":", &view->unknown);
	json_put_weight(json, ",\"stitched\":", &view->stitched);
	json_put(json, ",\"stops\":{");
	for (size_t i = 0; i < profile->stops.len; i++) {
		const char *stop = profile->stops.data[i];

		if (view->stops[i].samples == 0)
			continue;
		if (!first)
			json_put(json, ",");
		first = false;
		json_put_text(json, "", pm_text_or(stop, "root"));
		json_put_number(json, ":", view->stops[i].samples);
	}
	json_put(json, "}");
}

/* Writes the waits, which are added to the table by function. */
static int json_put_waits(struct json *json)
{
	PM_CLEANUP(pm_sheet_release) struct pm_sheet sheet = { 0 };
	int ret = pm_sheet_waits(&sheet, json->section);

	if (ret < 0)
		return ret;
	json_put(json, ",\n\"waits\":");
	pm_sheet_json_rows(&sheet, &json->out);
	pm_flush_some(&json->out, json->to);
	return 0;
}

static int json_put_list(struct json *json, struct pm_section *section,
			 struct pm_error *err)
{
	PM_CLEANUP(pm_sheet_release) struct pm_sheet sheet = { 0 };
	int ret = pm_sheet_make(&sheet, section, err);

	if (ret < 0)
		return ret;
	pm_sheet_json(&sheet, &json->out);
	pm_flush_some(&json->out, json->to);
	return 0;
}

int pm_output_json(const struct pm_report *report, FILE *to, struct pm_error *err)
{
	double limit = PM_MAX(report->limit, 0);
	struct json json = { .report = report, .to = to };
	uint32_t first, end;
	int ret = 0;

	pm_report_events(report, &first, &end);
	json_put(&json, "{\"format\":\"pmreport\"");
	json_put_number(&json, ",\"version\":", SCHEMA_VERSION);
	json_put(&json, ",\n\"recording\":");
	json_put_recording(&json);
	json_put(&json, ",\n\"events\":[");
	for (uint32_t event = first; ret == 0 && event < end; event++) {
		PM_CLEANUP(pm_section_release) struct pm_section section = { 0 };

		ret = pm_section_init(&section, report, event, err);
		if (ret < 0) {
			pm_str_release(&json.out);
			return ret;
		}
		json.section = &section;
		if (event != first)
			json_put(&json, ",");
		json_put(&json, "\n");
		json_put_event(&json);
		if (pm_report_is_sheet(report))
			ret = json_put_list(&json, &section, err);
		else if (report->show == PM_SHOW_ANNOTATE)
			ret = pm_json_annotate(&json.out, to, &section);
		else if (report->show == PM_SHOW_TABLE)
			ret = json_put_table(&json, limit);
		else
			ret = json_put_tree(&json, limit);
		if (ret == 0 && pm_section_is_waits(&section))
			ret = json_put_waits(&json);
		json_put(&json, "}");
	}
	if (ret < 0) {
		pm_str_release(&json.out);
		if (pm_report_is_sheet(report))
			return ret;
		return pm_section_failed(ret, err);
	}
	json_put(&json, "]}\n");
	return pm_flush_all(&json.out, to, err);
}
