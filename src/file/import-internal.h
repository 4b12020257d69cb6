/* SPDX-License-Identifier: MIT */
/* Shared by the importers: functions that add cases, events and runs from the numbers of
 * other tools. */
#pragma once

#include "parse-values.h"
#include "pm/import.h"
#include "stat-internal.h"

#include <math.h>

enum {
	PM_IMPORT_CELLS_MAX = 4 << 20, /* product of runs and events, summed over all
	                                * cases */
	PM_IMPORT_FILES_MAX = 3 * PM_SUITE_CASES_MAX, /* of a folder */
	PM_IMPORT_DEPTH_MAX = 16, /* of nested folders */
};
/* The time of one iteration may be a fraction of a nanosecond, while values are whole
 * numbers; a unit of such a value is this many nanoseconds. */
#define PM_IMPORT_FINE 1e-6
#define PM_IMPORT_NS   1e9 /* in a second */

struct pm_importing {
	struct pm_suite suite;
	size_t cells;
	const char *path; /* for messages, and to find other files in its folder */
	struct pm_error *err;
};

/* An event that is to be added. Its strings are borrowed. */
struct pm_import_event {
	const char *name, *unit, *source;
	double scale;
	enum pm_stat_class class;
	int8_t better;
	bool secondary; /* not requested by the user: without a gate, it does not decide
	                 * the verdict */
	bool user_only;
};

/* Adds a case and returns its document. @name is NULL if it has none. Replaces control
 * characters in the name, and cuts it at PM_SUITE_NAME_MAX bytes. @place is the place of
 * the name in the file, for the message that the name exists already. The pointer is
 * valid until the next case is added. */
int pm_import_add_case(struct pm_importing *to, const char *name, const char *engine,
		       const char *place, struct pm_stat **out);
int pm_import_add_event(struct pm_importing *to, struct pm_stat *stat,
			const struct pm_import_event *event);
/* Adds a run whose values are all "not counted". All events must have been added
 * before. */
int pm_import_add_run(struct pm_importing *to, struct pm_stat *stat,
		      struct pm_stat_run **out);
/* Sets the command, as one word. */
int pm_import_set_command(struct pm_importing *to, struct pm_stat *stat,
			  const char *command);
int pm_import_add_warning(struct pm_importing *to, struct pm_stat *stat,
			  const char *format, ...) PM_PRINTF(3, 4);
int pm_import_add_setting(struct pm_importing *to, struct pm_stat *stat, const char *name,
			  const char *value);
int pm_import_no_memory(const struct pm_importing *to);
/* Sets the value from @number, which is in the unit of an event with this scale. Returns
 * false, and sets nothing, if it is negative, not a number, or larger than a value can
 * be. */
bool pm_import_set_value(struct pm_stat_value *value, double number, double scale);
/* Returns the number with key @key, which must be at least 0. */
double pm_import_get_number(struct fields *fields, const char *key);
/* Converts a time in RFC 3339 format to UTC, in the form that documents have. Returns
 * false if it is not RFC 3339. */
bool pm_import_utc(const char *text, char *out, size_t size);

/* Parses a sequence of values in @text into a new array. Skips lines that start with #.
 * NaN and infinities, which some tools write although JSON has none, become null. Returns
 * -EBADMSG, with the line in the message, if a value is not valid. */
int pm_import_parse(struct pm_importing *to, const struct pm_str *text, json_t **out);
/* Reads a file. The caller has to report -ENOENT. */
int pm_import_read_bytes(const char *path, struct pm_str *text, struct pm_error *err);
/* Returns the offset of the next value from @at on, after blanks and comment lines. */
size_t pm_import_skip_comments(const struct pm_str *text, size_t at);

/* Each of these reads the content of one file. @root is the array of all values from the
 * parser. */
int pm_import_google_benchmark(struct pm_importing *to, const json_t *root);
int pm_import_hyperfine(struct pm_importing *to, const json_t *root);
int pm_import_pytest_benchmark(struct pm_importing *to, const json_t *root);
int pm_import_perf_stat(struct pm_importing *to, const json_t *root);
int pm_import_perf_table(struct pm_importing *to, const struct pm_str *text);
int pm_import_iai_summary(struct pm_importing *to, const json_t *root);
int pm_import_callgrind_out(struct pm_importing *to, const struct pm_str *text);
/* @root is the content of to->path, a sample.json or estimates.json. */
int pm_import_criterion_file(struct pm_importing *to, const json_t *root);
int pm_import_criterion_folder(struct pm_importing *to);
