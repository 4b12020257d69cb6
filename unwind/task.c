/* SPDX-License-Identifier: MIT */
/*
 * Work on a module that takes too long while a sample waits. A task has a module of its
 * own, made from the same file. After the task is done, the thread that unwinds takes
 * over the results at the next look-up. Until then, such look-ups return no answer.
 */
#include "unwind-internal.h"

#include <fcntl.h>

struct pm_unw_task {
	atomic_uint refs; /* the module's, and that of the thread that runs it */
	atomic_bool done, cancelled;
	unsigned int wanted; /* of enum pm_unw_wanted */
	int fd, debug_fd; /* -1: none */
	struct pm_unw_module *found; /* NULL: nothing could be read */
};

bool pm_unw_may_now(const struct pm_unw_module *module, uint64_t bytes)
{
	return !module->helper || module->fd < 0 ||
	       module->helper->may_now(module->helper->user,
				       (size_t)PM_MIN(bytes, SIZE_MAX));
}

void pm_unw_task_unref(struct pm_unw_task *task)
{
	if (!task || atomic_fetch_sub(&task->refs, 1) > 1)
		return;
	pm_unw_module_free(task->found);
	pm_cleanup_close(&task->fd);
	pm_cleanup_close(&task->debug_fd);
	free(task);
}

void pm_unw_task_cancel(struct pm_unw_task *task)
{
	atomic_store(&task->cancelled, true);
}

int pm_unw_do_later(struct pm_unw_module *module, unsigned int wanted, int debug_fd)
{
	PM_AUTO_CLOSE int owned_debug_fd = debug_fd;
	struct pm_unw_task *task;

	if (module->task)
		return -EINPROGRESS;
	task = calloc(1, sizeof(*task));
	if (!task)
		return -EINPROGRESS;
	atomic_init(&task->refs, 2);
	task->wanted = wanted;
	task->debug_fd = pm_take_fd(&owned_debug_fd);
	task->fd = fcntl(module->fd, F_DUPFD_CLOEXEC, 0);
	if (task->fd >= 0 && module->helper->take(module->helper->user, task)) {
		module->task = task;
		return -EINPROGRESS;
	}
	/* The module does not ask for a debug file again. */
	atomic_store(&task->refs, 1);
	pm_unw_task_unref(task);
	return -EINPROGRESS;
}

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
		/* Discards the bytes, because few of them are read again later. */
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

static void fde_table_take(struct pm_unw_fde_table *table, struct pm_unw_fde_table *from)
{
	pm_unw_fde_table_release(table);
	*table = *from;
	*from = (struct pm_unw_fde_table){ 0 };
	/* If the task could not read it, do not try again. */
	table->scanned = true;
}

/* Takes over all tables that the task has read from the file. */
static void module_take_found(struct pm_unw_module *module, struct pm_unw_module *found,
			      unsigned int wanted)
{
	if ((wanted & PM_UNW_WANTED_EH_SEARCH) && found->eh_frame.len > 0 &&
	    module->eh_frame.len == 0) {
		module->eh_frame = found->eh_frame;
		module->eh_frame.fd = module->fd;
		found->eh_frame = (struct pm_unw_region){ 0 };
		fde_table_take(&module->eh_scanned, &found->eh_scanned);
	}
	if ((wanted & PM_UNW_WANTED_GO) && found->go && !module->go) {
		module->go = PM_TAKE_PTR(found->go);
		pm_unw_go_set_fd(module->go, module->fd);
	}
	if (wanted & PM_UNW_WANTED_EH_TABLE)
		fde_table_take(&module->eh_scanned, &found->eh_scanned);
	if (wanted & PM_UNW_WANTED_DEBUG_TABLE)
		fde_table_take(&module->debug_scanned, &found->debug_scanned);
	if (wanted & (PM_UNW_WANTED_UNPACKED | PM_UNW_WANTED_DEBUG_FILE))
		pm_unw_take_debug(module, found);
}

void pm_unw_task_settle(struct pm_unw_module *module)
{
	struct pm_unw_task *task = module->task;

	if (!task || !atomic_load(&task->done))
		return;
	module->task = NULL;
	if (task->wanted & PM_UNW_WANTED_GO)
		module->go_tried = true;
	if (task->wanted & PM_UNW_WANTED_UNPACKED)
		module->debug_packed = false;
	if (task->wanted & (PM_UNW_WANTED_EH_SEARCH | PM_UNW_WANTED_UNPACKED) ||
	    (module->no_sections && module->go_tried))
		module->gap_searched = true;
	if (task->found)
		module_take_found(module, task->found, task->wanted);
	/* If the task could not even open the file, do not try again. */
	module->eh_scanned.scanned |= task->wanted & PM_UNW_WANTED_EH_TABLE;
	module->debug_scanned.scanned |= task->wanted & PM_UNW_WANTED_DEBUG_TABLE;
	pm_unw_task_unref(task);
	pm_unw_module_renew(module);
}

void pm_unw_task_drop(struct pm_unw_module *module)
{
	if (!module->task)
		return;
	pm_unw_task_cancel(module->task);
	pm_unw_task_unref(PM_TAKE_PTR(module->task));
}

void pm_unw_module_set_helper(struct pm_unw_module *module,
			      const struct pm_unw_helper *helper)
{
	module->helper = helper;
}

struct pm_unw_module_tables pm_unw_module_tables(const struct pm_unw_module *module)
{
	return (struct pm_unw_module_tables){
		.pending = module->was_pending,
		.too_large =
			module->eh_scanned.too_large || module->debug_scanned.too_large,
	};
}
