/* SPDX-License-Identifier: MIT */
#include "symbol-parts.h"

#include <string.h>

enum {
	BLOCK_BYTES = 65536
};

struct key {
	const char *text;
	size_t len;
};

static bool symbol_text_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_texts *texts = table;
	const struct key *want = key;

	return strncmp(texts->rows.data[id], want->text, want->len) == 0 &&
	       texts->rows.data[id][want->len] == '\0';
}

static char *texts_allocate_bytes(struct pm_texts *texts, size_t bytes)
{
	char *at;

	if (texts->blocks.len == 0 || bytes > texts->block_cap - texts->block_len) {
		size_t cap = PM_MAX(bytes, BLOCK_BYTES);
		PM_AUTO_FREE char *block = malloc(cap);

		if (!block || pm_vec_push(&texts->blocks, block) < 0)
			return NULL;
		(void)PM_TAKE_PTR(block);
		texts->block_len = 0;
		texts->block_cap = cap;
	}
	at = texts->blocks.data[texts->blocks.len - 1] + texts->block_len;
	texts->block_len += bytes;
	return at;
}

static const char *texts_intern_printable(struct pm_texts *texts, const char *text,
					  size_t len)
{
	struct key key = { text, len };
	uint64_t hash = pm_hash_bytes(text, len);
	uint32_t id = pm_index_find(&texts->index, hash, symbol_text_equal, texts, &key);
	char *copy;

	if (id != PM_INDEX_NONE)
		return texts->rows.data[id];
	if (texts->rows.len >= PM_INDEX_NONE ||
	    pm_vec_reserve(&texts->rows, texts->rows.len + 1) < 0 ||
	    !(copy = texts_allocate_bytes(texts, len + 1)))
		return NULL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (pm_index_add(&texts->index, hash, (uint32_t)texts->rows.len) < 0)
		return NULL;
	texts->rows.data[texts->rows.len++] = copy;
	return copy;
}

static bool is_plain_text(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		/* Bytes outside ASCII are negative. */
		if (text[i] < 0x20 || text[i] == 0x7f)
			return false;
	return true;
}

const char *pm_texts_add(struct pm_texts *texts, const char *text, size_t len)
{
	struct pm_str str = { 0 };
	const char *row = NULL;

	len = strnlen(text, PM_MIN(len, PM_SYMBOL_TEXT_MAX));
	if (len == 0)
		return NULL;
	if (is_plain_text(text, len))
		return texts_intern_printable(texts, text, len);
	pm_str_printable(&str, text, len);
	if (!str.failed)
		row = texts_intern_printable(texts, str.data, str.len);
	pm_str_release(&str);
	return row;
}

const char *pm_texts_add_name(struct pm_texts *texts, const char *name, size_t len)
{
	PM_AUTO_FREE char *copy = NULL;
	PM_AUTO_FREE char *plain = NULL;

	len = strnlen(name, PM_MIN(len, PM_SYMBOL_TEXT_MAX));
	if (len > 2 && name[0] == '_' && (name[1] == 'Z' || name[1] == 'R') &&
	    (copy = strndup(name, len)))
		plain = pm_demangle(copy);
	if (plain)
		return pm_texts_add(texts, plain, strlen(plain));
	return pm_texts_add(texts, name, len);
}

void pm_texts_release(struct pm_texts *texts)
{
	for (size_t i = 0; i < texts->blocks.len; i++)
		free(texts->blocks.data[i]);
	pm_vec_release(&texts->blocks);
	pm_vec_release(&texts->rows);
	pm_index_release(&texts->index);
	*texts = (struct pm_texts){ 0 };
}
