/* SPDX-License-Identifier: MIT */
/* For the static library, see core.h. */
#include "core.h"

const struct pm_self_core *pm_self_core_load(struct pm_error *err)
{
	return &pm_self_core;
}
