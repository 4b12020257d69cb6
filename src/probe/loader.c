/* SPDX-License-Identifier: MIT */
/*
 * Finds the files that a program will load, without running anything: ldd(1) runs the
 * program's own interpreter, which the program's author has chosen. Sources:
 * ld.so(8), gABI "Dynamic Section", glibc sysdeps/generic/dl-cache.h for the cache.
 */
#include "probe-internal.h"

#include <elf.h>
#include <limits.h>
#include <string.h>

#include "pm/proc.h"

enum {
	CACHE_BYTES_MAX = 64 << 20,
	DYNAMIC_BYTES_MAX = 1 << 20,
	STRINGS_BYTES_MAX = 16 << 20,
	NEEDED_MAX = 2048, /* libraries of a program */
	RUNPATH_MAX = 65536, /* bytes */
	FOLDERS_MAX = 65536, /* in all lists, including repeated searches */
};

/* Debian has a library folder for each architecture. */
#if defined(__x86_64__)
#define TRIPLET "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define TRIPLET "aarch64-linux-gnu"
#endif

const char *const pm_probe_library_dirs[] = {
	"/lib64",
	"/usr/lib64",
	"/lib",
	"/usr/lib",
	"/usr/local/lib",
#ifdef TRIPLET
	"/lib/" TRIPLET,
	"/usr/lib/" TRIPLET,
#endif
	NULL,
};

/* ---- cache -------------------------------------------------------------------------------- */

#define CACHE_MAGIC "glibc-ld.so.cache1.1"

/* The new format, in host byte order; everything else follows this header. */
struct cache_header {
	char magic[20];
	uint32_t count, strings_len;
	uint8_t flags, unused[3];
	uint32_t extension_offset, unused2[3];
};

struct cache_entry {
	int32_t flags;
	uint32_t name, path; /* offsets from the header */
	uint32_t os_version;
	uint64_t hwcap;
};

/* FLAG_* of dl-cache.h; the low byte is 3 for libraries of glibc 2. */
static bool library_cache_flags(const struct pm_probe_abi *abi, int32_t *out)
{
	switch (abi->machine) {
	case EM_X86_64:
		*out = abi->is_64 ? 0x0303 : 0x0803;
		return true;
	case EM_386:
		*out = 0x0003;
		return true;
	case EM_AARCH64:
		*out = 0x0a03;
		return abi->is_64;
	default:
		return false;
	}
}

/* Returns the NUL-terminated string at @offset from @base, which must end within @len
 * bytes, or NULL. */
static const char *loader_text_at(const char *base, size_t len, uint64_t offset)
{
	if (offset >= len || !memchr(base + offset, '\0', len - (size_t)offset))
		return NULL;
	return base + offset;
}

int pm_probe_cache_parse(const char *bytes, size_t len, const struct pm_probe_abi *abi,
			 pm_probe_library_fn each, void *user)
{
	struct cache_header header;
	const char *base;
	int32_t flags;
	int ret = 0;

	/* Up to glibc 2.31 the old format comes first and contains the new one. */
	base = memmem(bytes, len, CACHE_MAGIC, sizeof(CACHE_MAGIC) - 1);
	if (!base || !library_cache_flags(abi, &flags))
		return 0;
	len -= (size_t)(base - bytes);
	if (len < sizeof(header))
		return 0;
	memcpy(&header, base, sizeof(header));
	for (uint32_t i = 0; ret == 0 && i < header.count; i++) {
		uint64_t at = sizeof(header) + (uint64_t)i * sizeof(struct cache_entry);
		struct cache_entry entry;
		const char *name, *path;

		if (at + sizeof(entry) > len)
			break;
		memcpy(&entry, base + at, sizeof(entry));
		name = loader_text_at(base, len, entry.name);
		path = loader_text_at(base, len, entry.path);
		if (entry.flags == flags && name && path && path[0] == '/')
			ret = each(user, name, path);
	}
	return ret;
}

int pm_probe_cache_each(const struct pm_probe_abi *abi, pm_probe_library_fn each,
			void *user)
{
	PM_AUTO_CLOSE int fd = pm_file_open(abi->pid, "/etc/ld.so.cache");
	PM_AUTO_FREE char *bytes = NULL;
	struct pm_probe_elf file = { .fd = fd };
	off_t end;

	if (fd < 0 || (end = lseek(fd, 0, SEEK_END)) < 0)
		return 0;
	file.size = (uint64_t)end;
	if (pm_probe_elf_read(&file, 0, file.size, CACHE_BYTES_MAX, &bytes) < 0)
		return 0;
	return pm_probe_cache_parse(bytes, (size_t)file.size, abi, each, user);
}

/* ---- needed libraries ------------------------------------------------------------------------ */

struct dynamic {
	PM_VEC(uint64_t) needed; /* offsets in strings */
	char *strings;
	size_t strings_len;
	uint64_t rpath, runpath; /* offsets in strings, UINT64_MAX: none */
};

static void dynamic_release(struct dynamic *dynamic)
{
	pm_vec_release(&dynamic->needed);
	free(dynamic->strings);
}

static int dynamic_read_strings(const struct pm_probe_elf *elf, struct dynamic *dynamic,
				uint64_t address, uint64_t size)
{
	const struct pm_probe_segment *segment = pm_probe_elf_segment(elf, address);
	int ret;

	if (!segment)
		return -ENODATA;
	ret = pm_probe_elf_read(elf, address - segment->start + segment->offset, size,
				STRINGS_BYTES_MAX, &dynamic->strings);
	if (ret == 0)
		dynamic->strings_len = (size_t)size + 1;
	return ret;
}

static int dynamic_read(struct dynamic *dynamic, const struct pm_probe_elf *elf)
{
	PM_AUTO_FREE char *bytes = NULL;
	size_t entry = elf->is_64 ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
	uint64_t strings = 0, strings_size = 0;
	int ret = pm_probe_elf_read(elf, elf->dynamic, elf->dynamic_len,
				    DYNAMIC_BYTES_MAX, &bytes);

	dynamic->rpath = dynamic->runpath = UINT64_MAX;
	for (size_t at = 0; ret == 0 && at + entry <= elf->dynamic_len; at += entry) {
		Elf64_Dyn wide;
		Elf32_Dyn narrow;

		if (elf->is_64) {
			memcpy(&wide, bytes + at, sizeof(wide));
		} else {
			memcpy(&narrow, bytes + at, sizeof(narrow));
			wide.d_tag = narrow.d_tag;
			wide.d_un.d_val = narrow.d_un.d_val;
		}
		if (wide.d_tag == DT_NULL)
			break;
		if (wide.d_tag == DT_NEEDED && dynamic->needed.len < NEEDED_MAX)
			ret = pm_vec_push(&dynamic->needed, wide.d_un.d_val);
		else if (wide.d_tag == DT_STRTAB)
			strings = wide.d_un.d_val;
		else if (wide.d_tag == DT_STRSZ)
			strings_size = wide.d_un.d_val;
		else if (wide.d_tag == DT_RPATH)
			dynamic->rpath = wide.d_un.d_val;
		else if (wide.d_tag == DT_RUNPATH)
			dynamic->runpath = wide.d_un.d_val;
	}
	if (ret < 0)
		return ret;
	return dynamic_read_strings(elf, dynamic, strings, strings_size);
}

static const char *dynamic_text(const struct dynamic *dynamic, uint64_t offset)
{
	return loader_text_at(dynamic->strings, dynamic->strings_len, offset);
}

/* ---- the search ------------------------------------------------------------------------------- */

struct library {
	char *name, *path;
};

struct search {
	const struct pm_probe_abi *abi;
	PM_VEC(struct library) found; /* also the queue of files to read */
	PM_VEC(char *) asked; /* names already searched for */
	char *program_rpath;
	const char *wanted; /* name to find in the cache */
	size_t folders; /* number of folders searched */
	bool failed, in_cache;
};

static void library_search_release(struct search *search)
{
	for (size_t i = 0; i < search->found.len; i++) {
		free(search->found.data[i].name);
		free(search->found.data[i].path);
	}
	pm_vec_release(&search->found);
	for (size_t i = 0; i < search->asked.len; i++)
		free(search->asked.data[i]);
	pm_vec_release(&search->asked);
	free(search->program_rpath);
}

/* Appends the file to the queue if it matches; returns whether it does. */
static bool queue_matching_library(struct search *search, const char *name,
				   const char *path)
{
	PM_AUTO_CLOSE int fd = pm_file_open(search->abi->pid, path);
	struct pm_probe_elf elf;
	struct library library;

	if (fd < 0 || pm_probe_elf_open(&elf, fd) < 0)
		return false;
	if (elf.machine != search->abi->machine || elf.is_64 != search->abi->is_64) {
		pm_probe_elf_close(&elf);
		return false;
	}
	pm_probe_elf_close(&elf);
	for (size_t i = 0; i < search->found.len; i++)
		if (strcmp(search->found.data[i].path, path) == 0)
			return true;
	library = (struct library){ strdup(name), strdup(path) };
	if (!library.name || !library.path || search->found.len >= NEEDED_MAX ||
	    pm_vec_push(&search->found, library) < 0) {
		free(library.name);
		free(library.path);
		search->failed = true;
	}
	return true;
}

/* Searches the folders of a list separated by `:`. @origin is the folder of the file that
 * contains the list. */
static bool queue_library_from_list(struct search *search, const char *name,
				    const char *list, const char *origin,
				    size_t origin_len)
{
	if (list && strnlen(list, RUNPATH_MAX) == RUNPATH_MAX)
		return false;
	while (list && *list && search->folders++ < FOLDERS_MAX) {
		size_t len = strcspn(list, ":");
		struct pm_str path = { 0 };
		bool found = false;

		for (size_t i = 0; i < len && path.len < PATH_MAX;) {
			if (strncmp(list + i, "$ORIGIN", 7) == 0) {
				pm_str_append(&path, origin, origin_len);
				i += 7;
			} else if (strncmp(list + i, "${ORIGIN}", 9) == 0) {
				pm_str_append(&path, origin, origin_len);
				i += 9;
			} else {
				pm_str_putc(&path, list[i++]);
			}
		}
		pm_str_printf(&path, "/%s", name);
		if (len > 0 && !path.failed && path.len < PATH_MAX && path.data[0] == '/')
			found = queue_matching_library(search, name, path.data);
		pm_str_release(&path);
		if (found)
			return true;
		list += len + (list[len] == ':');
	}
	return false;
}

static int queue_cached_library(void *user, const char *name, const char *path)
{
	struct search *search = user;

	if (strcmp(name, search->wanted) == 0)
		search->in_cache |= queue_matching_library(search, name, path);
	if (search->failed)
		return -ENOMEM;
	return 0;
}

/* Searches in the order of ld.so(8): RPATH (without RUNPATH), LD_LIBRARY_PATH, RUNPATH,
 * the cache, system folders. */
static void find_needed_library(struct search *search, const char *name, const char *of,
				const struct dynamic *dynamic)
{
	const char *slash = strrchr(of, '/');
	const char *runpath = dynamic_text(dynamic, dynamic->runpath);
	const char *rpath = NULL;
	size_t origin_len = 0;

	if (slash)
		origin_len = (size_t)(slash - of);
	if (!runpath)
		rpath = dynamic_text(dynamic, dynamic->rpath);
	if (strchr(name, '/')) {
		if (name[0] == '/')
			queue_matching_library(search, name, name);
		return;
	}
	if (queue_library_from_list(search, name, rpath, of, origin_len) ||
	    (!runpath && queue_library_from_list(search, name, search->program_rpath, of,
						 origin_len)) ||
	    (search->abi->pid == 0 &&
	     queue_library_from_list(search, name, getenv("LD_LIBRARY_PATH"), of,
				     origin_len)) ||
	    queue_library_from_list(search, name, runpath, of, origin_len))
		return;
	search->wanted = name;
	search->in_cache = false;
	pm_probe_cache_each(search->abi, queue_cached_library, search);
	for (size_t i = 0; pm_probe_library_dirs[i] && !search->in_cache; i++)
		search->in_cache = queue_library_from_list(
			search, name, pm_probe_library_dirs[i], "", 0);
}

static bool was_library_searched(struct search *search, const char *name)
{
	char *copy;

	for (size_t i = 0; i < search->asked.len; i++)
		if (strcmp(search->asked.data[i], name) == 0)
			return true;
	copy = strdup(name);
	if (search->asked.len >= NEEDED_MAX || !copy ||
	    pm_vec_push(&search->asked, copy) < 0) {
		free(copy);
		search->failed = true;
	}
	return search->failed;
}

static int follow_needed_libraries(struct search *search, int fd, const char *path,
				   bool is_program)
{
	struct dynamic dynamic = { 0 };
	struct pm_probe_elf elf;
	int ret = pm_probe_elf_open(&elf, fd);

	if (ret < 0) {
		if (ret == -ENOMEM)
			return ret;
		return 0;
	}
	ret = dynamic_read(&dynamic, &elf);
	if (ret == 0 && is_program) {
		const char *rpath = dynamic_text(&dynamic, dynamic.rpath);

		if (rpath && dynamic.runpath == UINT64_MAX)
			search->program_rpath = strdup(rpath);
	}
	for (size_t i = 0; ret == 0 && !search->failed && i < dynamic.needed.len; i++) {
		const char *name = dynamic_text(&dynamic, dynamic.needed.data[i]);

		if (name && name[0] && strlen(name) < NAME_MAX &&
		    !was_library_searched(search, name))
			find_needed_library(search, name, path, &dynamic);
	}
	dynamic_release(&dynamic);
	pm_probe_elf_close(&elf);
	if (search->failed)
		return -ENOMEM;
	if (ret == -ENOMEM)
		return ret;
	return 0;
}

int pm_probe_needed_each(int fd, const char *path, const struct pm_probe_abi *abi,
			 pm_probe_library_fn each, void *user)
{
	struct search search = { .abi = abi };
	int ret = follow_needed_libraries(&search, fd, path, true);

	for (size_t i = 0; ret == 0 && i < search.found.len; i++) {
		const struct library library = search.found.data[i];
		PM_AUTO_CLOSE int its = pm_file_open(abi->pid, library.path);

		ret = each(user, library.name, library.path);
		if (ret == 0 && its >= 0)
			ret = follow_needed_libraries(&search, its, library.path, false);
	}
	library_search_release(&search);
	return ret;
}
