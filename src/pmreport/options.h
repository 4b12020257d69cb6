/* SPDX-License-Identifier: MIT */
/* The command line of pmreport. */
#pragma once

#include "pm/output.h"

enum pm_report_format {
	PM_FORMAT_TEXT,
	PM_FORMAT_CSV,
	PM_FORMAT_JSON,
	PM_FORMAT_FOLDED,
};

enum pm_color_wish {
	PM_COLOR_AUTO,
	PM_COLOR_ALWAYS,
	PM_COLOR_NEVER,
};

struct pm_report_options {
	bool help, version;
	const char *input; /* samples.json unless given; "-": stdin */
	const char *output; /* NULL: stdout */
	enum pm_report_format format;
	bool folded_periods;
	const char *separator;
	const char *event;
	enum pm_color_wish color;
	bool width_set;
	struct pm_profile_options profile;
	struct pm_filter filter;
	struct pm_report report; /* but for what only the profile can tell */
};

/* Texts are borrowed from @argv. -EINVAL and @err for what makes no sense. */
int pm_report_options_parse(struct pm_report_options *ret, int argc, char **argv,
			    struct pm_error *err);
void pm_report_options_help(FILE *to);
