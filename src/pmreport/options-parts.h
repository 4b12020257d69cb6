/* SPDX-License-Identifier: MIT */
/* Shared by the files of the command line. All texts are borrowed. */
#pragma once

#include "options.h"

/* Always -EINVAL; @err says what is wrong and where to find help. */
#define pm_report_usage(err, ...) pm_usage(err, "pmreport", __VA_ARGS__)

int pm_report_parse_keys(const char *text, struct pm_keys *out, struct pm_error *err);
/* FIELD[:50,90,99]; the name of the field is stored in the options. */
int pm_report_parse_percentile(const char *text, struct pm_report_options *out,
			       struct pm_error *err);
int pm_report_parse_time(const char *text, struct pm_profile_options *out,
			 struct pm_error *err);
int pm_report_parse_limit(const char *text, double *out, struct pm_error *err);
/* In seconds. NULL: the default. */
int pm_report_parse_debuginfod(const char *text, unsigned *out, struct pm_error *err);
int pm_report_parse_interval(const char *text, double *out, struct pm_error *err);
int pm_report_parse_width(const char *text, struct pm_report_options *out,
			  struct pm_error *err);
