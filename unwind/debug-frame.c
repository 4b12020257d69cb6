/* SPDX-License-Identifier: MIT */
/*
 * .debug_frame that is expensive to read: compressed, or in a separate file. It is read
 * on the first look-up of an address that .eh_frame does not cover; for most modules that
 * never happens.
 */
#include "unwind-parts.h"

#include <endian.h>
#include <gelf.h>
#include <string.h>
#include <sys/stat.h>

enum {
	/* Frames resemble each other and compress well, to a tenth at best. zlib can
	 * compress zeros to a thousandth. */
	INFLATE_RATIO_MAX = 64,
	INFLATE_FREE_BYTES = 1 << 20,
	INFLATED_BYTES_MAX = 1 << 26, /* what a region may hold */
	UNPACKED_COST = 16, /* bytes of reading to which each compressed byte is
	                     * equivalent */
};

static bool is_inflated_size_modest(uint64_t inflated, uint64_t packed)
{
	return inflated <= INFLATED_BYTES_MAX &&
	       inflated <= packed * INFLATE_RATIO_MAX + INFLATE_FREE_BYTES;
}

/* gABI "Compressed Sections": decompresses in place, in @elf only. */
static bool inflate_section(Elf_Scn *scn, const GElf_Shdr *shdr)
{
	GElf_Chdr chdr;

	return gelf_getchdr(scn, &chdr) &&
	       is_inflated_size_modest(chdr.ch_size, shdr->sh_size) &&
	       elf_compress(scn, 0, 0) >= 0;
}

/* The older format of GNU tools: "ZLIB", then the size as 64 bits, big-endian. */
static bool inflate_gnu_section(Elf_Scn *scn, const GElf_Shdr *shdr)
{
	enum {
		HEADER_BYTES = 12
	};
	const Elf_Data *data = elf_rawdata(scn, NULL);
	uint64_t size;

	if (!data || !data->d_buf || data->d_size < HEADER_BYTES ||
	    memcmp(data->d_buf, "ZLIB", 4) != 0)
		return false;
	memcpy(&size, (const char *)data->d_buf + 4, sizeof(size));
	return is_inflated_size_modest(be64toh(size), shdr->sh_size) &&
	       elf_compress_gnu(scn, 0, 0) >= 0;
}

static bool copy_debug_section(struct pm_unw_module *module, Elf_Scn *scn,
			       const char *name)
{
	GElf_Shdr shdr;
	const Elf_Data *data;

	/* Check this before libelf reads the section: in a sparse file, it can have any
	 * size. */
	if (!gelf_getshdr(scn, &shdr) || shdr.sh_size > INFLATED_BYTES_MAX)
		return false;
	if (shdr.sh_flags & SHF_COMPRESSED
		    ? !inflate_section(scn, &shdr)
		    : name[1] == 'z' && !inflate_gnu_section(scn, &shdr))
		return false;
	data = elf_rawdata(scn, NULL);
	return data && data->d_buf &&
	       pm_unw_region_copy(&module->debug_frame, 0, data->d_buf, data->d_size);
}

static bool copy_debug_frame(struct pm_unw_module *module, Elf *elf)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return false;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;
		const char *name;

		if (gelf_getshdr(scn, &shdr) && shdr.sh_type != SHT_NOBITS &&
		    (name = elf_strptr(elf, names, shdr.sh_name)) &&
		    pm_unw_is_debug_frame(name))
			return copy_debug_section(module, scn, name);
	}
	return false;
}

void pm_unw_unpack_own(struct pm_unw_module *module)
{
	Elf *elf;

	if (module->image)
		elf = elf_memory((char *)module->image, module->image_len);
	else
		elf = elf_begin(module->fd, ELF_C_READ, NULL);

	if (elf)
		copy_debug_frame(module, elf);
	elf_end(elf);
	/* If it cannot be decompressed, another file may still have one. */
	module->debug_packed = false;
}

/* Opens the ELF file @fd if its section headers are small enough and it matches @module.
 * The caller has to call elf_end(). */
static Elf *open_debug_elf(const struct pm_unw_module *module, int fd,
			   struct pm_error *err)
{
	const struct pm_unw_arch_info *arch = &pm_unw_arch_infos[module->arch];
	GElf_Ehdr ehdr;
	Elf *elf = NULL;

	if (pm_unw_elf_is_modest(fd)) {
		elf_version(EV_CURRENT);
		elf = elf_begin(fd, ELF_C_READ, NULL);
	}
	if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &ehdr))
		pm_error_set(err, -ENOEXEC, "not an ELF file");
	else if (ehdr.e_machine != arch->elf_machine ||
		 ehdr.e_ident[EI_CLASS] != arch->elf_class)
		pm_error_set(err, -ENOEXEC, "an ELF file of another machine");
	else
		return elf;
	elf_end(elf);
	return NULL;
}

int pm_unw_module_add_debug(struct pm_unw_module *module, int fd, struct pm_error *err)
{
	Elf *elf;
	int ret = 0;

	if (module->debug_frame.len > 0 || module->debug_packed)
		return pm_error_set(err, -EEXIST, "it has a .debug_frame already");
	elf = open_debug_elf(module, fd, err);
	if (!elf)
		return -ENOEXEC;
	if (!copy_debug_frame(module, elf))
		ret = pm_error_set(err, -ENODATA, "without a .debug_frame to be read");
	elf_end(elf);
	if (ret == 0) {
		pm_unw_fde_table_release(&module->debug_scanned);
		pm_unw_module_renew(module);
	}
	return ret;
}

void pm_unw_module_on_gap(struct pm_unw_module *module, pm_unw_open_debug_fn open_debug,
			  void *user)
{
	module->open_debug = open_debug;
	module->open_debug_user = user;
}

/* Returns the approximate number of bytes to read for the .debug_frame of the file
 * @fd. */
static uint64_t debug_frame_cost(int fd)
{
	struct stat st;

	/* In a separate debug file, that section, which may be compressed, is a twentieth
	 * of the bytes. */
	if (fstat(fd, &st) == 0 && st.st_size > 0)
		return (uint64_t)st.st_size / 4;
	return UINT64_MAX;
}

/* Searches the file itself for CFI. Returns as pm_unw_module_fill_gap() does. */
static int search_own_debug_frame(struct pm_unw_module *module)
{
	unsigned int wanted = 0;
	uint64_t cost = 0;
	int found = 0;

	if (module->no_sections && module->eh_frame.len == 0) {
		wanted |= PM_UNW_WANTED_EH_SEARCH;
		cost += pm_unw_eh_frame_search_cost(module);
	}
	if (module->no_sections && !module->go_tried) {
		wanted |= PM_UNW_WANTED_GO;
		cost += pm_unw_go_cost(module);
	}
	if (module->debug_packed && module->debug_frame.len == 0) {
		wanted |= PM_UNW_WANTED_UNPACKED;
		cost += module->debug_packed_bytes * UNPACKED_COST;
	}
	if (wanted != 0 && !pm_unw_may_now(module, cost))
		return pm_unw_do_later(module, wanted, -1);
	module->gap_searched = true;
	if (wanted & PM_UNW_WANTED_EH_SEARCH)
		found = pm_unw_eh_frame_search(module);
	if (wanted & PM_UNW_WANTED_GO) {
		module->go_tried = true;
		if (pm_unw_go_open(module))
			pm_unw_module_renew(module);
	}
	if (wanted & PM_UNW_WANTED_UNPACKED)
		pm_unw_unpack_own(module);
	return found;
}

int pm_unw_module_fill_gap(struct pm_unw_module *module)
{
	int found = 0, fd;

	/* The running task may be for the last source, a debug file. */
	if (module->task)
		return -EINPROGRESS;
	if (module->gap_seen)
		return 0;
	if (!module->gap_searched)
		found = search_own_debug_frame(module);
	if (found < 0)
		return found;
	module->gap_seen = true;
	if (module->debug_frame.len > 0 || !module->open_debug)
		return found;
	fd = module->open_debug(module->open_debug_user);
	if (fd < 0)
		return found;
	if (!pm_unw_may_now(module, debug_frame_cost(fd)))
		return pm_unw_do_later(module, PM_UNW_WANTED_DEBUG_FILE, fd);
	pm_unw_module_add_debug(module, fd, NULL);
	close(fd);
	return found;
}
