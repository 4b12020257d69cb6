/* SPDX-License-Identifier: MIT */
/* Returns the core of the static library, see core.h. */
#include "core.h"

const struct pm_self_core *pm_self_core_load(struct pm_error *err)
{
	return &pm_self_core;
}
