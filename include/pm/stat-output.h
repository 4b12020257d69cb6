/* SPDX-License-Identifier: MIT */
/*
 * A counting run as text for people and as lines for programs. Write errors are left to
 * the stream, as in pm/output.h.
 */
#pragma once

#include "pm/base.h"
#include "pm/stat.h"

/* What to show, and how. */
struct pm_stat_report {
	const struct pm_stat *stat; /* borrowed */
	/* Intervals were already printed as they came: leave them out and, in CSV, the
	 * names as well. */
	bool intervals_told;
	/* For text for people only, as in struct pm_report. */
	bool quiet, color, ascii;
	/* A time limit was requested: do not warn that the run was stopped. */
	bool timed;
	bool verbose; /* also show the settings of the runs */
	unsigned width; /* columns; 0: unlimited */
};

/* Each returns 0, or -ENOMEM with @err; part of the text may have been written then. */
int pm_output_stat_text(const struct pm_stat_report *report, FILE *to,
			struct pm_error *err);
/*
 * Writes one line of names, then one line for each number; fields are separated by
 * @separator and quoted as in RFC 4180. The first field is the kind of the line: "run",
 * "row" (of a thread or CPU), "interval", a kind of scope, "thread" or "caller" (of a
 * scope), "overhead", "metric", or "difference" (of two programs, with additional fields
 * at the end). A document of two programs must already have its differences
 * (pm_compare_ab()). An unknown number is an empty field, and `status` has the reason.
 * Numbers are exact, in `unit`.
 */
int pm_output_stat_csv(const struct pm_stat_report *report, const char *separator,
		       FILE *to, struct pm_error *err);

/* One value in a unit that needs few digits, as in the text: `1.713 ms`. */
void pm_put_stat_value(struct pm_str *str, const struct pm_stat_event *event,
		       double number, bool ascii);

/*
 * Writes the last interval of @run, which need not be among the report's runs yet. With
 * @first, the line of names precedes it.
 */
int pm_output_stat_interval_text(const struct pm_stat_report *report,
				 const struct pm_stat_run *run, bool first, FILE *to,
				 struct pm_error *err);
int pm_output_stat_interval_csv(const struct pm_stat_report *report,
				const struct pm_stat_run *run, bool first,
				const char *separator, FILE *to, struct pm_error *err);
