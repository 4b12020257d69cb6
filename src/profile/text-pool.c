/* SPDX-License-Identifier: MIT */
#include "profile-internal.h"

#include <string.h>

enum {
	CHUNK_BYTES = 64 * 1024
};

struct chunk {
	struct chunk *before;
	size_t used, size;
	char bytes[];
};

struct pm_text_pool {
	struct chunk *last;
	PM_VEC(const char *) texts;
	struct pm_index index;
};

struct key {
	const char *text;
	size_t len;
};

static bool pool_text_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_text_pool *pool = table;
	const struct key *wanted = key;
	const char *have = pool->texts.data[id];

	return strncmp(have, wanted->text, wanted->len) == 0 && have[wanted->len] == '\0';
}

static char *pool_allocate_bytes(struct pm_text_pool *pool, size_t bytes)
{
	struct chunk *chunk = pool->last;

	if (!chunk || chunk->size - chunk->used < bytes) {
		size_t size = PM_MAX(bytes, CHUNK_BYTES);

		chunk = malloc(sizeof(*chunk) + size);
		if (!chunk)
			return NULL;
		*chunk = (struct chunk){ .before = pool->last, .size = size };
		pool->last = chunk;
	}
	chunk->used += bytes;
	return chunk->bytes + chunk->used - bytes;
}

struct pm_text_pool *pm_text_pool_new(void)
{
	return calloc(1, sizeof(struct pm_text_pool));
}

void pm_text_pool_free(struct pm_text_pool *pool)
{
	if (!pool)
		return;
	for (struct chunk *chunk = pool->last, *before; chunk; chunk = before) {
		before = chunk->before;
		free(chunk);
	}
	pm_vec_release(&pool->texts);
	pm_index_release(&pool->index);
	free(pool);
}

const char *pm_text_pool_add(struct pm_text_pool *pool, const char *text, size_t len)
{
	struct key key = { .text = text, .len = strnlen(text, len) };
	uint64_t hash = pm_hash_bytes(text, key.len);
	uint32_t id = pm_index_find(&pool->index, hash, pool_text_equal, pool, &key);
	char *copy;

	if (id != PM_INDEX_NONE)
		return pool->texts.data[id];
	if (pool->texts.len >= PM_INDEX_NONE ||
	    pm_vec_reserve(&pool->texts, pool->texts.len + 1) < 0)
		return NULL;
	copy = pool_allocate_bytes(pool, key.len + 1);
	if (!copy)
		return NULL;
	memcpy(copy, text, key.len);
	copy[key.len] = '\0';
	if (pm_index_add(&pool->index, hash, (uint32_t)pool->texts.len) < 0)
		return NULL;
	pool->texts.data[pool->texts.len++] = copy;
	return copy;
}
