/* SPDX-License-Identifier: MIT */
/* Finds the table of Go (pm/go.h) in the file of a module. */
#include "unwind-parts.h"

#include <elf.h>
#include <sys/stat.h>

static const uint8_t *read_module_file_bytes(void *user, uint64_t offset, size_t len)
{
	struct pm_unw_go *go = user;

	if (offset > SIZE_MAX)
		return NULL;
	return pm_unw_region_need(&go->file, (size_t)offset, len);
}

void pm_unw_go_free(struct pm_unw_go *go)
{
	if (!go)
		return;
	pm_unw_region_release(&go->file);
	free(go);
}

static uint64_t find_go_file_len(const struct pm_unw_module *module)
{
	struct stat st;

	if (module->image)
		return module->image_len;
	if (module->fd >= 0 && fstat(module->fd, &st) == 0 && st.st_size > 0)
		return (uint64_t)st.st_size;
	return 0;
}

bool pm_unw_go_open(struct pm_unw_module *module)
{
	struct pm_unw_go *go = calloc(1, sizeof(*go));
	const struct pm_go_file file = { read_module_file_bytes, go };

	if (!go)
		return false;
	pm_unw_region_open(module, &go->file, 0, 0, find_go_file_len(module));
	if (go->file.len == 0 || pm_go_open(&go->table, &file) < 0) {
		pm_unw_go_free(go);
		return false;
	}
	module->go = go;
	return true;
}

/* Returns the size of the file's relocations, as the file itself states it. */
static uint64_t find_relocs_bytes(const struct pm_unw_module *module)
{
	Elf64_Dyn entries[256];
	size_t len = PM_MIN(module->dynamic_bytes, sizeof(entries));

	if (module->fd < 0 ||
	    !pm_unw_read_fully(module->fd, entries, len, module->dynamic_offset))
		return 0;
	for (size_t i = 0; i < len / sizeof(*entries); i++)
		if (entries[i].d_tag == DT_RELASZ)
			return entries[i].d_un.d_val;
	return 0;
}

uint64_t pm_unw_go_cost(const struct pm_unw_module *module)
{
	uint64_t searched = 0, data = 0, relocs = find_relocs_bytes(module);

	for (size_t i = 0; i < module->loads.len; i++) {
		const struct pm_unw_load *load = &module->loads.data[i];
		uint64_t bytes = PM_MIN(load->filesz, UINT32_MAX);

		searched += bytes;
		if (load->writable && !load->executable)
			data += bytes;
	}
	/* The search covers the header of the table and the data that point to it, which
	 * may be filled by relocations. A word costs less than an FDE does. */
	return (module->no_sections ? searched : data) / 4 +
	       PM_MIN(relocs, UINT32_MAX) / 2;
}

void pm_unw_go_set_fd(struct pm_unw_go *go, int fd)
{
	go->file.fd = fd;
}
