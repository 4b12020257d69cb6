/* SPDX-License-Identifier: MIT */
/* The lines of functions, collected in one pass over the stacks of a view. */
#include "annotate-internal.h"

#include <string.h>

enum {
	GAP_LINES = 3, /* the mark for a gap of this size would take as much room */
};

/* A line of one of the functions; all unknown lines of a function share one row. */
struct row {
	const char *file; /* NULL: unknown */
	uint32_t line;
	uint32_t slot; /* index of the function */
	uint32_t rank; /* of its file */
	/* how often it is on the path from the root to the current stack */
	uint32_t active;
	uint32_t id; /* index that `struct inlined` uses */
	struct pm_weight self, inlined, total;
};

struct inlined {
	uint32_t row, place;
	struct pm_weight self;
};

struct slot {
	uint32_t active;
	uint32_t unknown_row;
	uint32_t last_stack_plus_1; /* the stack that it was last counted for, plus 1 */
};

struct collector {
	const struct pm_view *view;
	struct pm_annotate_lines *out;
	struct slot *slots;
	uint32_t *slot_of_function, *row_of_place;
	PM_VEC(struct row) rows;
	PM_VEC(struct inlined) inlined;
	struct pm_index inlined_index;
	bool failed;
};

static void collector_release(struct collector *c)
{
	free(c->slots);
	free(c->slot_of_function);
	free(c->row_of_place);
	pm_vec_release(&c->rows);
	pm_vec_release(&c->inlined);
	pm_index_release(&c->inlined_index);
}

/* ---- rows ------------------------------------------------------------------------------ */

static int find_or_add_place_row(struct collector *c, uint32_t place, uint32_t slot)
{
	const struct pm_profile_place *p = &c->view->profile->places.data[place];
	bool known = p->file && p->line > 0;
	struct row row = { .slot = slot, .id = (uint32_t)c->rows.len };

	if (known) {
		row.file = p->file;
		row.line = p->line;
	} else if (c->slots[slot].unknown_row != PM_PROFILE_NONE) {
		c->row_of_place[place] = c->slots[slot].unknown_row;
		return 0;
	} else {
		c->slots[slot].unknown_row = row.id;
	}

	c->row_of_place[place] = row.id;
	return pm_vec_push(&c->rows, row);
}

static int collector_prepare(struct collector *c, const uint32_t *functions, size_t len)
{
	const struct pm_profile *profile = c->view->profile;

	c->slots = calloc(len + 1, sizeof(*c->slots));
	c->slot_of_function = malloc((profile->functions.len + 1) * sizeof(uint32_t));
	c->row_of_place = malloc((profile->places.len + 1) * sizeof(uint32_t));
	if (!c->slots || !c->slot_of_function || !c->row_of_place)
		return -ENOMEM;
	memset(c->slot_of_function, 0xff,
	       (profile->functions.len + 1) * sizeof(uint32_t));
	for (size_t i = 0; i < len; i++) {
		c->slot_of_function[functions[i]] = (uint32_t)i;
		c->slots[i].unknown_row = PM_PROFILE_NONE;
		c->out[i].function = functions[i];
	}
	for (uint32_t i = 0; i < profile->places.len; i++) {
		uint32_t slot = c->slot_of_function[profile->places.data[i].function];

		if (slot != PM_PROFILE_NONE && find_or_add_place_row(c, i, slot) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* ---- sums ------------------------------------------------------------------------------ */

static bool inlined_key_equal(const void *table, uint32_t id, const void *key)
{
	const struct collector *c = table;
	const struct inlined *wanted = key, *have = &c->inlined.data[id];

	return have->row == wanted->row && have->place == wanted->place;
}

static void add_inlined_weight(struct collector *c, uint32_t row, uint32_t place,
			       const struct pm_weight *weight)
{
	struct inlined key = { .row = row, .place = place };
	uint64_t hash = pm_hash_mix(row, place);
	uint32_t id = pm_index_find(&c->inlined_index, hash, inlined_key_equal, c, &key);

	if (id == PM_INDEX_NONE) {
		id = (uint32_t)c->inlined.len;
		if (pm_vec_push(&c->inlined, key) < 0 ||
		    pm_index_add(&c->inlined_index, hash, id) < 0) {
			c->failed = true;
			return;
		}
	}
	pm_weight_add(&c->inlined.data[id].self, weight);
}

/* Adds the samples taken in @stack to the row of @level, unless an inner level had them:
 * if a function is inlined into itself, a sample counts at the innermost occurrence. */
static void add_stack_self_weight(struct collector *c, uint32_t stack, uint32_t level,
				  uint32_t slot, uint32_t row_id)
{
	const struct pm_weight *weight = &c->view->self[stack];
	struct row *row = &c->rows.data[row_id];
	struct pm_annotate_lines *lines = &c->out[slot];

	if (weight->samples == 0 || c->slots[slot].last_stack_plus_1 == stack + 1)
		return;
	c->slots[slot].last_stack_plus_1 = stack + 1;
	if (level == 0) {
		pm_weight_add(&row->self, weight);
		pm_weight_add(&lines->self, weight);
	} else {
		pm_weight_add(&row->inlined, weight);
		pm_weight_add(&lines->inlined, weight);
	}
	if (!row->file)
		pm_weight_add(&lines->unknown, weight);
	if (level > 0)
		add_inlined_weight(c, row_id,
				   pm_profile_level_place(c->view->profile, stack, 0),
				   weight);
}

static void enter_stack_rows(void *user, uint32_t stack)
{
	struct collector *c = user;
	const struct pm_profile *profile = c->view->profile;
	uint32_t levels = pm_profile_levels(profile, stack);

	for (uint32_t i = 0; i < levels; i++) {
		uint32_t place = pm_profile_level_place(profile, stack, i);
		uint32_t slot = c->slot_of_function[profile->places.data[place].function];
		uint32_t row;

		if (slot == PM_PROFILE_NONE)
			continue;
		row = c->row_of_place[place];
		if (c->rows.data[row].active++ == 0)
			pm_weight_add(&c->rows.data[row].total, &c->view->sum[stack]);
		if (c->slots[slot].active++ == 0)
			pm_weight_add(&c->out[slot].total, &c->view->sum[stack]);
		add_stack_self_weight(c, stack, i, slot, row);
	}
}

static void leave_stack_rows(void *user, uint32_t stack)
{
	struct collector *c = user;
	const struct pm_profile *profile = c->view->profile;
	uint32_t levels = pm_profile_levels(profile, stack);

	for (uint32_t i = 0; i < levels; i++) {
		uint32_t place = pm_profile_level_place(profile, stack, i);
		uint32_t slot = c->slot_of_function[profile->places.data[place].function];

		if (slot == PM_PROFILE_NONE)
			continue;
		c->rows.data[c->row_of_place[place]].active--;
		c->slots[slot].active--;
	}
}

/* ---- the result ------------------------------------------------------------------------ */

static int compare_optional_paths(const char *a, const char *b)
{
	if (a == b)
		return 0;
	if (!a)
		return 1;
	if (!b)
		return -1;
	return strcmp(a, b); /* unknown paths come last */
}

static int compare_rows_by_path(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int order;

	if (x->slot != y->slot)
		return PM_COMPARE(x->slot, y->slot);
	order = compare_optional_paths(x->file, y->file);
	if (order != 0)
		return order;
	return PM_COMPARE(x->line, y->line);
}

static int compare_rows_by_rank(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->rank != y->rank)
		return PM_COMPARE(x->rank, y->rank);
	return PM_COMPARE(x->line, y->line);
}

/* A file, and the range of its rows among the function's rows. */
struct ranked {
	struct pm_annotate_file file;
	size_t first, end;
};

static int compare_files_by_weight(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	int order = pm_annotate_heavier(&x->file.self, &y->file.self);

	if (order == 0)
		order = pm_annotate_heavier(&x->file.total_max, &y->file.total_max);
	if (order != 0)
		return order;
	return compare_optional_paths(x->file.path, y->file.path);
}

static void add_row_to_file(struct ranked *ranked, const struct row *row)
{
	pm_weight_add(&ranked->file.self, &row->self);
	pm_weight_add(&ranked->file.self, &row->inlined);
	if (row->total.period > ranked->file.total_max.period)
		ranked->file.total_max = row->total;
}

/* Ranks the files of rows[0..len-1], which are sorted by path, and adds them to
 * @lines. */
static int rank_source_files(struct pm_annotate_lines *lines, struct row *rows,
			     size_t len)
{
	PM_VEC(struct ranked) files = { 0 };
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < len; i++) {
		if (rows[i].file && (files.len == 0 ||
				     files.data[files.len - 1].file.path != rows[i].file))
			ret = pm_vec_push(
				&files, (struct ranked){ .file = { .path = rows[i].file },
							 .first = i });
		rows[i].rank = PM_PROFILE_NONE;
		if (ret < 0 || !rows[i].file)
			continue;
		add_row_to_file(&files.data[files.len - 1], &rows[i]);
		files.data[files.len - 1].end = i + 1;
	}
	if (files.len > 1)
		qsort(files.data, files.len, sizeof(*files.data),
		      compare_files_by_weight);
	for (size_t i = 0; ret == 0 && i < files.len; i++) {
		for (size_t k = files.data[i].first; k < files.data[i].end; k++)
			rows[k].rank = (uint32_t)i;
		ret = pm_vec_push(&lines->files, files.data[i].file);
	}
	pm_vec_release(&files);
	return ret;
}

static int compare_inlined_by_weight(const void *a, const void *b)
{
	const struct inlined *x = a, *y = b;
	int order;

	if (x->row != y->row)
		return PM_COMPARE(x->row, y->row);
	order = pm_annotate_heavier(&x->self, &y->self);
	if (order != 0)
		return order;
	return PM_COMPARE(x->place, y->place);
}

static size_t find_first_inlined_of_row(const struct collector *c, uint32_t row)
{
	size_t low = 0, high = c->inlined.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (c->inlined.data[mid].row < row)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int emit_source_line(const struct collector *c, struct pm_annotate_lines *lines,
			    const struct row *row)
{
	struct pm_annotate_line line = {
		.file = row->rank,
		.line = row->line,
		.self = row->self,
		.inlined = row->inlined,
		.total = row->total,
		.first_inlined = (uint32_t)lines->inlineds.len,
	};

	for (size_t i = find_first_inlined_of_row(c, row->id);
	     i < c->inlined.len && c->inlined.data[i].row == row->id; i++) {
		const struct inlined *inlined = &c->inlined.data[i];

		if (pm_vec_push(&lines->inlineds, (struct pm_annotate_inlined){
							  .place = inlined->place,
							  .self = inlined->self }) < 0)
			return -ENOMEM;
		line.inlineds++;
	}
	if (row->file) {
		struct pm_annotate_file *file = &lines->files.data[row->rank];

		if (file->lines++ == 0)
			file->first = (uint32_t)lines->lines.len;
	}
	return pm_vec_push(&lines->lines, line);
}

static int emit_function_lines(struct collector *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->rows.len; i++)
		if (c->rows.data[i].total.samples > 0)
			c->rows.data[kept++] = c->rows.data[i];
	c->rows.len = kept;
	if (kept > 1)
		qsort(c->rows.data, kept, sizeof(*c->rows.data), compare_rows_by_path);
	if (c->inlined.len > 1)
		qsort(c->inlined.data, c->inlined.len, sizeof(*c->inlined.data),
		      compare_inlined_by_weight);
	for (size_t from = 0, to; from < kept; from = to) {
		struct row *rows = c->rows.data + from;
		struct pm_annotate_lines *lines = &c->out[rows->slot];
		int ret;

		for (to = from; to < kept && c->rows.data[to].slot == rows->slot;)
			to++;
		ret = rank_source_files(lines, rows, to - from);
		qsort(rows, to - from, sizeof(*rows), compare_rows_by_rank);
		for (size_t i = from; ret == 0 && i < to; i++)
			ret = emit_source_line(c, lines, &c->rows.data[i]);
		if (ret < 0)
			return ret;
	}
	return 0;
}

int pm_annotate_lines_init(struct pm_annotate_lines *out, const struct pm_view *view,
			   const uint32_t *functions, size_t len)
{
	PM_AUTO_FREE struct pm_annotate_lines *made = calloc(len + 1, sizeof(*made));
	PM_CLEANUP(collector_release)
	struct collector c = { .view = view, .out = made };
	int ret = -ENOMEM;

	if (made)
		ret = collector_prepare(&c, functions, len);

	if (ret == 0) {
		pm_annotate_walk(view, enter_stack_rows, leave_stack_rows, &c);
		if (c.failed)
			ret = -ENOMEM;
		else
			ret = emit_function_lines(&c);
	}
	if (ret < 0) {
		for (size_t i = 0; made && i < len; i++)
			pm_annotate_lines_release(&made[i]);
		return ret;
	}
	memcpy(out, made, len * sizeof(*out));
	return 0;
}

void pm_annotate_lines_release(struct pm_annotate_lines *lines)
{
	pm_vec_release(&lines->files);
	pm_vec_release(&lines->lines);
	pm_vec_release(&lines->inlineds);
}

/* ---- regions --------------------------------------------------------------------------- */

static bool is_line_worth_showing(const struct pm_annotate_lines *lines,
				  const struct pm_annotate_line *line, double limit)
{
	struct pm_weight self = line->self, whole = lines->self;

	pm_weight_add(&self, &line->inlined);
	pm_weight_add(&whole, &lines->inlined);
	return pm_weight_percent(&self, &whole) >= limit ||
	       pm_weight_percent(&line->total, &lines->total) >= limit;
}

int pm_annotate_regions_init(struct pm_annotate_regions *out,
			     const struct pm_annotate_lines *lines, uint32_t file,
			     double limit, uint32_t context)
{
	const struct pm_annotate_file *its = &lines->files.data[file];
	struct pm_annotate_regions made = { 0 };

	for (uint32_t i = its->first; i < its->first + its->lines; i++) {
		const struct pm_annotate_line *line = &lines->lines.data[i];
		struct pm_annotate_region region = { .first = 1, .last = UINT32_MAX };
		struct pm_annotate_region *last = NULL;

		if (!is_line_worth_showing(lines, line, limit))
			continue;
		if (line->line > context)
			region.first = line->line - context;
		if (UINT32_MAX - line->line > context)
			region.last = line->line + context;
		if (made.regions.len > 0)
			last = &made.regions.data[made.regions.len - 1];
		if (last && (region.first <= last->last ||
			     region.first - last->last - 1 <= GAP_LINES)) {
			last->last = region.last;
		} else if (pm_vec_push(&made.regions, region) < 0) {
			pm_annotate_regions_release(&made);
			return -ENOMEM;
		}
	}
	*out = made;
	return 0;
}

void pm_annotate_regions_release(struct pm_annotate_regions *regions)
{
	pm_vec_release(&regions->regions);
}
