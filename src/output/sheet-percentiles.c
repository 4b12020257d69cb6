/* SPDX-License-Identifier: MIT */
/* The distribution of a field's values: exact percentiles, by nearest rank. */
#include "sheet.h"

#include <string.h>

struct value {
	uint32_t group;
	pm_wide number;
};

struct group {
	struct pm_row row;
	uint64_t others; /* values that are not numbers */
	size_t first, count; /* range in the sorted values */
	pm_wide sum;
};

struct work {
	struct pm_section *section;
	const struct pm_report *report;
	const struct pm_profile *profile;
	struct pm_keys keys; /* len 0: all samples are one group */
	struct pm_index index;
	PM_VEC(struct group) groups;
	PM_VEC(struct value) values;
	uint32_t *comm_of, *address_of;
	uint32_t
		*waiter_of; /* places by stack; NULL unless people ask for blocked time */
	bool field_seen;
};

static void percentiles_release(struct work *work)
{
	pm_index_release(&work->index);
	pm_vec_release(&work->groups);
	pm_vec_release(&work->values);
	free(work->comm_of);
	free(work->address_of);
	free(work->waiter_of);
}

/* ---- groups ------------------------------------------------------------------------------ */

static bool percentile_group_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_row *have = &((const struct work *)table)->groups.data[id].row;
	const struct pm_row *wanted = key;

	return have->id == wanted->id &&
	       memcmp(have->more, wanted->more, sizeof(have->more)) == 0;
}

/* The key of the place where a sample was taken: its innermost level. */
static uint32_t sample_key(const struct work *work, enum pm_key key, size_t sample_id)
{
	const struct pm_profile *profile = work->profile;
	const struct pm_profile_sample *sample = &profile->samples.data[sample_id];
	const struct pm_profile_cell *cell = &profile->cells.data[sample->cell];
	uint32_t frame = profile->stacks.data[cell->stack].frame;

	switch (key) {
	case PM_KEY_FUNCTION:
		/* All blocking happens in the scheduler. */
		if (work->waiter_of)
			return profile->places.data[work->waiter_of[cell->stack]]
				.function;
		return pm_profile_level_function(profile, cell->stack, 0);
	case PM_KEY_LINE:
		if (work->waiter_of)
			return work->waiter_of[cell->stack];
		return pm_profile_level_place(profile, cell->stack, 0);
	case PM_KEY_MODULE:
		return profile->frames.data[frame].module;
	case PM_KEY_ADDRESS:
		return work->address_of[frame];
	case PM_KEY_THREAD:
		return cell->thread;
	case PM_KEY_PROCESS:
		return profile->threads.data[cell->thread].process;
	case PM_KEY_COMM:
		return work->comm_of[cell->thread];
	case PM_KEY_CPU:
		return sample->cpu;
	case PM_KEY_PARALLELISM:
		if (sample_id < profile->parallelism.len)
			return profile->parallelism.data[sample_id];
		return 0;
	}
	return PM_PROFILE_NONE;
}

static int percentiles_find_group(struct work *work, size_t sample, uint32_t *out)
{
	struct group wanted = { .row = { .place = PM_PROFILE_NONE } };
	uint64_t hash = 0;
	uint32_t id;
	int ret;

	for (uint32_t i = 0; i < work->keys.len; i++) {
		uint32_t key = sample_key(work, work->keys.key[i], sample);

		*(i == 0 ? &wanted.row.id : &wanted.row.more[i - 1]) = key;
		hash = pm_hash_mix(hash, key);
	}
	id = pm_index_find(&work->index, hash, percentile_group_equal, work, &wanted.row);
	if (id == PM_INDEX_NONE) {
		id = (uint32_t)work->groups.len;
		ret = pm_vec_push(&work->groups, wanted);
		if (ret == 0)
			ret = pm_index_add(&work->index, hash, id);
		if (ret < 0)
			return ret;
	}
	*out = id;
	return 0;
}

/* ---- values ------------------------------------------------------------------------------ */

/* Gets the value of a sample. Returns 1, 0 if there is none, or -EDOM if it is not a
 * number. */
static int sample_value(const struct work *work, const struct pm_profile_sample *sample,
			pm_wide *out)
{
	const struct pm_profile *profile = work->profile;

	if (strcmp(work->report->field, "period") == 0) {
		*out = (pm_wide)sample->period;
		return 1;
	}
	for (uint32_t f = 0; f < sample->fields; f++) {
		const struct pm_profile_field *field =
			&profile->fields.data[sample->first_field + f];

		if (strcmp(profile->field_names.data[field->name], work->report->field) !=
		    0)
			continue;
		if (!pm_field_number(field, out))
			return -EDOM;
		return 1;
	}
	return 0;
}

static int percentiles_collect(struct work *work)
{
	PM_AUTO_FREE bool *passed = pm_section_cells(work->section);

	if (!passed)
		return -ENOMEM;
	for (size_t i = 0; i < work->profile->samples.len; i++) {
		const struct pm_profile_sample *sample = &work->profile->samples.data[i];
		struct value value = { 0 };
		int has, ret;

		if (!passed[sample->cell])
			continue;
		has = sample_value(work, sample, &value.number);
		if (has == 0)
			continue;
		work->field_seen = true;
		ret = percentiles_find_group(work, i, &value.group);
		if (ret < 0)
			return ret;
		if (has < 0) {
			work->groups.data[value.group].others++;
			continue;
		}
		work->groups.data[value.group].sum += value.number;
		ret = pm_vec_push(&work->values, value);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int by_group(const void *a, const void *b)
{
	const struct value *left = a, *right = b;

	if (left->group != right->group)
		return PM_COMPARE(left->group, right->group);
	return PM_COMPARE(left->number, right->number);
}

static int by_sum(const void *a, const void *b)
{
	const struct group *left = a, *right = b;

	if (left->sum != right->sum)
		return PM_COMPARE(right->sum, left->sum);
	if (left->count != right->count)
		return PM_COMPARE(right->count, left->count);
	return PM_COMPARE(left->row.id, right->row.id);
}

static void percentiles_sort_values(struct work *work)
{
	if (work->values.len > 0)
		qsort(work->values.data, work->values.len, sizeof(struct value),
		      by_group);
	for (size_t i = 0; i < work->values.len; i++) {
		struct group *group = &work->groups.data[work->values.data[i].group];

		if (group->count++ == 0)
			group->first = i;
	}
	if (work->groups.len > 0)
		qsort(work->groups.data, work->groups.len, sizeof(struct group), by_sum);
}

/* Returns the smallest value such that at least @percent of all values are not above
 * it. */
static pm_wide group_percentile(const struct work *work, const struct group *group,
				double percent)
{
	double exact = percent / 100.0 * (double)group->count;
	size_t rank = (size_t)exact;

	if ((double)rank < exact - 1e-9)
		rank++;
	if (rank < 1)
		rank = 1;
	if (rank > group->count)
		rank = group->count;
	return work->values.data[group->first + rank - 1].number;
}

/* ---- the sheet ------------------------------------------------------------------------- */

static int percentiles_add_columns(struct pm_sheet *sheet, const struct work *work)
{
	const struct pm_profile_event *event =
		&work->profile->events.data[work->section->view->event];
	bool ns = strcmp(work->report->field, "period") == 0 &&
		  strcmp(event->unit, "ns") == 0;
	enum pm_sheet_kind kind = ns ? PM_SHEET_WIDE_NS : PM_SHEET_NUMBER;

	sheet->buckets_ns = ns;
	sheet->name = "percentiles";
	sheet->people = 40;
	pm_sheet_column(sheet, "count", "count", PM_SHEET_COUNT, 0);
	pm_sheet_column(sheet, "others", NULL, PM_SHEET_COUNT, 0);
	pm_sheet_column(sheet, "min", "min", kind, 0);
	for (size_t i = 0; i < work->report->percentiles_len; i++) {
		char name[32];
		const char *kept;

		snprintf(name, sizeof(name), "p%.12g", work->report->percentiles[i]);
		kept = pm_sheet_keep(sheet, name);
		if (!kept)
			return -ENOMEM;
		pm_sheet_column(sheet, kept, kept, kind, 0);
	}
	pm_sheet_column(sheet, "max", "max", kind, 0);
	pm_sheet_column(sheet, "sum", "sum", kind, 0);
	if (work->keys.len > 0)
		pm_sheet_key_columns(sheet, &work->keys);
	return 0;
}

static int percentiles_add_row(struct pm_sheet *sheet, const struct work *work,
			       const struct group *group)
{
	const struct value *values = work->values.data + group->first;
	bool known = group->count > 0;
	int ret = pm_sheet_number(sheet, true, group->count);

	if (ret == 0)
		ret = pm_sheet_number(sheet, true, group->others);
	if (ret == 0)
		ret = pm_sheet_wide(sheet, known, known ? values[0].number : 0);
	for (size_t i = 0; ret == 0 && i < work->report->percentiles_len; i++)
		ret = pm_sheet_wide(sheet, known,
				    known ? group_percentile(work, group,
							     work->report->percentiles[i])
					  : 0);
	if (ret == 0)
		ret = pm_sheet_wide(sheet, known,
				    known ? values[group->count - 1].number : 0);
	if (ret == 0)
		ret = pm_sheet_wide(sheet, known, group->sum);
	if (ret == 0 && work->keys.len > 0)
		ret = pm_sheet_key_cells(sheet, work->profile, &work->keys, &group->row);
	return ret;
}

/* ---- distribution ------------------------------------------------------------------------- */

/* Returns the bucket of a number. 0: negative; 1: zero; n + 2: from 2^n up to, but not
 * including, 2^(n+1). */
static size_t bucket_of_number(pm_wide number)
{
	if (number <= 0)
		return number == 0;
	return 2 + (size_t)(63 - __builtin_clzll((unsigned long long)number));
}

static void count_buckets(struct pm_sheet *sheet, const struct work *work)
{
	sheet->has_buckets = true;
	for (size_t i = 0; i < work->values.len; i++)
		sheet->buckets[bucket_of_number(work->values.data[i].number)]++;
}

static int no_field(const struct work *work, struct pm_error *err)
{
	const struct pm_profile *profile = work->profile;
	PM_CLEANUP(pm_str_release) struct pm_str names = { 0 };

	/* The event has no samples. */
	if (strcmp(work->report->field, "period") == 0)
		return 0;
	for (size_t i = 0; i < profile->field_names.len; i++) {
		if (strcmp(profile->field_names.data[i], work->report->field) == 0)
			return 0; /* another event has the field, or filters removed it */
		if (i > 0)
			pm_str_puts(&names, ", ");
		pm_str_puts(&names, profile->field_names.data[i]);
	}
	pm_error_set(err, -ENOENT, "no sample has a field '%s'", work->report->field);
	pm_error_fix(err, "--percentile with one of: period%s%s",
		     names.len > 0 ? ", " : "", pm_str_text(&names));
	return -ENOENT;
}

int pm_sheet_percentiles(struct pm_sheet *sheet, struct pm_section *section,
			 struct pm_error *err)
{
	PM_CLEANUP(percentiles_release)
	struct work work = {
		.section = section,
		.report = section->report,
		.profile = section->report->profile,
	};
	int ret;

	if (work.report->by_key)
		pm_report_keys(work.report, &work.keys);
	work.comm_of = pm_profile_comms(work.profile);
	work.address_of = pm_profile_addresses(work.profile);
	if (!work.comm_of || !work.address_of)
		return pm_error_set(err, -ENOMEM, "out of memory");
	if (section->people &&
	    pm_profile_is_blocked_time(
		    &work.profile->events.data[section->view->event])) {
		work.waiter_of = pm_view_waiters(section->view);
		if (!work.waiter_of)
			return pm_error_set(err, -ENOMEM, "out of memory");
	}
	ret = percentiles_collect(&work);
	if (ret == 0 && !work.field_seen) {
		ret = no_field(&work, err);
		if (ret < 0)
			return ret;
	}
	if (ret == 0)
		ret = percentiles_add_columns(sheet, &work);
	percentiles_sort_values(&work);
	for (size_t i = 0; ret == 0 && i < work.groups.len; i++)
		ret = percentiles_add_row(sheet, &work, &work.groups.data[i]);
	count_buckets(sheet, &work);
	if (ret < 0)
		return pm_error_set(err, ret, "out of memory");
	return 0;
}
