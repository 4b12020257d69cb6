/* SPDX-License-Identifier: MIT */
/* Opens separate debug files, which src/proc finds. */
#include "symbol-parts.h"

#include <string.h>

#include "pm/proc.h"

static struct pm_debug_search debug_search_from_options(
	const struct pm_symbol_options *options)
{
	return (struct pm_debug_search){ .dir = options->debug_dir,
					 .pid = options->pid,
					 .path = options->path };
}

/* @found is a descriptor, whose ownership is taken, or the error of the search. */
static int open_debug_image(struct pm_elf_image *out, int found,
			    const struct pm_symbol_options *options)
{
	PM_AUTO_CLOSE int fd = found;

	if (fd < 0)
		return fd;
	return pm_elf_image_open(out, fd, options->copy_files);
}

static int open_duplicated_debug_image(struct pm_elf_image *out, int fd,
				       const struct pm_symbol_options *options)
{
	if (fd < 0)
		return -ENOENT;
	return pm_elf_image_open(out, fd, options->copy_files);
}

static int debug_file_by_id(struct pm_elf_image *out, const void *id, size_t id_len,
			    const struct pm_symbol_options *options)
{
	struct pm_debug_search search = debug_search_from_options(options);

	return open_debug_image(out, pm_debug_find_by_id(id, id_len, &search), options);
}

int pm_debug_file_alt(struct pm_elf_image *out, const void *id, size_t id_len,
		      const struct pm_symbol_options *options)
{
	const void *its;
	int ret;

	if (!options->files)
		return debug_file_by_id(out, id, id_len, options);
	ret = open_duplicated_debug_image(out, options->files->alt, options);
	/* Another file may be needed: the one for the debug file, while the DWARF of the
	 * module itself is read. */
	if (ret == 0 && (pm_elf_image_build_id(out, &its) != (ssize_t)id_len ||
			 memcmp(its, id, id_len) != 0)) {
		pm_elf_image_close(out);
		ret = -ENOENT;
	}
	return ret;
}

int pm_debug_file_open(struct pm_elf_image *out, const struct pm_elf_image *image, int fd,
		       const struct pm_symbol_options *options)
{
	struct pm_debug_search search = debug_search_from_options(options);
	GElf_Shdr shdr;
	const void *id;
	ssize_t id_len;

	/* A debug file is not needed if the file itself has both DWARF and .symtab. */
	if (pm_dwarf_present(image) &&
	    pm_elf_image_section(image, ".symtab", NULL, &shdr))
		return -ENOENT;
	if (options->files)
		return open_duplicated_debug_image(out, options->files->debug, options);
	if (fd >= 0)
		return open_debug_image(out, pm_debug_find(fd, &search), options);
	id_len = pm_elf_image_build_id(image, &id);
	if (id_len <= 0)
		return -ENOENT;
	return debug_file_by_id(out, id, (size_t)id_len, options);
}

void pm_symbol_files_find(int fd, const struct pm_symbol_options *options,
			  uint64_t *crc_bytes_left, struct pm_symbol_files *out)
{
	struct pm_debug_search search = debug_search_from_options(options);

	search.crc_bytes_left = crc_bytes_left;
	*out = (struct pm_symbol_files){ .debug = pm_debug_find(fd, &search), .alt = -1 };
	if (out->debug >= 0)
		out->alt = pm_debug_find_alt(out->debug, &search);
	if (out->alt < 0)
		out->alt = pm_debug_find_alt(fd, &search);
}

void pm_symbol_files_release(struct pm_symbol_files *files)
{
	pm_cleanup_close(&files->debug);
	pm_cleanup_close(&files->alt);
	*files = (struct pm_symbol_files){ -1, -1 };
}
