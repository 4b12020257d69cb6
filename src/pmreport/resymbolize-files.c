/* SPDX-License-Identifier: MIT */
/* Finds the files of a module, which only its build-id identifies. */
#include "resymbolize-internal.h"

#include <string.h>

#define USUAL_DEBUG_DIR "/usr/lib/debug"

static bool is_module_file(int fd, const struct pm_resymbolize_module *module)
{
	uint8_t id[PM_MODULE_BUILD_ID_MAX], len;

	return pm_elf_build_id(fd, id, &len) == 0 && len == module->id_len &&
	       memcmp(id, module->id, len) == 0;
}

/* Opens @path below @prefix, if it is the module's file. Sets *@other if another file is
 * there. */
static int open_module_path(const char *prefix, const char *path,
			    const struct pm_resymbolize_module *module, bool *other)
{
	PM_CLEANUP(pm_str_release) struct pm_str whole = { 0 };
	PM_AUTO_CLOSE int fd = -1;

	pm_str_printf(&whole, "%s%s", prefix, path);
	if (whole.failed)
		return -ENOMEM;
	fd = pm_file_open(0, whole.data);
	if (fd < 0)
		return fd;
	if (is_module_file(fd, module))
		return pm_take_fd(&fd);
	*other = true;
	return -ESTALE;
}

/* Searches all folders of debug files. @fd: the module's file; -1: not available. */
static int open_module_debug_file(const struct pm_resymbolize *resymbolize,
				  const struct pm_resymbolize_module *module, int fd,
				  const char **dir)
{
	const char *const dirs[] = { resymbolize->debug_dir, resymbolize->symfs_debug,
				     USUAL_DEBUG_DIR };

	for (size_t i = 0; i < PM_ARRAY_LEN(dirs); i++) {
		struct pm_debug_search search = { .dir = dirs[i] };
		PM_AUTO_CLOSE int found = -1;

		if (!dirs[i])
			continue;
		if (fd >= 0)
			found = pm_debug_find(fd, &search);
		else
			found = pm_debug_find_by_id(module->id, module->id_len, &search);
		if (found < 0 || !is_module_file(found, module))
			continue;
		*dir = dirs[i];
		return pm_take_fd(&found);
	}
	return -ENOENT;
}

enum pm_resymbolize_state pm_resymbolize_open(const struct pm_resymbolize *resymbolize,
					      const struct pm_resymbolize_module *module,
					      struct pm_symbol_input *out)
{
	bool other = false;

	*out = (struct pm_symbol_input){ .fd = -1,
					 .debug = -1,
					 .no_search = true,
					 .debug_dir = resymbolize->debug_dir };
	if (module->id_len == 0)
		return PM_RESYMBOLIZE_NO_ID;
	if (resymbolize->symfs)
		out->fd = open_module_path(resymbolize->symfs, module->path, module,
					   &other);
	if (out->fd < 0 && module->path[0] == '/')
		out->fd = open_module_path("", module->path, module, &other);
	if (out->fd < 0 && module->fetched && module->fetched_executable)
		out->fd = open_module_path("", module->fetched, module, &other);
	if (module->fetched && !module->fetched_executable)
		out->debug = open_module_path("", module->fetched, module, &other);
	if (out->debug < 0)
		out->debug = open_module_debug_file(resymbolize, module, out->fd,
						    &out->debug_dir);
	/* A debug file without the module's file is enough: it has the symbols, the lines
	 * and the addresses of the code. */
	if (out->fd < 0 && out->debug >= 0) {
		out->fd = out->debug;
		out->debug = -1;
	}
	if (out->fd >= 0)
		return PM_RESYMBOLIZE_FOUND;
	if (other)
		return PM_RESYMBOLIZE_OTHER_BUILD;
	return PM_RESYMBOLIZE_NOT_HERE;
}
