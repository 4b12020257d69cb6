/* SPDX-License-Identifier: MIT */
/* Separate debug files, which src/proc finds. */
#include "symbol-internal.h"

#include <string.h>

#include "pm/proc.h"

static struct pm_debug_search debug_search_from_options(
	const struct pm_symbol_options *options)
{
	return (struct pm_debug_search){ .dir = options->debug_dir,
					 .pid = options->pid,
					 .path = options->path };
}

/* Takes ownership of @found, a descriptor or the error of a search. */
static int open_debug_image(struct pm_elf_image *ret, int found,
			    const struct pm_symbol_options *options)
{
	PM_AUTO_CLOSE int fd = found;

	if (fd < 0)
		return fd;
	return pm_elf_image_open(ret, fd, options->copy_files);
}

static int open_duplicated_debug_image(struct pm_elf_image *ret, int fd,
				       const struct pm_symbol_options *options)
{
	if (fd < 0)
		return -ENOENT;
	return pm_elf_image_open(ret, fd, options->copy_files);
}

static int debug_file_by_id(struct pm_elf_image *ret, const void *id, size_t id_len,
			    const struct pm_symbol_options *options)
{
	struct pm_debug_search search = debug_search_from_options(options);

	return open_debug_image(ret, pm_debug_find_by_id(id, id_len, &search), options);
}

int pm_debug_file_alt(struct pm_elf_image *ret, const void *id, size_t id_len,
		      const struct pm_symbol_options *options)
{
	const void *its;
	int code;

	if (!options->files)
		return debug_file_by_id(ret, id, id_len, options);
	code = open_duplicated_debug_image(ret, options->files->alt, options);
	/* It may belong to another file: to the debug file, while the DWARF of the module
	 * itself is read. */
	if (code == 0 && (pm_elf_image_build_id(ret, &its) != (ssize_t)id_len ||
			  memcmp(its, id, id_len) != 0)) {
		pm_elf_image_close(ret);
		code = -ENOENT;
	}
	return code;
}

int pm_debug_file_open(struct pm_elf_image *ret, const struct pm_elf_image *image, int fd,
		       const struct pm_symbol_options *options)
{
	struct pm_debug_search search = debug_search_from_options(options);
	GElf_Shdr shdr;
	const void *id;
	ssize_t id_len;

	/* A debug file is not needed if the file itself has both. */
	if (pm_dwarf_present(image) &&
	    pm_elf_image_section(image, ".symtab", NULL, &shdr))
		return -ENOENT;
	if (options->files)
		return open_duplicated_debug_image(ret, options->files->debug, options);
	if (fd >= 0)
		return open_debug_image(ret, pm_debug_find(fd, &search), options);
	id_len = pm_elf_image_build_id(image, &id);
	if (id_len <= 0)
		return -ENOENT;
	return debug_file_by_id(ret, id, (size_t)id_len, options);
}

void pm_symbol_files_find(int fd, const struct pm_symbol_options *options,
			  uint64_t *crc_bytes_left, struct pm_symbol_files *ret)
{
	struct pm_debug_search search = debug_search_from_options(options);

	search.crc_bytes_left = crc_bytes_left;
	*ret = (struct pm_symbol_files){ .debug = pm_debug_find(fd, &search), .alt = -1 };
	if (ret->debug >= 0)
		ret->alt = pm_debug_find_alt(ret->debug, &search);
	if (ret->alt < 0)
		ret->alt = pm_debug_find_alt(fd, &search);
}

void pm_symbol_files_release(struct pm_symbol_files *files)
{
	pm_cleanup_close(&files->debug);
	pm_cleanup_close(&files->alt);
	*files = (struct pm_symbol_files){ -1, -1 };
}
