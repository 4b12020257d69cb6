/* SPDX-License-Identifier: MIT */
/* Definitions shared by the files that find regions; regions.c describes how they work
 * together. */
#pragma once

#include "flow.h"

/* The kinds of specifications. */
enum pm_finder_words {
	PM_FINDER_NAME,
	PM_FINDER_LINE, /* the line of a function's definition */
	PM_FINDER_LINES, /* a range */
	PM_FINDER_ADDRESSES,
};

struct pm_finder {
	struct pm_regions *ret;
	const struct pm_probe_context *context;
	struct pm_error *err;
	const struct pm_region_spec *spec; /* the current one */
	enum pm_finder_words words;
	char *name; /* its text without @LIBRARY; for lines, the source file */
	uint32_t line, line_end;
	uint64_t low, high;
	struct pm_probe_binaries programs; /* binaries that are searched first */
	struct pm_probe_binaries needed; /* binaries that are searched next */
	bool has_needed;
};

/* A file that is searched for regions. */
struct pm_finder_file {
	const struct pm_probe_binary *binary;
	struct pm_probe_image *image;
	struct pm_flow_source source;
};

int pm_finder_no_memory(struct pm_finder *finder);
/* Reports that there are too many places, as each function has at least one. Returns
 * -E2BIG. */
int pm_finder_too_many(struct pm_finder *finder);
/* Adds a line for the user; it begins with the specification as typed. */
int pm_finder_note(struct pm_finder *finder, const char *format, ...) PM_PRINTF(2, 3);

int pm_finder_file_open(struct pm_finder *finder, struct pm_finder_file *file,
			const struct pm_probe_binary *binary);
void pm_finder_file_close(struct pm_finder_file *file);

/* Appends an empty region of @file, with @name (copied). Returns NULL if out of
 * memory. */
struct pm_region *pm_finder_add(struct pm_finder *finder,
				const struct pm_finder_file *file,
				enum pm_stat_scope_kind kind, const char *name);
/* Moves @places to the last region, and reports @doubts. */
int pm_finder_give(struct pm_finder *finder, const struct pm_finder_file *file,
		   pm_places *places, const struct pm_flow_doubts *doubts);
/* Chooses the places among the candidates, by what is known about them. */
void pm_regions_choose(struct pm_regions *regions);
/* Appends a region for @function unless there is one already. */
int pm_finder_add_function(struct pm_finder *finder, const struct pm_finder_file *file,
			   const struct pm_probe_function *function, bool own_name);
/* Moves @pieces to the last region, and adds the places where control enters and leaves
 * them. */
int pm_finder_give_pieces(struct pm_finder *finder, const struct pm_finder_file *file,
			  pm_pieces *pieces);

/* ---- regions-lines.c --------------------------------------------------------------------- */

/* Parses finder->spec. *library is borrowed from its text; NULL: none was given. */
int pm_finder_parse(struct pm_finder *finder, const char **library);
/* Finds the functions defined at a line. Returns 0, or -ENOENT if there are none. */
int pm_finder_find_line(struct pm_finder *finder, const struct pm_finder_file *file);
/* Finds a range of lines or addresses. */
int pm_finder_find_range(struct pm_finder *finder, const struct pm_finder_file *file);
/* Fills in the files and lines of the definitions of all regions. */
int pm_finder_define(struct pm_finder *finder);

/* ---- regions-inlined.c -------------------------------------------------------------------- */

/* Adds the places where a function was inlined, and their sum. Returns the number of
 * places, or negative. */
int pm_finder_find_inlined(struct pm_finder *finder, const struct pm_finder_file *file);
