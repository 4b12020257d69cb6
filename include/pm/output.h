/* SPDX-License-Identifier: MIT */
/*
 * A profile as text for people and for programs. Each function writes one complete document
 * to a stdio stream; whether all of it arrived is the stream's business: ask ferror() and
 * fclose() once at the end.
 */
#pragma once

#include "pm/base.h"
#include "pm/profile.h"

enum pm_report_show {
	PM_SHOW_TABLE,
	PM_SHOW_TREE, /* top-down */
	PM_SHOW_BOTTOM_UP,
	PM_SHOW_CALLERS, /* of `function` */
	PM_SHOW_CALLEES,
};

#define PM_LIMIT_DEFAULT (-1.0)

/* What to report, and how. Texts are borrowed. */
struct pm_report {
	const struct pm_profile *profile;
	const struct pm_profile *base; /* to compare with (--diff), NULL: none */
	const struct pm_filter *filter;
	const char *time; /* the time range as given, for the heading; NULL: all */
	uint32_t event; /* PM_PROFILE_NONE: every event, one section each */
	enum pm_report_show show;
	enum pm_key key; /* of a table */
	bool by_total; /* sort tables by total, not by self */
	const char *function; /* for callers and callees, see pm_function_set */
	double limit; /* percent below which rows and branches are left out */
	/* Text for people only. */
	const char *file; /* to name in suggested commands; NULL: the default file */
	bool quiet; /* only the data */
	bool color;
	bool ascii; /* no characters outside of ASCII of our own */
	unsigned width; /* columns; 0: as wide as it comes */
};

/*
 * Each: 0, or a negative errno with @err and nothing written when a filter or a function
 * names what is not there (-ENOENT), is ambiguous (-ENOTUNIQ: @err lists the candidates), is
 * not valid (-EINVAL), or memory ends.
 */
int pm_output_text(const struct pm_report *report, FILE *to, struct pm_error *err);
/* Fields separated by @separator, quoted as in RFC 4180 where needed; a line of names first.
 * Limit 0 unless one is set. */
int pm_output_csv(const struct pm_report *report, const char *separator, FILE *to,
		  struct pm_error *err);
/* The schema is in pmreport(1). Limit 0 unless one is set. */
int pm_output_json(const struct pm_report *report, FILE *to, struct pm_error *err);
/* One line for each stack, `comm;root;…;leaf COUNT`, of one event; counts samples, or sums
 * periods. */
int pm_output_folded(const struct pm_report *report, bool periods, FILE *to,
		     struct pm_error *err);
