/* SPDX-License-Identifier: MIT */
/*
 * A counting run as text for people and as lines for programs. Whether all of it arrived is
 * the stream's business, as in pm/output.h.
 */
#pragma once

#include "pm/base.h"
#include "pm/stat.h"

/* What to show, and how. */
struct pm_stat_report {
	const struct pm_stat *stat; /* borrowed */
	/* Intervals were shown as they came: they are left out, and of CSV the names, too. */
	bool intervals_told;
	/* Text for people only, as in struct pm_report. */
	bool quiet, color, ascii;
	bool timed; /* to be stopped after a time was asked for: no warning that it was */
	bool verbose; /* what was set for the runs, with the values */
	unsigned width; /* columns; 0: as wide as it comes */
};

/* Each: 0, or -ENOMEM with @err and perhaps a part written. */
int pm_output_stat_text(const struct pm_stat_report *report, FILE *to,
			struct pm_error *err);
/*
 * A document of two programs has its differences (pm_compare_ab()).
 * One line of names, then one for each number, fields separated by @separator and quoted as in
 * RFC 4180. Which it is about is said by the first field: "run", "row" (of a thread or CPU),
 * "interval", a kind of scope, "thread" or "caller" (of a scope), "overhead", "metric",
 * "difference" (of two programs, with fields of its own behind the others). A
 * number that is not known is an empty field, and `status` says why. Numbers are exact, in `unit`.
 */
int pm_output_stat_csv(const struct pm_stat_report *report, const char *separator,
		       FILE *to, struct pm_error *err);

/* One value in a unit that leaves few digits, as in the text: `1.713 ms`. */
void pm_put_stat_value(struct pm_str *str, const struct pm_stat_event *event,
		       double number, bool ascii);

/*
 * The last interval of @run, which need not be among the report's runs yet, as soon as it is
 * known. With @first comes the line of names, too.
 */
int pm_output_stat_interval_text(const struct pm_stat_report *report,
				 const struct pm_stat_run *run, bool first, FILE *to,
				 struct pm_error *err);
int pm_output_stat_interval_csv(const struct pm_stat_report *report,
				const struct pm_stat_run *run, bool first,
				const char *separator, FILE *to, struct pm_error *err);
