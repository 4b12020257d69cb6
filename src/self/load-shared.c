/* SPDX-License-Identifier: MIT */
/* Loads the core into the shared library, see core.h. Called under the lock of
 * profile.c. */
#include <dlfcn.h>
#include <limits.h>
#include <string.h>

#include "core.h"

#ifndef PM_SELF_CORE_FILE
#error "the build passes PM_SELF_CORE_FILE"
#endif

/* The library is never unloaded, because its threads and timers may be running. */
static void *load_library(const char *path)
{
	return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

static void *load_beside(const char *folder)
{
	char path[PATH_MAX];
	Dl_info own;
	const char *slash;

	if (!dladdr(load_beside, &own) || !own.dli_fname ||
	    !(slash = strrchr(own.dli_fname, '/')))
		return NULL;
	if (snprintf(path, sizeof(path), "%.*s/%s%s", (int)(slash - own.dli_fname),
		     own.dli_fname, folder, PM_SELF_CORE_FILE) >= (int)sizeof(path))
		return NULL;
	return load_library(path);
}

const struct pm_self_core *pm_self_core_load(struct pm_error *err)
{
	static const struct pm_self_core *core;
	void *library;

	if (core)
		return core;
	library = load_library(PM_SELF_CORE_FILE);
	/* If another library interposes dlopen(), our own RUNPATH is not used. */
	if (!library)
		library = load_beside("pmself/");
	if (!library)
		library = load_beside("");
	if (library)
		core = dlsym(library, "pm_self_core");
	if (!core)
		pm_error_set(err, -ELIBACC, "the profiler cannot be loaded: %s",
			     dlerror());
	return core;
}
