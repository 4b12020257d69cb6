/* SPDX-License-Identifier: MIT */
#include "pm/chain-tasks.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static struct pm_chain_name name_of(const struct pm_thread *thread)
{
	struct pm_chain_name ret = { .since_ns = thread->since_ns };

	memcpy(ret.comm, thread->comm, sizeof(ret.comm));
	return ret;
}

int pm_chain_tasks_names(const struct pm_chain_tasks *tasks,
			 const struct pm_record *record, struct pm_chain_names *out)
{
	const struct pm_thread *thread = NULL, *leader = NULL;

	*out = (struct pm_chain_names){ 0 };
	if (record->tid != PM_FILE_NONE) {
		thread = pm_procs_thread(tasks->procs, (pid_t)record->pid,
					 (pid_t)record->tid);
		if (!thread)
			return -ENOMEM;
		out->known = true;
		out->thread = name_of(thread);
	}
	if (record->pid != record->tid && record->pid != PM_FILE_NONE)
		leader = pm_procs_find_thread(tasks->procs, (pid_t)record->pid,
					      (pid_t)record->pid);
	if (leader)
		out->leader = name_of(leader);
	return 0;
}

/* Notes the time from which the thread has had the name in @record. */
static void name_since(const struct pm_chain_tasks *tasks, const struct pm_record *record)
{
	struct pm_thread *thread = pm_procs_find_thread(tasks->procs, (pid_t)record->pid,
							(pid_t)record->tid);

	if (thread)
		thread->since_ns = record->time;
}

/*
 * Whether the file of module @id was written after it was first mapped. A file that is
 * overwritten in place keeps its inode, and is a different module from then on. The
 * kernel's cached attributes are used; no file server is asked for them (statx(2)).
 */
static bool was_written(const struct pm_chain_modules *modules,
			const struct pm_procs *procs, uint32_t id)
{
	const struct pm_module *module = pm_procs_module(procs, id);
	int fd = id < modules->list.len ? modules->list.data[id].fd : -1;
	struct statx st;
	struct timespec now;
	int64_t written_ns, now_ns;

	if (fd < 0 || module->seen_ns == 0 ||
	    statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		  STATX_CTIME | STATX_MTIME | STATX_SIZE, &st) < 0)
		return false;
	/* The ctime is used because it cannot be set back, as `cp -p` does with the
	 * mtime. */
	written_ns = (int64_t)st.stx_ctime.tv_sec * 1000000000 + st.stx_ctime.tv_nsec;
	clock_gettime(CLOCK_REALTIME, &now);
	now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	/* If the time is in the future, a clock is wrong. */
	if (written_ns <= module->seen_ns || written_ns > now_ns)
		return false;
	/* New links, changed permissions and the like change only the ctime. */
	return st.stx_size != modules->list.data[id].size ||
	       (int64_t)st.stx_mtime.tv_sec * 1000000000 + st.stx_mtime.tv_nsec !=
		       modules->list.data[id].mtime_ns;
}

/* Whether the path of module @id led to a different file when it was opened again. */
static bool was_lost(const struct pm_chain_modules *modules, uint32_t id)
{
	return id < modules->list.len && modules->list.data[id].was_open &&
	       modules->list.data[id].error == -ESTALE;
}

static void retire_written(const struct pm_chain_tasks *tasks,
			   const struct pm_module_identity *identity)
{
	int64_t id = pm_procs_find_module(tasks->procs, identity);

	if (id != PM_MODULE_NONE && tasks->modules &&
	    (was_written(tasks->modules, tasks->procs, (uint32_t)id) ||
	     was_lost(tasks->modules, (uint32_t)id))) {
		/* The content that the file had at the time of the sample is lost. */
		tasks->modules->list.data[id].error = -ESTALE;
		pm_procs_retire_module(tasks->procs, (uint32_t)id);
	}
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
	if (identity.kind == PM_MODULE_FILE)
		retire_written(tasks, &identity);
	ret = pm_procs_map(tasks->procs, (pid_t)record->pid, mmap->start, mmap->len,
			   mmap->pgoff, mmap->prot, &identity);
	if (ret == -ENOMEM)
		return ret; /* an invalid range is ignored */
	if (identity.kind == PM_MODULE_FILE)
		return pm_chain_jit_map(tasks->jit, (pid_t)record->pid, &identity);
	return 0;
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
	if (ret == 0)
		name_since(tasks, record);
	return ret;
}

static int on_fork_record(const struct pm_chain_tasks *tasks,
			  const struct pm_record *record)
{
	pid_t parent = (pid_t)record->fork.parent_pid;
	int ret;

	pm_chains_forget_thread(tasks->chains, record->pid, record->tid);
	ret = pm_procs_fork(tasks->procs, (pid_t)record->pid, (pid_t)record->tid, parent,
			    (pid_t)record->fork.parent_tid);
	if (ret == 0 && record->pid != record->fork.parent_pid)
		ret = pm_chain_jit_fork(tasks->jit, (pid_t)record->pid, parent);
	if (ret == 0)
		name_since(tasks, record);
	return ret;
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
		return on_fork_record(tasks, record);
	case PERF_RECORD_EXIT:
		pm_chains_forget_thread(tasks->chains, record->pid, record->tid);
		pm_procs_exit(tasks->procs, (pid_t)record->pid, (pid_t)record->tid);
		if (record->pid == record->tid)
			pm_chain_jit_exit(tasks->jit, (pid_t)record->pid);
		return 0;
	default:
		return 0;
	}
}
