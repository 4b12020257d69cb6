/* SPDX-License-Identifier: MIT */
#include "scope-sums.h"

#include <string.h>

void pm_self_sums_release(struct pm_self_sums *sums)
{
	for (size_t i = 0; i < sums->list.len; i++)
		free(sums->list.data[i].name);
	pm_vec_release(&sums->list);
	pm_index_release(&sums->index);
}

void pm_self_sums_clear(struct pm_self_sums *sums)
{
	for (size_t i = 0; i < sums->list.len; i++)
		sums->list.data[i] =
			(struct pm_self_sum){ .name = sums->list.data[i].name };
}

/* A pm_index_equal_fn. The hash is that of the pointer. */
static bool sum_name_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_self_sums *sums = table;

	return strcmp(sums->list.data[id].name, key) == 0;
}

static int sums_push(struct pm_self_sums *sums, const char *name)
{
	char *copy = strdup(name);

	if (copy && pm_vec_push(&sums->list, (struct pm_self_sum){ .name = copy }) == 0)
		return 0;
	free(copy);
	return -ENOMEM;
}

int pm_self_sums_at(struct pm_self_sums *sums, const char *name, uint32_t *out)
{
	uint64_t hash = pm_hash_mix((uintptr_t)name, 0);
	uint32_t id = pm_index_find(&sums->index, hash, sum_name_equal, sums, name);

	if (id == PM_INDEX_NONE) {
		id = (uint32_t)sums->list.len;
		if (sums_push(sums, name) < 0)
			return -ENOMEM;
		if (pm_index_add(&sums->index, hash, id) < 0) {
			free(sums->list.data[--sums->list.len].name);
			return -ENOMEM;
		}
	}
	*out = id;
	return 0;
}

static void sum_add(uint64_t *sum, uint64_t counted)
{
	if (*sum == PM_SELF_UNKNOWN || counted == PM_SELF_UNKNOWN ||
	    __builtin_add_overflow(*sum, counted, sum))
		*sum = PM_SELF_UNKNOWN;
}

void pm_self_sum_add(struct pm_self_sum *sum, const struct pm_self_sum *counted)
{
	sum->calls += counted->calls;
	sum->unfinished += counted->unfinished;
	sum->elapsed_ns += counted->elapsed_ns;
	sum_add(&sum->cpu_ns, counted->cpu_ns);
	sum_add(&sum->cycles, counted->cycles);
	sum_add(&sum->instructions, counted->instructions);
}

int pm_self_sums_merge(struct pm_self_sums *sums, const struct pm_self_sum *from,
		       size_t len)
{
	for (size_t i = 0; i < len; i++) {
		size_t at = 0;

		if (from[i].calls == 0 && from[i].unfinished == 0)
			continue;
		while (at < sums->list.len &&
		       strcmp(sums->list.data[at].name, from[i].name) != 0)
			at++;
		if (at == sums->list.len && sums_push(sums, from[i].name) < 0)
			return -ENOMEM;
		pm_self_sum_add(&sums->list.data[at], &from[i]);
	}
	return 0;
}
