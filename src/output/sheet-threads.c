/* SPDX-License-Identifier: MIT */
/* Threads or processes: when they were sampled, and how active they were. */
#include "sheet.h"

#include <string.h>

struct one {
	uint32_t id; /* id of the process, or of the thread under its last name */
	struct pm_weight weight, blocked;
	uint64_t first_ns, last_ns;
	bool seen;
	uint64_t activity[PM_SHEET_SERIES_LEN];
};

struct work {
	const struct pm_profile *profile;
	struct pm_section *section;
	bool processes;
	bool measured; /* the event's weight is measured time, not sampled */
	uint32_t *one_of; /* by thread: its row */
	PM_VEC(struct one) all;
	uint64_t from_ns, to_ns;
	struct pm_view *blocked; /* NULL: no blocked time was recorded */
};

static void threads_release(struct work *work)
{
	free(work->one_of);
	pm_vec_release(&work->all);
	pm_view_free(work->blocked);
}

/* ---- identity -------------------------------------------------------------------------- */

struct tid_key {
	uint32_t pid, tid;
};

static bool same_thread(const void *table, uint32_t id, const void *key)
{
	const struct work *work = table;
	const struct pm_profile_thread *have =
		&work->profile->threads.data[work->all.data[id].id];
	const struct tid_key *wanted = key;

	return have->pid == wanted->pid && have->tid == wanted->tid;
}

/* Combines the rows of a thread that has changed its name; the last name is used. */
static int find_ones(struct work *work)
{
	const struct pm_profile *profile = work->profile;
	PM_CLEANUP(pm_index_release) struct pm_index index = { 0 };

	work->one_of = calloc(profile->threads.len + 1, sizeof(uint32_t));
	if (!work->one_of)
		return -ENOMEM;
	for (uint32_t i = 0; work->processes && i < profile->processes.len; i++)
		if (pm_vec_push(&work->all, (struct one){ .id = i }) < 0)
			return -ENOMEM;
	for (uint32_t i = 0; i < profile->threads.len; i++) {
		const struct pm_profile_thread *thread = &profile->threads.data[i];
		struct tid_key key = { thread->pid, thread->tid };
		uint64_t hash = pm_hash_mix(key.pid, key.tid);
		uint32_t id;

		if (work->processes) {
			work->one_of[i] = thread->process;
			continue;
		}
		id = pm_index_find(&index, hash, same_thread, work, &key);
		if (id == PM_INDEX_NONE) {
			id = (uint32_t)work->all.len;
			if (pm_vec_push(&work->all, (struct one){ .id = i }) < 0 ||
			    pm_index_add(&index, hash, id) < 0)
				return -ENOMEM;
		}
		work->all.data[id].id = i;
		work->one_of[i] = id;
	}
	return 0;
}

/* ---- activity ---------------------------------------------------------------------------- */

static void widen_seen_time(struct one *one, uint64_t first_ns, uint64_t last_ns)
{
	if (!one->seen || first_ns < one->first_ns)
		one->first_ns = first_ns;
	if (!one->seen || last_ns > one->last_ns)
		one->last_ns = last_ns;
	one->seen = true;
}

static size_t bucket_of_time(const struct work *work, uint64_t time_ns)
{
	double span = (double)(work->to_ns - work->from_ns);
	size_t bucket = 0;

	if (span > 0)
		bucket = (size_t)((double)(time_ns - work->from_ns) / span *
				  PM_SHEET_SERIES_LEN);
	if (bucket < PM_SHEET_SERIES_LEN)
		return bucket;
	return PM_SHEET_SERIES_LEN - 1;
}

static void add_to_bar(struct one *one, size_t bucket, uint64_t period)
{
	if (__builtin_add_overflow(one->activity[bucket], period, &one->activity[bucket]))
		one->activity[bucket] = UINT64_MAX;
}

/* Measured time precedes its sample, and may be longer than a bar. */
static void add_activity(const struct work *work, struct one *one,
			 const struct pm_profile_sample *sample)
{
	size_t last = bucket_of_time(work, sample->time_ns), first = last;
	uint64_t left = sample->period, share;

	if (work->measured && sample->time_ns - work->from_ns > sample->period)
		first = bucket_of_time(work, sample->time_ns - sample->period);
	else if (work->measured)
		first = 0;
	share = left / (last - first + 1);
	for (size_t i = first; i < last; i++, left -= share)
		add_to_bar(one, i, share);
	add_to_bar(one, last, left);
}

/* @mark: by cell; 1: in the view, 2: blocked time. */
static void threads_add_samples(struct work *work, const uint8_t *mark)
{
	const struct pm_profile *profile = work->profile;

	for (size_t i = 0; i < profile->samples.len; i++) {
		const struct pm_profile_sample *sample = &profile->samples.data[i];
		const struct pm_profile_cell *cell = &profile->cells.data[sample->cell];
		struct one *one = &work->all.data[work->one_of[cell->thread]];
		struct pm_weight weight = { .samples = 1, .period = sample->period };
		uint64_t since = sample->time_ns;

		if (mark[sample->cell] == 0)
			continue;
		if (mark[sample->cell] & 1) {
			pm_weight_add(&one->weight, &weight);
			add_activity(work, one, sample);
		}
		if (mark[sample->cell] & 2) {
			/* The thread was at this place when it left its CPU. */
			since = PM_SUB_OR_0(since, sample->period);
			pm_weight_add(&one->blocked, &weight);
		}
		/* The last name is used. */
		if (!work->processes && (!one->seen || sample->time_ns >= one->last_ns))
			one->id = cell->thread;
		widen_seen_time(one, since, sample->time_ns);
	}
}

/* Returns the time of the first activity. A wait that ends later may have started before
 * the first sample. */
static uint64_t first_moment(const struct work *work, const uint8_t *mark)
{
	const struct pm_profile *profile = work->profile;
	uint64_t first = profile->samples.data[0].time_ns;

	for (size_t i = 0; work->measured && i < profile->samples.len; i++) {
		const struct pm_profile_sample *sample = &profile->samples.data[i];
		uint64_t begin = PM_SUB_OR_0(sample->time_ns, sample->period);

		if ((mark[sample->cell] & 1) && begin < first)
			first = begin;
	}
	return first;
}

static int threads_add_all(struct work *work)
{
	const struct pm_view *view = work->section->view;
	PM_AUTO_FREE uint8_t *mark = calloc(work->profile->cells.len + 1, 1);

	if (!mark)
		return -ENOMEM;
	for (size_t i = 0; i < view->cells.len; i++)
		mark[view->cells.data[i]] |= 1;
	for (size_t i = 0; work->blocked && i < work->blocked->cells.len; i++)
		mark[work->blocked->cells.data[i]] |= 2;
	if (work->profile->samples.len > 0) {
		size_t last = work->profile->samples.len - 1;

		work->from_ns = first_moment(work, mark);
		work->to_ns = work->profile->samples.data[last].time_ns;
	}
	threads_add_samples(work, mark);
	return 0;
}

static int find_blocked(struct work *work, struct pm_error *err)
{
	const struct pm_profile *profile = work->profile;

	for (uint32_t i = 0; i < profile->events.len; i++)
		if (pm_profile_is_blocked_time(&profile->events.data[i]))
			return pm_view_new(&work->blocked, profile, i,
					   work->section->report->filter, err);
	return 0;
}

/* ---- the sheet ------------------------------------------------------------------------- */

static int by_weight(const void *a, const void *b)
{
	const struct one *left = a, *right = b;

	if (left->weight.period != right->weight.period)
		return PM_COMPARE(right->weight.period, left->weight.period);
	if (left->blocked.period != right->blocked.period)
		return PM_COMPARE(right->blocked.period, left->blocked.period);
	return PM_COMPARE(left->id, right->id);
}

static void threads_add_columns(struct pm_sheet *sheet, const struct work *work,
				const struct pm_keys *keys)
{
	const struct pm_profile_event *event =
		&work->profile->events.data[work->section->view->event];
	bool ns = strcmp(event->unit, "ns") == 0 && !pm_event_is_time(event);

	pm_sheet_column(sheet, "percent", work->blocked ? NULL : "share",
			PM_SHEET_PERCENT, 0);
	pm_sheet_column(sheet, "samples", ns ? NULL : "samples", PM_SHEET_COUNT, 0);
	pm_sheet_column(sheet, "period", ns ? "time" : NULL, PM_SHEET_NS, 0);
	if (work->blocked) {
		pm_sheet_column(sheet, "blocked", NULL, PM_SHEET_COUNT, 0);
		pm_sheet_column(sheet, "blocked_ns", "blocked", PM_SHEET_NS, 0);
	}
	pm_sheet_column(sheet, "first_ns", "first", PM_SHEET_TIME_NS, 0);
	pm_sheet_column(sheet, "last_ns", "last", PM_SHEET_TIME_NS, 0);
	pm_sheet_column(sheet, "activity", "activity", PM_SHEET_SERIES, 0);
	pm_sheet_key_columns(sheet, keys);
}

static int threads_add_row(struct pm_sheet *sheet, const struct work *work,
			   const struct pm_keys *keys, const struct one *one)
{
	const struct pm_row row = { .id = one->id, .place = PM_PROFILE_NONE };
	uint64_t *activity = calloc(PM_SHEET_SERIES_LEN, sizeof(*activity));
	int ret = -ENOMEM;

	if (activity)
		ret = pm_vec_push(&sheet->texts, (char *)activity);
	if (ret < 0) {
		free(activity);
		return ret;
	}
	memcpy(activity, one->activity, sizeof(one->activity));
	ret = pm_sheet_percent(
		sheet, pm_weight_percent(&one->weight, &work->section->view->total));
	if (ret == 0)
		ret = pm_sheet_number(sheet, true, one->weight.samples);
	if (ret == 0)
		ret = pm_sheet_number(sheet, true, one->weight.period);
	if (ret == 0 && work->blocked)
		ret = pm_sheet_number(sheet, true, one->blocked.samples);
	if (ret == 0 && work->blocked)
		ret = pm_sheet_number(sheet, true, one->blocked.period);
	if (ret == 0)
		ret = pm_sheet_number(sheet, true, one->first_ns);
	if (ret == 0)
		ret = pm_sheet_number(sheet, true, one->last_ns);
	if (ret == 0)
		ret = pm_sheet_series(sheet, activity);
	if (ret < 0)
		return ret;
	return pm_sheet_key_cells(sheet, work->profile, keys, &row);
}

/* Returns the value of a full bar: one CPU if the event counts time, otherwise the
 * maximum. */
static uint64_t full_bar(const struct work *work)
{
	const struct pm_profile_event *event =
		&work->profile->events.data[work->section->view->event];
	uint64_t most = 1;

	if (strcmp(event->unit, "ns") == 0)
		return (work->to_ns - work->from_ns) / PM_SHEET_SERIES_LEN + 1;
	for (size_t i = 0; i < work->all.len; i++)
		for (size_t b = 0; b < PM_SHEET_SERIES_LEN; b++)
			if (work->all.data[i].activity[b] > most)
				most = work->all.data[i].activity[b];
	return most;
}

int pm_sheet_threads(struct pm_sheet *sheet, struct pm_section *section,
		     struct pm_error *err)
{
	PM_CLEANUP(threads_release)
	struct work work = {
		.section = section,
		.profile = section->report->profile,
		.processes =
			section->report->by_key && section->report->key == PM_KEY_PROCESS,
	};
	struct pm_keys keys = { .key[0] = work.processes ? PM_KEY_PROCESS : PM_KEY_THREAD,
				.len = 1 };
	int ret = find_blocked(&work, err);

	work.measured =
		pm_event_is_time(&work.profile->events.data[section->view->event]);
	if (ret < 0)
		return ret;
	if (work.processes)
		sheet->name = "processes";
	else
		sheet->name = "threads";
	sheet->people = 40;
	ret = find_ones(&work);
	if (ret == 0)
		ret = threads_add_all(&work);
	if (ret < 0)
		return pm_error_set(err, ret, "out of memory");
	if (work.all.len > 0)
		qsort(work.all.data, work.all.len, sizeof(struct one), by_weight);
	threads_add_columns(sheet, &work, &keys);
	sheet->series_max = full_bar(&work);
	for (size_t i = 0; ret == 0 && i < work.all.len; i++)
		if (work.all.data[i].seen)
			ret = threads_add_row(sheet, &work, &keys, &work.all.data[i]);
	if (ret < 0)
		return pm_error_set(err, ret, "out of memory");
	return 0;
}
