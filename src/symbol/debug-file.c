/* SPDX-License-Identifier: MIT */
/* Separate debug files, which src/proc finds. */
#include "symbol-internal.h"

#include "pm/proc.h"

static struct pm_debug_search search_of(const struct pm_symbol_options *options)
{
	return (struct pm_debug_search){ .dir = options->debug_dir,
					 .pid = options->pid,
					 .path = options->path };
}

/* @fd: taken, or what finding it gave. */
static int open_found(struct pm_elf_image *ret, int found)
{
	PM_AUTO_CLOSE int fd = found;

	return fd < 0 ? fd : pm_elf_image_open(ret, fd);
}

int pm_debug_file_by_id(struct pm_elf_image *ret, const void *id, size_t id_len,
			const struct pm_symbol_options *options)
{
	struct pm_debug_search search = search_of(options);

	return open_found(ret, pm_debug_find_by_id(id, id_len, &search));
}

int pm_debug_file_open(struct pm_elf_image *ret, const struct pm_elf_image *image, int fd,
		       const struct pm_symbol_options *options)
{
	struct pm_debug_search search = search_of(options);
	GElf_Shdr shdr;
	const void *id;
	ssize_t id_len;

	/* Nothing to gain where both are in the file itself. */
	if (pm_dwarf_present(image) &&
	    pm_elf_image_section(image, ".symtab", NULL, &shdr))
		return -ENOENT;
	if (fd >= 0)
		return open_found(ret, pm_debug_find(fd, &search));
	id_len = pm_elf_image_build_id(image, &id);
	return id_len > 0 ? pm_debug_file_by_id(ret, id, (size_t)id_len, options)
			  : -ENOENT;
}
