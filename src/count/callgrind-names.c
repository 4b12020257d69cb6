/* SPDX-License-Identifier: MIT */
/* Names that rows refer to by number, each stored once. */
#include "callgrind.h"

#include <ctype.h>
#include <string.h>

void pm_callgrind_table_release(struct pm_callgrind_table *table)
{
	for (size_t i = 0; i < table->objects.len; i++)
		free(table->objects.data[i]);
	for (size_t i = 0; i < table->files.len; i++)
		free(table->files.data[i]);
	for (size_t i = 0; i < table->functions.len; i++)
		free(table->functions.data[i].name);
	pm_vec_release(&table->objects);
	pm_vec_release(&table->files);
	pm_vec_release(&table->functions);
	pm_index_release(&table->object_index);
	pm_index_release(&table->file_index);
	pm_index_release(&table->function_index);
}

static bool object_equal(const void *table, uint32_t id, const void *key)
{
	return strcmp(((const struct pm_callgrind_table *)table)->objects.data[id],
		      key) == 0;
}

static bool file_equal(const void *table, uint32_t id, const void *key)
{
	return strcmp(((const struct pm_callgrind_table *)table)->files.data[id], key) ==
	       0;
}

static bool callgrind_function_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_callgrind_function *have =
		&((const struct pm_callgrind_table *)table)->functions.data[id];
	const struct pm_callgrind_function *wanted = key;

	return have->object == wanted->object && strcmp(have->name, wanted->name) == 0;
}

uint32_t pm_callgrind_object_id(struct pm_callgrind_table *table, const char *text)
{
	uint64_t hash = pm_hash_bytes(text, strlen(text));
	uint32_t id =
		pm_index_find(&table->object_index, hash, object_equal, table, text);
	char *copy;

	if (id != PM_INDEX_NONE)
		return id;
	copy = strdup(text);
	id = (uint32_t)table->objects.len;
	if (!copy || pm_vec_push(&table->objects, copy) < 0) {
		free(copy);
		return PM_CALLGRIND_NONE;
	}
	if (pm_index_add(&table->object_index, hash, id) < 0)
		return PM_CALLGRIND_NONE;
	return id;
}

uint32_t pm_callgrind_file_id(struct pm_callgrind_table *table, const char *text)
{
	uint64_t hash = pm_hash_bytes(text, strlen(text));
	uint32_t id = pm_index_find(&table->file_index, hash, file_equal, table, text);
	char *copy;

	if (id != PM_INDEX_NONE)
		return id;
	copy = strdup(text);
	id = (uint32_t)table->files.len;
	if (!copy || pm_vec_push(&table->files, copy) < 0) {
		free(copy);
		return PM_CALLGRIND_NONE;
	}
	if (pm_index_add(&table->file_index, hash, id) < 0)
		return PM_CALLGRIND_NONE;
	return id;
}

/* Removes the level of `name'2`; `name` alone is level 1. */
static uint32_t split_level(char *name)
{
	char *quote = strrchr(name, '\'');
	uint64_t level;

	if (!quote || quote == name || !isdigit((unsigned char)quote[1]) ||
	    !pm_parse_u64(quote + 1, &level) || level < 2 || level > INT32_MAX)
		return 1;
	*quote = '\0';
	return (uint32_t)level;
}

uint32_t pm_callgrind_function_id(struct pm_callgrind_table *table, uint32_t object,
				  const char *text, uint32_t *level)
{
	struct pm_callgrind_function function = { strdup(text), object };
	uint64_t hash;
	uint32_t id;

	if (!function.name)
		return PM_CALLGRIND_NONE;
	*level = split_level(function.name);
	hash = pm_hash_mix(pm_hash_bytes(function.name, strlen(function.name)), object);
	id = pm_index_find(&table->function_index, hash, callgrind_function_equal, table,
			   &function);
	if (id != PM_INDEX_NONE) {
		free(function.name);
		return id;
	}
	id = (uint32_t)table->functions.len;
	if (pm_vec_push(&table->functions, function) < 0) {
		free(function.name);
		return PM_CALLGRIND_NONE;
	}
	if (pm_index_add(&table->function_index, hash, id) < 0)
		return PM_CALLGRIND_NONE;
	return id;
}
