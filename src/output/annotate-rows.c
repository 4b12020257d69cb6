/* SPDX-License-Identifier: MIT */
/* Selects and orders the lines and instructions of a function that people are shown. */
#include "annotate-internal.h"

#include <string.h>

enum {
	CONTEXT_LINES = 3,
};

struct builder {
	const struct pm_annotation *a;
	struct pm_annotation_rows *ret;
	double limit;
};

static int builder_push_row(struct builder *b, struct pm_annotation_row row)
{
	return pm_vec_push(&b->ret->rows, row);
}

/* ---- by line ------------------------------------------------------------------------------ */

static int push_insns(struct builder *b, uint32_t file, uint32_t line)
{
	const struct pm_annotation *a = b->a;
	int ret = 0;

	for (size_t i = pm_annotation_places_from(a, file, line);
	     ret == 0 && i < a->places.len && a->places.data[i].file == file &&
	     a->places.data[i].line == line;
	     i++) {
		uint32_t id = a->places.data[i].insn;
		const struct pm_annotate_insn *insn = &a->code.insns.data[id];

		ret = builder_push_row(
			b, (struct pm_annotation_row){ .kind = PM_ROW_INSN,
						       .id = id,
						       .self = insn->self,
						       .total = insn->total });
	}
	return ret;
}

/* Adds the code inlined into a line and, if the line is hot, its instructions. */
static int push_inside(struct builder *b, const struct pm_annotate_line *line)
{
	const struct pm_annotation *a = b->a;
	struct pm_weight self = line->self;
	int ret = 0;

	pm_weight_add(&self, &line->inlined);
	for (uint32_t i = 0; ret == 0 && i < line->inlineds; i++) {
		uint32_t id = line->first_inlined + i;
		const struct pm_annotate_inlined *inlined = &a->lines.inlineds.data[id];

		if (pm_weight_percent(&inlined->self, &a->own) >= b->limit)
			ret = builder_push_row(
				b, (struct pm_annotation_row){ .kind = PM_ROW_INLINED,
							       .id = id,
							       .self = inlined->self });
	}
	if (ret == 0 && (pm_weight_percent(&self, &a->own) >= b->limit ||
			 pm_weight_percent(&line->total, &a->lines.total) >= b->limit))
		ret = push_insns(b, line->file, line->line);
	return ret;
}

/* Adds a line. @id: its index in lines.lines, or NONE. */
static int push_line(struct builder *b, uint32_t file, uint32_t number, uint32_t id)
{
	const struct pm_annotate_line *line =
		id == PM_PROFILE_NONE ? NULL : &b->a->lines.lines.data[id];
	struct pm_annotation_row row = {
		.kind = PM_ROW_LINE, .id = id, .file = file, .line = number
	};
	int ret;

	if (line) {
		row.self = line->self;
		pm_weight_add(&row.self, &line->inlined);
		row.total = line->total;
		if (line->line > 0)
			pm_weight_add(&b->ret->shown, &row.self);
	}
	ret = builder_push_row(b, row);
	if (ret == 0 && line)
		return push_inside(b, line);
	return ret;
}

/* Adds the lines of a region. If the file cannot be read or is shorter, these are only
 * the lines with samples. */
static int push_region(struct builder *b, uint32_t file,
		       const struct pm_annotate_region *region, size_t *at)
{
	const struct pm_annotate_lines *lines = &b->a->lines;
	const struct pm_annotation_source *source = &b->a->sources[file];
	uint32_t last = region->last, end;
	int ret = 0;

	if (source->readable)
		end = (uint32_t)source->source.starts.len;
	else
		end = 0;
	for (uint32_t i = region->first; ret == 0 && i <= last; i++) {
		size_t k = *at;

		while (k < lines->lines.len && lines->lines.data[k].file == file &&
		       lines->lines.data[k].line < i)
			k++;
		*at = k;
		if (k < lines->lines.len && lines->lines.data[k].file == file &&
		    lines->lines.data[k].line == i)
			ret = push_line(b, file, i, (uint32_t)k);
		else if (i <= end)
			ret = push_line(b, file, i, PM_PROFILE_NONE);
		if (i == UINT32_MAX)
			break;
	}
	return ret;
}

static int push_file(struct builder *b, uint32_t file)
{
	const struct pm_annotation *a = b->a;
	PM_CLEANUP(pm_annotate_regions_release)
	struct pm_annotate_regions regions = { 0 };
	size_t at = a->lines.files.data[file].first;
	int ret = pm_annotate_regions_init(&regions, &a->lines, file, b->limit,
					   CONTEXT_LINES);

	if (ret < 0 || regions.regions.len == 0)
		return ret;
	ret = builder_push_row(
		b, (struct pm_annotation_row){ .kind = PM_ROW_FILE, .id = file });
	for (size_t i = 0; ret == 0 && i < regions.regions.len; i++) {
		const struct pm_annotate_region *region = &regions.regions.data[i];

		if (i > 0)
			ret = builder_push_row(b,
					       (struct pm_annotation_row){
						       .kind = PM_ROW_GAP,
						       .left_out = region->first -
								   region[-1].last - 1 });
		if (ret == 0)
			ret = push_region(b, file, region, &at);
	}
	return ret;
}

static int by_line(struct builder *b)
{
	const struct pm_annotate_lines *lines = &b->a->lines;
	int ret = 0;

	for (uint32_t i = 0; ret == 0 && i < lines->files.len; i++)
		ret = push_file(b, i);
	/* Code without a line comes last, together with instructions that have none. */
	if (ret == 0 && lines->lines.len > 0 &&
	    lines->lines.data[lines->lines.len - 1].line == 0)
		ret = push_line(b, PM_PROFILE_NONE, 0, (uint32_t)lines->lines.len - 1);
	return ret;
}

/* ---- by address --------------------------------------------------------------------------- */

static int push_part(struct builder *b, uint32_t id)
{
	const struct pm_annotate_code *code = &b->a->code;
	const struct pm_annotate_part *part = &code->parts.data[id];
	uint32_t left_out = 0;
	int ret = builder_push_row(b, (struct pm_annotation_row){ .kind = PM_ROW_PART,
								  .id = id,
								  .self = part->self });

	for (uint32_t i = part->first; ret == 0 && i < part->first + part->len; i++) {
		const struct pm_annotate_insn *insn = &code->insns.data[i];

		if (insn->foreign) {
			left_out++;
			continue;
		}
		if (left_out > 0)
			ret = builder_push_row(
				b, (struct pm_annotation_row){ .kind = PM_ROW_GAP,
							       .left_out = left_out });
		left_out = 0;
		pm_weight_add(&b->ret->shown, &insn->self);
		if (ret == 0)
			ret = builder_push_row(
				b, (struct pm_annotation_row){ .kind = PM_ROW_INSN,
							       .id = i,
							       .self = insn->self,
							       .total = insn->total });
	}
	return ret;
}

/* Whether any line is known. If none is, only instructions can be shown. */
static bool lines_are_known(const struct pm_annotation *a)
{
	return a->lines.files.len > 0;
}

int pm_annotation_rows_init(struct pm_annotation_rows *out,
			    const struct pm_annotation *annotation, double limit)
{
	PM_CLEANUP(pm_annotation_rows_release) struct pm_annotation_rows rows = { 0 };
	struct builder b = { .a = annotation, .ret = &rows, .limit = limit };
	int ret = 0;

	rows.by_line = !annotation->has_code ||
		       (annotation->section->report->annotate != PM_ANNOTATE_CODE &&
			lines_are_known(annotation));
	if (rows.by_line)
		ret = by_line(&b);
	else
		for (uint32_t i = 0; ret == 0 && i < annotation->code.parts.len; i++)
			ret = push_part(&b, i);
	if (ret == 0)
		ret = pm_gutter_draw(&rows, &annotation->code);
	if (ret < 0)
		return ret;
	*out = rows;
	rows = (struct pm_annotation_rows){ 0 };
	return 0;
}

void pm_annotation_rows_release(struct pm_annotation_rows *rows)
{
	pm_vec_release(&rows->rows);
	free(rows->gutter);
}
