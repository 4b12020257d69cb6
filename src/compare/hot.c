/* SPDX-License-Identifier: MIT */
/* Finds added cost: functions and lines of two profiles, in absolute numbers. */
#include "functions.h"
#include "recordings.h"

#include <string.h>

#include "compare-internal.h"

enum {
	SIDES = 2,
};

struct work {
	struct pm_hot *hot;
	const struct pm_profile *of[SIDES];
	const struct pm_hot_options *options;
	struct pm_view *views[SIDES];
};

static void hot_work_release(struct work *work)
{
	for (size_t i = 0; i < SIDES; i++)
		pm_view_free(work->views[i]);
}

static void release_hot_rows(struct pm_hot_rows *rows)
{
	for (size_t i = 0; i < rows->list.len; i++) {
		free(rows->list.data[i].function);
		free(rows->list.data[i].module);
		free(rows->list.data[i].file);
	}
	pm_vec_release(&rows->list);
}

void pm_hot_free(struct pm_hot *hot)
{
	if (!hot)
		return;
	free(hot->event);
	free(hot->page);
	release_hot_rows(&hot->self);
	release_hot_rows(&hot->total);
	release_hot_rows(&hot->lines);
	free(hot);
}

/* ---- rows --------------------------------------------------------------------------- */

struct added {
	uint32_t id;
	double weight[SIDES];
};
struct added_list {
	PM_VEC(struct added) list;
};

static double added_of(const struct added *added)
{
	return added->weight[PM_NEW] - added->weight[PM_BASE];
}

static int compare_added(const void *first, const void *second)
{
	double a = added_of(first), b = added_of(second);

	if (a > b || a < b)
		return PM_COMPARE(b, a);
	return PM_COMPARE(((const struct added *)first)->id,
			  ((const struct added *)second)->id);
}

static void sort_added(struct added_list *added)
{
	if (added->list.len > 0)
		qsort(added->list.data, added->list.len, sizeof(*added->list.data),
		      compare_added);
}

/* Returns the path without the root folder of the side's sources. */
static const char *without_root(const struct work *work, unsigned int side,
				const char *file)
{
	const char *root = work->options->roots[side];
	size_t len = root ? strlen(root) : 0;

	if (len > 0 && strncmp(file, root, len) == 0 && file[len] == '/')
		return file + len + 1;
	return file;
}

/* ---- functions ---------------------------------------------------------------------- */

static int add_function(struct work *work, struct pm_hot_rows *to,
			const struct pm_functions *functions, const struct added *added,
			struct pm_function_weight *const weights[SIDES])
{
	const struct pm_function *of = &functions->list.data[added->id];
	unsigned int side =
		weights[PM_NEW][added->id].total.samples > 0 ? PM_NEW : PM_BASE;
	uint32_t place = weights[side][added->id].place;
	struct pm_hot_row row = { .base = added->weight[PM_BASE],
				  .new = added->weight[PM_NEW],
				  .function = strndup(of->name, of->name_len) };
	const char *module = of->module == PM_PROFILE_NONE
				     ? NULL
				     : functions->merged.modules.data[of->module].name;
	int ret = row.function ? pm_stat_text(&row.module, module) : -ENOMEM;

	if (ret == 0 && place != PM_PROFILE_NONE) {
		const struct pm_profile_place *at = &work->of[side]->places.data[place];

		row.line = at->line;
		if (at->file)
			ret = pm_stat_text(&row.file, without_root(work, side, at->file));
	}
	if (ret == 0 && pm_vec_push(&to->list, row) == 0)
		return 0;
	free(row.function);
	free(row.module);
	free(row.file);
	return -ENOMEM;
}

enum cost {
	COST_SELF,
	COST_TOTAL
};

static double cost_of_function(const struct pm_function_weight *weight, enum cost cost)
{
	if (cost == COST_TOTAL)
		return (double)weight->total.period;
	return (double)weight->self.period;
}

/* Adds the functions whose self or total cost has increased most, at most PM_HOT_ROWS. */
static int add_functions(struct work *work, struct pm_hot_rows *to,
			 const struct pm_functions *functions,
			 struct pm_function_weight *const weights[SIDES], enum cost cost)
{
	struct added_list added = { 0 };
	int ret = 0;

	for (uint32_t i = 0; i < functions->list.len && ret == 0; i++) {
		struct added one = { .id = i };

		for (unsigned int side = 0; side < SIDES; side++)
			one.weight[side] = cost_of_function(&weights[side][i], cost);
		if (added_of(&one) > 0)
			ret = pm_vec_push(&added.list, one);
	}
	sort_added(&added);
	if (added.list.len > PM_HOT_ROWS)
		to->more = added.list.len - PM_HOT_ROWS;
	else
		to->more = 0;
	for (size_t i = 0; i < added.list.len && i < PM_HOT_ROWS && ret == 0; i++)
		ret = add_function(work, to, functions, &added.list.data[i], weights);
	pm_vec_release(&added.list);
	return ret;
}

static int find_functions(struct work *work, struct pm_error *err)
{
	struct pm_functions functions = { 0 };
	struct pm_function_weight *weights[SIDES] = { NULL };
	int ret = pm_functions_init(&functions, work->of[PM_BASE], work->of[PM_NEW], err);

	if (ret < 0)
		return ret;
	for (unsigned int side = 0; side < SIDES && ret == 0; side++) {
		weights[side] = pm_functions_weigh(&functions, work->views[side], side);
		if (!weights[side])
			ret = -ENOMEM;
	}
	if (ret == 0)
		ret = add_functions(work, &work->hot->self, &functions, weights,
				    COST_SELF);
	if (ret == 0)
		ret = add_functions(work, &work->hot->total, &functions, weights,
				    COST_TOTAL);
	free(weights[0]);
	free(weights[1]);
	pm_functions_release(&functions);
	return ret;
}

/* ---- lines -------------------------------------------------------------------------- */

struct line {
	const char *file; /* borrowed from a profile */
	uint32_t line; /* on the new side */
	const char *function;
	double weight[SIDES];
};
struct lines {
	PM_VEC(struct line) list;
	struct pm_index index;
};

static bool line_equal(const void *table, uint32_t id, const void *key)
{
	const struct line *have = &((const struct lines *)table)->list.data[id];
	const struct line *wanted = key;

	return have->line == wanted->line && strcmp(have->file, wanted->file) == 0;
}

static int add_weight(struct lines *lines, const struct line *key, unsigned int side,
		      uint64_t period)
{
	uint64_t hash =
		pm_hash_mix(pm_hash_bytes(key->file, strlen(key->file)), key->line);
	uint32_t id = pm_index_find(&lines->index, hash, line_equal, lines, key);

	if (id == PM_INDEX_NONE) {
		id = (uint32_t)lines->list.len;
		if (pm_vec_push(&lines->list, *key) < 0 ||
		    pm_index_add(&lines->index, hash, id) < 0)
			return -ENOMEM;
	}
	lines->list.data[id].weight[side] += (double)period;
	return 0;
}

/* Adds up the weights of lines. A line of the base counts as the line of the new side
 * that it has become. Lines that were removed do not count. */
static int weigh_lines(struct work *work, struct lines *lines, unsigned int side)
{
	const struct pm_profile *profile = work->of[side];
	struct pm_table table;
	int ret = pm_table_init(&table, work->views[side], PM_KEY_LINE, false);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < table.rows.len && ret == 0; i++) {
		const struct pm_row *row = &table.rows.data[i];
		const struct pm_profile_place *place = &profile->places.data[row->id];
		struct line key = {
			.line = place->line,
			.function = profile->functions.data[place->function].name
		};

		if (!place->file || place->line == 0 || row->self.period == 0)
			continue;
		key.file = without_root(work, side, place->file);
		if (side == PM_BASE && work->options->line_of)
			key.line = work->options->line_of(work->options->user, key.file,
							  place->line);
		if (key.line > 0)
			ret = add_weight(lines, &key, side, row->self.period);
	}
	pm_table_release(&table);
	return ret;
}

static int add_hot_line(struct work *work, const struct line *line)
{
	struct pm_hot_row row = { .line = line->line,
				  .base = line->weight[PM_BASE],
				  .new = line->weight[PM_NEW] };

	if (pm_stat_text(&row.file, line->file) == 0 &&
	    pm_stat_text(&row.function, line->function) == 0 &&
	    pm_vec_push(&work->hot->lines.list, row) == 0)
		return 0;
	free(row.file);
	free(row.function);
	return -ENOMEM;
}

static int find_lines(struct work *work)
{
	struct lines lines = { 0 };
	struct added_list added = { 0 };
	int ret = weigh_lines(work, &lines, PM_NEW);

	if (ret == 0)
		ret = weigh_lines(work, &lines, PM_BASE);
	for (uint32_t i = 0; i < lines.list.len && ret == 0; i++) {
		struct added one = { .id = i,
				     .weight = { lines.list.data[i].weight[PM_BASE],
						 lines.list.data[i].weight[PM_NEW] } };

		if (added_of(&one) > 0)
			ret = pm_vec_push(&added.list, one);
	}
	sort_added(&added);
	if (added.list.len > PM_HOT_ROWS)
		work->hot->lines.more = added.list.len - PM_HOT_ROWS;
	else
		work->hot->lines.more = 0;
	for (size_t i = 0; i < added.list.len && i < PM_HOT_ROWS && ret == 0; i++)
		ret = add_hot_line(work, &lines.list.data[added.list.data[i].id]);
	pm_vec_release(&added.list);
	pm_vec_release(&lines.list);
	pm_index_release(&lines.index);
	return ret;
}

/* ---- the whole ---------------------------------------------------------------------- */

/* Chooses the first event for which both sides have samples. */
static int choose_event(struct work *work, struct pm_error *err)
{
	for (uint32_t i = 0; i < work->of[PM_BASE]->events.len; i++) {
		const struct pm_profile_event *a = &work->of[PM_BASE]->events.data[i];
		const struct pm_profile_event *b =
			pm_recordings_event(work->of[PM_NEW], a);
		int ret;

		if (!b || a->total.samples == 0 || b->total.samples == 0)
			continue;
		ret = pm_view_new(&work->views[PM_BASE], work->of[PM_BASE], i, NULL, err);
		if (ret == 0)
			ret = pm_view_new(&work->views[PM_NEW], work->of[PM_NEW],
					  (uint32_t)(b - work->of[PM_NEW]->events.data),
					  NULL, err);
		if (ret < 0)
			return ret;
		if (a->unit && strcmp(a->unit, "ns") == 0)
			work->hot->unit = "ns";
		else
			work->hot->unit = "";
		work->hot->all[PM_BASE] = (double)work->views[PM_BASE]->total.period;
		work->hot->all[PM_NEW] = (double)work->views[PM_NEW]->total.period;
		return pm_stat_text(&work->hot->event, b->actual);
	}
	return pm_error_set(err, -EINVAL,
			    "the profiles have no event in common that both have samples "
			    "of");
}

int pm_hot_find(struct pm_hot **out, const struct pm_profile *base,
		const struct pm_profile *new, const struct pm_hot_options *options,
		struct pm_error *err)
{
	struct work work PM_CLEANUP(hot_work_release) = { .of = { base, new },
							  .options = options };
	int ret;

	work.hot = calloc(1, sizeof(*work.hot));
	if (work.hot)
		ret = choose_event(&work, err);
	else
		ret = -ENOMEM;
	if (ret == 0)
		ret = find_functions(&work, err);
	if (ret == 0)
		ret = find_lines(&work);
	if (ret < 0) {
		pm_hot_free(work.hot);
		if (ret != -ENOMEM)
			return ret;
		return pm_error_set(err, ret, "out of memory");
	}
	work.hot->exact = options->exact;
	*out = work.hot;
	return 0;
}
