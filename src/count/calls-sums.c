/* SPDX-License-Identifier: MIT */
/* Values of individual calls, and callers. */
#include "calls-internal.h"

#include <string.h>

/* ---- individual calls ---------------------------------------------------------------- */

static uint64_t sample_next_random(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15ULL;
	return pm_hash_mix(*state, 0);
}

/* Minimum and maximum of each number, over all calls. */
static int region_widen_extremes(struct pm_calls *calls, struct pm_calls_region *region,
				 const uint64_t *words)
{
	size_t bytes = calls->columns * sizeof(*words);

	if (!region->least) {
		region->least = malloc(bytes);
		region->most = malloc(bytes);
		if (!region->least || !region->most)
			return -ENOMEM;
		memcpy(region->least, words, bytes);
		memcpy(region->most, words, bytes);
		return 0;
	}
	for (size_t i = 0; i < calls->columns; i++) {
		if (words[i] < region->least[i])
			region->least[i] = words[i];
		if (words[i] > region->most[i])
			region->most[i] = words[i];
	}
	return 0;
}

/* Each call is kept with the same probability (Vitter's algorithm R). */
static int keep_call_sample(struct pm_calls *calls, struct pm_calls_region *region,
			    const uint64_t *words)
{
	size_t at = region->kept;

	if (at == PM_CALLS_KEPT_MAX)
		at = sample_next_random(&region->random) % region->completed;
	if (at >= PM_CALLS_KEPT_MAX)
		return 0;
	if (at == region->kept) {
		size_t len = region->rows.len + calls->columns;

		if (pm_vec_reserve(&region->rows, len) < 0)
			return -ENOMEM;
		region->rows.len = len;
		region->kept++;
	}
	memcpy(&region->rows.data[at * calls->columns], words,
	       calls->columns * sizeof(*words));
	return 0;
}

int pm_calls_keep(struct pm_calls *calls, uint32_t region, const uint64_t *words)
{
	struct pm_calls_region *sums = &calls->regions.data[region];
	int32_t sum = calls->options.regions->list.data[region].sum;

	sums->completed++;
	if (region_widen_extremes(calls, sums, words) < 0 ||
	    keep_call_sample(calls, sums, words) < 0)
		return -ENOMEM;
	if (sum < 0 || (uint32_t)sum == region || (size_t)sum >= calls->regions.len)
		return 0;
	sums = &calls->regions.data[sum];
	sums->completed++;
	if (region_widen_extremes(calls, sums, words) < 0)
		return -ENOMEM;
	return keep_call_sample(calls, sums, words);
}

/* ---- callers ------------------------------------------------------------------------- */

struct site_key {
	uint32_t region, caller;
};

static bool call_site_equal(const void *table, uint32_t row, const void *wanted)
{
	const struct pm_calls *calls = table;
	const struct site_key *key = wanted;

	return calls->sites.data[row].region == key->region &&
	       calls->sites.data[row].caller == key->caller;
}

static uint32_t site_row(struct pm_calls *calls, uint32_t region, uint32_t caller)
{
	struct site_key key = { region, caller };
	uint64_t hash = pm_hash_mix(region, caller);
	uint32_t row = pm_index_find(&calls->by_site, hash, call_site_equal, calls, &key);
	size_t len = calls->site_words.len + calls->columns;

	if (row != PM_INDEX_NONE)
		return row;
	row = (uint32_t)calls->sites.len;
	if (pm_vec_reserve(&calls->site_words, len) < 0 ||
	    pm_vec_push(&calls->sites, (struct pm_calls_site){ region, caller, 0 }) < 0)
		return UINT32_MAX;
	if (pm_index_add(&calls->by_site, hash, row) < 0) {
		calls->sites.len--;
		return UINT32_MAX;
	}
	memset(&calls->site_words.data[calls->site_words.len], 0,
	       calls->columns * sizeof(uint64_t));
	calls->site_words.len = len;
	return row;
}

int pm_calls_site_add(struct pm_calls *calls, uint32_t region, uint32_t caller,
		      const uint64_t *words, bool new_call)
{
	uint32_t row = site_row(calls, region, caller);

	if (row == UINT32_MAX)
		return -ENOMEM;
	calls->sites.data[row].calls += new_call;
	for (size_t i = 0; words && i < calls->columns; i++)
		calls->site_words.data[row * calls->columns + i] += words[i];
	return 0;
}
