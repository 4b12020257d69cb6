/* SPDX-License-Identifier: MIT */
/* Source: gABI "Note Section", binutils' NT_GNU_BUILD_ID. */
#include "proc-internal.h"

#include <elf.h>
#include <string.h>

enum {
	/* Maximum number of notes that are examined in one file, however many tables it
	 * claims to have. */
	NOTES_MAX = 4096,
};

struct search {
	struct pm_elf_file elf;
	unsigned int notes_seen;
	uint8_t *out; /* PM_ELF_BUILD_ID_MAX bytes */
	uint8_t *ret_len;
};

/* Returns 1 if the build-id was found, 0 if @part does not have it, or a read error. */
static int search_notes(struct search *search, const struct pm_elf_part *part)
{
	/* Padding is 8 only if the segment says so (GNU property notes), else 4. */
	uint64_t mask = part->align == 8 ? 7 : 3, at = 0;

	while (part->size - at >= sizeof(Elf64_Nhdr)) {
		struct {
			Elf64_Nhdr header; /* Elf32_Nhdr is identical */
			char name[4];
		} note;
		uint64_t name, desc;
		int ret;

		if (part->offset > UINT64_MAX - part->size ||
		    search->notes_seen++ >= NOTES_MAX)
			return 0;
		ret = pm_read_at(search->elf.fd, part->offset + at, &note, sizeof(note));
		if (ret < 0) {
			if (ret == -ENODATA)
				return 0;
			return ret;
		}
		name = at + sizeof(note.header);
		desc = (name + note.header.n_namesz + mask) & ~mask;
		if (desc > part->size || note.header.n_descsz > part->size - desc)
			return 0;
		if (note.header.n_type == NT_GNU_BUILD_ID && note.header.n_namesz == 4 &&
		    memcmp(note.name, "GNU", 4) == 0 && note.header.n_descsz > 0) {
			uint8_t id[PM_ELF_BUILD_ID_MAX];
			uint8_t len = note.header.n_descsz < sizeof(id)
					      ? (uint8_t)note.header.n_descsz
					      : (uint8_t)sizeof(id);

			ret = pm_read_at(search->elf.fd, part->offset + desc, id, len);
			if (ret < 0) {
				if (ret == -ENODATA)
					return 0;
				return ret;
			}
			memcpy(search->out, id, len);
			*search->ret_len = len;
			return 1;
		}
		at = (desc + note.header.n_descsz + mask) & ~mask;
		if (at > part->size)
			return 0;
	}
	return 0;
}

typedef int (*part_fn)(const struct pm_elf_file *elf, uint32_t index,
		       struct pm_elf_part *out);

static int search_parts(struct search *search, uint32_t count, uint32_t type, part_fn get)
{
	for (uint32_t i = 0; i < count; i++) {
		struct pm_elf_part part;
		int ret = get(&search->elf, i, &part);

		if (ret < 0) {
			if (ret == -ENODATA)
				return 0;
			return ret;
		}
		if (part.type != type)
			continue;
		ret = search_notes(search, &part);
		if (ret != 0)
			return ret;
	}
	return 0;
}

int pm_elf_build_id_whole(int fd, uint8_t out[PM_ELF_BUILD_ID_MAX], uint8_t *ret_len)
{
	struct search search = { .out = out, .ret_len = ret_len };
	int ret = pm_elf_file_init(&search.elf, fd);

	if (ret == 0)
		ret = search_parts(&search, search.elf.phnum, PT_NOTE,
				   pm_elf_file_segment);
	/* Relocatable files (kernel modules) have no segments; in separate debug files,
	 * the segments are wrong. */
	if (ret == 0)
		ret = search_parts(&search, search.elf.shnum, SHT_NOTE,
				   pm_elf_file_section);
	if (ret < 0)
		return ret;
	if (ret != 1)
		return -ENODATA;
	return 0;
}

int pm_elf_build_id(int fd, uint8_t out[PM_MODULE_BUILD_ID_MAX], uint8_t *ret_len)
{
	uint8_t id[PM_ELF_BUILD_ID_MAX], len;
	int ret = pm_elf_build_id_whole(fd, id, &len);

	if (ret < 0)
		return ret;
	/* The kernel's records truncate longer ones, too. */
	*ret_len = PM_MIN(len, PM_MODULE_BUILD_ID_MAX);
	memcpy(out, id, *ret_len);
	return 0;
}
