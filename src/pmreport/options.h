/* SPDX-License-Identifier: MIT */
/* The command line of pmreport. */
#pragma once

#include "pm/output.h"
#include "pm/run.h"
#include "resymbolize.h"

struct pm_report_options;

/* A report format; the table is in formats.c. */
struct pm_report_format {
	const char *name; /* for --format */
	bool shows; /* tables and trees, not only whole stacks */
	bool one_event; /* has room for only one event */
	bool samples; /* needs single samples, not only their sums */
	bool inverts; /* --bottom-up inverts its stacks */
	bool compares; /* supports report.base */
	/* If the format is not for a terminal, the usual name of such a file; otherwise
	 * NULL. */
	const char *binary;
	const char *lacks; /* what it cannot show, as a message to the user; or NULL */
	int (*write)(const struct pm_report_options *options, FILE *to,
		     struct pm_error *err);
};

/* Returns -EINVAL; @err says what is wrong and where to find help. */
#define pm_report_usage(err, ...) pm_usage(err, "pmreport", __VA_ARGS__)

/* Returns NULL, with similar names in @err, if there is no such format. */
const struct pm_report_format *pm_report_format_find(const char *name,
						     struct pm_error *err);

struct pm_report_options {
	bool help, version;
	bool tui; /* browse in a terminal */
	const char *input; /* default: samples.json; "-": stdin */
	const char *output; /* NULL: stdout */
	const char *diff; /* recording to compare with; NULL: none */
	bool output_named; /* `output` was set by --html or --flamegraph */
	const struct pm_report_format *format;
	bool folded_periods;
	const char *separator;
	const char *event;
	bool annotate_set; /* --source or --asm */
	const char *source_dirs[16], *source_roots[16];
	enum pm_color_wish color;
	bool width_set;
	char field[128]; /* of --percentile; becomes report.field */
	struct pm_resymbolize_options symbols;
	bool follow; /* --follow: the recording is still being written */
	double interval; /* --interval: seconds between reports; 0: not set */
	struct pm_profile_options profile;
	struct pm_filter filter;
	struct pm_report report; /* without the parts that depend on the profile */
};

/* Strings are borrowed from @argv. Returns 0, or -EINVAL with @err if the options are
 * invalid. */
int pm_report_options_parse(struct pm_report_options *out, int argc, char **argv,
			    struct pm_error *err);
extern const struct pm_option_table pm_report_option_table;
