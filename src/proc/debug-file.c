/* SPDX-License-Identifier: MIT */
/*
 * Separate debug files, searched for as GDB and elfutils do: by build-id, then by
 * .gnu_debuglink (GDB manual, "Separate Debug Files"). The names come from an untrusted
 * file: the files that they refer to are opened without blocking, and used only if they
 * match.
 */
#include "proc-internal.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

enum {
	BUILD_ID_MIN = 2,
	CRC_PIECE_BYTES = 1 << 16,
};
/* Maximum size of a debug file that is identified only by its checksum. */
#define CRC_BYTES_MAX ((uint64_t)1 << 30)

/* The properties of the debug file that is searched for. */
struct wanted {
	const uint8_t *id;
	size_t id_len; /* 0: none, the checksum decides */
	uint32_t crc;
	const struct stat *original; /* NULL: unknown */
	uint64_t *crc_bytes_left;
};

/* CRC-32 of ISO 3309. */
static void crc_table(uint32_t table[256])
{
	for (uint32_t i = 0; i < 256; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320u : 0);
	}
}

static bool has_crc(int fd, uint64_t size, uint32_t want)
{
	PM_AUTO_FREE uint8_t *piece = malloc(CRC_PIECE_BYTES);
	uint32_t table[256], crc = ~0u;

	crc_table(table);
	for (uint64_t at = 0; piece && at < size;) {
		size_t len = size - at < CRC_PIECE_BYTES ? (size_t)(size - at)
							 : CRC_PIECE_BYTES;

		if (pm_read_at(fd, at, piece, len) < 0)
			return false;
		for (size_t i = 0; i < len; i++)
			crc = crc >> 8 ^ table[(crc ^ piece[i]) & 0xff];
		at += len;
	}
	return piece && ~crc == want;
}

static bool is_wanted_debug_file(int fd, const struct wanted *wanted)
{
	uint8_t id[PM_ELF_BUILD_ID_MAX], id_len;
	uint64_t size;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	/* A link to the file itself adds nothing, and would hide later candidates. */
	if (wanted->original && wanted->original->st_dev == st.st_dev &&
	    wanted->original->st_ino == st.st_ino)
		return false;
	if (wanted->id_len > 0)
		return pm_elf_build_id_whole(fd, id, &id_len) == 0 &&
		       id_len == wanted->id_len && memcmp(id, wanted->id, id_len) == 0;
	size = (uint64_t)st.st_size;
	if (size > CRC_BYTES_MAX ||
	    (wanted->crc_bytes_left && size > *wanted->crc_bytes_left))
		return false;
	if (wanted->crc_bytes_left)
		*wanted->crc_bytes_left -= size;
	return has_crc(fd, size, wanted->crc);
}

static int try_path(pid_t pid, const struct pm_str *path, const struct wanted *wanted)
{
	PM_AUTO_CLOSE int handle = -1;
	PM_AUTO_CLOSE int fd = -1;

	if (path->failed)
		return -ENOMEM;
	handle = pm_open_handle(pid, path->data);
	if (handle < 0)
		return handle;
	fd = pm_open_regular(handle);
	if (fd < 0)
		return fd;
	if (!is_wanted_debug_file(fd, wanted))
		return -ENOENT;
	return pm_take_fd(&fd);
}

static const char *debug_dir(const struct pm_debug_search *search)
{
	if (search->dir)
		return search->dir;
	return "/usr/lib/debug";
}

/*
 * Whether the file is the one at its path in our own root. In that case other processes
 * map it, too, and a debug file from the root of one process could be a forgery that
 * affects all of them.
 */
static bool is_file_of_our_root(const char *path, const struct stat *original)
{
	PM_AUTO_CLOSE int handle = -1;
	struct stat st;

	if (!path || path[0] != '/' || !original)
		return false;
	handle = pm_open_handle(0, path);
	return handle >= 0 && fstat(handle, &st) == 0 && st.st_dev == original->st_dev &&
	       st.st_ino == original->st_ino;
}

/* Searches our root, then that of the process. */
static int by_id(const struct wanted *wanted, const struct pm_debug_search *search)
{
	struct pm_str path PM_CLEANUP(pm_str_release) = { 0 };
	int fd;

	if (wanted->id_len < BUILD_ID_MIN)
		return -ENOENT;
	pm_str_printf(&path, "%s/.build-id/%02x/", debug_dir(search), wanted->id[0]);
	for (size_t i = 1; i < wanted->id_len; i++)
		pm_str_printf(&path, "%02x", wanted->id[i]);
	pm_str_puts(&path, ".debug");
	fd = try_path(0, &path, wanted);
	if (fd < 0 && search->pid > 0)
		fd = try_path(search->pid, &path, wanted);
	return fd;
}

/* Searches beside the file at @path of process @pid (0: ours). */
static int by_link(pid_t pid, const char *path, const char *name, const char *debug,
		   const struct wanted *wanted)
{
	const char *slash = strrchr(path, '/');
	int dir_len = slash ? (int)(slash - path) : 0;
	int fd = -ENOENT;

	if (path[0] != '/' || strlen(path) >= PATH_MAX)
		return -ENOENT;
	for (int form = 0; form < 3 && fd < 0; form++) {
		struct pm_str at PM_CLEANUP(pm_str_release) = { 0 };

		if (form == 2)
			pm_str_puts(&at, debug);
		pm_str_printf(&at, "%.*s/%s%s", dir_len, path, form == 1 ? ".debug/" : "",
			      name);
		fd = try_path(pid, &at, wanted);
	}
	return fd;
}

/* Uses the name of the file in our root, then its name in its process. */
static int by_links(int fd, const struct pm_debug_search *search, const char *name,
		    const struct wanted *wanted)
{
	char proc[40], own[PATH_MAX];
	ssize_t len;
	int found = -ENOENT;

	snprintf(proc, sizeof(proc), "/proc/thread-self/fd/%d", fd);
	len = readlink(proc, own, sizeof(own) - 1);
	if (len > 0) {
		own[len] = '\0';
		found = by_link(0, own, name, debug_dir(search), wanted);
	}
	if (found < 0 && search->pid > 0 && search->path)
		found = by_link(search->pid, search->path, name, debug_dir(search),
				wanted);
	return found;
}

int pm_debug_find(int fd, const struct pm_debug_search *asked)
{
	struct pm_debug_search own = *asked;
	const struct pm_debug_search *search = &own;
	uint8_t id[PM_ELF_BUILD_ID_MAX], id_len = 0;
	struct wanted wanted = { .id = id, .crc_bytes_left = search->crc_bytes_left };
	struct pm_elf_debuglink link;
	struct pm_elf_file elf;
	struct stat st;
	int found;

	if (pm_elf_build_id_whole(fd, id, &id_len) == 0)
		wanted.id_len = id_len;
	if (fstat(fd, &st) == 0)
		wanted.original = &st;
	if (own.pid > 0 && is_file_of_our_root(own.path, wanted.original))
		own.pid = 0;
	found = by_id(&wanted, search);
	if (found >= 0 || pm_elf_file_init(&elf, fd) < 0 ||
	    pm_elf_file_debuglink(&elf, &link) < 0 || link.name[0] == '\0' ||
	    strchr(link.name, '/')) {
		if (found < 0)
			return -ENOENT;
		return found;
	}
	wanted.crc = link.crc;
	found = by_links(fd, search, link.name, &wanted);
	if (found < 0)
		return -ENOENT;
	return found;
}

int pm_debug_find_by_id(const void *id, size_t id_len,
			const struct pm_debug_search *search)
{
	struct wanted wanted = { .id = id, .id_len = id_len };
	int fd;

	if (id_len > PM_ELF_BUILD_ID_MAX)
		return -ENOENT;
	fd = by_id(&wanted, search);
	if (fd < 0)
		return -ENOENT;
	return fd;
}

int pm_debug_find_alt(int fd, const struct pm_debug_search *search)
{
	uint8_t id[PM_ELF_BUILD_ID_MAX], id_len;
	struct pm_elf_file elf;

	if (pm_elf_file_init(&elf, fd) < 0 || pm_elf_file_altlink(&elf, id, &id_len) < 0)
		return -ENOENT;
	return pm_debug_find_by_id(id, id_len, search);
}
