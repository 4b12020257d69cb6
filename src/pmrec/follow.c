/* SPDX-License-Identifier: MIT */
#include "follow.h"

#include <dirent.h>
#include <linux/perf_event.h>
#include <string.h>

#include "pm/chain-jit.h"
#include "pm/proc.h"
#include "progress.h"

#define READ_SLICE_NS 20000000ull /* the rings are not read meanwhile */

enum {
	/* a search for ended tasks starts at this many tasks */
	ROWS_SWEEP = 4096,
};

struct row {
	pid_t id;
	bool ours, read;
	bool ended; /* at the last sweep; its last records have been read since */
};

struct rows {
	PM_VEC(struct row) list;
	struct pm_index index;
	size_t sweep_at; /* the number of rows that triggers the next sweep */
};

struct pm_rec_follow {
	bool filter; /* events also report tasks that are not ours */
	bool by_thread; /* -t, or -i with events of CPUs: only some threads are ours */
	bool forked;
	struct rows processes;
	struct rows threads; /* by_thread */
	PM_VEC(pid_t) waiting; /* processes to read before they are needed */
	size_t unreadable; /* processes with samples whose mappings we may not read */
	pid_t unreadable_pid; /* the first */
	bool cpus_came;
	size_t gone; /* processes with samples that ended before they were read again */
};

static bool row_equal(const void *table, uint32_t id, const void *key)
{
	return ((const struct rows *)table)->list.data[id].id == *(const pid_t *)key;
}

static struct row *find_followed_row(struct rows *rows, pid_t id)
{
	uint32_t at = pm_index_find(&rows->index, pm_hash_mix((uint32_t)id, 0), row_equal,
				    rows, &id);

	if (at == PM_INDEX_NONE)
		return NULL;
	return &rows->list.data[at];
}

/* Drops tasks that had already ended at the previous sweep. If memory runs out, also
 * forgets the remaining tasks, which are read again when needed. */
static void rows_sweep(struct rows *rows)
{
	size_t len = rows->list.len, ended = 0;

	if (len < ROWS_SWEEP || len < rows->sweep_at)
		return;
	pm_index_release(&rows->index);
	rows->list.len = 0;
	for (size_t i = 0; i < len; i++) {
		struct row row = rows->list.data[i];
		bool gone = pm_task_is_gone(row.id);

		if (gone && row.ended)
			continue;
		row.ended = gone;
		ended += gone;
		if (pm_index_add(&rows->index, pm_hash_mix((uint32_t)row.id, 0),
				 (uint32_t)rows->list.len) == 0)
			rows->list.data[rows->list.len++] = row;
	}
	/* The next sweep drops those that have just ended. */
	rows->sweep_at = 2 * (rows->list.len - ended) + ROWS_SWEEP;
}

/* Creates the row if it is new. NULL without memory. Valid until the next creation. */
static struct row *get_row(struct rows *rows, pid_t id)
{
	struct row *row = find_followed_row(rows, id);

	if (row)
		return row;
	if (pm_vec_push(&rows->list, (struct row){ .id = id }) < 0)
		return NULL;
	if (pm_index_add(&rows->index, pm_hash_mix((uint32_t)id, 0),
			 (uint32_t)rows->list.len - 1) < 0) {
		rows->list.len--;
		return NULL;
	}
	return &rows->list.data[rows->list.len - 1];
}

struct pm_rec_follow *pm_rec_follow_new(void)
{
	return calloc(1, sizeof(struct pm_rec_follow));
}

void pm_rec_follow_free(struct pm_rec_follow *follow)
{
	if (!follow)
		return;
	pm_vec_release(&follow->processes.list);
	pm_index_release(&follow->processes.index);
	pm_vec_release(&follow->threads.list);
	pm_index_release(&follow->threads.index);
	pm_vec_release(&follow->waiting);
	free(follow);
}

/* ---- which tasks are ours ------------------------------------------------------------------- */

/* NULL without memory. If no record reported the start of the process, pm_perf_follows()
 * decides. */
static struct row *process_row(struct pm_rec_session *session, pid_t pid)
{
	struct pm_rec_follow *follow = session->follow;
	struct row *row = find_followed_row(&follow->processes, pid);
	bool ours;

	if (row)
		return row;
	ours = !follow->filter || pm_perf_follows(session->perf, pid);
	row = get_row(&follow->processes, pid);
	if (row)
		row->ours = ours;
	return row;
}

/* 1, 0 or -ENOMEM. */
static int is_task_followed(struct pm_rec_session *session, pid_t pid, pid_t tid)
{
	struct pm_rec_follow *follow = session->follow;
	const struct row *row;

	if (!follow->filter)
		return 1;
	if (follow->by_thread) {
		row = find_followed_row(&follow->threads, tid);
		if (row)
			return row->ours;
		return pm_perf_follows(session->perf, tid);
	}
	row = process_row(session, pid);
	if (!row)
		return -ENOMEM;
	return row->ours;
}

/* ---- reading -------------------------------------------------------------------------------- */

enum reading {
	READING_AHEAD, /* no record needs the process yet */
	READING_FOR_RECORD,
};

static int read_process(struct pm_rec_session *session, pid_t pid, enum reading why)
{
	bool wanted = why == READING_FOR_RECORD;
	struct pm_rec_follow *follow = session->follow;
	struct row *row = process_row(session, pid);
	const struct pm_process *process;
	int ret;

	if (!row)
		return -ENOMEM;
	if (row->read)
		return 0;
	row->read = true;
	if (pid == 0) /* not in /proc: the idle task of a CPU */
		return pm_procs_comm(session->procs, 0, 0, "swapper", false);
	ret = pm_procs_read(session->procs, pid, NULL);
	if (ret == -ENOMEM)
		return ret;
	if ((ret == -EACCES || ret == -EPERM) && wanted && follow->unreadable++ == 0)
		follow->unreadable_pid = pid;
	else if (ret < 0 && wanted && follow->cpus_came)
		follow->gone++;
	if (ret < 0)
		return 0; /* it has ended */
	process = pm_procs_get(session->procs, pid);
	for (size_t i = 0; process && i < process->space.maps.len; i++) {
		const struct pm_module *module = pm_procs_module(
			session->procs, process->space.maps.data[i].module);

		if (module->identity.kind != PM_MODULE_FILE)
			continue;
		ret = pm_chain_jit_map(session->jit, pid, &module->identity);
		if (ret < 0)
			return ret;
	}
	if (!process)
		return -ENOMEM;
	return 0;
}

static int await_all(struct pm_rec_follow *follow)
{
	DIR *dir = opendir("/proc");
	const struct dirent *entry;
	uint64_t pid;
	int ret = dir ? 0 : -errno;

	while (ret == 0 && (entry = readdir(dir)))
		if (pm_parse_u64(entry->d_name, &pid) && pid > 0 && pid <= INT32_MAX)
			ret = pm_vec_push(&follow->waiting, (pid_t)pid);
	if (dir)
		closedir(dir);
	if (ret == -ENOMEM)
		return ret;
	return 0; /* without /proc nothing is known in advance */
}

int pm_rec_follow_read(struct pm_rec_session *session)
{
	struct pm_rec_follow *follow = session->follow;
	uint64_t end = pm_now_ns() + READ_SLICE_NS;

	while (follow->waiting.len > 0 && pm_now_ns() < end) {
		int ret =
			read_process(session, follow->waiting.data[--follow->waiting.len],
				     READING_AHEAD);

		if (ret < 0)
			return ret;
	}
	return follow->waiting.len > 0;
}

int pm_rec_follow_again(struct pm_rec_session *session)
{
	struct pm_rec_follow *follow = session->follow;
	struct rows *processes = &follow->processes;

	for (size_t i = 0; i < processes->list.len; i++) {
		processes->list.data[i].read = false;
		if (processes->list.data[i].ours &&
		    pm_vec_push(&follow->waiting, processes->list.data[i].id) < 0)
			return -ENOMEM;
	}
	if (session->targets.kind == PM_PERF_CPUS)
		return await_all(follow);
	return 0;
}

int pm_rec_follow_cpus(struct pm_rec_session *session)
{
	session->follow->cpus_came = true;
	return pm_rec_follow_again(session);
}

/* ---- public --------------------------------------------------------------------------------- */

int pm_rec_follow_begin(struct pm_rec_session *session)
{
	struct pm_rec_follow *follow = session->follow;
	const struct pm_targets *targets = &session->targets;
	struct row *row;

	follow->filter = session->perf && pm_perf_per_cpu(session->perf);
	follow->by_thread = follow->filter && session->options->targets.no_inherit &&
			    targets->kind == PM_PERF_TASKS;
	if (targets->kind == PM_PERF_CPUS)
		return await_all(follow);
	if (targets->kind == PM_PERF_COMMAND) {
		row = get_row(&follow->processes, session->child.launch.pid);
		if (!row)
			return -ENOMEM;
		row->ours = row->read = true;
		return 0;
	}
	for (size_t i = 0; i < targets->roots.len; i++) {
		const struct pm_root *root = &targets->roots.data[i];

		row = get_row(&follow->processes, root->pid);
		if (!row || pm_vec_push(&follow->waiting, root->pid) < 0)
			return -ENOMEM;
		row->ours = true;
		if (root->tid == 0)
			continue;
		follow->by_thread = true;
	}
	for (size_t i = 0; follow->by_thread && i < targets->tids.len; i++) {
		row = get_row(&follow->threads, targets->tids.data[i]);
		if (!row)
			return -ENOMEM;
		row->ours = true;
	}
	return 0;
}

/* A new task is ours if its creator is. */
static int on_followed_fork(struct pm_rec_session *session,
			    const struct pm_record *record)
{
	struct pm_rec_follow *follow = session->follow;
	pid_t parent_pid = (pid_t)record->fork.parent_pid;
	int ours = is_task_followed(session, parent_pid, (pid_t)record->fork.parent_tid);
	bool inherits = !session->options->targets.no_inherit ||
			session->targets.kind == PM_PERF_CPUS;
	struct row *row;
	int ret;

	if (ours < 0)
		return ours;
	for (size_t i = 0; i < session->targets.late.len; i++)
		if (session->targets.late.data[i] == (pid_t)record->tid)
			session->targets.late.data[i] = 0;
	if (follow->by_thread && follow->filter) {
		row = get_row(&follow->threads, (pid_t)record->tid);
		if (!row)
			return -ENOMEM;
		row->ours = ours && inherits;
	}
	/* The clocks of the roots do not include the time of these. */
	follow->forked |=
		ours && (record->pid != record->fork.parent_pid || follow->by_thread);
	if (ours) {
		/* A child process inherits the mappings of its parent, a thread the name
		 * of its creator. Both must be known first. */
		ret = read_process(session, parent_pid, READING_FOR_RECORD);
		if (ret < 0)
			return ret;
	}
	if (record->pid == record->fork.parent_pid)
		return ours;
	row = get_row(&follow->processes, (pid_t)record->pid);
	if (!row)
		return -ENOMEM;
	row->ours = ours && inherits;
	row->read = true;
	return ours && inherits;
}

/* Reads the names and mappings of the process, which the task's records need. */
static int admit_task(struct pm_rec_session *session, pid_t pid, pid_t tid)
{
	int ours = is_task_followed(session, pid, tid);

	if (ours <= 0 || pid < 0)
		return ours;
	if (read_process(session, pid, READING_FOR_RECORD) < 0)
		return -ENOMEM;
	return 1;
}

int pm_rec_follow_admit(struct pm_rec_session *session, const struct pm_record *record)
{
	struct pm_rec_follow *follow = session->follow;
	pid_t pid = (pid_t)record->pid, tid = (pid_t)record->tid;
	const struct row *row;

	if (!follow)
		return 1;
	switch (record->type) {
	case PERF_RECORD_FORK:
		return on_followed_fork(session, record);
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		/* A thread that has ended is reported as -1; 0 is the idle task. */
		if (pid <= 0 || tid <= 0)
			return 0;
		return admit_task(session, pid, tid);
	case PERF_RECORD_SAMPLE:
		return admit_task(session, pid, tid);
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
	case PERF_RECORD_EXIT:
		/* All mappings of a process matter, even if only one thread is ours. */
		if (!follow->filter || pid < 0)
			return 1;
		row = process_row(session, pid);
		if (!row)
			return -ENOMEM;
		return row->ours;
	default:
		return 1;
	}
}

void pm_rec_follow_sweep(struct pm_rec_follow *follow)
{
	if (!follow)
		return;
	rows_sweep(&follow->processes);
	rows_sweep(&follow->threads);
}

bool pm_rec_follow_forked(const struct pm_rec_session *session)
{
	return session->follow && session->follow->forked;
}

void pm_rec_follow_warn(struct pm_rec_session *session)
{
	struct pm_rec_follow *follow = session->follow;
	size_t missing = 0;
	char text[256];

	if (!follow)
		return;
	if (follow->unreadable > 0) {
		snprintf(text, sizeof(text),
			 "the mappings of process %d%s may not be read, so its addresses "
			 "stay without names (it takes CAP_SYS_PTRACE)",
			 (int)follow->unreadable_pid,
			 follow->unreadable > 1 ? " and of others" : "");
		pm_rec_warn(session, text);
	}
	if (follow->gone > 0) {
		snprintf(
			text, sizeof(text),
			"%zu processes with samples ended after a CPU came, and before what "
			"they have mapped was read anew: their addresses may have no names",
			follow->gone);
		pm_rec_warn(session, text);
	}
	if (session->targets.forbidden > 0) {
		snprintf(text, sizeof(text),
			 "%zu child processes are not recorded, for they run as another "
			 "user or hold secrets (it takes root or CAP_PERFMON)",
			 session->targets.forbidden);
		pm_rec_warn(session, text);
	}
	for (size_t i = 0; i < session->targets.late.len; i++)
		missing += session->targets.late.data[i] != 0;
	if (missing == 0 || session->options->targets.no_inherit)
		return;
	snprintf(text, sizeof(text),
		 "%s%zu threads that began while pmrec was attaching %s",
		 pm_text_if(follow->filter, "off-CPU: the blocked time of "), missing,
		 follow->filter ? "is not recorded" : "are not recorded");
	pm_rec_warn(session, text);
}
