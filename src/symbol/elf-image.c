/* SPDX-License-Identifier: MIT */
#include "symbol-parts.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <elfutils/libdwelf.h>

enum {
	/* Executable files have fewer than the 2^16 sections of an ordinary table. */
	SECTIONS_MAX = 65536,
	NAMES_BYTES_MAX = 1 << 22, /* of the section names */
};

static int compare_ranges(const void *a, const void *b)
{
	const struct pm_range *x = a, *y = b;

	if (x->start != y->start)
		return PM_COMPARE(x->start, y->start);
	return PM_COMPARE(x->end, y->end);
}

/* Sorts the executable sections. Those of a hostile file may overlap: each is cut off at
 * the start of the next one. */
static void image_sort_code_sections(struct pm_elf_image *image)
{
	qsort(image->code.data, image->code.len, sizeof(*image->code.data),
	      compare_ranges);
	for (size_t i = 1; i < image->code.len; i++)
		if (image->code.data[i - 1].end > image->code.data[i].start)
			image->code.data[i - 1].end = image->code.data[i].start;
}

static int image_find_code_sections(struct pm_elf_image *image)
{
	Elf_Scn *section = NULL;
	size_t seen = 0;

	while ((section = elf_nextscn(image->elf, section)) && seen++ < SECTIONS_MAX) {
		GElf_Shdr shdr;
		uint64_t end;

		if (!gelf_getshdr(section, &shdr) || shdr.sh_size == 0 ||
		    (shdr.sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) !=
			    (SHF_ALLOC | SHF_EXECINSTR) ||
		    __builtin_add_overflow(shdr.sh_addr, shdr.sh_size, &end))
			continue;
		if (pm_vec_push(&image->code, (struct pm_range){ shdr.sh_addr, end }) < 0)
			return -ENOMEM;
	}
	if (image->code.len > 1)
		image_sort_code_sections(image);
	return 0;
}

/*
 * Reserves memory for @len bytes and a page of zeros after them. If the file changes
 * under the mapping and a string in it is no longer terminated, the string ends there.
 * The memory is writable, because libelf updates its section table in place when it
 * decompresses sections.
 */
static int image_reserve_map(struct pm_elf_image *image, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), total;
	void *map;

	if (__builtin_add_overflow(len, 2 * page - 1, &total))
		return -ENOMEM;
	total -= total % page;
	map = mmap(NULL, total, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return -errno;
	image->map = map;
	image->map_len = total;
	image->file_len = len;
	return 0;
}

/*
 * Returns the number of sections; libelf would allocate 260 bytes for each. From 2^16 on,
 * the number is in a 64-bit field (gABI "e_shnum"), and a sparse file can state any.
 */
static uint64_t image_section_count(const struct pm_elf_image *image)
{
	const unsigned char *ident = image->map;
	Elf64_Ehdr header;
	Elf64_Shdr first;
	Elf32_Ehdr header32;
	Elf32_Shdr first32;

	if (ident[EI_CLASS] == ELFCLASS32) {
		memcpy(&header32, ident, sizeof(header32));
		if (header32.e_shnum != 0 || header32.e_shoff > image->file_len)
			return header32.e_shnum;
		/* This stays within the map: a page of zeros follows the file. */
		memcpy(&first32, ident + header32.e_shoff, sizeof(first32));
		return first32.sh_size;
	}
	memcpy(&header, ident, sizeof(header));
	if (header.e_shnum != 0 || header.e_shoff > image->file_len)
		return header.e_shnum;
	memcpy(&first, ident + header.e_shoff, sizeof(first));
	return first.sh_size;
}

/*
 * Whether the tables that libelf reads completely are small: the section names, which are
 * read once for each section that is looked up, and the program headers, of which PN_XNUM
 * allows 2^32.
 */
static bool image_tables_are_small(const struct pm_elf_image *image)
{
	size_t names, headers;
	Elf_Scn *section;
	GElf_Shdr shdr;

	if (elf_getphdrnum(image->elf, &headers) == 0 && headers >= PN_XNUM)
		return false;
	/* Without section names, no section is found by its name, which is harmless. */
	if (elf_getshdrstrndx(image->elf, &names) < 0)
		return true;
	section = elf_getscn(image->elf, names);
	return !section || !gelf_getshdr(section, &shdr) ||
	       shdr.sh_size <= NAMES_BYTES_MAX;
}

static int image_open_elf(struct pm_elf_image *image)
{
	const unsigned char *ident = image->map;
	unsigned char native =
		__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;

	/* A file with the other byte order cannot run here. */
	if (elf_version(EV_CURRENT) == EV_NONE || memcmp(ident, ELFMAG, SELFMAG) != 0 ||
	    ident[EI_DATA] != native || image_section_count(image) > SECTIONS_MAX)
		return -ENOEXEC;
	image->elf = elf_memory(image->map, image->file_len);
	if (!image->elf || elf_kind(image->elf) != ELF_K_ELF ||
	    !image_tables_are_small(image))
		return -ENOEXEC;
	return image_find_code_sections(image);
}

int pm_elf_image_open_memory(struct pm_elf_image *image, const void *bytes, size_t len)
{
	int ret;

	if (len < EI_NIDENT)
		return -ENOEXEC;
	ret = image_reserve_map(image, len);
	if (ret == 0) {
		memcpy(image->map, bytes, len);
		ret = image_open_elf(image);
	}
	if (ret < 0)
		pm_elf_image_close(image);
	return ret;
}

/* Reads up to the end of the file, which may be earlier than st_size says. */
static int image_read_file(struct pm_elf_image *image, int fd)
{
	size_t done = 0;

	while (done < image->file_len) {
		ssize_t n = pread(fd, (char *)image->map + done, image->file_len - done,
				  (off_t)done);

		if (n == 0)
			break;
		if (n > 0)
			done += (size_t)n;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static int image_map_file(struct pm_elf_image *image, int fd)
{
	if (mmap(image->map, image->file_len, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
		return -errno;
	pm_guard_add(image);
	return 0;
}

int pm_elf_image_open(struct pm_elf_image *image, int fd, bool copy)
{
	struct stat st;
	int ret;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < EI_NIDENT)
		return -ENOEXEC;
	ret = image_reserve_map(image, (size_t)st.st_size);
	if (ret == 0) {
		if (copy)
			ret = image_read_file(image, fd);
		else
			ret = image_map_file(image, fd);
	}
	if (ret == 0)
		ret = image_open_elf(image);
	if (ret < 0)
		pm_elf_image_close(image);
	return ret;
}

void pm_elf_image_close(struct pm_elf_image *image)
{
	if (image->elf)
		elf_end(image->elf);
	pm_guard_remove(image);
	if (image->map)
		munmap(image->map, image->map_len);
	pm_vec_release(&image->code);
	*image = (struct pm_elf_image){ 0 };
}

const struct pm_range *pm_elf_image_code(const struct pm_elf_image *image,
					 uint64_t address)
{
	size_t low = 0, high = image->code.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct pm_range *range = &image->code.data[mid];

		if (address < range->start)
			high = mid;
		else if (address >= range->end)
			low = mid + 1;
		else
			return range;
	}
	return NULL;
}

Elf_Scn *pm_elf_image_section(const struct pm_elf_image *image, const char *name,
			      const char *other, GElf_Shdr *shdr)
{
	Elf_Scn *section = NULL;
	size_t names, seen = 0;

	if (elf_getshdrstrndx(image->elf, &names) < 0)
		return NULL;
	while ((section = elf_nextscn(image->elf, section)) && seen++ < SECTIONS_MAX) {
		const char *its;

		if (!gelf_getshdr(section, shdr) || shdr->sh_type == SHT_NOBITS ||
		    shdr->sh_size == 0 ||
		    !(its = elf_strptr(image->elf, names, shdr->sh_name)))
			continue;
		if (strcmp(its, name) == 0 || (other && strcmp(its, other) == 0))
			return section;
	}
	return NULL;
}

ssize_t pm_elf_image_build_id(const struct pm_elf_image *image, const void **out)
{
	return dwelf_elf_gnu_build_id(image->elf, out);
}

bool pm_dwarf_present(const struct pm_elf_image *image)
{
	GElf_Shdr shdr;

	return pm_elf_image_section(image, ".debug_info", ".zdebug_info", &shdr) != NULL;
}
