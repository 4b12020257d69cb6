/* SPDX-License-Identifier: MIT */
/* tracefs, Documentation/trace/events.rst. Its text is read whole, within limits. */
#pragma once

#include "perf-internal.h"

enum {
	PM_TRACEPOINT_NAME_MAX =
		128, /* of the system and of the name; the kernel's: 64 */
};

/*
 * Where tracefs is mounted, a static text; where it is not, a mount that only this process has
 * (root, Linux 5.2). -ENOENT: nowhere, -EACCES: this user may not look into it; both with the
 * remedy.
 */
int pm_tracefs_find(const char **ret, struct pm_error *err);
/* A file below @root, at most @max bytes of it. -EFBIG when it has more. */
int pm_tracefs_read(const char *root, const char *file, size_t max, struct pm_str *ret,
		    struct pm_error *err);

/* What the functions without `_in` do, where tracefs is at @root. */
int pm_tracepoints_expand_in(const char *root, const char *system, const char *name,
			     const struct pm_event_spec *like, struct pm_event_specs *ret,
			     struct pm_error *err);
int pm_tracepoint_names_read_in(const char *root, struct pm_tracepoint_names *ret,
				struct pm_error *err);
/* Why PERF_EVENT_IOC_SET_FILTER failed with errno @code: names the filter, and the fields that
 * it may have. Returns -code. */
int pm_tracepoint_explain_filter(const struct pm_event_spec *spec, int code,
				 struct pm_error *err);
/* From the text of a `format` file. @id: what samples must bear in `common_type`. */
int pm_tracepoint_parse(struct pm_tracepoint **ret, const char *system, uint32_t id,
			const char *format, size_t len, struct pm_error *err);
