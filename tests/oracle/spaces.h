/* SPDX-License-Identifier: MIT */
/*
 * For tests that unwind real processes: converts the address spaces of pm/proc.h to those
 * of pm/unwind.h. Opens each module once.
 */
#pragma once

#include "pm/base.h"
#include "pm/proc.h"
#include "pm/unwind.h"

#include <elf.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

/* A mapped file; fd -1 and unw NULL if it could not be opened. */
struct spaces_module {
	bool tried;
	int fd;
	struct pm_unw_module *unw;
};

struct spaces_modules {
	PM_VEC(struct spaces_module) list; /* by module id */
};

struct spaces_maps {
	PM_VEC(struct pm_unw_map) maps; /* tag: the module id */
};

/* The vDSO is the same in every 64-bit process: returns our own image of it. NULL: there
 * is none. */
static inline const void *spaces_vdso(size_t *len)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
	Elf64_Ehdr header;

	if (!image)
		return NULL;
	memcpy(&header, image, sizeof(header));
	*len = header.e_shoff + (size_t)header.e_shnum * header.e_shentsize;
	return image;
}

/* Returns the image as a file, for libraries that need one. */
static inline int spaces_vdso_fd(void)
{
	size_t len;
	const void *image = spaces_vdso(&len);
	int fd = image ? memfd_create("vdso", MFD_CLOEXEC) : -1;

	if (fd >= 0 && write(fd, image, len) != (ssize_t)len)
		abort();
	return fd;
}

static inline struct spaces_module *spaces_module(struct spaces_modules *modules,
						  const struct pm_procs *procs,
						  uint32_t id)
{
	const struct pm_module *module = pm_procs_module(procs, id);
	struct spaces_module *ret;
	size_t len;

	while (modules->list.len <= id)
		if (pm_vec_push(&modules->list, (struct spaces_module){ .fd = -1 }) < 0)
			abort();
	ret = &modules->list.data[id];
	if (ret->tried)
		return ret;
	ret->tried = true;
	if (module->identity.kind == PM_MODULE_VDSO) {
		const void *image = spaces_vdso(&len);

		ret->fd = spaces_vdso_fd();
		if (image)
			pm_unw_module_from_memory(&ret->unw, image, len, NULL);
		return ret;
	}
	ret->fd = pm_module_open(module, NULL);
	if (ret->fd >= 0)
		pm_unw_module_open(&ret->unw, ret->fd, NULL);
	return ret;
}

static inline void spaces_modules_release(struct spaces_modules *modules)
{
	for (size_t i = 0; i < modules->list.len; i++) {
		pm_unw_module_free(modules->list.data[i].unw);
		if (modules->list.data[i].fd >= 0)
			close(modules->list.data[i].fd);
	}
	pm_vec_release(&modules->list);
}

/* Replaces the contents of @ret by the mappings of @space. */
static inline void spaces_fill(struct spaces_maps *ret, struct spaces_modules *modules,
			       const struct pm_procs *procs, const struct pm_space *space)
{
	pm_vec_clear(&ret->maps);
	for (size_t i = 0; i < space->maps.len; i++) {
		const struct pm_mapping *mapping = &space->maps.data[i];
		struct pm_unw_map map = {
			.start = mapping->start,
			.end = mapping->end,
			.tag = mapping->module,
		};
		struct pm_unw_module *unw =
			spaces_module(modules, procs, mapping->module)->unw;

		if (unw && pm_unw_module_bias(unw, mapping->start, mapping->pgoff,
					      &map.bias) == 0)
			map.module = unw;
		if (pm_vec_push(&ret->maps, map) < 0)
			abort();
	}
}
