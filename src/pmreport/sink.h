/* SPDX-License-Identifier: MIT */
/* Where a report goes. */
#pragma once

#include "pm/base.h"

/*
 * Standard output, or a file that appears under its name only when it is complete: until
 * then it is a temporary one beside it. Devices and pipes are written to as they are.
 */
struct pm_sink {
	FILE *file;
	const char *path; /* NULL: standard output */
	char *temporary; /* NULL: written to directly */
};

int pm_sink_open(struct pm_sink *ret, const char *path, struct pm_error *err);
/* Writes out, closes and gives it its name. The error is the first that any write had. */
int pm_sink_close(struct pm_sink *sink, struct pm_error *err);
/* Columns of text there: those of a terminal, but at least 60; of anything else 80. */
unsigned pm_sink_width(const char *path);
/* Without closing first: removes what was written. */
void pm_sink_release(struct pm_sink *sink);
