/* SPDX-License-Identifier: MIT */
/* What the formats of other programs' files share. */
#pragma once

#include "output-internal.h"

/* ---- texts by id ---------------------------------------------------------------------- */

/* Each text once, in the order in which they came. Zero-initialised is empty. */
struct pm_strings {
	struct pm_str bytes; /* all of them, each with its NUL */
	PM_VEC(size_t) starts;
	struct pm_index index;
};

/* 0 or -ENOMEM. */
int pm_strings_add(struct pm_strings *strings, const char *text, size_t len,
		   uint32_t *ret);
const char *pm_strings_get(const struct pm_strings *strings, uint32_t id);
void pm_strings_release(struct pm_strings *strings);

/* ---- what is exported ----------------------------------------------------------------- */

/* What the filters of a report leave, and what is to be said about it. */
struct pm_export {
	const struct pm_report *report;
	const struct pm_profile *profile;
	uint32_t first, end; /* events: from first up to but without end */
	bool *cells; /* by cell: passes */
	bool *stacks; /* by stack: is in a stack of a cell that passes */
	/* In plain English, a line each: lost samples, substituted events, notes of the
	 * recorder, filters, and whatever else the text report warns of. */
	struct pm_strings notes;
	struct pm_strings events; /* names, each different, from that of `first` on */
};

/* -ENOMEM, or what pm_view_new() gives. */
int pm_export_init(struct pm_export *ret, const struct pm_report *report,
		   struct pm_error *err);
void pm_export_release(struct pm_export *export);

static inline const char *pm_export_event(const struct pm_export *export, uint32_t event)
{
	return pm_strings_get(&export->events, event - export->first);
}

/* Samples that are exported, by event, then thread, then time: indexes in
 * profile->samples. */
struct pm_export_run {
	uint32_t event, thread;
	size_t first, len; /* in `order` */
	uint64_t period; /* sum */
};

struct pm_export_order {
	PM_VEC(uint32_t) order;
	PM_VEC(struct pm_export_run) runs;
};

int pm_export_order_init(struct pm_export_order *ret, const struct pm_export *export);
void pm_export_order_release(struct pm_export_order *order);

static inline const struct pm_profile_cell *pm_export_cell(const struct pm_export *export,
							   uint32_t sample)
{
	const struct pm_profile *profile = export->profile;

	return &profile->cells.data[profile->samples.data[sample].cell];
}

/* ---- source files ----------------------------------------------------------------------- */

/*
 * By function, where it is said to be: the file of its first place that has one. Debug
 * information may call one file by two names, by a path and relative to where it was
 * compiled; those are told to be the same by their last part, and the path is preferred.
 * NULL without memory; to be freed.
 */
const char **pm_export_files(const struct pm_profile *profile);

/* Whether a place is in the file where its function is said to be. */
bool pm_export_at_home(const char *const *files, const struct pm_profile_place *place);

/* ---- words ---------------------------------------------------------------------------- */

/* All printable: no control characters, valid UTF-8. Functions without a name are called as
 * their module, in brackets, or `[0x1160] in MODULE` where it is known where they begin. */
void pm_put_export_function(struct pm_str *str, const struct pm_profile *profile,
			    uint32_t function);
/* "comm", ":123" for a thread whose name is unknown, "[unknown]" if its id is, too. */
void pm_put_export_comm(struct pm_str *str, const struct pm_profile_thread *thread);
/* The path of the module of a function, "[no module]" if it has none. */
void pm_put_export_module(struct pm_str *str, const struct pm_profile *profile,
			  uint32_t module);
/* The words of the command, or what was recorded instead; nothing if unknown. */
void pm_put_export_command(struct pm_str *str, const struct pm_profile *profile);
/* Appends @from to @str as a JSON string, and empties it. */
void pm_put_export_json(struct pm_str *str, struct pm_str *from);
/* @ns as a decimal number of units of @unit_ns (a power of ten), exactly. */
void pm_put_decimal(struct pm_str *str, uint64_t ns, uint64_t unit_ns);
/* Seconds since 1970 of an RFC 3339 time in UTC; 0: unknown. */
int64_t pm_export_created(const struct pm_profile *profile);

/* Whether its periods count time, whatever it takes its samples by. */
static inline bool pm_event_in_ns(const struct pm_profile_event *event)
{
	return event->unit[0] == 'n' && event->unit[1] == 's' && event->unit[2] == '\0';
}
