/* SPDX-License-Identifier: MIT */
/* Estimates the cost of debug information before opening it. */
#include "dwarf-parts.h"

#include <endian.h>
#include <string.h>

#include <elfutils/libdwelf.h>

enum {
	/* zlib compresses debug sections to between a third and an eighth, and a zip bomb
	 * to a thousandth. */
	INFLATE_RATIO_MAX = 16,
	INFLATE_FREE_BYTES = 16 << 20,
	/* libdw keeps about a kilobyte per unit. Chromium has 40,000. */
	UNITS_MAX = 1 << 18,
	/* Each range list has one reference, each line program a few at most. */
	BUDGET_RATIO = 8,
	BUDGET_FREE = 1 << 20,
};

#if __BYTE_ORDER == __LITTLE_ENDIAN
static const unsigned char host_order = ELFDATA2LSB;
#else
static const unsigned char host_order = ELFDATA2MSB;
#endif

/* Returns the decompressed size of the section, or 0 if it is not compressed. */
static uint64_t inflated_bytes(Elf_Scn *section, const GElf_Shdr *shdr, const char *name)
{
	enum {
		ZDEBUG_HEADER_BYTES = 12 /* "ZLIB", size as big-endian 64 bits */
	};
	GElf_Chdr chdr;
	Elf_Data *data;
	uint64_t size;

	if (shdr->sh_flags & SHF_COMPRESSED) {
		if (gelf_getchdr(section, &chdr))
			return chdr.ch_size;
		return 0;
	}
	if (strncmp(name, ".zdebug", 7) != 0 || !(data = elf_rawdata(section, NULL)) ||
	    !data->d_buf || data->d_size < ZDEBUG_HEADER_BYTES ||
	    memcmp(data->d_buf, "ZLIB", 4) != 0)
		return 0;
	memcpy(&size, (const char *)data->d_buf + 4, sizeof(size));
	return be64toh(size);
}

static bool inflates_too_much(const struct pm_elf_image *image)
{
	uint64_t limit = image->file_len * INFLATE_RATIO_MAX + INFLATE_FREE_BYTES;
	uint64_t total = 0;
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(image->elf, &names) < 0)
		return true;
	while ((section = elf_nextscn(image->elf, section))) {
		GElf_Shdr shdr;
		const char *name;

		if (!gelf_getshdr(section, &shdr) || shdr.sh_type == SHT_NOBITS ||
		    !(name = elf_strptr(image->elf, names, shdr.sh_name)))
			continue;
		if (__builtin_add_overflow(total, inflated_bytes(section, &shdr, name),
					   &total) ||
		    total > limit)
			return true;
	}
	return false;
}

static struct pm_bytes find_section_bytes(const struct pm_elf_image *image,
					  const char *name)
{
	char compressed[32];
	GElf_Shdr shdr;
	Elf_Scn *section;
	Elf_Data *data;

	snprintf(compressed, sizeof(compressed), ".z%s", name + 1);
	section = pm_elf_image_section(image, name, compressed, &shdr);
	data = elf_getdata(section, NULL);
	if (!data || !data->d_buf)
		return (struct pm_bytes){ 0 };
	return (struct pm_bytes){ data->d_buf, data->d_size };
}

/* Whether libdw would find too many units (DWARF 5 §7.5.1.1). Counts them without storing
 * anything. */
static bool has_too_many_units(struct pm_bytes info)
{
	struct pm_reader reader;
	size_t units = 0;

	pm_reader_init(&reader, info.data, info.len);
	while (pm_reader_left(&reader) > 0 && ++units <= UNITS_MAX) {
		uint64_t length = pm_reader_u32(&reader);

		if (length == UINT32_MAX)
			length = pm_reader_u64(&reader);
		if (!pm_reader_bytes(&reader, length))
			break;
	}
	return units > UNITS_MAX;
}

/* Whether names and lines can be found without the section. */
static bool is_unneeded_section(const char *name)
{
	static const char *const names[] = {
		".debug_loc",     ".debug_loclists", ".debug_frame",   ".debug_macro",
		".debug_macinfo", ".debug_pubnames", ".debug_aranges",
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* libdw decompresses all sections that it knows, even unneeded ones, unless their size in
 * the file is 0. The section table may be changed, because it is a copy or mapped
 * privately. */
static void hide_unneeded_sections(const struct pm_elf_image *image)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(image->elf, &names) < 0)
		return;
	while ((section = elf_nextscn(image->elf, section))) {
		Elf64_Shdr *shdr = elf64_getshdr(section);
		const char *name =
			shdr ? elf_strptr(image->elf, names, shdr->sh_name) : NULL;

		if (name && (shdr->sh_flags & SHF_COMPRESSED) &&
		    is_unneeded_section(name))
			shdr->sh_type = SHT_NOBITS;
	}
}

static Dwarf *open_checked_dwarf(const struct pm_elf_image *image, struct pm_bytes *info,
				 bool *limited)
{
	const char *ident = elf_getident(image->elf, NULL);
	Dwarf *dwarf;

	if (!ident || (unsigned char)ident[EI_DATA] != host_order)
		return NULL;
	if (inflates_too_much(image)) {
		*limited = true;
		return NULL;
	}
	hide_unneeded_sections(image);
	dwarf = dwarf_begin_elf(image->elf, DWARF_C_READ, NULL);
	if (!dwarf)
		return NULL;
	/* libdw has decompressed the compressed sections: the same Elf now returns plain
	 * bytes. */
	*info = find_section_bytes(image, ".debug_info");
	if (has_too_many_units(*info)) {
		*limited = true;
		dwarf_end(dwarf);
		return NULL;
	}
	return dwarf;
}

/*
 * Opens the file that dwz moved common entries to, by build-id only. libdw itself would
 * open any path that the debug information names, and would hang if that is a FIFO;
 * dwarf-names.c takes care never to let it do that.
 */
static void open_dwarf_alt_file(struct pm_dwarf *dwarf,
				const struct pm_symbol_options *options)
{
	struct pm_bytes info;
	const char *name;
	const void *id;
	ssize_t id_len = dwelf_dwarf_gnu_debugaltlink(dwarf->dwarf, &name, &id);

	if (id_len <= 0 ||
	    pm_debug_file_alt(&dwarf->alt_image, id, (size_t)id_len, options) < 0)
		return;
	dwarf->alt = open_checked_dwarf(&dwarf->alt_image, &info, &dwarf->limited);
	if (dwarf->alt)
		dwarf_setalt(dwarf->dwarf, dwarf->alt);
}

int pm_dwarf_open(struct pm_dwarf *dwarf, const struct pm_elf_image *image,
		  const struct pm_elf_image *debug,
		  const struct pm_symbol_options *options)
{
	*dwarf = (struct pm_dwarf){ .image = image };
	dwarf->dwarf = open_checked_dwarf(debug, &dwarf->info, &dwarf->limited);
	if (!dwarf->dwarf)
		return -ENOENT;
	dwarf->line = find_section_bytes(debug, ".debug_line");
	dwarf->line_str = find_section_bytes(debug, ".debug_line_str");
	dwarf->str = find_section_bytes(debug, ".debug_str");
	dwarf->ranges = find_section_bytes(debug, ".debug_ranges");
	dwarf->rnglists = find_section_bytes(debug, ".debug_rnglists");
	dwarf->addr = find_section_bytes(debug, ".debug_addr");
	dwarf->ranges_budget =
		BUDGET_FREE + BUDGET_RATIO * (dwarf->ranges.len + dwarf->rnglists.len);
	dwarf->lines_budget = BUDGET_FREE + BUDGET_RATIO * dwarf->line.len;
	open_dwarf_alt_file(dwarf, options);
	return 0;
}

void pm_dwarf_close(struct pm_dwarf *dwarf)
{
	pm_foreign_release(dwarf);
	if (dwarf->dwarf)
		dwarf_end(dwarf->dwarf);
	if (dwarf->alt)
		dwarf_end(dwarf->alt);
	pm_elf_image_close(&dwarf->alt_image);
	*dwarf = (struct pm_dwarf){ 0 };
}
