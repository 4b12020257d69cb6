/* SPDX-License-Identifier: MIT */
/* An annotated function as the formats share it. */
#pragma once

#include "output-internal.h"

/* The text of a file, or why there is none. */
struct pm_annotation_source {
	bool readable;
	struct pm_source source;
	struct pm_error why;
};

/* An instruction at the line where it stands. */
struct pm_annotation_place {
	uint32_t file; /* as in lines.files; PM_PROFILE_NONE: unknown, or another one */
	uint32_t line, insn;
};

struct pm_annotation {
	const struct pm_section *section;
	struct pm_annotate_search search;
	uint32_t function;
	struct pm_annotate_lines lines;
	struct pm_weight own; /* self and inlined: what shares of `self` are made of */
	struct pm_annotation_source *sources; /* one for each of lines.files */
	bool has_code;
	struct pm_annotate_code code;
	struct pm_error no_code; /* why there is none; code 0: none was asked for */
	PM_VEC(struct pm_annotation_place) places; /* by file, line, address */
};

/* Of the heaviest function of the section, which has one. 0 or -ENOMEM. */
int pm_annotation_init(struct pm_annotation *ret, const struct pm_section *section);
void pm_annotation_release(struct pm_annotation *annotation);
/* The first of `places` at a line or behind it. */
size_t pm_annotation_places_from(const struct pm_annotation *annotation, uint32_t file,
				 uint32_t line);
/* What a person is told of a failure about a file: "PATH: TEXT", or the text alone. */
void pm_put_error(struct pm_str *str, const struct pm_error *err, bool fix);

/* ---- rows of the text -------------------------------------------------------------------- */

enum pm_annotation_kind {
	PM_ROW_FILE,
	PM_ROW_LINE,
	PM_ROW_INLINED,
	PM_ROW_INSN,
	PM_ROW_PART,
	PM_ROW_GAP, /* something is left out */
};

struct pm_annotation_row {
	enum pm_annotation_kind kind;
	uint32_t id; /* of the file, line (NONE: no sample has it), inlined, insn, part */
	uint32_t file, line; /* PM_ROW_LINE */
	uint32_t left_out; /* PM_ROW_GAP: how many lines or instructions */
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
	unsigned lanes; /* in use */
	struct pm_weight shown; /* of own: on rows that are lines, or instructions */
	bool by_line; /* else by address */
};

int pm_annotation_rows_init(struct pm_annotation_rows *ret,
			    const struct pm_annotation *annotation, double limit);
void pm_annotation_rows_release(struct pm_annotation_rows *rows);

/* Draws those jumps whose both ends are among the rows. 0 or -ENOMEM. */
int pm_gutter_draw(struct pm_annotation_rows *rows, const struct pm_annotate_code *code);
/* lanes + 2 columns, none without lanes. */
void pm_gutter_put(struct pm_str *str, const struct pm_annotation_rows *rows, size_t row,
		   bool ascii);
