/* SPDX-License-Identifier: MIT */
/* The report formats: one row each, calling the writers of src/output. */
#include "options.h"

#include <string.h>

static int write_report_text(const struct pm_report_options *options, FILE *to,
			     struct pm_error *err)
{
	return pm_output_text(&options->report, to, err);
}

static int write_report_csv(const struct pm_report_options *options, FILE *to,
			    struct pm_error *err)
{
	return pm_output_csv(&options->report, options->separator, to, err);
}

static int write_report_json(const struct pm_report_options *options, FILE *to,
			     struct pm_error *err)
{
	return pm_output_json(&options->report, to, err);
}

static int write_report_folded(const struct pm_report_options *options, FILE *to,
			       struct pm_error *err)
{
	return pm_output_folded(&options->report, options->folded_periods, to, err);
}

static int write_report_pprof(const struct pm_report_options *options, FILE *to,
			      struct pm_error *err)
{
	return pm_output_pprof(&options->report, to, err);
}

static int write_report_firefox(const struct pm_report_options *options, FILE *to,
				struct pm_error *err)
{
	return pm_output_firefox(&options->report, to, err);
}

static int write_report_speedscope(const struct pm_report_options *options, FILE *to,
				   struct pm_error *err)
{
	return pm_output_speedscope(&options->report, to, err);
}

static int write_report_callgrind(const struct pm_report_options *options, FILE *to,
				  struct pm_error *err)
{
	return pm_output_callgrind(&options->report, to, err);
}

static int write_report_perf_script(const struct pm_report_options *options, FILE *to,
				    struct pm_error *err)
{
	return pm_output_perf_script(&options->report, to, err);
}

static int write_report_html(const struct pm_report_options *options, FILE *to,
			     struct pm_error *err)
{
	return pm_output_html(&options->report, to, err);
}

static int write_report_flamegraph(const struct pm_report_options *options, FILE *to,
				   struct pm_error *err)
{
	return pm_output_flamegraph(&options->report, to, err);
}

/* In the order in which messages list the formats. */
static const struct pm_report_format formats[] = {
	{ .name = "text", .shows = true, .write = write_report_text },
	{ .name = "csv", .shows = true, .write = write_report_csv },
	{ .name = "json", .shows = true, .write = write_report_json },
	{ .name = "folded", .one_event = true, .write = write_report_folded },
	{ .name = "html", .samples = true, .compares = true, .write = write_report_html },
	{ .name = "flamegraph",
	  .one_event = true,
	  .inverts = true,
	  .compares = true,
	  .write = write_report_flamegraph },
	{ .name = "pprof",
	  .write = write_report_pprof,
	  .binary = "profile.pb.gz",
	  .lacks = "pprof knows no time within a recording: samples are added up" },
	{ .name = "firefox",
	  .samples = true,
	  .write = write_report_firefox,
	  .lacks =
		  "Firefox Profiler calls \"samples\" what events other than time count" },
	{ .name = "speedscope",
	  .samples = true,
	  .write = write_report_speedscope,
	  .lacks = "speedscope shows neither modules nor warnings: see the text report" },
	{ .name = "callgrind",
	  .write = write_report_callgrind,
	  .lacks = "callgrind knows neither threads nor time: samples are added up" },
	{ .name = "perf-script", .samples = true, .write = write_report_perf_script },
};

static void list_formats(const char *name, struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str names = { 0 };

	for (size_t i = 0; i < PM_ARRAY_LEN(formats); i++) {
		pm_str_separate(&names, ", ");
		pm_str_puts(&names, formats[i].name);
	}
	pm_report_usage(err, "there is no format '%s'; there are %s", name,
			pm_text_or(names.data, "others"));
}

const struct pm_report_format *pm_report_format_find(const char *name,
						     struct pm_error *err)
{
	for (size_t i = 0; i < PM_ARRAY_LEN(formats); i++)
		if (strcmp(formats[i].name, name) == 0)
			return &formats[i];
	list_formats(name, err);
	return NULL;
}
