/* SPDX-License-Identifier: MIT */
/*
 * A list whose columns are determined when it is made, and which is written as text, CSV
 * or JSON. Strings are borrowed from the profile, or kept with pm_sheet_keep().
 */
#pragma once

#include "output-internal.h"

enum pm_sheet_kind {
	PM_SHEET_TEXT,
	PM_SHEET_NAME, /* name of a function, truncated as such */
	PM_SHEET_TAIL, /* a string whose end matters more than its start */
	PM_SHEET_ID,
	PM_SHEET_COUNT,
	PM_SHEET_NUMBER, /* an integer of 65 bits, or a sum of such */
	PM_SHEET_WIDE_NS, /* the same in ns; people see a duration */
	PM_SHEET_NS, /* people see a duration */
	PM_SHEET_TIME_NS, /* people see seconds */
	PM_SHEET_PERCENT,
	PM_SHEET_ADDRESS,
	PM_SHEET_BOOL,
	PM_SHEET_SERIES, /* people see a line of bars */
};

struct pm_sheet_column {
	const char *name; /* for programs; NULL: not shown to them */
	const char *title; /* for people; NULL: not shown to them */
	enum pm_sheet_kind kind;
	size_t max; /* maximum columns; 0: no limit */
};

__extension__ typedef __int128 pm_wide;

struct pm_sheet_cell {
	bool known;
	union {
		const char *text;
		uint64_t number;
		pm_wide wide;
		double percent;
		const uint64_t *series;
	};
	uint64_t start; /* as in struct pm_row_value */
};

enum {
	PM_SHEET_COLUMNS = 32,
	PM_SHEET_SERIES_LEN = 16,
	PM_SHEET_BUCKETS = 66,
};

struct pm_sheet {
	const char *name; /* "threads" */
	struct pm_sheet_column columns[PM_SHEET_COLUMNS];
	size_t columns_len;
	PM_VEC(struct pm_sheet_cell) cells; /* by row */
	PM_VEC(char *) texts; /* strings of pm_sheet_keep() */
	uint64_t series_max; /* the value of a full bar */
	bool has_buckets, buckets_ns; /* of nanoseconds */
	uint64_t buckets
		[PM_SHEET_BUCKETS]; /* percentiles: negative, 0, then [2^n, 2^n+1) */
	size_t people; /* rows shown to people unless they request all; 0: all */
};

void pm_sheet_release(struct pm_sheet *sheet);
void pm_sheet_column(struct pm_sheet *sheet, const char *name, const char *title,
		     enum pm_sheet_kind kind, size_t max);
/* Add the columns for some keys of rows, or the cells of one row for them. */
void pm_sheet_key_columns(struct pm_sheet *sheet, const struct pm_keys *keys);
int pm_sheet_key_cells(struct pm_sheet *sheet, const struct pm_profile *profile,
		       const struct pm_keys *keys, const struct pm_row *row);
/* Append the next cells of a row. Return 0 or -ENOMEM. */
int pm_sheet_text(struct pm_sheet *sheet, const char *text); /* NULL: unknown */
int pm_sheet_number(struct pm_sheet *sheet, bool known, uint64_t number);
int pm_sheet_wide(struct pm_sheet *sheet, bool known, pm_wide number);
int pm_sheet_percent(struct pm_sheet *sheet, double percent);
int pm_sheet_series(struct pm_sheet *sheet, const uint64_t *series);
/* Returns a copy that is valid as long as the sheet; NULL without memory. */
const char *pm_sheet_keep(struct pm_sheet *sheet, const char *text);
size_t pm_sheet_rows(const struct pm_sheet *sheet);

int pm_sheet_print(const struct pm_sheet *sheet, const struct pm_text *text);
/* Appends lines, each after the field @event, with a line of titles first if @titles. */
void pm_sheet_csv(const struct pm_sheet *sheet, const char *event, const char *separator,
		  bool titles, struct pm_str *out);
/* Appends ,"list":NAME,"rows":[…]. */
void pm_sheet_json(const struct pm_sheet *sheet, struct pm_str *out);
/* Appends only the rows, as an array. */
void pm_sheet_json_rows(const struct pm_sheet *sheet, struct pm_str *out);
void pm_put_wide(struct pm_str *str, pm_wide number, bool commas);

/* ---- the lists ------------------------------------------------------------------------- */

/* Makes the list that the report shows for the section's event. Returns 0, or a negative
 * errno with @err; @sheet must be released in any case. */
int pm_sheet_make(struct pm_sheet *sheet, struct pm_section *section,
		  struct pm_error *err);
int pm_sheet_threads(struct pm_sheet *sheet, struct pm_section *section,
		     struct pm_error *err);
int pm_sheet_fields(struct pm_sheet *sheet, struct pm_section *section,
		    struct pm_error *err);
int pm_sheet_percentiles(struct pm_sheet *sheet, struct pm_section *section,
			 struct pm_error *err);
int pm_sheet_branches(struct pm_sheet *sheet, struct pm_section *section,
		      struct pm_error *err);
/* Blocked time by waiting function, which people are shown instead of a table by
 * function. Returns 0 or -ENOMEM. */
bool pm_section_is_waits(const struct pm_section *section);
int pm_sheet_waits(struct pm_sheet *sheet, const struct pm_section *section);
bool pm_report_is_sheet(const struct pm_report *report);
/* Gets the number of a field. Returns false if its string is not a number. */
bool pm_field_number(const struct pm_profile_field *field, pm_wide *out);
/* Returns, by cell, whether it passed the filters; to be freed. NULL without memory. */
bool *pm_section_cells(const struct pm_section *section);
