/* SPDX-License-Identifier: MIT */
/* tracefs, Documentation/trace/events.rst. Its text files are read whole, within
 * limits. */
#pragma once

#include "perf-internal.h"

enum {
	/* Limit for the system and for the name; the kernel's is 64. */
	PM_TRACEPOINT_NAME_MAX = 128,
};

/*
 * Gets the path where tracefs is mounted, a static string. If tracefs is not mounted, a
 * mount that only this process sees is created (root, Linux 5.2). Returns -ENOENT if
 * there is none, -EACCES if this user may not read it; @err then names the remedy.
 */
int pm_tracefs_find(const char **out, struct pm_error *err);
/* Reads at most @max bytes of a file below @root. Returns -EFBIG if it is longer. */
int pm_tracefs_read(const char *root, const char *file, size_t max, struct pm_str *out,
		    struct pm_error *err);

/* The same as the functions without `_in`, for tracefs mounted at @root. */
int pm_tracepoints_expand_in(const char *root, const char *system, const char *name,
			     const struct pm_event_spec *like, struct pm_event_specs *out,
			     struct pm_error *err);
int pm_tracepoint_names_read_in(const char *root, struct pm_tracepoint_names *out,
				struct pm_error *err);
/* Explains why PERF_EVENT_IOC_SET_FILTER failed with errno @code: names the filter, and
 * the fields that it may use. Returns -code. */
int pm_tracepoint_explain_filter(const struct pm_event_spec *spec, int code,
				 struct pm_error *err);
/* Parses the text of a `format` file. @id: the `common_type` that samples must have. */
int pm_tracepoint_parse(struct pm_tracepoint **out, const char *system, uint32_t id,
			const char *format, size_t len, struct pm_error *err);
