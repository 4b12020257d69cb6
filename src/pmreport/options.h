/* SPDX-License-Identifier: MIT */
/* The command line of pmreport. */
#pragma once

#include "pm/output.h"
#include "pm/run.h"
#include "resymbolize.h"

struct pm_report_options;

/* A way to write a report; the table is in formats.c. */
struct pm_report_format {
	const char *name; /* after --format */
	bool shows; /* tables and trees, not only whole stacks */
	bool one_event; /* has room for one */
	bool samples; /* needs each sample, not only their sums */
	bool inverts; /* --bottom-up turns its stacks round */
	bool compares; /* knows report.base */
	const char *binary; /* not for a terminal: how such files are called; or NULL */
	const char *lacks; /* what it has no room for, for the user to know; or NULL */
	int (*write)(const struct pm_report_options *options, FILE *to,
		     struct pm_error *err);
};

/* NULL with near names in @err when there is none of that name. */
const struct pm_report_format *pm_report_format_find(const char *name,
						     struct pm_error *err);

struct pm_report_options {
	bool help, version;
	bool tui; /* browse in the terminal */
	const char *input; /* samples.json unless given; "-": stdin */
	const char *output; /* NULL: stdout */
	const char *diff; /* file to compare with; NULL: none */
	bool output_named; /* by --html or --flamegraph */
	const struct pm_report_format *format;
	bool folded_periods;
	const char *separator;
	const char *event;
	bool annotate_set; /* --source or --asm */
	const char *source_dirs[16], *source_roots[16];
	enum pm_color_wish color;
	bool width_set;
	char field[128]; /* of --percentile; report.field once it is parsed */
	struct pm_resymbolize_options symbols;
	bool follow; /* a recording that is still being made */
	double interval; /* seconds between reports of it; 0: not set */
	struct pm_profile_options profile;
	struct pm_filter filter;
	struct pm_report report; /* but for what only the profile can tell */
};

/* Texts are borrowed from @argv. -EINVAL and @err for what makes no sense. */
int pm_report_options_parse(struct pm_report_options *ret, int argc, char **argv,
			    struct pm_error *err);
void pm_report_options_help(FILE *to);
