/* SPDX-License-Identifier: MIT */
#include "pm/chain-tasks.h"

#include <limits.h>
#include <linux/perf_event.h>
#include <string.h>

int pm_chain_tasks_name(const struct pm_chain_tasks *tasks,
			const struct pm_record *record)
{
	const struct pm_thread *thread;
	uint64_t time = record->time;

	/* Any of its process may be the one: that a thread which ends is no longer in the
	 * kernel's tables is all that is known. */
	if (record->tid == PM_FILE_NONE)
		return 0;
	thread = pm_procs_thread(tasks->procs, (pid_t)record->pid, (pid_t)record->tid);
	if (!thread)
		return -ENOMEM;
	/* No number of the file is above that (docs/format.md §2). */
	if (time > INT64_MAX) {
		time = INT64_MAX;
		if (tasks->clamped)
			++*tasks->clamped;
	}
	return pm_chain_threads_name(tasks->threads, tasks->writer, record->pid,
				     record->tid, thread->comm, time);
}

static int on_mmap(const struct pm_chain_tasks *tasks, const struct pm_record *record)
{
	const struct pm_mmap_record *mmap = &record->mmap;
	struct pm_module_identity identity = { .major = mmap->major,
					       .minor = mmap->minor,
					       .inode = mmap->inode,
					       .generation = mmap->inode_generation,
					       .generation_known = mmap->identified };
	char path[PATH_MAX];
	size_t len;
	int ret;

	identity.kind = pm_module_kind_of(mmap->path, &len);
	if (identity.kind == PM_MODULE_KERNEL || len >= sizeof(path))
		return 0;
	memcpy(path, mmap->path, len);
	path[len] = '\0';
	identity.path = path;
	ret = pm_procs_map(tasks->procs, (pid_t)record->pid, mmap->start, mmap->len,
			   mmap->pgoff, mmap->prot, &identity);
	if (ret == -ENOMEM)
		return ret; /* a senseless range changes nothing */
	return identity.kind == PM_MODULE_FILE
		       ? pm_chain_jit_map(tasks->jit, (pid_t)record->pid, &identity)
		       : 0;
}

static int on_comm(const struct pm_chain_tasks *tasks, const struct pm_record *record)
{
	pid_t pid = (pid_t)record->pid;
	int ret = 0;

	if (record->comm.exec) {
		pm_chains_forget_process(tasks->chains, record->pid);
		ret = pm_chain_jit_exec(tasks->jit, pid);
	}
	if (ret == 0)
		ret = pm_procs_comm(tasks->procs, pid, (pid_t)record->tid,
				    record->comm.name, record->comm.exec);
	return ret < 0 ? ret : pm_chain_tasks_name(tasks, record);
}

static int on_fork(const struct pm_chain_tasks *tasks, const struct pm_record *record)
{
	pid_t parent = (pid_t)record->fork.parent_pid;
	int ret;

	pm_chains_forget_thread(tasks->chains, record->pid, record->tid);
	ret = pm_procs_fork(tasks->procs, (pid_t)record->pid, (pid_t)record->tid, parent,
			    (pid_t)record->fork.parent_tid);
	if (ret == 0 && record->pid != record->fork.parent_pid)
		ret = pm_chain_jit_fork(tasks->jit, (pid_t)record->pid, parent);
	return ret < 0 ? ret : pm_chain_tasks_name(tasks, record);
}

int pm_chain_tasks_record(const struct pm_chain_tasks *tasks,
			  const struct pm_record *record)
{
	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return on_mmap(tasks, record);
	case PERF_RECORD_COMM:
		return on_comm(tasks, record);
	case PERF_RECORD_FORK:
		return on_fork(tasks, record);
	case PERF_RECORD_EXIT:
		pm_chains_forget_thread(tasks->chains, record->pid, record->tid);
		pm_procs_exit(tasks->procs, (pid_t)record->pid, (pid_t)record->tid);
		return 0;
	default:
		return 0;
	}
}
