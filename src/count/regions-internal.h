/* SPDX-License-Identifier: MIT */
/* What the files that find regions share: regions.c tells how they work together. */
#pragma once

#include "flow.h"

struct pm_finder {
	struct pm_regions *ret;
	const struct pm_probe_context *context;
	struct pm_error *err;
	const struct pm_region_spec *spec; /* just now */
	char *name; /* its text without @LIBRARY */
	struct pm_probe_binaries programs; /* that are looked into first */
	struct pm_probe_binaries needed; /* and then these */
	bool has_needed;
};

/* One file while regions are looked for in it. */
struct pm_finder_file {
	const struct pm_probe_binary *binary;
	struct pm_probe_image *image;
	struct pm_flow_source source;
};

int pm_finder_no_memory(struct pm_finder *finder);
/* A line for the user; begins with what was typed. */
int pm_finder_note(struct pm_finder *finder, const char *format, ...) PM_PRINTF(2, 3);

int pm_finder_file_open(struct pm_finder *finder, struct pm_finder_file *file,
			const struct pm_probe_binary *binary);
void pm_finder_file_close(struct pm_finder_file *file);

/* Appends an empty region of @file, with @name (copied). NULL without memory. */
struct pm_region *pm_finder_add(struct pm_finder *finder,
				const struct pm_finder_file *file,
				enum pm_stat_scope_kind kind, const char *name);
/* Gives the last region its places: takes @places, and tells of @doubts. */
int pm_finder_give(struct pm_finder *finder, const struct pm_finder_file *file,
		   pm_places *places, const struct pm_flow_doubts *doubts);
/* Appends a region for @function, unless there is one. */
int pm_finder_add_function(struct pm_finder *finder, const struct pm_finder_file *file,
			   const struct pm_probe_function *function, bool own_name);
