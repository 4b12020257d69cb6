/* SPDX-License-Identifier: MIT */
/* An annotated function, for all formats. */
#pragma once

#include "output-internal.h"

/* The text of a file, or the reason why there is none. */
struct pm_annotation_source {
	bool readable;
	struct pm_source source;
	struct pm_error why;
};

/* An instruction and its source line. */
struct pm_annotation_place {
	/* Index into lines.files; PM_PROFILE_NONE: unknown, or not one of these files. */
	uint32_t file;
	uint32_t line, insn;
};

struct pm_annotation {
	const struct pm_section *section;
	struct pm_annotate_search search;
	uint32_t function;
	struct pm_annotate_lines lines;
	struct pm_weight own; /* self and inlined; percentages of `self` refer to it */
	struct pm_annotation_source *sources; /* by index of lines.files */
	bool has_code;
	struct pm_annotate_code code;
	struct pm_error no_code; /* why there is no code; code 0: it was not requested */
	PM_VEC(struct pm_annotation_place) places; /* by file, line, address */
};

/* Annotates the heaviest of the section's functions; there must be one. Returns 0 or
 * -ENOMEM. */
int pm_annotation_init(struct pm_annotation *out, const struct pm_section *section);
void pm_annotation_release(struct pm_annotation *annotation);
/* Returns the index of the first of `places` at or after a line. */
size_t pm_annotation_places_from(const struct pm_annotation *annotation, uint32_t file,
				 uint32_t line);
/* Copies the source line to *@out, which the caller frees; NULL if it cannot be read.
 * Returns 0 or -ENOMEM. */
int pm_annotation_line_text(const struct pm_annotation *annotation,
			    const struct pm_annotate_line *line, char **out);
/* Appends an error in readable form: "PATH: TEXT", or only the text. */
void pm_put_error(struct pm_str *str, const struct pm_error *err, bool fix);

/* ---- rows of the text -------------------------------------------------------------------- */

enum pm_annotation_kind {
	PM_ROW_FILE,
	PM_ROW_LINE,
	PM_ROW_INLINED,
	PM_ROW_INSN,
	PM_ROW_PART,
	PM_ROW_GAP, /* something was left out */
};

struct pm_annotation_row {
	enum pm_annotation_kind kind;
	uint32_t id; /* id of the file, line (NONE: no samples), inlined, insn, part */
	uint32_t file, line; /* PM_ROW_LINE */
	uint32_t left_out; /* PM_ROW_GAP: lines or instructions that were left out */
	struct pm_weight self, total;
};

enum {
	PM_GUTTER_LANES = 6,
};

/* The drawing of jumps beside a row. */
struct pm_gutter_row {
	uint8_t lane[PM_GUTTER_LANES]; /* private to gutter.c */
	bool is_target;
};

struct pm_annotation_rows {
	PM_VEC(struct pm_annotation_row) rows;
	struct pm_gutter_row *gutter; /* one for each row */
	unsigned lanes; /* lanes in use */
	/* The part of `own` on the rows that are lines, or on those that are
	 * instructions. */
	struct pm_weight shown;
	bool by_line; /* false: by address */
};

int pm_annotation_rows_init(struct pm_annotation_rows *out,
			    const struct pm_annotation *annotation, double limit);
void pm_annotation_rows_release(struct pm_annotation_rows *rows);

/* Draws the jumps whose ends are both among the rows. Returns 0 or -ENOMEM. */
int pm_gutter_draw(struct pm_annotation_rows *rows, const struct pm_annotate_code *code);
/* Appends lanes + 2 columns, or nothing if there are no lanes. */
void pm_gutter_put(struct pm_str *str, const struct pm_annotation_rows *rows, size_t row,
		   bool ascii);
