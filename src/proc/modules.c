/* SPDX-License-Identifier: MIT */
#include "proc-internal.h"

#include <ctype.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>

/* d_path() of the kernel appends this to the path of a file that has been deleted. */
#define DELETED " (deleted)"

static bool starts_with(const char *path, size_t len, const char *prefix)
{
	size_t prefix_len = strlen(prefix);

	return len >= prefix_len && memcmp(path, prefix, prefix_len) == 0;
}

static bool is_path_equal(const char *path, size_t len, const char *other)
{
	return len == strlen(other) && memcmp(path, other, len) == 0;
}

/* shmem_file_setup() in ipc/shm.c names a segment "SYSV%08x". */
static bool is_sysv_segment(const char *path, size_t len)
{
	if (len != strlen("/SYSV00000000") || !starts_with(path, len, "/SYSV"))
		return false;
	for (size_t i = strlen("/SYSV"); i < len; i++)
		if (!isxdigit((unsigned char)path[i]))
			return false;
	return true;
}

enum pm_module_kind pm_module_kind_of(const char *path, size_t *path_len)
{
	size_t len = strlen(path), suffix = strlen(DELETED);

	if (len >= suffix && memcmp(path + len - suffix, DELETED, suffix) == 0)
		len -= suffix;
	if (path_len)
		*path_len = len;
	if (is_path_equal(path, len, "[vdso]") ||
	    is_path_equal(path, len, PM_VDSO32_PATH))
		return PM_MODULE_VDSO;
	if (starts_with(path, len, "[kernel"))
		return PM_MODULE_KERNEL;
	/* Shared memory without a name has a file inside the kernel. */
	if (is_path_equal(path, len, "//anon") || is_path_equal(path, len, "/dev/zero") ||
	    is_path_equal(path, len, "/anon_hugepage") ||
	    is_path_equal(path, len, "/[aio]") || is_sysv_segment(path, len))
		return PM_MODULE_ANON;
	/* A file outside its process's root has this prefix. All other names, such as
	 * "[heap]", "[anon:…]", "anon_inode:…" or "", are not files. */
	if (starts_with(path, len, "/") || starts_with(path, len, "(unreachable)"))
		return PM_MODULE_FILE;
	return PM_MODULE_ANON;
}

void pm_module_name_vdso(struct pm_module_identity *identity, uint64_t start)
{
	if (identity->kind == PM_MODULE_VDSO && sizeof(void *) == 8 &&
	    start < (uint64_t)1 << 32)
		identity->path = PM_VDSO32_PATH;
}

/* ---- the table ----------------------------------------------------------------------- */

/* A row of the table. */
struct row {
	struct pm_module module;
	/* In our root, this path leads to another file: this one was mapped from another
	 * root. */
	bool foreign;
	bool retired; /* later mappings of the file belong to another module */
};

struct key {
	struct pm_module_identity identity;
	bool foreign;
};

/*
 * Whether the identity belongs to a file outside of our root. A path and a build-id are
 * easily copied: a process with its own root must not pass its file off as the one that
 * others have mapped. On overlayfs inodes prove nothing: before Linux 6.8 mappings show
 * another inode than stat(2).
 */
static bool is_foreign(const struct pm_module_identity *identity)
{
	PM_AUTO_CLOSE int handle = -1;
	struct statfs fs;
	struct stat st;

	if (identity->path[0] != '/')
		return false;
	handle = pm_open_handle(0, identity->path);
	if (handle < 0 || fstat(handle, &st) < 0 || fstatfs(handle, &fs) < 0 ||
	    (unsigned long)fs.f_type == OVERLAYFS_SUPER_MAGIC)
		return false;
	/* On btrfs, stat(2) shows a device with major 0 for each subvolume. */
	return st.st_ino != identity->inode ||
	       (major(st.st_dev) != 0 && identity->major != 0 &&
		(major(st.st_dev) != identity->major ||
		 minor(st.st_dev) != identity->minor));
}

static bool has_inode(const struct pm_module_identity *identity)
{
	return identity->inode != 0;
}

static bool same_inode(const struct pm_module_identity *a,
		       const struct pm_module_identity *b)
{
	if (a->generation_known && b->generation_known && a->generation != b->generation)
		return false;
	return a->inode == b->inode && a->major == b->major && a->minor == b->minor;
}

static bool equal_identity(const void *table, uint32_t id, const void *other)
{
	const struct pm_modules *modules = table;
	const struct row *row = (const struct row *)modules->rows.data[id];
	const struct key *key = other;
	const struct pm_module_identity *a = &row->module.identity;
	const struct pm_module_identity *b = &key->identity;

	if (row->retired || a->kind != b->kind || strcmp(a->path, b->path) != 0)
		return false;
	/* Only files can differ although their names are equal: any two "[heap]" are
	 * equal. */
	if (a->kind != PM_MODULE_FILE)
		return true;
	if (a->build_id_len > 0 && b->build_id_len > 0)
		return a->build_id_len == b->build_id_len &&
		       memcmp(a->build_id, b->build_id, a->build_id_len) == 0 &&
		       (row->foreign == key->foreign || same_inode(a, b));
	if ((a->build_id_len > 0 && !has_inode(a)) ||
	    (b->build_id_len > 0 && !has_inode(b)))
		return false;
	return same_inode(a, b);
}

static uint64_t hash_name(const struct pm_module_identity *identity)
{
	return pm_hash_mix(pm_hash_bytes(identity->path, strlen(identity->path)),
			   identity->kind);
}

static uint64_t hash_build_id(const struct pm_module_identity *identity)
{
	return pm_hash_mix(hash_name(identity),
			   pm_hash_bytes(identity->build_id, identity->build_id_len));
}

static uint64_t hash_inode(const struct pm_module_identity *identity)
{
	return pm_hash_mix(hash_name(identity) ^ identity->inode,
			   (uint64_t)identity->major << 32 | identity->minor);
}

static uint32_t find_module_id(const struct pm_modules *modules, const struct key *key)
{
	const struct pm_module_identity *identity = &key->identity;
	uint32_t id = PM_INDEX_NONE;

	if (identity->kind != PM_MODULE_FILE)
		return pm_index_find(&modules->index, hash_name(identity), equal_identity,
				     modules, key);
	if (identity->build_id_len > 0)
		id = pm_index_find(&modules->index, hash_build_id(identity),
				   equal_identity, modules, key);
	if (id == PM_INDEX_NONE && (has_inode(identity) || identity->build_id_len == 0))
		id = pm_index_find(&modules->index, hash_inode(identity), equal_identity,
				   modules, key);
	return id;
}

static int add_to_index(struct pm_modules *modules,
			const struct pm_module_identity *identity, uint32_t id)
{
	int ret = 0;

	if (identity->kind != PM_MODULE_FILE)
		return pm_index_add(&modules->index, hash_name(identity), id);
	if (identity->build_id_len > 0)
		ret = pm_index_add(&modules->index, hash_build_id(identity), id);
	if (ret < 0 || (identity->build_id_len > 0 && !has_inode(identity)))
		return ret;
	ret = pm_index_add(&modules->index, hash_inode(identity), id);
	if (ret < 0 && identity->build_id_len > 0)
		pm_index_remove(&modules->index, hash_build_id(identity), id);
	return ret;
}

static int64_t realtime_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Records use "//anon" where /proc has no name. */
static struct key module_key_of(const struct pm_module_identity *identity)
{
	struct key wanted = { .identity = *identity };
	struct pm_module_identity *key = &wanted.identity;

	if (!key->path)
		key->path = "";
	if (key->kind == PM_MODULE_ANON && key->path[0] == '\0')
		key->path = "//anon";
	if (key->kind == PM_MODULE_FILE && key->build_id_len > 0 && has_inode(key))
		wanted.foreign = is_foreign(key);
	return wanted;
}

uint32_t pm_modules_find(const struct pm_modules *modules,
			 const struct pm_module_identity *identity)
{
	struct key wanted = module_key_of(identity);

	if (identity->build_id_len > sizeof(identity->build_id))
		return PM_INDEX_NONE;
	return find_module_id(modules, &wanted);
}

void pm_modules_retire(struct pm_modules *modules, uint32_t id)
{
	if (id < modules->rows.len && modules->rows.data[id])
		((struct row *)modules->rows.data[id])->retired = true;
}

int64_t pm_modules_intern(struct pm_modules *modules,
			  const struct pm_module_identity *identity)
{
	struct key wanted = module_key_of(identity);
	struct pm_module_identity *key = &wanted.identity;
	PM_AUTO_FREE struct row *row = NULL;
	size_t path_len;
	char *path;
	uint32_t id;

	if (key->build_id_len > sizeof(key->build_id))
		return -EINVAL;
	id = find_module_id(modules, &wanted);
	if (id != PM_INDEX_NONE) {
		struct pm_module_identity *known = &modules->rows.data[id]->identity;

		/* /proc does not show the inode's generation; the first record of the
		 * file does. */
		if (!known->generation_known && key->generation_known) {
			known->generation = key->generation;
			known->generation_known = true;
		}
		return id;
	}
	if (modules->free_ids.len == 0 && modules->rows.len >= PM_MODULES_MAX) {
		/* The last row is shared by all modules beyond the limit. */
		modules->refused++;
		*key = (struct pm_module_identity){ .kind = PM_MODULE_ANON,
						    .path = PM_MODULES_REFUSED_PATH };
		id = find_module_id(modules, &wanted);
		if (id != PM_INDEX_NONE)
			return id;
	}
	/* Reserve space for all ids that may be freed later, because an error can be
	 * reported here. */
	if (pm_vec_reserve(&modules->free_ids, modules->rows.len + 1) < 0 ||
	    pm_vec_reserve(&modules->rows, modules->rows.len + 1) < 0)
		return -ENOMEM;
	path_len = strlen(key->path);
	row = calloc(1, sizeof(*row) + path_len + 1);
	if (!row)
		return -ENOMEM;
	path = (char *)(row + 1);
	memcpy(path, key->path, path_len + 1);
	row->module.identity = *key;
	row->module.identity.path = path;
	row->module.seen_ns = realtime_ns();
	row->foreign = wanted.foreign;
	if (modules->free_ids.len > 0)
		id = modules->free_ids.data[modules->free_ids.len - 1];
	else
		id = (uint32_t)modules->rows.len;
	if (add_to_index(modules, &row->module.identity, id) < 0)
		return -ENOMEM;
	if (modules->free_ids.len > 0)
		modules->free_ids.len--;
	else
		modules->rows.len++;
	modules->bytes += sizeof(*row) + path_len + 1;
	/* The module is the first member, so freeing it frees the row. */
	modules->rows.data[id] = &PM_TAKE_PTR(row)->module;
	return id;
}

/* Undoes add_to_index(). */
static void remove_from_index(struct pm_modules *modules,
			      const struct pm_module_identity *identity, uint32_t id)
{
	if (identity->kind != PM_MODULE_FILE) {
		pm_index_remove(&modules->index, hash_name(identity), id);
		return;
	}
	if (identity->build_id_len > 0)
		pm_index_remove(&modules->index, hash_build_id(identity), id);
	if (identity->build_id_len == 0 || has_inode(identity))
		pm_index_remove(&modules->index, hash_inode(identity), id);
}

void pm_modules_drop(struct pm_modules *modules, uint32_t id)
{
	struct row *row = (struct row *)modules->rows.data[id];

	remove_from_index(modules, &row->module.identity, id);
	modules->bytes -= sizeof(*row) + strlen(row->module.identity.path) + 1;
	modules->rows.data[id] = NULL;
	modules->free_ids.data[modules->free_ids.len++] = id;
	free(row);
}

void pm_modules_release(struct pm_modules *modules)
{
	for (size_t i = 0; i < modules->rows.len; i++)
		free(modules->rows.data[i]);
	pm_vec_release(&modules->rows);
	pm_vec_release(&modules->free_ids);
	pm_index_release(&modules->index);
}
