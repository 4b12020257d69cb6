/* SPDX-License-Identifier: MIT */
/* Shared by the importers: cases, events and runs that are built from foreign numbers. */
#pragma once

#include "parse-values.h"
#include "pm/import.h"
#include "stat-internal.h"

#include <math.h>

enum {
	PM_IMPORT_CELLS_MAX = 4 << 20, /* runs times events, of all cases */
	PM_IMPORT_FILES_MAX = 3 * PM_SUITE_CASES_MAX, /* of a folder */
	PM_IMPORT_DEPTH_MAX = 16, /* of nested folders */
};
/* The time of one iteration may be a fraction of a nanosecond; values are whole
 * numbers. */
#define PM_IMPORT_FINE 1e-6
#define PM_IMPORT_NS   1e9 /* in a second */

struct pm_importing {
	struct pm_suite suite;
	size_t cells;
	const char *path; /* for messages, and to find files beside it */
	struct pm_error *err;
};

/* An event to be added. Texts are borrowed. */
struct pm_import_event {
	const char *name, *unit, *source;
	double scale;
	enum pm_stat_class class;
	int8_t better;
	bool secondary; /* not requested: without a gate, it decides nothing */
	bool user_only;
};

/* Adds a case and returns its document. @name NULL: it has none. Replaces control
 * characters in the name, and cuts it at PM_SUITE_NAME_MAX bytes. @place is where the
 * file has the name, for the message that the name exists already. The pointer is valid
 * until the next case is added. */
int pm_import_add_case(struct pm_importing *to, const char *name, const char *engine,
		       const char *place, struct pm_stat **out);
int pm_import_add_event(struct pm_importing *to, struct pm_stat *stat,
			const struct pm_import_event *event);
/* Adds a run whose values are not counted yet. All events must have been added. */
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
/* Sets @number in the unit of an event with this scale. Returns false, and sets nothing,
 * if it is negative, not a number, or larger than a value can be. */
bool pm_import_set_value(struct pm_stat_value *value, double number, double scale);
/* Returns the number @key of @fields, which must be at least 0. */
double pm_import_get_number(struct fields *fields, const char *key);
/* Converts RFC 3339 to UTC in the form of documents; false: it is not RFC 3339. */
bool pm_import_utc(const char *text, char *out, size_t size);

/* Parses a sequence of values in @text into a new array. Skips lines that begin with #.
 * NaN and infinities, which some tools write although JSON has none, become null. Returns
 * -EBADMSG with the line. */
int pm_import_parse(struct pm_importing *to, const struct pm_str *text, json_t **out);
/* Reads a file; the caller reports -ENOENT. */
int pm_import_read_bytes(const char *path, struct pm_str *text, struct pm_error *err);
/* Returns where the next value after @at starts, after blanks and comment lines. */
size_t pm_import_skip_comments(const struct pm_str *text, size_t at);

/* Each takes the content of one file. @root: the array of all values from the parser. */
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
