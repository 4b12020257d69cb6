/* SPDX-License-Identifier: MIT */
/* Any file through the profile into every kind of report. The first byte chooses; the rest is
 * the file. What is written must be whole lines, tables and trees must add up. */
#include <stdint.h>
#include <string.h>

#include "pm/output.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sums(const struct pm_view *view)
{
	struct pm_table table;
	struct pm_weight sum = { 0 };

	if (pm_table_init(&table, view, PM_KEY_FUNCTION, false) < 0)
		return;
	for (size_t i = 0; i < table.rows.len; i++) {
		pm_weight_add(&sum, &table.rows.data[i].self);
		if (table.rows.data[i].total.samples < table.rows.data[i].self.samples ||
		    table.rows.data[i].total.samples > view->total.samples)
			abort();
	}
	if (sum.samples != view->total.samples || sum.period != view->total.period)
		abort();
	pm_table_release(&table);
}

static void write_report(const struct pm_report *report, unsigned format, bool periods)
{
	struct pm_error err = { 0 };
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);
	int r;

	if (!to)
		return;
	if (format == 0)
		r = pm_output_text(report, to, &err);
	else if (format == 1)
		r = pm_output_csv(report, ",", to, &err);
	else if (format == 2)
		r = pm_output_json(report, to, &err);
	else
		r = pm_output_folded(report, periods, to, &err);
	fclose(to);
	if ((r < 0 && (len > 0 || err.text[0] == '\0')) ||
	    (len > 0 && text[len - 1] != '\n'))
		abort();
	free(text);
}

/* What the contract promises of kept samples: in order, whole, and of nothing unknown. */
static void check_samples(const struct pm_profile *profile,
			  const struct pm_profile_options *options)
{
	uint64_t samples = 0, before = 0;

	for (size_t i = 0; i < profile->samples.len; i++) {
		const struct pm_profile_sample *sample = &profile->samples.data[i];

		if (sample->time_ns < before || sample->cell >= profile->cells.len ||
		    sample->period == 0 || sample->fields > profile->fields.len ||
		    sample->first_field > profile->fields.len - sample->fields)
			abort();
		before = sample->time_ns;
	}
	for (size_t i = 0; i < profile->events.len; i++)
		samples += profile->events.data[i].total.samples;
	if (profile->samples.len != (options->keep_samples ? samples : 0))
		abort();
}

static void report_all(const struct pm_profile *profile, uint8_t choice)
{
	static const char *const functions[] = { "main", ".", "f", "" };
	struct pm_filter filter = {
		.symbol = choice & 0x80 ? "main" : NULL,
	};
	struct pm_report report = {
		.profile = profile,
		.filter = &filter,
		.event = PM_PROFILE_NONE,
		.show = (enum pm_report_show)(choice % 5),
		.key = (enum pm_key)(choice / 5 % 6),
		.function = functions[choice & 3],
		.limit = choice & 0x40 ? 0 : PM_LIMIT_DEFAULT,
		.width = choice & 0x20 ? 80 : 0,
		.ascii = choice & 0x10,
		.color = choice & 0x08,
	};

	for (unsigned format = 0; format < 4; format++)
		write_report(&report, format, choice & 1);
	for (uint32_t event = 0; event < profile->events.len && event < 4; event++) {
		struct pm_view *view;

		if (pm_view_new(&view, profile, event, NULL, NULL) < 0)
			continue;
		check_sums(view);
		pm_view_free(view);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pm_profile_options options = { 0 };
	struct pm_file_reader *reader;
	struct pm_profile *profile;

	if (size < 2)
		return 0;
	options.no_inlines = data[1] & 1;
	options.time_set = data[1] & 2;
	options.time_percent = data[1] & 4;
	options.time_to = 50;
	options.keep_samples = data[1] & 8;
	options.keep_fields = data[1] & 16;
	if (pm_file_reader_open_memory(&reader, data + 2, size - 2, NULL) < 0)
		return 0;
	if (pm_profile_load(&profile, reader, &options, NULL) == 0) {
		check_samples(profile, &options);
		/* A few bytes can describe stacks whose trees fill the memory. */
		if (profile->stacks.len < 4096 && profile->levels.len < 4096 &&
		    profile->events.len < 64)
			report_all(profile, data[0]);
		pm_profile_free(profile);
	}
	pm_file_reader_free(reader);
	return 0;
}
