/* SPDX-License-Identifier: MIT */
/*
 * Groups in which one event samples and the others are counted (`:S`). What these have
 * counted since the sample before becomes their weight at this sample, as if they had
 * sampled there.
 */
#include "profile-internal.h"

#include <string.h>

static bool loader_count_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_loader_count *have =
		&((const struct pm_loader *)table)->counts.data[id];
	const struct pm_loader_count *wanted = key;

	return have->pid == wanted->pid && have->tid == wanted->tid &&
	       have->cpu == wanted->cpu && have->event == wanted->event;
}

/* docs/format.md: counts belong to the thread on its CPU, or to the CPU if CPUs are
 * sampled. */
static bool are_counts_of_cpus(const struct pm_profile *profile)
{
	static const char *const options[] = { "-a", "-C", "-G" };

	for (size_t i = 0; profile->target && i < PM_ARRAY_LEN(options); i++)
		if (strncmp(profile->target, options[i], 2) == 0)
			return true;
	return false;
}

/* The increase since the last time. A counter that decreased is a new one. */
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

int pm_load_counts(struct pm_loader *loader, const struct pm_file_sample *sample,
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
			ret = pm_load_weight(loader, sample, &cell, period, NULL);
		if (ret < 0)
			return ret;
	}
	return 0;
}
