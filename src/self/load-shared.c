/* SPDX-License-Identifier: MIT */
/* For the shared library: see core.h. Called under the lock of profile.c. */
#include <dlfcn.h>

#include "core.h"

#ifndef PM_SELF_CORE_FILE
#error "the build passes PM_SELF_CORE_FILE"
#endif

const struct pm_self_core *pm_self_core_load(struct pm_error *err)
{
	static const struct pm_self_core *core;
	void *library;

	if (core)
		return core;
	/* Never unloaded: its threads and timers may be at work. */
	library = dlopen(PM_SELF_CORE_FILE, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (library)
		core = dlsym(library, "pm_self_core");
	if (!core)
		pm_error_set(err, -ELIBACC, "the profiler cannot be loaded: %s",
			     dlerror());
	return core;
}
