/* SPDX-License-Identifier: MIT */
/*
 * Work on a module that takes too long while a sample waits. A task has its own module,
 * made from the same file. After the task is done, the next look-up on the unwinding
 * thread takes over the results. Until then, such look-ups return no answer.
 */
#include "unwind-parts.h"

void pm_unw_task_run(struct pm_unw_task *task)
{
	struct pm_unw_module *module = NULL;
	unsigned int wanted = task->wanted;

	if (!atomic_load(&task->cancelled) &&
	    pm_unw_module_open(&module, task->fd, NULL) == 0) {
		module->cancelled = &task->cancelled;
		if (wanted & PM_UNW_WANTED_EH_SEARCH)
			pm_unw_eh_frame_search(module);
		if (wanted & PM_UNW_WANTED_GO)
			pm_unw_go_open(module);
		if (wanted & PM_UNW_WANTED_UNPACKED)
			pm_unw_unpack_own(module);
		if (wanted & PM_UNW_WANTED_DEBUG_FILE)
			pm_unw_module_add_debug(module, task->debug_fd, NULL);
		if (wanted & PM_UNW_WANTED_EH_TABLE)
			pm_unw_fde_scan(module);
		if (wanted & (PM_UNW_WANTED_UNPACKED | PM_UNW_WANTED_DEBUG_FILE |
			      PM_UNW_WANTED_DEBUG_TABLE))
			pm_unw_fde_scan_debug(module);
		module->cancelled = NULL;
		/* Discard the bytes, because few of them are read again later. */
		if (!(wanted & PM_UNW_WANTED_EH_SEARCH))
			pm_unw_region_release(&module->eh_frame);
		if (wanted & PM_UNW_WANTED_DEBUG_TABLE)
			pm_unw_region_release(&module->debug_frame);
	} else {
		module = NULL;
	}
	task->found = module;
	atomic_store(&task->done, true);
}
