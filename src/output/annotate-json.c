/* SPDX-License-Identifier: MIT */
/* An annotated function for programs: everything, as JSON. */
#include "annotate-internal.h"

#include <string.h>

struct json {
	const struct pm_annotation *a;
	FILE *to;
	struct pm_str *out;
};

static void annotate_json_text(struct json *json, const char *key, const char *text)
{
	pm_str_puts(json->out, key);
	pm_str_json(json->out, text);
}

static void annotate_json_number(struct json *json, const char *key, uint64_t number,
				 bool known)
{
	pm_str_puts(json->out, key);
	if (known)
		pm_str_u64(json->out, number);
	else
		pm_str_puts(json->out, "null");
}

static void annotate_json_bool(struct json *json, const char *key, bool value)
{
	pm_str_printf(json->out, "%s%s", key, value ? "true" : "false");
}

static void annotate_json_weight(struct json *json, const char *key,
				 const struct pm_weight *weight,
				 const struct pm_weight *whole)
{
	pm_str_printf(json->out, "%s{\"samples\":%llu,\"period\":%llu,\"percent\":%.4f}",
		      key, (unsigned long long)weight->samples,
		      (unsigned long long)weight->period,
		      pm_weight_percent(weight, whole));
}

static void annotate_json_address(struct json *json, const char *key, uint64_t address)
{
	pm_str_printf(json->out, "%s\"0x%llx\"", key, (unsigned long long)address);
}

/* Writes the reason why something is missing, or null. */
static void annotate_json_why(struct json *json, const char *key,
			      const struct pm_error *err)
{
	struct pm_str text = { 0 };

	pm_put_error(&text, err, false);
	if (err->code != 0 && !text.failed)
		annotate_json_text(json, key, text.data);
	else
		annotate_json_text(json, key, NULL);
	json->out->failed |= text.failed;
	pm_str_release(&text);
}

/* ---- lines -------------------------------------------------------------------------------- */

static void annotate_json_source_line(struct json *json,
				      const struct pm_annotate_line *line)
{
	PM_AUTO_FREE char *text = NULL;

	if (pm_annotation_line_text(json->a, line, &text) < 0)
		json->out->failed = true;
	annotate_json_text(json, ",\"text\":", text);
}

static void annotate_json_line(struct json *json, const struct pm_annotate_line *line)
{
	const struct pm_profile *profile = json->a->section->report->profile;

	annotate_json_number(json, "{\"line\":", line->line, line->line > 0);
	annotate_json_weight(json, ",\"self\":", &line->self, &json->a->own);
	annotate_json_weight(json, ",\"inlined\":", &line->inlined, &json->a->own);
	annotate_json_weight(json, ",\"total\":", &line->total, &json->a->lines.total);
	annotate_json_source_line(json, line);
	pm_str_puts(json->out, ",\"inlined_functions\":[");
	for (uint32_t i = 0; i < line->inlineds; i++) {
		const struct pm_annotate_inlined *inlined =
			&json->a->lines.inlineds.data[line->first_inlined + i];
		const struct pm_profile_place *place =
			&profile->places.data[inlined->place];

		if (i > 0)
			pm_str_puts(json->out, ",");
		annotate_json_text(json, "{\"function\":",
				   profile->functions.data[place->function].name);
		annotate_json_text(json, ",\"file\":", place->file);
		annotate_json_number(json, ",\"line\":", place->line, place->line > 0);
		annotate_json_weight(json, ",\"self\":", &inlined->self, &json->a->own);
		pm_str_puts(json->out, "}");
	}
	pm_str_puts(json->out, "]}");
	pm_flush_some(json->out, json->to);
}

static void annotate_json_lines(struct json *json, size_t first, size_t end)
{
	pm_str_puts(json->out, "[");
	for (size_t i = first; i < end; i++) {
		if (i != first)
			pm_str_puts(json->out, ",");
		pm_str_puts(json->out, "\n");
		annotate_json_line(json, &json->a->lines.lines.data[i]);
	}
	pm_str_puts(json->out, "]");
}

static void annotate_json_files(struct json *json)
{
	const struct pm_annotate_lines *lines = &json->a->lines;
	size_t known = 0; /* lines without a file come last */

	pm_str_puts(json->out, ",\n\"files\":[");
	for (uint32_t i = 0; i < lines->files.len; i++) {
		const struct pm_annotation_source *source = &json->a->sources[i];
		const struct pm_annotate_file *file = &lines->files.data[i];

		if (i > 0)
			pm_str_puts(json->out, ",");
		annotate_json_text(json, "\n{\"path\":", file->path);
		annotate_json_text(json, ",\"read\":",
				   source->readable ? source->source.path : NULL);
		annotate_json_bool(
			json, ",\"newer\":", source->readable && source->source.newer);
		annotate_json_why(json, ",\"why_not\":", &source->why);
		pm_str_puts(json->out, ",\"lines\":");
		annotate_json_lines(json, file->first, file->first + file->lines);
		known += file->lines;
		pm_str_puts(json->out, "}");
	}
	pm_str_puts(json->out, "]");
	pm_str_puts(json->out, ",\n\"no_line\":");
	annotate_json_lines(json, known, lines->lines.len);
}

/* ---- instructions ------------------------------------------------------------------------- */

static void annotate_json_insn(struct json *json, const struct pm_annotate_insn *insn)
{
	char hex[2 * sizeof(insn->bytes) + 1];

	for (size_t i = 0; i < insn->size && i < sizeof(insn->bytes); i++)
		snprintf(hex + 2 * i, 3, "%02x", insn->bytes[i]);
	annotate_json_address(json, "{\"address\":", insn->address);
	pm_str_printf(json->out, ",\"bytes\":\"%s\"", hex);
	annotate_json_text(json, ",\"mnemonic\":", insn->mnemonic);
	annotate_json_text(json, ",\"operands\":", insn->operands);
	if (insn->has_target)
		annotate_json_address(json, ",\"target\":", insn->target);
	if (insn->target_name)
		annotate_json_text(json, ",\"target_function\":", insn->target_name);
	annotate_json_text(json, ",\"file\":", insn->file);
	annotate_json_number(json, ",\"line\":", insn->line, insn->line > 0);
	if (insn->inlined) {
		annotate_json_text(json, ",\"inlined\":{\"function\":", insn->inlined);
		annotate_json_text(json, ",\"file\":", insn->inlined_file);
		annotate_json_number(json, ",\"line\":", insn->inlined_line,
				     insn->inlined_line > 0);
		pm_str_puts(json->out, "}");
	}
	annotate_json_weight(json, ",\"self\":", &insn->self, &json->a->own);
	annotate_json_weight(json, ",\"total\":", &insn->total, &json->a->lines.total);
	pm_str_puts(json->out, "}");
	pm_flush_some(json->out, json->to);
}

static void annotate_json_part(struct json *json, const struct pm_annotate_part *part)
{
	bool first = true;

	annotate_json_text(json, "{\"symbol\":", part->symbol);
	annotate_json_address(json, ",\"start\":", part->start);
	annotate_json_address(json, ",\"end\":", part->end);
	annotate_json_number(json, ",\"bytes_not_shown\":", part->bytes_left, true);
	annotate_json_bool(json, ",\"inlined_here\":", part->is_container);
	pm_str_puts(json->out, ",\"instructions\":[");
	for (uint32_t i = part->first; i < part->first + part->len; i++) {
		if (json->a->code.insns.data[i].foreign)
			continue;
		if (!first)
			pm_str_puts(json->out, ",");
		pm_str_puts(json->out, "\n");
		first = false;
		annotate_json_insn(json, &json->a->code.insns.data[i]);
	}
	pm_str_puts(json->out, "]}");
}

static void annotate_json_code(struct json *json)
{
	const struct pm_annotate_code *code = &json->a->code;

	annotate_json_why(json, ",\n\"why_no_code\":", &json->a->no_code);
	if (!json->a->has_code) {
		pm_str_puts(json->out, ",\n\"code\":null");
		return;
	}
	annotate_json_text(json, ",\n\"code\":{\"path\":", code->path);
	annotate_json_bool(json, ",\"verified\":", !code->unverified);
	annotate_json_weight(json, ",\"shown\":", &code->shown, &json->a->own);
	annotate_json_weight(json, ",\"elsewhere\":", &code->elsewhere, &json->a->own);
	pm_str_puts(json->out, ",\"parts\":[");
	for (size_t i = 0; i < code->parts.len; i++) {
		if (i > 0)
			pm_str_puts(json->out, ",");
		pm_str_puts(json->out, "\n");
		annotate_json_part(json, &code->parts.data[i]);
	}
	pm_str_puts(json->out, "]}");
}

/* ---- the whole document ------------------------------------------------------------------- */

static void annotate_json_function(struct json *json, const char *key, uint32_t id)
{
	const struct pm_profile *profile = json->a->section->report->profile;
	const struct pm_profile_function *function = &profile->functions.data[id];

	annotate_json_text(json, key, function->name);
	annotate_json_text(
		json, ",\"module\":", pm_profile_module_name(profile, function->module));
}

static void annotate_json_others(struct json *json)
{
	const struct pm_section *section = json->a->section;

	pm_str_puts(json->out, ",\"others\":[");
	for (size_t i = 1; i < section->choices.rows.len; i++) {
		const struct pm_annotate_choice *choice = &section->choices.rows.data[i];

		if (i != 1)
			pm_str_puts(json->out, ",");
		annotate_json_function(json, "{\"function\":", choice->function);
		annotate_json_weight(json, ",\"self\":", &choice->self,
				     &section->view->total);
		annotate_json_weight(json, ",\"total\":", &choice->total,
				     &section->view->total);
		pm_str_puts(json->out, "}");
	}
	pm_str_puts(json->out, "]");
}

int pm_json_annotate(struct pm_str *out, FILE *to, const struct pm_section *section)
{
	PM_CLEANUP(pm_annotation_release) struct pm_annotation a = { 0 };
	struct json json = { .a = &a, .to = to, .out = out };
	const struct pm_weight *all = &section->view->total;
	int ret;

	if (section->choices.rows.len == 0) {
		pm_str_puts(out, ",\n\"annotate\":null");
		return 0;
	}
	ret = pm_annotation_init(&a, section);
	if (ret < 0)
		return ret;
	annotate_json_function(&json, ",\n\"annotate\":{\"function\":", a.function);
	annotate_json_weight(&json, ",\"self\":", &a.lines.self, all);
	annotate_json_weight(&json, ",\"inlined\":", &a.lines.inlined, all);
	annotate_json_weight(&json, ",\"total\":", &a.lines.total, all);
	annotate_json_weight(&json, ",\"unknown_line\":", &a.lines.unknown, &a.own);
	annotate_json_others(&json);
	annotate_json_files(&json);
	annotate_json_code(&json);
	pm_str_puts(out, "}");
	return 0;
}
