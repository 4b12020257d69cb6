/* SPDX-License-Identifier: MIT */
#include "name-cache.h"

#include <string.h>
#include <sys/stat.h>

enum {
	/* Beyond any of these limits, all names are dropped at once. */
	ENTRIES_MAX = 1 << 14,
	FUNCTIONS_MAX = 1 << 16,
	TEXT_BYTES_MAX = 4 << 20,
};

struct entry {
	struct pm_self_file file;
	uint64_t address;
	uint32_t first, len; /* range in `functions` */
};

struct cache {
	pid_t pid;
	/* Not freed, because a fork may have interrupted an update. */
	struct cache *of_parent;
	PM_VEC(struct entry) entries;
	struct pm_index by_address;
	PM_VEC(struct pm_symbol_function) functions;
	PM_VEC(char *) texts; /* owned strings, each stored once */
	struct pm_index by_text;
	size_t text_bytes;
};

static struct cache *cache;

/* Makes sure that `cache` belongs to this process. Returns false if memory runs out. */
static bool cache_check_process(void)
{
	struct cache *own;

	if (cache && cache->pid == getpid())
		return true;
	own = calloc(1, sizeof(*own));
	if (!own)
		return false;
	own->pid = getpid();
	own->of_parent = cache;
	cache = own;
	return true;
}

int pm_self_file_of(int fd, struct pm_self_file *out)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return -errno;
	*out = (struct pm_self_file){
		.device = status.st_dev,
		.inode = status.st_ino,
		.bytes = (uint64_t)status.st_size,
		.modified_ns = (uint64_t)status.st_mtim.tv_sec * 1000000000u +
			       (uint64_t)status.st_mtim.tv_nsec,
		.changed_ns = (uint64_t)status.st_ctim.tv_sec * 1000000000u +
			      (uint64_t)status.st_ctim.tv_nsec,
	};
	return 0;
}

void pm_self_names_clear(void)
{
	if (!cache_check_process())
		return;
	for (size_t i = 0; i < cache->texts.len; i++)
		free(cache->texts.data[i]);
	pm_vec_release(&cache->texts);
	pm_vec_release(&cache->functions);
	pm_vec_release(&cache->entries);
	pm_index_release(&cache->by_address);
	pm_index_release(&cache->by_text);
	cache->text_bytes = 0;
}

/* ---- finding ------------------------------------------------------------------------------- */

static uint64_t name_entry_hash(const struct pm_self_file *file, uint64_t address)
{
	return pm_hash_mix(address, pm_hash_bytes(file, sizeof(*file)));
}

/* pm_index_equal_fn; @key is an entry. */
static bool name_entry_equal(const void *table, uint32_t id, const void *key)
{
	const struct entry *a = &cache->entries.data[id], *b = key;

	return a->address == b->address &&
	       memcmp(&a->file, &b->file, sizeof(a->file)) == 0;
}

bool pm_self_names_find(const struct pm_self_file *file, uint64_t address,
			const struct pm_symbol_function **out, size_t *len)
{
	const struct entry key = { .file = *file, .address = address };
	uint32_t id;

	if (!cache_check_process())
		return false;
	id = pm_index_find(&cache->by_address, name_entry_hash(file, address),
			   name_entry_equal, NULL, &key);
	if (id == PM_INDEX_NONE)
		return false;
	*len = cache->entries.data[id].len;
	if (*len > 0)
		*out = cache->functions.data + cache->entries.data[id].first;
	else
		*out = NULL;
	return true;
}

/* ---- adding -------------------------------------------------------------------------------- */

/* pm_index_equal_fn */
static bool cached_text_equal(const void *table, uint32_t id, const void *key)
{
	return strcmp(cache->texts.data[id], key) == 0;
}

/* Sets *@out to a copy that the cache owns, or to NULL if @text is NULL. */
static int cache_keep_text(const char *text, const char **out)
{
	size_t bytes;
	uint64_t hash;
	uint32_t id;
	char *copy;

	if (!text)
		return 0;
	bytes = strlen(text) + 1;
	hash = pm_hash_bytes(text, bytes);
	id = pm_index_find(&cache->by_text, hash, cached_text_equal, NULL, text);
	if (id == PM_INDEX_NONE) {
		copy = strdup(text);
		if (!copy || pm_vec_push(&cache->texts, copy) < 0) {
			free(copy);
			return -ENOMEM;
		}
		cache->text_bytes += bytes;
		id = (uint32_t)cache->texts.len - 1;
		if (pm_index_add(&cache->by_text, hash, id) < 0)
			return -ENOMEM; /* cache->texts owns it, and will free it */
	}
	*out = cache->texts.data[id];
	return 0;
}

static int cache_add_names(const struct pm_self_file *file, uint64_t address,
			   const struct pm_symbol_function *functions, size_t len)
{
	struct entry entry = { .file = *file,
			       .address = address,
			       .first = (uint32_t)cache->functions.len,
			       .len = (uint32_t)len };
	int ret = pm_vec_reserve(&cache->functions, cache->functions.len + len);

	for (size_t i = 0; ret == 0 && i < len; i++) {
		struct pm_symbol_function copy = { .line = functions[i].line,
						   .start = functions[i].start };

		ret = cache_keep_text(functions[i].name, &copy.name);
		if (ret == 0)
			ret = cache_keep_text(functions[i].file, &copy.file);
		if (ret == 0)
			ret = pm_vec_push(&cache->functions, copy);
	}
	if (ret == 0)
		ret = pm_vec_push(&cache->entries, entry);
	if (ret == 0)
		ret = pm_index_add(&cache->by_address, name_entry_hash(file, address),
				   (uint32_t)cache->entries.len - 1);
	return ret;
}

void pm_self_names_add(const struct pm_self_file *file, uint64_t address,
		       const struct pm_symbol_function *functions, size_t len)
{
	if (!cache_check_process())
		return;
	if (cache->entries.len >= ENTRIES_MAX ||
	    cache->functions.len + len > FUNCTIONS_MAX ||
	    cache->text_bytes > TEXT_BYTES_MAX)
		pm_self_names_clear();
	if (len > FUNCTIONS_MAX || cache_add_names(file, address, functions, len) < 0)
		pm_self_names_clear();
}
