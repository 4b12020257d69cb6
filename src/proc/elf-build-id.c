/* SPDX-License-Identifier: MIT */
/*
 * The build-id straight from the file, with a few small reads: no library would promise to
 * stay small on a hostile file. Source: elf(5), gABI "Note Section", binutils' NT_GNU_BUILD_ID.
 */
#include "proc-internal.h"

#include <elf.h>
#include <string.h>

enum {
	/* Notes looked at in one file, however many tables it claims to have. */
	NOTES_MAX = 4096,
};

/* The few header fields needed, of either class. */
struct elf_file {
	int fd;
	bool is_64;
	uint64_t phoff, shoff;
	uint32_t phnum, shnum, phentsize, shentsize;
	unsigned int notes_seen;
	uint8_t *ret;
	uint8_t *ret_len;
};

/* 0, -ENODATA when the file ends before, or the errno of the read. */
static int read_at(int fd, uint64_t offset, void *ret, size_t len)
{
	uint8_t *at = ret;

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

static int read_header(struct elf_file *elf)
{
	union {
		unsigned char ident[EI_NIDENT];
		Elf32_Ehdr h32;
		Elf64_Ehdr h64;
	} u;
	unsigned char native =
		__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	int rc = read_at(elf->fd, 0, u.ident, sizeof(u.ident));

	if (rc < 0)
		return rc == -ENODATA ? -ENOEXEC : rc;
	if (memcmp(u.ident, ELFMAG, SELFMAG) != 0 || u.ident[EI_DATA] != native ||
	    (u.ident[EI_CLASS] != ELFCLASS64 && u.ident[EI_CLASS] != ELFCLASS32))
		return -ENOEXEC;
	elf->is_64 = u.ident[EI_CLASS] == ELFCLASS64;
	rc = read_at(elf->fd, 0, &u, elf->is_64 ? sizeof(u.h64) : sizeof(u.h32));
	if (rc < 0)
		return rc == -ENODATA ? -ENOEXEC : rc;
#define TAKE(h)                                   \
	do {                                      \
		elf->phoff = (h).e_phoff;         \
		elf->phnum = (h).e_phnum;         \
		elf->phentsize = (h).e_phentsize; \
		elf->shoff = (h).e_shoff;         \
		elf->shnum = (h).e_shnum;         \
		elf->shentsize = (h).e_shentsize; \
	} while (0)
	if (elf->is_64)
		TAKE(u.h64);
	else
		TAKE(u.h32);
#undef TAKE
	return 0;
}

/* 1 when the build-id was found, 0 when it is not here, or a read error. */
static int search_notes(struct elf_file *elf, uint64_t offset, uint64_t size,
			uint64_t align)
{
	/* 8 only where the segment says so (GNU property notes); all else pads to 4. */
	uint64_t mask = align == 8 ? 7 : 3, at = 0;

	while (size - at >= sizeof(Elf64_Nhdr)) {
		struct {
			Elf64_Nhdr header; /* Elf32_Nhdr is the same */
			char name[4];
		} note;
		uint64_t name, desc;
		int rc;

		if (offset > UINT64_MAX - size || elf->notes_seen++ >= NOTES_MAX)
			return 0;
		rc = read_at(elf->fd, offset + at, &note, sizeof(note));
		if (rc < 0)
			return rc == -ENODATA ? 0 : rc;
		name = at + sizeof(note.header);
		desc = (name + note.header.n_namesz + mask) & ~mask;
		if (desc > size || note.header.n_descsz > size - desc)
			return 0;
		if (note.header.n_type == NT_GNU_BUILD_ID && note.header.n_namesz == 4 &&
		    memcmp(note.name, "GNU", 4) == 0 && note.header.n_descsz > 0) {
			uint8_t id[PM_MODULE_BUILD_ID_MAX];
			/* The kernel's records cut longer ones off, too. */
			uint8_t len = note.header.n_descsz < sizeof(id)
					      ? (uint8_t)note.header.n_descsz
					      : (uint8_t)sizeof(id);

			rc = read_at(elf->fd, offset + desc, id, len);
			if (rc < 0)
				return rc == -ENODATA ? 0 : rc;
			memcpy(elf->ret, id, len);
			*elf->ret_len = len;
			return 1;
		}
		at = (desc + note.header.n_descsz + mask) & ~mask;
		if (at > size)
			return 0;
	}
	return 0;
}

static int search_segments(struct elf_file *elf)
{
	size_t want = elf->is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);

	if (elf->phentsize < want)
		return 0;
	for (uint32_t i = 0; i < elf->phnum; i++) {
		union {
			Elf32_Phdr h32;
			Elf64_Phdr h64;
		} u;
		uint64_t at;
		int rc;

		if (__builtin_add_overflow(elf->phoff, (uint64_t)i * elf->phentsize, &at))
			return 0;
		rc = read_at(elf->fd, at, &u, want);
		if (rc < 0)
			return rc == -ENODATA ? 0 : rc;
		if ((elf->is_64 ? u.h64.p_type : u.h32.p_type) != PT_NOTE)
			continue;
		rc = elf->is_64 ? search_notes(elf, u.h64.p_offset, u.h64.p_filesz,
					       u.h64.p_align)
				: search_notes(elf, u.h32.p_offset, u.h32.p_filesz,
					       u.h32.p_align);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* Relocatable files (kernel modules) have no segments; separate debug files wrong ones. */
static int search_sections(struct elf_file *elf)
{
	size_t want = elf->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);

	if (elf->shentsize < want)
		return 0;
	for (uint32_t i = 0; i < elf->shnum; i++) {
		union {
			Elf32_Shdr h32;
			Elf64_Shdr h64;
		} u;
		uint64_t at;
		int rc;

		if (__builtin_add_overflow(elf->shoff, (uint64_t)i * elf->shentsize, &at))
			return 0;
		rc = read_at(elf->fd, at, &u, want);
		if (rc < 0)
			return rc == -ENODATA ? 0 : rc;
		if ((elf->is_64 ? u.h64.sh_type : u.h32.sh_type) != SHT_NOTE)
			continue;
		rc = elf->is_64 ? search_notes(elf, u.h64.sh_offset, u.h64.sh_size,
					       u.h64.sh_addralign)
				: search_notes(elf, u.h32.sh_offset, u.h32.sh_size,
					       u.h32.sh_addralign);
		if (rc != 0)
			return rc;
	}
	return 0;
}

int pm_elf_build_id(int fd, uint8_t ret[PM_MODULE_BUILD_ID_MAX], uint8_t *ret_len)
{
	struct elf_file elf = { .fd = fd, .ret = ret, .ret_len = ret_len };
	int rc = read_header(&elf);

	if (rc == 0)
		rc = search_segments(&elf);
	if (rc == 0)
		rc = search_sections(&elf);
	if (rc < 0)
		return rc;
	return rc == 1 ? 0 : -ENODATA;
}
