/* SPDX-License-Identifier: MIT */
/* An annotated function as fields: one line for each source line and each instruction
 * with samples. */
#include "annotate-internal.h"

#include <string.h>

#include "pm/base-text.h"

struct csv {
	const struct pm_annotation *a;
	const char *separator;
	FILE *to;
	struct pm_str *out;
	bool inside; /* the line has a field already */
};

static void csv_put_field(struct csv *csv, const char *text)
{
	if (csv->inside)
		pm_str_puts(csv->out, csv->separator);
	csv->inside = true;
	pm_put_field(csv->out, pm_text_or_empty(text), csv->separator);
}

static void csv_put_known_number(struct csv *csv, uint64_t number, bool known)
{
	char digits[24] = "";

	if (known)
		snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
	csv_put_field(csv, digits);
}

static void csv_put_percent(struct csv *csv, const struct pm_weight *part,
			    const struct pm_weight *whole)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%.4f", pm_weight_percent(part, whole));
	csv_put_field(csv, digits);
}

static void csv_begin_row(struct csv *csv, const char *what, const struct pm_weight *self,
			  const struct pm_weight *total)
{
	const struct pm_section *section = csv->a->section;
	const struct pm_profile *profile = section->report->profile;
	const struct pm_profile_function *function =
		&profile->functions.data[csv->a->function];
	struct pm_str event = { 0 };

	pm_put_event(&event, profile, section->view->event);
	csv_put_field(csv, pm_str_complete_or(&event, ""));
	csv->out->failed |= event.failed;
	pm_str_release(&event);
	csv_put_percent(csv, self, &csv->a->own);
	csv_put_percent(csv, total, &csv->a->lines.total);
	csv_put_known_number(csv, self->samples, true);
	csv_put_known_number(csv, total->samples, true);
	csv_put_known_number(csv, self->period, true);
	csv_put_known_number(csv, total->period, true);
	csv_put_field(csv, function->name);
	csv_put_field(csv, pm_profile_module_name(profile, function->module));
	csv_put_field(csv, what);
}

static void csv_end_row(struct csv *csv)
{
	pm_str_putc(csv->out, '\n');
	csv->inside = false;
	pm_flush_some(csv->out, csv->to);
}

static void csv_put_source_line(struct csv *csv, const struct pm_annotate_line *line)
{
	bool known = line->file != PM_PROFILE_NONE;
	struct pm_weight self = line->self;
	const char *path = NULL;
	PM_AUTO_FREE char *text = NULL;

	if (pm_annotation_line_text(csv->a, line, &text) < 0)
		csv->out->failed = true;
	if (known)
		path = csv->a->lines.files.data[line->file].path;
	pm_weight_add(&self, &line->inlined);
	csv_begin_row(csv, "line", &self, &line->total);
	csv_put_field(csv, path);
	csv_put_known_number(csv, line->line, known);
	csv_put_field(csv, NULL);
	csv_put_field(csv, text);
	csv_end_row(csv);
}

static void csv_put_insn(struct csv *csv, const struct pm_annotate_insn *insn)
{
	struct pm_str text = { 0 };
	char address[24];

	snprintf(address, sizeof(address), "0x%llx", (unsigned long long)insn->address);
	csv_begin_row(csv, "instruction", &insn->self, &insn->total);
	csv_put_field(csv, insn->file);
	csv_put_known_number(csv, insn->line, insn->line > 0);
	csv_put_field(csv, address);
	pm_str_puts(&text, insn->mnemonic);
	if (insn->operands[0] != '\0')
		pm_str_puts(&text, " ");
	pm_str_puts(&text, insn->operands);
	csv_put_field(csv, pm_str_complete_or(&text, ""));
	csv->out->failed |= text.failed;
	pm_str_release(&text);
	csv_end_row(csv);
}

int pm_csv_annotate(struct pm_str *out, FILE *to, const char *separator,
		    const struct pm_section *section, bool titles)
{
	static const char *const names[] = {
		"event",         "self_percent", "total_percent", "self_samples",
		"total_samples", "self_period",  "total_period",  "function",
		"module",        "what",         "file",          "line",
		"address",       "text",
	};
	PM_CLEANUP(pm_annotation_release) struct pm_annotation a = { 0 };
	struct csv csv = { .a = &a, .separator = separator, .to = to, .out = out };
	int ret = 0;

	if (titles) {
		for (size_t i = 0; i < PM_ARRAY_LEN(names); i++)
			csv_put_field(&csv, names[i]);
		csv_end_row(&csv);
	}
	if (section->choices.rows.len > 0)
		ret = pm_annotation_init(&a, section);
	if (ret < 0)
		return ret;
	if (section->report->annotate != PM_ANNOTATE_CODE)
		for (size_t i = 0; i < a.lines.lines.len; i++)
			csv_put_source_line(&csv, &a.lines.lines.data[i]);
	for (size_t i = 0; i < a.code.insns.len; i++)
		if (a.code.insns.data[i].total.samples > 0)
			csv_put_insn(&csv, &a.code.insns.data[i]);
	return 0;
}
