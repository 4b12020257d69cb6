/* SPDX-License-Identifier: MIT */
/* Definitions shared by the formats for other programs. */
#pragma once

#include "output-internal.h"

/* ---- texts by id ---------------------------------------------------------------------- */

/* Strings, each stored once, in the order of addition. Empty if zero-initialised. */
struct pm_strings {
	struct pm_str bytes; /* all strings, each with its NUL */
	PM_VEC(size_t) starts;
	struct pm_index index;
};

/* Stores the id of the string in *@out. Returns 0 or -ENOMEM. */
int pm_strings_add(struct pm_strings *strings, const char *text, size_t len,
		   uint32_t *out);
const char *pm_strings_get(const struct pm_strings *strings, uint32_t id);
void pm_strings_release(struct pm_strings *strings);

/* ---- contents of an export ------------------------------------------------------------ */

/* The parts of a profile that pass the report's filters, and notes about it. */
struct pm_export {
	const struct pm_report *report;
	const struct pm_profile *profile;
	uint32_t first, end; /* the events from first to end - 1 */
	bool *cells; /* by cell: passes the filters */
	bool *stacks; /* by stack: belongs to a cell that passes */
	/* In plain English, one line each: lost samples, substituted events, notes of the
	 * recorder, filters, and all other warnings of the text report. */
	struct pm_strings notes;
	struct pm_strings events; /* unique names, starting with that of `first` */
};

/* Returns 0, -ENOMEM, or an error of pm_view_new(). */
int pm_export_init(struct pm_export *out, const struct pm_report *report,
		   struct pm_error *err);
void pm_export_release(struct pm_export *export);

static inline const char *pm_export_event(const struct pm_export *export, uint32_t event)
{
	return pm_strings_get(&export->events, event - export->first);
}

/* The exported samples of one event and thread, in order of time. */
struct pm_export_run {
	uint32_t event, thread;
	size_t first, len; /* range in `order` */
	uint64_t period; /* sum of the periods */
};

struct pm_export_order {
	PM_VEC(uint32_t) order;
	PM_VEC(struct pm_export_run) runs;
};

int pm_export_order_init(struct pm_export_order *out, const struct pm_export *export);
void pm_export_order_release(struct pm_export_order *order);

static inline const struct pm_profile_cell *pm_export_cell(const struct pm_export *export,
							   uint32_t sample)
{
	const struct pm_profile *profile = export->profile;

	return &profile->cells.data[profile->samples.data[sample].cell];
}

/* ---- source files ----------------------------------------------------------------------- */

/*
 * Returns the source file of each function: the file of its first place that has one.
 * Debug information may have two names for a file, an absolute path and one relative to
 * the compilation directory. They are matched by their last component, and the absolute
 * path is preferred. Returns NULL without memory; the caller frees the array.
 */
const char **pm_export_files(const struct pm_profile *profile);

/* Whether a place is in its function's source file. */
bool pm_export_at_home(const char *const *files, const struct pm_profile_place *place);

/* ---- words ---------------------------------------------------------------------------- */

/* All strings are printable: valid UTF-8 without control characters. For a function
 * without a name, appends its module's name in brackets, or `[0x1160] in MODULE` if its
 * start is known. */
void pm_put_export_function(struct pm_str *str, const struct pm_profile *profile,
			    uint32_t function);
/* Appends the name of the thread; ":123" if it is unknown; "[unknown]" if the id is
 * unknown, too. */
void pm_put_export_comm(struct pm_str *str, const struct pm_profile_thread *thread);
/* Appends the path of a function's module; "[no module]" if it has none. */
void pm_put_export_module(struct pm_str *str, const struct pm_profile *profile,
			  uint32_t module);
/* Appends the words of the command, or the recorded target; nothing if unknown. */
void pm_put_export_command(struct pm_str *str, const struct pm_profile *profile);
/* Appends @from to @str as a JSON string, and clears @from. */
void pm_put_export_json(struct pm_str *str, struct pm_str *from);
/* Appends @ns as an exact decimal number in units of @unit_ns (a power of ten). */
void pm_put_decimal(struct pm_str *str, uint64_t ns, uint64_t unit_ns);
/* Returns when the recording was made, in seconds since 1970; 0 if that is unknown. */
int64_t pm_export_created(const struct pm_profile *profile);

/* Whether the event's periods are times, whatever triggers its samples. */
static inline bool pm_event_in_ns(const struct pm_profile_event *event)
{
	return event->unit[0] == 'n' && event->unit[1] == 's' && event->unit[2] == '\0';
}
