/* SPDX-License-Identifier: MIT */
/*
 * Separate debug files, as GDB and elfutils look for them: by build-id, then by
 * .gnu_debuglink. The names come from a foreign file: whatever they lead to is opened
 * without waiting and used only when it is a regular file and fits.
 */
#include "symbol-internal.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include <elfutils/libdwelf.h>

enum {
	BUILD_ID_MIN = 2,
	BUILD_ID_MAX = 64,
};

static const char default_dir[] = "/usr/lib/debug";

static int open_path(struct pm_elf_image *ret, const char *path)
{
	PM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? -errno : pm_elf_image_open(ret, fd);
}

static bool has_build_id(const struct pm_elf_image *image, const void *id, size_t len)
{
	const void *its;

	return pm_elf_image_build_id(image, &its) == (ssize_t)len &&
	       memcmp(its, id, len) == 0;
}

int pm_debug_file_by_id(struct pm_elf_image *ret, const void *id, size_t id_len,
			const char *debug_dir)
{
	struct pm_str path = { 0 };
	const uint8_t *bytes = id;
	int code;

	if (id_len < BUILD_ID_MIN || id_len > BUILD_ID_MAX)
		return -ENOENT;
	pm_str_printf(&path, "%s/.build-id/%02x/", debug_dir ? debug_dir : default_dir,
		      bytes[0]);
	for (size_t i = 1; i < id_len; i++)
		pm_str_printf(&path, "%02x", bytes[i]);
	pm_str_puts(&path, ".debug");
	code = path.failed ? -ENOMEM : open_path(ret, path.data);
	pm_str_release(&path);
	if (code == 0 && !has_build_id(ret, id, id_len)) {
		pm_elf_image_close(ret);
		code = -ENOENT;
	}
	return code;
}

/* CRC-32 of ISO 3309, as .gnu_debuglink has it (GDB manual, "Separate Debug Files"). */
static uint32_t crc32_of(const uint8_t *bytes, size_t len)
{
	uint32_t table[256], crc = ~0u;

	for (uint32_t i = 0; i < PM_ARRAY_LEN(table); i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320u : 0);
	}
	for (size_t i = 0; i < len; i++)
		crc = crc >> 8 ^ table[(crc ^ bytes[i]) & 0xff];
	return ~crc;
}

static bool fits(const struct pm_elf_image *debug, const struct pm_elf_image *image,
		 GElf_Word crc)
{
	const void *id;
	ssize_t id_len = pm_elf_image_build_id(image, &id);

	if (id_len > 0)
		return has_build_id(debug, id, (size_t)id_len);
	return debug->map && crc32_of(debug->map, debug->file_len) == crc;
}

static int by_link(struct pm_elf_image *ret, const struct pm_elf_image *image, int fd,
		   const char *debug_dir)
{
	char proc[64], dir[PATH_MAX], *slash;
	GElf_Word crc;
	const char *name = dwelf_elf_gnu_debuglink(image->elf, &crc);
	const char *const forms[][3] = {
		{ dir, "/", "" },
		{ dir, "/.debug/", "" },
		{ debug_dir ? debug_dir : default_dir, dir, "/" },
	};
	ssize_t len;

	if (!name || name[0] == '\0' || strchr(name, '/'))
		return -ENOENT;
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	len = readlink(proc, dir, sizeof(dir) - 1);
	if (len <= 0 || dir[0] != '/')
		return -ENOENT;
	dir[len] = '\0';
	slash = strrchr(dir, '/');
	*slash = '\0';
	for (size_t i = 0; i < PM_ARRAY_LEN(forms); i++) {
		struct pm_str path = { 0 };
		int code;

		pm_str_printf(&path, "%s%s%s%s", forms[i][0], forms[i][1], forms[i][2],
			      name);
		code = path.failed ? -ENOMEM : open_path(ret, path.data);
		pm_str_release(&path);
		if (code == 0 && fits(ret, image, crc))
			return 0;
		if (code == 0)
			pm_elf_image_close(ret);
	}
	return -ENOENT;
}

int pm_debug_file_open(struct pm_elf_image *ret, const struct pm_elf_image *image, int fd,
		       const char *debug_dir)
{
	GElf_Shdr shdr;
	const void *id;
	ssize_t id_len;

	/* Nothing to gain where both are in the file itself. */
	if (pm_dwarf_present(image) &&
	    pm_elf_image_section(image, ".symtab", NULL, &shdr))
		return -ENOENT;
	id_len = pm_elf_image_build_id(image, &id);
	if (id_len > 0 && pm_debug_file_by_id(ret, id, (size_t)id_len, debug_dir) == 0)
		return 0;
	return fd < 0 ? -ENOENT : by_link(ret, image, fd, debug_dir);
}
