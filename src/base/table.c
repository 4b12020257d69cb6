/* SPDX-License-Identifier: MIT */
#include "pm/base.h"

#include <string.h>

void *pm_vec_grow(void *data, size_t *cap, size_t size, size_t want)
{
	size_t bytes, next;
	void *grown;

	if (data && want <= *cap)
		return data;
	next = PM_MAX(*cap, 8);
	while (next < want) {
		if (next > SIZE_MAX / 2)
			return NULL;
		next *= 2;
	}
	if (__builtin_mul_overflow(next, size, &bytes))
		return NULL;
	grown = realloc(data, bytes);
	if (grown)
		*cap = next;
	return grown;
}

uint32_t pm_index_find(const struct pm_index *index, uint64_t hash,
		       pm_index_equal_fn equal, const void *table, const void *key)
{
	size_t mask = index->cap - 1;

	if (index->cap == 0)
		return PM_INDEX_NONE;
	for (size_t i = hash & mask;; i = (i + 1) & mask) {
		const struct pm_index_slot *slot = &index->slots[i];

		if (slot->id_plus_1 == 0)
			return PM_INDEX_NONE;
		if (slot->hash == (uint32_t)hash &&
		    equal(table, slot->id_plus_1 - 1, key))
			return slot->id_plus_1 - 1;
	}
}

static void index_place_slot(struct pm_index_slot *slots, size_t cap,
			     struct pm_index_slot slot)
{
	size_t i = slot.hash & (cap - 1);

	while (slots[i].id_plus_1 != 0)
		i = (i + 1) & (cap - 1);
	slots[i] = slot;
}

int pm_index_add(struct pm_index *index, uint64_t hash, uint32_t id)
{
	/* The table is at most two thirds full. It stays below 2^32 slots, because the
	 * low 32 bits of the hash determine the slot, also when the table grows. */
	if (id == PM_INDEX_NONE)
		return -ENOMEM;
	if (index->len * 3 >= index->cap * 2) {
		size_t cap = index->cap ? index->cap * 2 : 64;
		struct pm_index_slot *slots = calloc(cap, sizeof(*slots));

		if (!slots)
			return -ENOMEM;
		for (size_t i = 0; i < index->cap; i++)
			if (index->slots[i].id_plus_1 != 0)
				index_place_slot(slots, cap, index->slots[i]);
		free(index->slots);
		index->slots = slots;
		index->cap = cap;
	}
	index_place_slot(
		index->slots, index->cap,
		(struct pm_index_slot){ .hash = (uint32_t)hash, .id_plus_1 = id + 1 });
	index->len++;
	return 0;
}

bool pm_index_remove(struct pm_index *index, uint64_t hash, uint32_t id)
{
	size_t mask = index->cap - 1, hole;

	if (index->cap == 0 || id == PM_INDEX_NONE)
		return false;
	for (hole = hash & mask; index->slots[hole].id_plus_1 != id + 1;
	     hole = (hole + 1) & mask)
		if (index->slots[hole].id_plus_1 == 0)
			return false;
	/* Move each later entry whose own slot is at or before the hole into the hole, or
	 * a search would end at the hole (Knuth, TAOCP 3, 6.4 algorithm R). */
	for (size_t i = (hole + 1) & mask; index->slots[i].id_plus_1 != 0;
	     i = (i + 1) & mask) {
		size_t home = index->slots[i].hash & mask;

		if (((i - home) & mask) >= ((i - hole) & mask)) {
			index->slots[hole] = index->slots[i];
			hole = i;
		}
	}
	index->slots[hole] = (struct pm_index_slot){ 0 };
	index->len--;
	return true;
}

void pm_index_release(struct pm_index *index)
{
	free(index->slots);
	*index = (struct pm_index){ 0 };
}

uint64_t pm_hash_bytes(const void *bytes, size_t len)
{
	const uint8_t *at = bytes;
	uint64_t hash = len;

	for (; len >= 8; at += 8, len -= 8) {
		uint64_t word;

		memcpy(&word, at, 8);
		hash = pm_hash_mix(hash, word);
	}
	if (len > 0) {
		uint64_t word = 0;

		memcpy(&word, at, len);
		hash = pm_hash_mix(hash, word);
	}
	return pm_hash_mix(hash, 0);
}
