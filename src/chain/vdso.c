/* SPDX-License-Identifier: MIT */
#include "pm/chain-vdso.h"

#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>

enum {
	VDSO_BYTES_MAX = 1 << 16, /* Linux has 4 to 12 KiB */
};

/* Finds the mapping that starts at @start, if it is a vDSO. */
static bool find_mapping(const char *maps_path, uint64_t start, struct pm_maps_line *out)
{
	PM_AUTO_FCLOSE FILE *maps = fopen(maps_path, "re");
	PM_AUTO_FREE char *text = NULL;
	size_t cap = 0;
	ssize_t len;

	while (maps && (len = getline(&text, &cap, maps)) > 0) {
		if (text[len - 1] == '\n')
			text[--len] = '\0';
		if (pm_maps_line_parse(text, (size_t)len, out) == 0 &&
		    out->start == start && out->end > start &&
		    out->end - start <= VDSO_BYTES_MAX &&
		    pm_module_kind_of(out->path, NULL) == PM_MODULE_VDSO)
			return true;
	}
	return false;
}

void pm_chain_vdso_own(struct pm_chain_vdso *out)
{
	uint64_t start = getauxval(AT_SYSINFO_EHDR);
	struct pm_maps_line line;

	*out = (struct pm_chain_vdso){ 0 };
	/* /proc/self/maps is empty once the first thread has ended. */
	if (start && find_mapping("/proc/thread-self/maps", start, &line))
		*out = (struct pm_chain_vdso){ .image = (void *)(uintptr_t)start,
					       .len = line.end - start };
}

int pm_chain_vdso_copy(const struct pm_module *module, struct pm_chain_vdso *out)
{
	PM_AUTO_CLOSE int fd = -1;
	PM_AUTO_FREE void *image = NULL;
	char path[64];
	struct pm_maps_line line;
	size_t len;

	/* The process may have ended, and its id may have been reused: its mappings show
	 * both. */
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)module->seen_pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)module->seen_pid);
	if (!find_mapping(path, module->seen_start, &line))
		return -ENOENT;
	len = line.end - line.start;
	image = malloc(len);
	if (!image)
		return -ENOMEM;
	if (pread(fd, image, len, (off_t)line.start) != (ssize_t)len)
		return -EIO;
	*out = (struct pm_chain_vdso){ .image = PM_TAKE_PTR(image), .len = len };
	return 0;
}

void pm_chain_vdso_release(struct pm_chain_vdso *vdso)
{
	free(vdso->image);
	*vdso = (struct pm_chain_vdso){ 0 };
}
