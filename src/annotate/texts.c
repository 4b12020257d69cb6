/* SPDX-License-Identifier: MIT */
#include "annotate-internal.h"

#include <string.h>

struct pm_annotate_texts {
	PM_VEC(char *) rows;
	struct pm_index index;
};

static bool annotate_text_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_annotate_texts *texts = table;

	return strcmp(texts->rows.data[id], key) == 0;
}

struct pm_annotate_texts *pm_annotate_texts_new(void)
{
	return calloc(1, sizeof(struct pm_annotate_texts));
}

void pm_annotate_texts_free(struct pm_annotate_texts *texts)
{
	if (!texts)
		return;
	for (size_t i = 0; i < texts->rows.len; i++)
		free(texts->rows.data[i]);
	pm_vec_release(&texts->rows);
	pm_index_release(&texts->index);
	free(texts);
}

const char *pm_annotate_texts_add(struct pm_annotate_texts *texts, const char *text)
{
	uint64_t hash = pm_hash_bytes(text, strlen(text));
	uint32_t id =
		pm_index_find(&texts->index, hash, annotate_text_equal, texts, text);
	char *copy;

	if (id != PM_INDEX_NONE)
		return texts->rows.data[id];
	copy = strdup(text);
	id = (uint32_t)texts->rows.len;
	if (!copy || pm_vec_push(&texts->rows, copy) < 0) {
		free(copy);
		return NULL;
	}
	/* On failure, the string remains in `rows` and is freed with them. */
	if (pm_index_add(&texts->index, hash, id) < 0)
		return NULL;
	return copy;
}
