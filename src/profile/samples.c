/* SPDX-License-Identifier: MIT */
/*
 * Converts the thread and sample records of a file into cells.
 *
 * In some groups, one event samples and the others are only counted (`:S`). The increase
 * in each count since the previous sample becomes that event's weight at this sample, as
 * if the event had sampled there.
 */
#include "profile-internal.h"

#include <string.h>

/* ---- threads ----------------------------------------------------------------------- */

static bool profile_thread_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_profile_thread *have =
		&((const struct pm_profile *)table)->threads.data[id];
	const struct pm_profile_thread *wanted = key;

	return have->pid == wanted->pid && have->tid == wanted->tid &&
	       have->comm == wanted->comm;
}

static bool loader_tid_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_loader_thread *have =
		&((const struct pm_loader *)table)->tids.data[id];
	const struct pm_loader_thread *wanted = key;

	return have->pid == wanted->pid && have->tid == wanted->tid;
}

static bool profile_process_equal(const void *table, uint32_t id, const void *key)
{
	return ((const struct pm_profile *)table)->processes.data[id].pid ==
	       *(const uint32_t *)key;
}

static int find_or_add_process(struct pm_loader *loader, uint32_t pid, uint32_t *out)
{
	struct pm_profile *profile = loader->profile;
	uint64_t hash = pm_hash_mix(pid, 0);
	uint32_t id = pm_index_find(&loader->processes, hash, profile_process_equal,
				    profile, &pid);

	if (id == PM_INDEX_NONE) {
		struct pm_profile_process process = { .pid = pid, .comm = "" };
		int ret;

		id = (uint32_t)profile->processes.len;
		ret = pm_vec_push(&profile->processes, process);
		if (ret == 0)
			ret = pm_index_add(&loader->processes, hash, id);
		if (ret < 0)
			return ret;
	}
	*out = id;
	return 0;
}

/* Finds or creates the row of (pid, tid); its current name becomes @comm. */
static int loader_set_thread(struct pm_loader *loader, uint32_t pid, uint32_t tid,
			     const char *comm, uint32_t *out)
{
	struct pm_profile *profile = loader->profile;
	struct pm_profile_thread thread = { .pid = pid, .tid = tid };
	struct pm_loader_thread by_tid = { .pid = pid, .tid = tid };
	uint64_t tid_hash = pm_hash_mix(pid, tid), hash;
	uint32_t row, id;
	int ret = pm_load_text(loader, comm, &thread.comm);

	if (ret == 0)
		ret = find_or_add_process(loader, pid, &thread.process);
	if (ret < 0)
		return ret;
	hash = pm_hash_mix(tid_hash, (uintptr_t)thread.comm);
	id = pm_index_find(&loader->threads_by_name, hash, profile_thread_equal, profile,
			   &thread);
	if (id == PM_INDEX_NONE) {
		id = (uint32_t)profile->threads.len;
		ret = pm_vec_push(&profile->threads, thread);
		if (ret == 0)
			ret = pm_index_add(&loader->threads_by_name, hash, id);
		if (ret < 0)
			return ret;
	}
	row = pm_index_find(&loader->threads_by_tid, tid_hash, loader_tid_equal, loader,
			    &by_tid);
	if (row == PM_INDEX_NONE) {
		row = (uint32_t)loader->tids.len;
		ret = pm_vec_push(&loader->tids, by_tid);
		if (ret == 0)
			ret = pm_index_add(&loader->threads_by_tid, tid_hash, row);
		if (ret < 0)
			return ret;
	}
	loader->tids.data[row].current = id;
	/* The first thread names the process. Until its name is known, any thread
	 * does. */
	if (pid == tid || profile->processes.data[thread.process].comm[0] == '\0')
		profile->processes.data[thread.process].comm = thread.comm;
	*out = row;
	return 0;
}

int pm_load_thread(struct pm_loader *loader, const struct pm_file_thread *thread)
{
	size_t known = loader->tids.len;
	uint32_t row;
	int ret = loader_set_thread(loader, thread->pid, thread->tid,
				    pm_text_or_empty(thread->comm), &row);

	if (ret < 0)
		return ret;
	if (loader->tids.len > known)
		loader->profile->threads.data[loader->tids.data[row].current].begin_ns =
			thread->time;
	if (!loader->thread_seen) {
		loader->thread_seen = true;
		loader->first_thread_ns = thread->time;
		if (thread->pid != PM_FILE_NONE)
			loader->profile->info.pid = thread->pid;
	}
	return 0;
}

/* Adds a title. If the process has no threads in the file, the title belongs to no sample
 * and is ignored. */
int pm_load_title(struct pm_loader *loader, const struct pm_file_title *title)
{
	struct pm_profile *profile = loader->profile;
	uint32_t id = pm_index_find(&loader->processes, pm_hash_mix(title->pid, 0),
				    profile_process_equal, profile, &title->pid);

	if (id == PM_INDEX_NONE)
		return 0;
	return pm_load_text(loader, title->text, &profile->processes.data[id].title);
}

static bool loader_count_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_loader_count *have =
		&((const struct pm_loader *)table)->counts.data[id];
	const struct pm_loader_count *wanted = key;

	return have->pid == wanted->pid && have->tid == wanted->tid &&
	       have->cpu == wanted->cpu && have->event == wanted->event;
}

/* Whether counts belong to CPUs: they do if CPUs are sampled, otherwise to a thread on
 * its CPU (docs/format.md). */
static bool are_counts_of_cpus(const struct pm_profile *profile)
{
	static const char *const options[] = { "-a", "-C", "-G" };

	for (size_t i = 0; profile->target && i < PM_ARRAY_LEN(options); i++)
		if (strncmp(profile->target, options[i], 2) == 0)
			return true;
	return false;
}

/* Computes the increase since the previous count. If a counter has decreased, it is a new
 * one. */
static int counter_increase(struct pm_loader *loader, struct pm_loader_count count,
			    uint64_t *out)
{
	uint64_t hash = pm_hash_mix((uint64_t)count.pid << 32 | count.tid,
				    (uint64_t)count.cpu << 32 | count.event);
	uint32_t id = pm_index_find(&loader->count_rows, hash, loader_count_equal, loader,
				    &count);
	struct pm_loader_count *last;

	if (id == PM_INDEX_NONE) {
		int ret = pm_vec_push(&loader->counts, count);

		if (ret == 0)
			ret = pm_index_add(&loader->count_rows, hash,
					   (uint32_t)loader->counts.len - 1);
		*out = count.value;
		return ret;
	}
	last = &loader->counts.data[id];
	if (count.value < last->value)
		*out = count.value;
	else
		*out = count.value - last->value;
	last->value = count.value;
	return 0;
}

static bool profile_cell_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_profile_cell *have =
		&((const struct pm_profile *)table)->cells.data[id];
	const struct pm_profile_cell *wanted = key;

	return have->stack == wanted->stack && have->thread == wanted->thread &&
	       have->event == wanted->event && have->stop == wanted->stop;
}

/* ---- samples ------------------------------------------------------------------------- */

static bool field_name_equal(const void *table, uint32_t id, const void *key)
{
	return ((const struct pm_profile *)table)->field_names.data[id] == key;
}

static int loader_keep_field(struct pm_loader *loader, const struct pm_file_field *field)
{
	struct pm_profile *profile = loader->profile;
	struct pm_profile_field kept = { .kind = field->kind };
	const char *name;
	uint64_t hash;
	int ret = pm_load_text(loader, field->name, &name);

	if (ret < 0)
		return ret;
	hash = pm_hash_mix((uintptr_t)name, 0);
	kept.name = pm_index_find(&loader->field_names, hash, field_name_equal, profile,
				  name);
	if (kept.name == PM_INDEX_NONE) {
		kept.name = (uint32_t)profile->field_names.len;
		ret = pm_vec_push(&profile->field_names, name);
		if (ret == 0)
			ret = pm_index_add(&loader->field_names, hash, kept.name);
	}
	if (ret < 0)
		return ret;
	if (field->kind == PM_FILE_FIELD_TEXT)
		ret = pm_load_text(loader, field->text, &kept.text);
	else
		kept.number = field->number;
	if (ret < 0)
		return ret;
	return pm_vec_push(&profile->fields, kept);
}

/* Keeps a sample. Its weight is added to the cell at the end, when the time range is
 * known. */
static int loader_keep_sample(struct pm_loader *loader,
			      const struct pm_file_sample *sample, uint64_t period,
			      uint32_t cell)
{
	struct pm_profile *profile = loader->profile;
	struct pm_profile_sample kept = {
		.time_ns = sample->time,
		.period = period,
		.cell = cell,
		.cpu = sample->cpu,
		.first_field = (uint32_t)profile->fields.len,
	};

	if (loader->options->keep_samples && loader->options->keep_fields) {
		if (sample->fields_len > UINT32_MAX - profile->fields.len)
			return -ENOMEM;
		for (size_t i = 0; i < sample->fields_len; i++) {
			int ret = loader_keep_field(loader, &sample->fields[i]);

			if (ret < 0)
				return ret;
		}
		kept.fields = (uint32_t)sample->fields_len;
	}
	return pm_vec_push(&profile->samples, kept);
}

void pm_load_add(struct pm_profile_cell *cell, uint64_t period)
{
	pm_weight_add(&cell->weight,
		      &(struct pm_weight){ .samples = 1, .period = period });
	if (period > cell->longest)
		cell->longest = period;
}

/* Adds one sample of @period to the cell that equals @cell, and stores the row of that
 * cell in *@out. Returns 0 or -ENOMEM. */
static int load_weight(struct pm_loader *loader, const struct pm_file_sample *sample,
		       const struct pm_profile_cell *cell, uint64_t period, uint32_t *out)
{
	struct pm_profile *profile = loader->profile;
	uint64_t hash = pm_hash_mix((uint64_t)cell->event << 32 | cell->stack,
				    (uint64_t)cell->thread << 32 | cell->stop);
	uint32_t id =
		pm_index_find(&loader->cells, hash, profile_cell_equal, profile, cell);

	if (id == PM_INDEX_NONE) {
		int ret;

		id = (uint32_t)profile->cells.len;
		ret = pm_vec_push(&profile->cells, *cell);
		if (ret == 0)
			ret = pm_index_add(&loader->cells, hash, id);
		if (ret < 0)
			return ret;
	}
	if (out)
		*out = id;
	if (loader->options &&
	    (loader->options->time_set || loader->options->keep_samples))
		return loader_keep_sample(loader, sample, period, id);
	pm_load_add(&profile->cells.data[id], period);
	return 0;
}

/* Adds the counts of the group's other events since the previous sample. @at: the cell of
 * the sample. */
static int load_counts(struct pm_loader *loader, const struct pm_file_sample *sample,
		       const struct pm_profile_cell *at)
{
	bool cpus = are_counts_of_cpus(loader->profile);

	for (size_t i = 0; i < sample->counts_len; i++) {
		struct pm_loader_count count = {
			.cpu = sample->cpu,
			.event = sample->counts[i].event,
			.value = sample->counts[i].count,
		};
		struct pm_profile_cell cell = *at;
		uint64_t period;
		int ret;

		if (!cpus) {
			count.pid = sample->pid;
			count.tid = sample->tid;
		}

		if (count.event == sample->event)
			continue;
		ret = counter_increase(loader, count, &period);
		cell.event = count.event;
		if (ret == 0 && period > 0)
			ret = load_weight(loader, sample, &cell, period, NULL);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int find_or_add_stop(struct pm_loader *loader, const char *name, uint32_t *out)
{
	struct pm_profile *profile = loader->profile;
	const char *text;

	if (!name || strcmp(name, "root") == 0) {
		*out = 0;
		return 0;
	}
	/* There are about ten reasons. In a file with more than 63, the others count as
	 * the 63rd. */
	for (size_t i = 1; i < profile->stops.len; i++) {
		if (strcmp(profile->stops.data[i], name) == 0 || i == 63) {
			*out = (uint32_t)i;
			return 0;
		}
	}
	if (pm_load_text(loader, name, &text) < 0 ||
	    pm_vec_push(&profile->stops, text) < 0)
		return -ENOMEM;
	*out = (uint32_t)profile->stops.len - 1;
	return 0;
}

static int find_thread_of_sample(struct pm_loader *loader,
				 const struct pm_file_sample *sample, uint32_t *out)
{
	struct pm_loader_thread key = { .pid = sample->pid, .tid = sample->tid };
	uint32_t row = loader->last_tid;

	if (row >= loader->tids.len || !loader_tid_equal(loader, row, &key)) {
		row = pm_index_find(&loader->threads_by_tid,
				    pm_hash_mix(key.pid, key.tid), loader_tid_equal,
				    loader, &key);
		if (row == PM_INDEX_NONE) {
			int ret = loader_set_thread(loader, key.pid, key.tid, "", &row);

			if (ret < 0)
				return ret;
		}
		loader->last_tid = row;
	}
	*out = loader->tids.data[row].current;
	return 0;
}

int pm_load_sample(struct pm_loader *loader, const struct pm_file_sample *sample)
{
	struct pm_profile_info *info = &loader->profile->info;
	struct pm_profile_cell cell = { .event = sample->event, .stack = sample->stack };
	uint64_t begin = sample->time;
	uint32_t id;
	int ret = find_or_add_stop(loader, sample->stop, &cell.stop);

	if (ret == 0)
		ret = find_thread_of_sample(loader, sample, &cell.thread);
	/* A sample without a period counts as 1. */
	if (ret == 0)
		ret = load_weight(loader, sample, &cell,
				  sample->period > 0 ? sample->period : 1, &id);
	if (ret < 0)
		return ret;
	if (loader->profile->events.data[sample->event].blocked &&
	    sample->period < sample->time)
		begin -= sample->period;
	if (!loader->sample_seen || begin < info->start_ns)
		info->start_ns = begin;
	if (!loader->sample_seen || sample->time > info->end_ns)
		info->end_ns = sample->time;
	loader->sample_seen = true;
	info->read_samples++;
	if (sample->branches_len > 0 && loader->options && loader->options->keep_branches)
		ret = pm_load_branches(loader, sample, id);
	if (ret != 0)
		return ret;
	return load_counts(loader, sample, &cell);
}
