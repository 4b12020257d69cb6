/* SPDX-License-Identifier: MIT */
/* The fields of an event's samples. */
#include "sheet.h"

#include <string.h>

enum {
	EXAMPLES = 3,
	EXAMPLE_COLUMNS = 40,
};

struct field {
	uint64_t samples, numbers;
	pm_wide least, most; /* range of the numbers */
	const struct pm_profile_field *examples[EXAMPLES]; /* all different */
	size_t examples_len;
};

struct work {
	struct field *fields; /* by name */
};

static void fields_release(struct work *work)
{
	free(work->fields);
}

static bool same_value(const struct pm_profile_field *a, const struct pm_profile_field *b)
{
	if (a->kind != b->kind)
		return false;
	/* Strings are pooled. */
	if (a->kind == PM_FILE_FIELD_TEXT)
		return a->text == b->text;
	return a->number == b->number;
}

static void field_add_value(struct field *to, const struct pm_profile_field *field)
{
	pm_wide number;

	to->samples++;
	if (pm_field_number(field, &number)) {
		if (to->numbers == 0 || number < to->least)
			to->least = number;
		if (to->numbers == 0 || number > to->most)
			to->most = number;
		to->numbers++;
	}
	for (size_t i = 0; i < to->examples_len; i++)
		if (same_value(to->examples[i], field))
			return;
	if (to->examples_len < EXAMPLES)
		to->examples[to->examples_len++] = field;
}

static const char *examples_of(struct pm_sheet *sheet, const struct field *field,
			       bool ascii)
{
	PM_CLEANUP(pm_str_release) struct pm_str text = { 0 };

	for (size_t i = 0; i < field->examples_len; i++) {
		const struct pm_profile_field *example = field->examples[i];
		pm_wide number = 0;

		if (i > 0)
			pm_str_puts(&text, ", ");
		if (example->kind == PM_FILE_FIELD_TEXT)
			pm_put_cut(&text, example->text, EXAMPLE_COLUMNS, false, ascii);
		else if (pm_field_number(example, &number))
			pm_put_wide(&text, number, false);
	}
	if (text.failed)
		return NULL;
	return pm_sheet_keep(sheet, pm_str_text(&text));
}

static int fields_add_row(struct pm_sheet *sheet, const char *name,
			  const struct field *field, bool ascii)
{
	const char *examples = examples_of(sheet, field, ascii);
	int ret = -ENOMEM;

	if (examples)
		ret = pm_sheet_text(sheet, name);
	if (ret == 0)
		ret = pm_sheet_number(sheet, true, field->samples);
	if (ret == 0)
		ret = pm_sheet_number(sheet, true, field->numbers);
	if (ret == 0)
		ret = pm_sheet_wide(sheet, field->numbers > 0, field->least);
	if (ret == 0)
		ret = pm_sheet_wide(sheet, field->numbers > 0, field->most);
	if (ret < 0)
		return ret;
	return pm_sheet_text(sheet, examples);
}

static void fields_add_columns(struct pm_sheet *sheet)
{
	sheet->name = "fields";
	pm_sheet_column(sheet, "field", "field", PM_SHEET_TEXT, 24);
	pm_sheet_column(sheet, "samples", "samples", PM_SHEET_COUNT, 0);
	pm_sheet_column(sheet, "numbers", "numbers", PM_SHEET_COUNT, 0);
	pm_sheet_column(sheet, "min", "min", PM_SHEET_NUMBER, 0);
	pm_sheet_column(sheet, "max", "max", PM_SHEET_NUMBER, 0);
	pm_sheet_column(sheet, "examples", "examples", PM_SHEET_TEXT, 0);
}

bool pm_field_number(const struct pm_profile_field *field, pm_wide *out)
{
	uint64_t high;

	switch (field->kind) {
	case PM_FILE_FIELD_SIGNED:
		*out = (pm_wide)field->negative_too;
		return true;
	case PM_FILE_FIELD_UNSIGNED:
		*out = (pm_wide)field->number;
		return true;
	case PM_FILE_FIELD_TEXT:
		/* docs/format.md: a number that JSON readers could not represent is such
		 * a string. */
		if (strncmp(field->text, "0x", 2) != 0 ||
		    !pm_parse_u64(field->text, &high) || high <= INT64_MAX)
			return false;
		*out = (pm_wide)high;
		return true;
	}
	return false;
}

bool *pm_section_cells(const struct pm_section *section)
{
	const struct pm_view *view = section->view;
	bool *passed = calloc(view->profile->cells.len + 1, sizeof(*passed));

	for (size_t i = 0; passed && i < view->cells.len; i++)
		passed[view->cells.data[i]] = true;
	return passed;
}

int pm_sheet_fields(struct pm_sheet *sheet, struct pm_section *section,
		    struct pm_error *err)
{
	const struct pm_profile *profile = section->report->profile;
	PM_AUTO_FREE bool *passed = pm_section_cells(section);
	PM_CLEANUP(fields_release) struct work work = { 0 };
	int ret = 0;

	work.fields = calloc(profile->field_names.len + 1, sizeof(*work.fields));
	if (!work.fields || !passed)
		return pm_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < profile->samples.len; i++) {
		const struct pm_profile_sample *sample = &profile->samples.data[i];

		for (uint32_t f = 0; passed[sample->cell] && f < sample->fields; f++) {
			const struct pm_profile_field *field =
				&profile->fields.data[sample->first_field + f];

			field_add_value(&work.fields[field->name], field);
		}
	}
	fields_add_columns(sheet);
	for (size_t i = 0; ret == 0 && i < profile->field_names.len; i++)
		if (work.fields[i].samples > 0)
			ret = fields_add_row(sheet, profile->field_names.data[i],
					     &work.fields[i], section->report->ascii);
	if (ret < 0)
		return pm_error_set(err, ret, "out of memory");
	return 0;
}
