/* SPDX-License-Identifier: MIT */
/* What the importers share: cases, events and runs that are being made of foreign numbers. */
#pragma once

#include "parse-values.h"
#include "pm/import.h"
#include "stat-internal.h"

#include <math.h>

enum {
	PM_IMPORT_CELLS_MAX = 4 << 20, /* runs times events, of all cases */
	PM_IMPORT_FILES_MAX = 3 * PM_SUITE_CASES_MAX, /* of a folder */
	PM_IMPORT_DEPTH_MAX = 16, /* of folders in one another */
};
/* Times of one iteration may be parts of a nanosecond; values are whole numbers. */
#define PM_IMPORT_FINE 1e-6
#define PM_IMPORT_NS   1e9 /* in a second */

struct pm_importing {
	struct pm_suite suite;
	size_t cells;
	const char *path; /* for messages, and for what is beside it */
	struct pm_error *err;
};

/* An event to be made. Texts are borrowed. */
struct pm_import_event {
	const char *name, *unit, *source;
	double scale;
	enum pm_stat_class class;
	int8_t better;
	bool secondary; /* nobody asked for it: it decides nothing without a gate */
	bool user_only;
};

/* The document of a new case. @name NULL: it has none. What the name of a case cannot be, control
 * characters and more than PM_SUITE_NAME_MAX bytes, is replaced and cut. @place is where it is
 * named in the file, for the message that the name is there already. The pointer holds until the
 * next case is made. */
int pm_import_add_case(struct pm_importing *to, const char *name, const char *engine,
		       const char *place, struct pm_stat **ret);
int pm_import_add_event(struct pm_importing *to, struct pm_stat *stat,
			const struct pm_import_event *event);
/* A run whose values are not counted yet: all events are there. */
int pm_import_add_run(struct pm_importing *to, struct pm_stat *stat,
		      struct pm_stat_run **ret);
/* What was run, as one word. */
int pm_import_set_command(struct pm_importing *to, struct pm_stat *stat,
			  const char *command);
int pm_import_add_warning(struct pm_importing *to, struct pm_stat *stat,
			  const char *format, ...) PM_PRINTF(3, 4);
int pm_import_add_setting(struct pm_importing *to, struct pm_stat *stat, const char *name,
			  const char *value);
int pm_import_no_memory(const struct pm_importing *to);
/* @number in the unit of an event with this scale. False, and nothing is set: it is negative, none,
 * or larger than a value can be. */
bool pm_import_set_value(struct pm_stat_value *value, double number, double scale);
/* The number @key of @fields, at least 0. */
double pm_import_get_number(struct fields *fields, const char *key);
/* RFC 3339 as UTC, as documents have it; false: it is none. */
bool pm_import_utc(const char *text, char *ret, size_t size);

/* All values that stand one behind the other in @text, as the elements of a new array; lines that
 * begin with # are passed over. NaN and infinities, which tools write though JSON has none, are
 * null. -EBADMSG with the line. */
int pm_import_parse(struct pm_importing *to, const struct pm_str *text, json_t **ret);
/* Reads a file; -ENOENT is told by the caller. */
int pm_import_read_bytes(const char *path, struct pm_str *text, struct pm_error *err);

/* Each takes what is in one file. @root: of the parser, the array of all values. */
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
