/* SPDX-License-Identifier: MIT */
/* Finds the FDE that covers an address, in whichever section of the module has it. */
#include "unwind-parts.h"

/* Whether result @rc of one source means that the others are not searched. */
static bool is_final_answer(int rc)
{
	return rc == 0 || rc == -ENOBUFS || rc == -EINPROGRESS;
}

static int find_fde_in_module(struct pm_unw_module *module, uint64_t svma,
			      struct pm_unw_fde *out)
{
	int ret = pm_unw_fde_in_eh_frame(module, svma, out), filled, debug_rc;

	if (is_final_answer(ret))
		return ret;
	filled = pm_unw_module_fill_gap(module);
	if (filled == -EINPROGRESS)
		return filled;
	if (filled == 1) {
		ret = pm_unw_fde_in_eh_frame(module, svma, out);
		if (is_final_answer(ret))
			return ret;
	}
	debug_rc = pm_unw_fde_in_debug_frame(module, svma, out);
	if (debug_rc == -ENOENT)
		return ret;
	return debug_rc;
}

int pm_unw_fde_find(struct pm_unw_module *module, uint64_t svma, struct pm_unw_fde *out)
{
	int ret;

	pm_unw_task_settle(module);
	ret = find_fde_in_module(module, svma, out);
	module->was_pending |= ret == -EINPROGRESS;
	return ret;
}
