/* SPDX-License-Identifier: MIT */
/*
 * Draws jumps as lines beside the rows. All jumps to one place share a line, which runs
 * in a lane. The shortest lines are innermost, so that few lines cross. A line is not
 * drawn if no lane is free, or if it is longer than a screen; the instruction shows the
 * address anyway.
 */
#include "annotate-internal.h"

#include <string.h>

enum {
	SPAN_MAX = 400, /* rows */
};

enum piece {
	PIECE_NONE,
	PIECE_ALONG, /* the line passes the row */
	PIECE_TOP,
	PIECE_BOTTOM,
	PIECE_TEE, /* another end in the middle of the line */
};

/* A jump between two rows. */
struct jump {
	uint32_t from, to;
};

/* The jumps [first, end) to one row. */
struct bundle {
	uint32_t top, bottom;
	size_t first, end;
};

static int by_target(const void *a, const void *b)
{
	const struct jump *x = a, *y = b;

	if (x->to != y->to)
		return PM_COMPARE(x->to, y->to);
	return PM_COMPARE(x->from, y->from);
}

static int shorter_first(const void *a, const void *b)
{
	const struct bundle *x = a, *y = b;
	uint32_t p = x->bottom - x->top, q = y->bottom - y->top;

	if (p != q)
		return PM_COMPARE(p, q);
	return PM_COMPARE(x->top, y->top);
}

static bool lane_is_free(const struct pm_annotation_rows *rows, unsigned lane,
			 const struct bundle *bundle)
{
	for (uint32_t i = bundle->top; i <= bundle->bottom; i++)
		if (rows->gutter[i].lane[lane] != PIECE_NONE)
			return false;
	return true;
}

static void gutter_put_end(struct pm_annotation_rows *rows, unsigned lane,
			   const struct bundle *bundle, uint32_t row)
{
	if (row == bundle->top)
		rows->gutter[row].lane[lane] = PIECE_TOP;
	else if (row == bundle->bottom)
		rows->gutter[row].lane[lane] = PIECE_BOTTOM;
	else
		rows->gutter[row].lane[lane] = PIECE_TEE;
}

static void gutter_draw_bundle(struct pm_annotation_rows *rows,
			       const struct bundle *bundle, const struct jump *jumps)
{
	unsigned lane = 0;

	while (lane < PM_GUTTER_LANES && !lane_is_free(rows, lane, bundle))
		lane++;
	if (lane == PM_GUTTER_LANES)
		return;
	if (lane >= rows->lanes)
		rows->lanes = lane + 1;
	for (uint32_t i = bundle->top; i <= bundle->bottom; i++)
		rows->gutter[i].lane[lane] = PIECE_ALONG;
	for (size_t i = bundle->first; i < bundle->end; i++)
		gutter_put_end(rows, lane, bundle, jumps[i].from);
	gutter_put_end(rows, lane, bundle, jumps[bundle->first].to);
	rows->gutter[jumps[bundle->first].to].is_target = true;
}

/* Whether a jump spans few enough rows to be followed by eye. */
static bool is_drawable(uint32_t from, uint32_t to)
{
	return from != to && PM_MAX(from, to) - PM_MIN(from, to) <= SPAN_MAX;
}

int pm_gutter_draw(struct pm_annotation_rows *rows, const struct pm_annotate_code *code)
{
	PM_AUTO_FREE uint32_t *row_of = malloc((code->insns.len + 1) * sizeof(*row_of));
	PM_AUTO_FREE struct jump *jumps = calloc(rows->rows.len + 1, sizeof(*jumps));
	PM_AUTO_FREE struct bundle *bundles =
		calloc(rows->rows.len + 1, sizeof(*bundles));
	size_t jumps_len = 0, len = 0;

	rows->gutter = calloc(rows->rows.len + 1, sizeof(*rows->gutter));
	if (!row_of || !jumps || !bundles || !rows->gutter)
		return -ENOMEM;
	memset(row_of, 0xff, (code->insns.len + 1) * sizeof(*row_of));
	for (uint32_t i = 0; i < rows->rows.len; i++)
		if (rows->rows.data[i].kind == PM_ROW_INSN)
			row_of[rows->rows.data[i].id] = i;
	for (uint32_t i = 0; i < rows->rows.len; i++) {
		uint32_t to = PM_PROFILE_NONE;

		if (rows->rows.data[i].kind == PM_ROW_INSN)
			to = code->insns.data[rows->rows.data[i].id].to;
		if (to != PM_PROFILE_NONE && row_of[to] != PM_PROFILE_NONE &&
		    is_drawable(i, row_of[to]))
			jumps[jumps_len++] = (struct jump){ i, row_of[to] };
	}
	qsort(jumps, jumps_len, sizeof(*jumps), by_target);
	for (size_t from = 0, to; from < jumps_len; from = to) {
		struct bundle bundle = { .top = jumps[from].to,
					 .bottom = jumps[from].to,
					 .first = from };

		for (to = from; to < jumps_len && jumps[to].to == jumps[from].to; to++) {
			if (jumps[to].from < bundle.top)
				bundle.top = jumps[to].from;
			if (jumps[to].from > bundle.bottom)
				bundle.bottom = jumps[to].from;
		}
		bundle.end = to;
		bundles[len++] = bundle;
	}
	qsort(bundles, len, sizeof(*bundles), shorter_first);
	for (size_t i = 0; i < len; i++)
		gutter_draw_bundle(rows, &bundles[i], jumps);
	return 0;
}

void pm_gutter_put(struct pm_str *str, const struct pm_annotation_rows *rows, size_t row,
		   bool ascii)
{
	/* By piece: alone, and crossed by a line that runs to a lane further out. */
	static const char *const box[][2] = {
		[PIECE_NONE] = { " ", "─" }, [PIECE_ALONG] = { "│", "┼" },
		[PIECE_TOP] = { "╭", "┬" },  [PIECE_BOTTOM] = { "╰", "┴" },
		[PIECE_TEE] = { "├", "┼" },
	};
	static const char *const plain[][2] = {
		[PIECE_NONE] = { " ", "-" }, [PIECE_ALONG] = { "|", "+" },
		[PIECE_TOP] = { ".", "+" },  [PIECE_BOTTOM] = { "'", "+" },
		[PIECE_TEE] = { "+", "+" },
	};
	const struct pm_gutter_row *gutter = &rows->gutter[row];
	bool crossed = false;

	if (rows->lanes == 0)
		return;
	for (unsigned i = rows->lanes; i-- > 0;) {
		uint8_t piece = gutter->lane[i];

		pm_str_puts(str, ascii ? plain[piece][crossed] : box[piece][crossed]);
		crossed |= piece != PIECE_NONE && piece != PIECE_ALONG;
	}
	if (gutter->is_target)
		pm_str_puts(str, ascii ? ">" : "→");
	else if (crossed)
		pm_str_puts(str, ascii ? "-" : "─");
	else
		pm_str_puts(str, " ");
	pm_str_putc(str, ' ');
}
