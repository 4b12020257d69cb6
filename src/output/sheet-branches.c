/* SPDX-License-Identifier: MIT */
/* Branches that the CPU has recorded, by source line, and how often they were
 * mispredicted. */
#include "sheet.h"

#include <string.h>

struct branch {
	uint32_t from, to; /* places */
	uint64_t count, mispredicted, predicted, cycles, cycles_of;
};

struct work {
	struct pm_index index;
	PM_VEC(struct branch) branches;
	uint64_t all;
};

static void branches_release(struct work *work)
{
	pm_index_release(&work->index);
	pm_vec_release(&work->branches);
}

static bool sheet_branch_equal(const void *table, uint32_t id, const void *key)
{
	const struct branch *have = &((const struct work *)table)->branches.data[id];
	const struct branch *wanted = key;

	return have->from == wanted->from && have->to == wanted->to;
}

/* Returns the innermost place of a frame. There are many frames but few lines: branches
 * are counted by that place. */
static uint32_t innermost_place(const struct pm_profile *profile, uint32_t frame)
{
	return profile->levels.data[profile->frames.data[frame].first_level];
}

static int branches_add(struct work *work, const struct pm_profile *profile,
			const struct pm_profile_branch *branch)
{
	struct branch key = {
		.from = innermost_place(profile, branch->from),
		.to = innermost_place(profile, branch->to),
	};
	uint64_t hash = pm_hash_mix(key.from, key.to);
	uint32_t id = pm_index_find(&work->index, hash, sheet_branch_equal, work, &key);
	struct branch *sum;

	if (id == PM_INDEX_NONE) {
		int ret = pm_vec_push(&work->branches, key);

		id = (uint32_t)work->branches.len - 1;
		if (ret == 0)
			ret = pm_index_add(&work->index, hash, id);
		if (ret < 0)
			return ret;
	}
	sum = &work->branches.data[id];
	sum->count += branch->count;
	sum->mispredicted += branch->mispredicted;
	sum->predicted += branch->predicted;
	sum->cycles += branch->cycles;
	sum->cycles_of += branch->cycles_of;
	work->all += branch->count;
	return 0;
}

static int by_count(const void *a, const void *b)
{
	const struct branch *left = a, *right = b;

	if (left->count != right->count)
		return PM_COMPARE(right->count, left->count);
	if (left->from != right->from)
		return PM_COMPARE(left->from, right->from);
	return PM_COMPARE(left->to, right->to);
}

/* ---- the sheet ------------------------------------------------------------------------- */

static void branches_add_columns(struct pm_sheet *sheet)
{
	sheet->name = "branches";
	sheet->people = 30;
	pm_sheet_column(sheet, "percent", "share", PM_SHEET_PERCENT, 0);
	pm_sheet_column(sheet, "count", "taken", PM_SHEET_COUNT, 0);
	pm_sheet_column(sheet, "mispredicted", NULL, PM_SHEET_COUNT, 0);
	pm_sheet_column(sheet, "predicted", NULL, PM_SHEET_COUNT, 0);
	pm_sheet_column(sheet, "mispredicted_percent", "mispred", PM_SHEET_PERCENT, 0);
	pm_sheet_column(sheet, "cycles", "cycles", PM_SHEET_COUNT, 0);
	pm_sheet_column(sheet, NULL, "from", PM_SHEET_TEXT, 0);
	pm_sheet_column(sheet, NULL, "to", PM_SHEET_TEXT, 0);
	pm_sheet_column(sheet, "from_function", NULL, PM_SHEET_TEXT, 0);
	pm_sheet_column(sheet, "from_module", NULL, PM_SHEET_TEXT, 0);
	pm_sheet_column(sheet, "from_file", NULL, PM_SHEET_TEXT, 0);
	pm_sheet_column(sheet, "from_line", NULL, PM_SHEET_ID, 0);
	pm_sheet_column(sheet, "to_function", NULL, PM_SHEET_TEXT, 0);
	pm_sheet_column(sheet, "to_module", NULL, PM_SHEET_TEXT, 0);
	pm_sheet_column(sheet, "to_file", NULL, PM_SHEET_TEXT, 0);
	pm_sheet_column(sheet, "to_line", NULL, PM_SHEET_ID, 0);
}

static int branches_put_end(struct pm_sheet *sheet, const struct pm_report *report,
			    uint32_t id)
{
	const struct pm_profile *profile = report->profile;
	const struct pm_profile_place *place = &profile->places.data[id];
	PM_CLEANUP(pm_str_release) struct pm_str text = { 0 };
	const char *kept = NULL;

	pm_put_function(&text, profile, place->function, 28, report->ascii);
	if (place->file) {
		pm_str_putc(&text, ' ');
		pm_put_source(&text, place);
	}
	if (!text.failed)
		kept = pm_sheet_keep(sheet, pm_str_text(&text));
	if (kept)
		return pm_sheet_text(sheet, kept);
	return -ENOMEM;
}

static int branches_put_place(struct pm_sheet *sheet, const struct pm_profile *profile,
			      uint32_t id)
{
	const struct pm_profile_place *place = &profile->places.data[id];
	const struct pm_profile_function *function =
		&profile->functions.data[place->function];
	int ret = pm_sheet_text(sheet, pm_function_known_name(function));

	if (ret == 0)
		ret = pm_sheet_text(sheet,
				    pm_module_known_name(profile, function->module));
	if (ret == 0)
		ret = pm_sheet_text(sheet, place->file);
	if (ret < 0)
		return ret;
	return pm_sheet_number(sheet, place->line > 0, place->line);
}

static int put_mispredicted(struct pm_sheet *sheet, const struct branch *branch)
{
	uint64_t known = branch->mispredicted + branch->predicted;
	struct pm_sheet_cell cell = { .known = known > 0 };

	if (known > 0)
		cell.percent = 100.0 * (double)branch->mispredicted / (double)known;
	return pm_vec_push(&sheet->cells, cell);
}

static int branches_add_row(struct pm_sheet *sheet, const struct pm_report *report,
			    const struct work *work, const struct branch *branch)
{
	uint64_t cycles = 0;
	int ret = pm_sheet_percent(sheet,
				   100.0 * (double)branch->count / (double)work->all);

	if (branch->cycles_of > 0)
		cycles = branch->cycles / branch->cycles_of;
	if (ret == 0)
		ret = pm_sheet_number(sheet, true, branch->count);
	if (ret == 0)
		ret = pm_sheet_number(sheet, true, branch->mispredicted);
	if (ret == 0)
		ret = pm_sheet_number(sheet, true, branch->predicted);
	if (ret == 0)
		ret = put_mispredicted(sheet, branch);
	if (ret == 0)
		ret = pm_sheet_number(sheet, branch->cycles_of > 0, cycles);
	if (ret == 0)
		ret = branches_put_end(sheet, report, branch->from);
	if (ret == 0)
		ret = branches_put_end(sheet, report, branch->to);
	if (ret == 0)
		ret = branches_put_place(sheet, report->profile, branch->from);
	if (ret < 0)
		return ret;
	return branches_put_place(sheet, report->profile, branch->to);
}

int pm_sheet_branches(struct pm_sheet *sheet, struct pm_section *section,
		      struct pm_error *err)
{
	const struct pm_report *report = section->report;
	const struct pm_profile *profile = report->profile;
	PM_AUTO_FREE bool *passed = pm_section_cells(section);
	PM_CLEANUP(branches_release) struct work work = { .all = 0 };
	int ret = 0;

	if (!passed)
		ret = -ENOMEM;
	for (size_t i = 0; ret == 0 && i < profile->branches.len; i++)
		if (passed[profile->branches.data[i].cell])
			ret = branches_add(&work, profile, &profile->branches.data[i]);
	if (ret == 0 && work.branches.len > 0)
		qsort(work.branches.data, work.branches.len, sizeof(struct branch),
		      by_count);
	branches_add_columns(sheet);
	for (size_t i = 0; ret == 0 && i < work.branches.len; i++)
		ret = branches_add_row(sheet, report, &work, &work.branches.data[i]);
	if (ret < 0)
		return pm_error_set(err, ret, "out of memory");
	return 0;
}
