/* SPDX-License-Identifier: MIT */
/*
 * Reads the few properties of an ELF file that this room needs, in small pieces: no
 * library guarantees bounded memory for a hostile file. Source: elf(5), gABI.
 */
#include "proc-internal.h"

#include <elf.h>
#include <limits.h>
#include <string.h>

int pm_read_at(int fd, uint64_t offset, void *out, size_t len)
{
	uint8_t *at = out;

	while (len > 0) {
		ssize_t n;

		if (offset > INT64_MAX - len)
			return -ENODATA;
		n = pread(fd, at, len, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENODATA;
		at += n;
		offset += (size_t)n;
		len -= (size_t)n;
	}
	return 0;
}

int pm_elf_file_init(struct pm_elf_file *elf, int fd)
{
	union {
		unsigned char ident[EI_NIDENT];
		Elf32_Ehdr h32;
		Elf64_Ehdr h64;
	} u;
	unsigned char native =
		__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	int ret = pm_read_at(fd, 0, u.ident, sizeof(u.ident));
	bool is_64;

	if (ret < 0) {
		if (ret == -ENODATA)
			return -ENOEXEC;
		return ret;
	}
	if (memcmp(u.ident, ELFMAG, SELFMAG) != 0 || u.ident[EI_DATA] != native ||
	    (u.ident[EI_CLASS] != ELFCLASS64 && u.ident[EI_CLASS] != ELFCLASS32))
		return -ENOEXEC;
	is_64 = u.ident[EI_CLASS] == ELFCLASS64;
	ret = pm_read_at(fd, 0, &u, is_64 ? sizeof(u.h64) : sizeof(u.h32));
	if (ret < 0) {
		if (ret == -ENODATA)
			return -ENOEXEC;
		return ret;
	}
#define TAKE(h)                                                     \
	(*elf = (struct pm_elf_file){ .fd = fd,                     \
				      .is_64 = is_64,               \
				      .phoff = (h).e_phoff,         \
				      .phnum = (h).e_phnum,         \
				      .phentsize = (h).e_phentsize, \
				      .shoff = (h).e_shoff,         \
				      .shnum = (h).e_shnum,         \
				      .shentsize = (h).e_shentsize, \
				      .shstrndx = (h).e_shstrndx })
	if (is_64)
		TAKE(u.h64);
	else
		TAKE(u.h32);
#undef TAKE
	return 0;
}

/* Reads entry @index of a table into @out. */
static int read_entry(const struct pm_elf_file *elf, uint64_t table, uint32_t index,
		      uint32_t stride, void *out, size_t len)
{
	uint64_t at;

	if (stride < len || __builtin_add_overflow(table, (uint64_t)index * stride, &at))
		return -ENODATA;
	return pm_read_at(elf->fd, at, out, len);
}

int pm_elf_file_segment(const struct pm_elf_file *elf, uint32_t index,
			struct pm_elf_part *out)
{
	union {
		Elf32_Phdr h32;
		Elf64_Phdr h64;
	} u;
	int ret;

	if (index >= elf->phnum)
		return -ENODATA;
	ret = read_entry(elf, elf->phoff, index, elf->phentsize, &u,
			 elf->is_64 ? sizeof(u.h64) : sizeof(u.h32));
	if (ret < 0)
		return ret;
#define TAKE(h)                                               \
	(*out = (struct pm_elf_part){ .type = (h).p_type,     \
				      .offset = (h).p_offset, \
				      .size = (h).p_filesz,   \
				      .align = (h).p_align })
	if (elf->is_64)
		TAKE(u.h64);
	else
		TAKE(u.h32);
#undef TAKE
	return 0;
}

int pm_elf_file_section(const struct pm_elf_file *elf, uint32_t index,
			struct pm_elf_part *out)
{
	union {
		Elf32_Shdr h32;
		Elf64_Shdr h64;
	} u;
	int ret;

	if (index >= elf->shnum)
		return -ENODATA;
	ret = read_entry(elf, elf->shoff, index, elf->shentsize, &u,
			 elf->is_64 ? sizeof(u.h64) : sizeof(u.h32));
	if (ret < 0)
		return ret;
#define TAKE(h)                                                \
	(*out = (struct pm_elf_part){ .name = (h).sh_name,     \
				      .type = (h).sh_type,     \
				      .offset = (h).sh_offset, \
				      .size = (h).sh_size,     \
				      .align = (h).sh_addralign })
	if (elf->is_64)
		TAKE(u.h64);
	else
		TAKE(u.h32);
#undef TAKE
	return 0;
}

/* Finds the first section with this name that is not empty and has at most @max bytes. */
static int find_section(const struct pm_elf_file *elf, const char *wanted, size_t max,
			struct pm_elf_part *out)
{
	size_t len = strlen(wanted) + 1;
	struct pm_elf_part names;

	if (pm_elf_file_section(elf, elf->shstrndx, &names) < 0)
		return -ENODATA;
	for (uint32_t i = 1; i < elf->shnum; i++) {
		char name[32];

		if (pm_elf_file_section(elf, i, out) < 0)
			return -ENODATA;
		if (out->type == SHT_PROGBITS && out->size > 0 && out->size <= max &&
		    names.offset <= INT64_MAX && len <= sizeof(name) &&
		    pm_read_at(elf->fd, names.offset + out->name, name, len) == 0 &&
		    memcmp(name, wanted, len) == 0)
			return 0;
	}
	return -ENODATA;
}

int pm_elf_file_debuglink(const struct pm_elf_file *elf, struct pm_elf_debuglink *out)
{
	struct pm_elf_debuglink link;
	struct pm_elf_part section;
	size_t len;

	/* Contents: the name, zeros up to a multiple of four, and the checksum. */
	if (find_section(elf, ".gnu_debuglink", sizeof(link.name) + sizeof(link.crc),
			 &section) < 0 ||
	    section.size < 2 + sizeof(link.crc))
		return -ENODATA;
	len = (size_t)section.size - sizeof(link.crc);
	if (pm_read_at(elf->fd, section.offset, link.name, len) < 0 ||
	    !memchr(link.name, '\0', len) ||
	    pm_read_at(elf->fd, section.offset + len, &link.crc, sizeof(link.crc)) < 0)
		return -ENODATA;
	*out = link;
	return 0;
}

int pm_elf_file_altlink(const struct pm_elf_file *elf, uint8_t id[PM_ELF_BUILD_ID_MAX],
			uint8_t *ret_len)
{
	char bytes[PATH_MAX + PM_ELF_BUILD_ID_MAX];
	struct pm_elf_part section;
	size_t name_len, len;

	/* Contents: the name with its terminating zero, which is not used here, and the
	 * build-id. */
	if (find_section(elf, ".gnu_debugaltlink", sizeof(bytes), &section) < 0 ||
	    pm_read_at(elf->fd, section.offset, bytes, (size_t)section.size) < 0)
		return -ENODATA;
	name_len = strnlen(bytes, (size_t)section.size);
	if (name_len >= section.size)
		return -ENODATA;
	len = (size_t)section.size - name_len - 1;
	if (len == 0 || len > PM_ELF_BUILD_ID_MAX)
		return -ENODATA;
	memcpy(id, bytes + name_len + 1, len);
	*ret_len = (uint8_t)len;
	return 0;
}
