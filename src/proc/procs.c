/* SPDX-License-Identifier: MIT */
#include "proc-internal.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>

enum {
	/* Number of exited processes (and threads) that are kept for late samples. A
	 * build may start millions; they cannot all be kept. */
	EXITED_KEPT = 1024,
	/* Mappings of all processes, 32 bytes each. Above this limit the oldest exited
	 * processes are dropped, and a process that has more than its share loses all its
	 * mappings. */
	MAPS_MAX = 1 << 20,
	MAPS_SHARE = 1024,
};

struct process_row {
	struct pm_process process; /* first: the public pointer is a pointer to the row */
	uint32_t id;
	uint32_t live_threads; /* number of known threads that have not exited */
	bool leader_exited;
	uint64_t exit_serial; /* 0: alive */
	char comm[16];
};

struct thread_row {
	struct pm_thread thread; /* first */
	uint32_t id;
	uint64_t exit_serial; /* 0: alive */
};

/* Rows with stable addresses, found by key; ids are reused. */
struct rows {
	PM_VEC(void *) data;
	PM_VEC(uint32_t) free_ids;
	struct pm_index index;
};

/* A ring buffer of the most recent exits. An entry is void if its serial differs from the
 * row's: the row is alive again or has been reused. */
struct exited {
	struct exited_entry {
		uint32_t id;
		uint64_t serial; /* 0: void */
	} ring[EXITED_KEPT];
	size_t next;
};

struct pm_procs {
	struct pm_modules modules;
	struct rows processes, threads;
	struct exited exited_processes, exited_threads;
	void (*free_user)(void *user);
	uint64_t epoch, exit_serial;
	/* Greater than every generation of a process that was dropped, so that (pid,
	 * generation) is never reused. */
	uint32_t generation_floor;
	size_t maps; /* of all processes */
	uint64_t maps_forgotten; /* how often a process lost all its mappings */
};

/* ---- rows ---------------------------------------------------------------------------- */

static uint64_t hash_thread(pid_t pid, pid_t tid)
{
	return pm_hash_mix((uint32_t)pid, (uint32_t)tid);
}

static bool equal_process_row(const void *table, uint32_t id, const void *key)
{
	const struct rows *rows = table;
	const struct process_row *row = rows->data.data[id];

	return row->process.pid == *(const pid_t *)key;
}

static bool equal_thread_row(const void *table, uint32_t id, const void *key)
{
	const struct rows *rows = table;
	const struct thread_row *row = rows->data.data[id];
	const struct pm_thread *wanted = key;

	return row->thread.pid == wanted->pid && row->thread.tid == wanted->tid;
}

/* Returns the id of @row, or PM_INDEX_NONE if memory runs out. */
static uint32_t rows_add(struct rows *rows, uint64_t hash, void *row)
{
	uint32_t id;

	if (rows->free_ids.len > 0) {
		id = rows->free_ids.data[rows->free_ids.len - 1];
	} else {
		/* Reserve space for every id that may be freed later, because an error
		 * can be reported here. */
		if (rows->data.len >= PM_INDEX_NONE ||
		    pm_vec_reserve(&rows->free_ids, rows->data.len + 1) < 0 ||
		    pm_vec_reserve(&rows->data, rows->data.len + 1) < 0)
			return PM_INDEX_NONE;
		id = (uint32_t)rows->data.len;
	}
	if (pm_index_add(&rows->index, hash, id) < 0)
		return PM_INDEX_NONE;
	if (rows->free_ids.len > 0)
		rows->free_ids.len--;
	else
		rows->data.len++;
	rows->data.data[id] = row;
	return id;
}

static void rows_remove(struct rows *rows, uint64_t hash, uint32_t id)
{
	pm_index_remove(&rows->index, hash, id);
	rows->data.data[id] = NULL;
	rows->free_ids.data[rows->free_ids.len++] = id;
}

static void rows_release(struct rows *rows)
{
	pm_vec_release(&rows->data);
	pm_vec_release(&rows->free_ids);
	pm_index_release(&rows->index);
}

/* ---- processes ----------------------------------------------------------------------- */

static struct process_row *find_process_row(const struct pm_procs *procs, pid_t pid)
{
	uint32_t id =
		pm_index_find(&procs->processes.index, pm_hash_mix((uint32_t)pid, 0),
			      equal_process_row, &procs->processes, &pid);

	if (id == PM_INDEX_NONE)
		return NULL;
	return procs->processes.data.data[id];
}

static struct process_row *get_process(struct pm_procs *procs, pid_t pid)
{
	struct process_row *row = find_process_row(procs, pid);

	if (row)
		return row;
	row = calloc(1, sizeof(*row));
	if (!row)
		return NULL;
	row->process.pid = pid;
	row->process.generation = procs->generation_floor;
	row->process.space.epoch = ++procs->epoch;
	row->id = rows_add(&procs->processes, pm_hash_mix((uint32_t)pid, 0), row);
	if (row->id == PM_INDEX_NONE) {
		free(row);
		return NULL;
	}
	return row;
}

static void release_user(struct pm_procs *procs, struct process_row *row)
{
	if (procs->free_user && row->process.user)
		procs->free_user(row->process.user);
	row->process.user = NULL;
}

static void clear_maps(struct pm_procs *procs, struct process_row *row)
{
	procs->maps -= row->process.space.maps.len;
	if (row->process.space.maps.cap > MAPS_SHARE)
		pm_vec_release(&row->process.space.maps);
	else
		pm_vec_clear(&row->process.space.maps);
}

static void drop_process(struct pm_procs *procs, struct process_row *row)
{
	procs->maps -= row->process.space.maps.len;
	if (row->process.generation >= procs->generation_floor)
		procs->generation_floor = row->process.generation + 1;
	release_user(procs, row);
	pm_vec_release(&row->process.space.maps);
	rows_remove(&procs->processes, pm_hash_mix((uint32_t)row->process.pid, 0),
		    row->id);
	free(row);
}

/* A reused pid belongs to a new process, which gets the row of the old one. */
static void renew_process(struct pm_procs *procs, struct process_row *row)
{
	release_user(procs, row);
	clear_maps(procs, row);
	row->process.generation++;
	row->process.executed = false;
	row->live_threads = 0;
	row->leader_exited = false;
	row->exit_serial = 0;
}

/* ---- threads ------------------------------------------------------------------------- */

static struct thread_row *find_thread(const struct pm_procs *procs, pid_t pid, pid_t tid)
{
	struct pm_thread key = { .pid = pid, .tid = tid };
	uint32_t id = pm_index_find(&procs->threads.index, hash_thread(pid, tid),
				    equal_thread_row, &procs->threads, &key);

	if (id == PM_INDEX_NONE)
		return NULL;
	return procs->threads.data.data[id];
}

static struct thread_row *get_thread_row(struct pm_procs *procs, pid_t pid, pid_t tid)
{
	struct thread_row *row = find_thread(procs, pid, tid);
	struct process_row *process;

	if (row)
		return row;
	process = get_process(procs, pid);
	if (process)
		row = calloc(1, sizeof(*row));
	else
		row = NULL;
	if (!row)
		return NULL;
	row->thread.pid = pid;
	row->thread.tid = tid;
	memcpy(row->thread.comm, process->comm, sizeof(row->thread.comm));
	row->id = rows_add(&procs->threads, hash_thread(pid, tid), row);
	if (row->id == PM_INDEX_NONE) {
		free(row);
		return NULL;
	}
	process->live_threads++;
	process->exit_serial = 0;
	return row;
}

static void drop_thread(struct pm_procs *procs, struct thread_row *row)
{
	rows_remove(&procs->threads, hash_thread(row->thread.pid, row->thread.tid),
		    row->id);
	free(row);
}

static void set_comm(char to[16], const char *comm)
{
	size_t len = strnlen(comm, 15);

	memcpy(to, comm, len);
	memset(to + len, 0, 16 - len);
}

/* ---- public -------------------------------------------------------------------------- */

struct pm_procs *pm_procs_new(void (*free_user)(void *user))
{
	struct pm_procs *procs = calloc(1, sizeof(*procs));

	if (procs)
		procs->free_user = free_user;
	return procs;
}

void pm_procs_free(struct pm_procs *procs)
{
	if (!procs)
		return;
	for (size_t i = 0; i < procs->processes.data.len; i++) {
		struct process_row *row = procs->processes.data.data[i];

		if (row) {
			release_user(procs, row);
			pm_vec_release(&row->process.space.maps);
			free(row);
		}
	}
	for (size_t i = 0; i < procs->threads.data.len; i++)
		free(procs->threads.data.data[i]);
	rows_release(&procs->processes);
	rows_release(&procs->threads);
	pm_modules_release(&procs->modules);
	free(procs);
}

const struct pm_module *pm_procs_module(const struct pm_procs *procs, uint32_t id)
{
	if (id >= procs->modules.rows.len)
		return NULL;
	return procs->modules.rows.data[id];
}

size_t pm_procs_modules_len(const struct pm_procs *procs)
{
	return procs->modules.rows.len;
}

int64_t pm_procs_intern_module(struct pm_procs *procs,
			       const struct pm_module_identity *identity)
{
	return pm_modules_intern(&procs->modules, identity);
}

int64_t pm_procs_find_module(const struct pm_procs *procs,
			     const struct pm_module_identity *identity)
{
	uint32_t id = pm_modules_find(&procs->modules, identity);

	if (id == PM_INDEX_NONE)
		return PM_MODULE_NONE;
	return (int64_t)id;
}

void pm_procs_retire_module(struct pm_procs *procs, uint32_t id)
{
	pm_modules_retire(&procs->modules, id);
}

struct pm_process *pm_procs_get(struct pm_procs *procs, pid_t pid)
{
	struct process_row *row = get_process(procs, pid);

	if (!row)
		return NULL;
	return &row->process;
}

struct pm_thread *pm_procs_thread(struct pm_procs *procs, pid_t pid, pid_t tid)
{
	struct thread_row *row = get_thread_row(procs, pid, tid);

	if (!row)
		return NULL;
	return &row->thread;
}

struct pm_thread *pm_procs_find_thread(const struct pm_procs *procs, pid_t pid, pid_t tid)
{
	struct thread_row *row = find_thread(procs, pid, tid);

	if (!row)
		return NULL;
	return &row->thread;
}

/* Updates the place where a module was seen, so that it can be examined later. The
 * mapping was seen in @tid, a thread of @pid: a leader that has exited shows no
 * mappings. */
static void note_seen(struct pm_procs *procs, pid_t pid, pid_t tid,
		      const struct pm_mapping *mapping)
{
	struct pm_module *module = procs->modules.rows.data[mapping->module];
	const struct process_row *row = find_process_row(procs, module->seen_pid);

	if (module->seen_pid > 0 && row && row->exit_serial == 0 &&
	    (tid == pid || module->seen_pid != pid)) {
		const struct pm_mapping *seen =
			pm_space_find(&row->process.space, module->seen_start);

		if (seen && seen->module == mapping->module)
			return;
	}
	module->seen_pid = tid;
	module->seen_start = mapping->start;
	module->seen_end = mapping->end;
}

/* Drops exited processes other than @but, oldest first, until the limit is met. */
static void make_room_for_maps(struct pm_procs *procs, const struct process_row *but)
{
	struct exited *exited = &procs->exited_processes;

	for (size_t i = 0; i < EXITED_KEPT && procs->maps > MAPS_MAX; i++) {
		struct exited_entry *entry =
			&exited->ring[(exited->next + i) % EXITED_KEPT];
		struct process_row *old =
			entry->serial ? procs->processes.data.data[entry->id] : NULL;

		if (old == but || !old || old->exit_serial != entry->serial)
			continue;
		drop_process(procs, old);
		*entry = (struct exited_entry){ 0 };
	}
}

/* Whether a process that has @len mappings may have more. */
static bool may_map(struct pm_procs *procs, const struct process_row *row, size_t len)
{
	if (procs->maps > MAPS_MAX)
		make_room_for_maps(procs, row);
	if (procs->maps <= MAPS_MAX || len <= MAPS_SHARE)
		return true;
	procs->maps_forgotten++;
	return false;
}

int pm_procs_map(struct pm_procs *procs, pid_t pid, uint64_t start, uint64_t len,
		 uint64_t pgoff, uint32_t prot, const struct pm_module_identity *identity)
{
	struct pm_mapping mapping = { .start = start, .pgoff = pgoff };
	struct process_row *row;
	bool executable = prot & PROT_EXEC;
	int ret;

	if (__builtin_add_overflow(start, len, &mapping.end))
		return -EINVAL;
	if (len == 0)
		return 0;
	row = get_process(procs, pid);
	if (!row)
		return -ENOMEM;
	if (executable) {
		struct pm_module_identity named = *identity;
		int64_t module;

		pm_module_name_vdso(&named, start);
		module = pm_modules_intern(&procs->modules, &named);
		if (module < 0)
			return (int)module;
		mapping.module = (uint32_t)module;
	}
	if (!may_map(procs, row, row->process.space.maps.len))
		clear_maps(procs, row);
	procs->maps -= row->process.space.maps.len;
	ret = pm_space_replace(&row->process.space, start, mapping.end,
			       executable ? &mapping : NULL);
	procs->maps += row->process.space.maps.len;
	if (ret < 0)
		return ret;
	if (ret > 0)
		row->process.space.epoch = ++procs->epoch;
	if (executable)
		note_seen(procs, pid, pid, &mapping);
	return 0;
}

int pm_procs_adopt(struct pm_procs *procs, pid_t pid, pid_t tid, struct pm_space *space)
{
	struct process_row *row = get_process(procs, pid);

	if (!row)
		return -ENOMEM;
	clear_maps(procs, row);
	pm_vec_release(&row->process.space.maps);
	row->process.space = *space;
	procs->maps += space->maps.len;
	row->process.space.epoch = ++procs->epoch;
	*space = (struct pm_space){ 0 };
	for (size_t i = 0; i < row->process.space.maps.len; i++)
		note_seen(procs, pid, tid, &row->process.space.maps.data[i]);
	return 0;
}

/* Returns the comm that a new task inherits from its creator, "" if unknown. */
static const char *inherited_comm(const struct pm_procs *procs, pid_t pid, pid_t tid)
{
	const struct thread_row *thread = find_thread(procs, pid, tid);
	const struct process_row *process = thread ? NULL : find_process_row(procs, pid);

	if (thread)
		return thread->thread.comm;
	if (process)
		return process->comm;
	return "";
}

static int copy_space(struct pm_procs *procs, struct process_row *to,
		      const struct process_row *from)
{
	size_t len = from ? from->process.space.maps.len : 0;

	if (len > 0 && !may_map(procs, from, len))
		len = 0;
	clear_maps(procs, to);
	if (len > 0) {
		if (pm_vec_reserve(&to->process.space.maps, len) < 0)
			return -ENOMEM;
		memcpy(to->process.space.maps.data, from->process.space.maps.data,
		       len * sizeof(*to->process.space.maps.data));
	}
	to->process.space.maps.len = len;
	procs->maps += len;
	to->process.space.epoch = ++procs->epoch;
	return 0;
}

int pm_procs_fork(struct pm_procs *procs, pid_t pid, pid_t tid, pid_t parent_pid,
		  pid_t parent_tid)
{
	bool is_new = pid != parent_pid && !find_process_row(procs, pid);
	struct process_row *process = get_process(procs, pid);
	struct thread_row *thread;
	char comm[16];

	if (!process)
		return -ENOMEM;
	set_comm(comm, inherited_comm(procs, parent_pid, parent_tid));
	if (pid != parent_pid) {
		if (!is_new)
			renew_process(procs, process);
		if (copy_space(procs, process, find_process_row(procs, parent_pid)) < 0)
			return -ENOMEM;
		set_comm(process->comm, comm);
	}
	thread = find_thread(procs, pid, tid);
	if (thread) {
		/* The row is reused, or a sample arrived before the fork record; in both
		 * cases, the thread is alive. */
		if (thread->exit_serial != 0 || (pid != parent_pid && !is_new))
			process->live_threads++;
		thread->exit_serial = 0;
	} else {
		thread = get_thread_row(procs, pid, tid);
		if (!thread)
			return -ENOMEM;
	}
	set_comm(thread->thread.comm, comm);
	process->exit_serial = 0;
	return 0;
}

int pm_procs_comm(struct pm_procs *procs, pid_t pid, pid_t tid, const char *comm,
		  bool exec)
{
	struct thread_row *thread = get_thread_row(procs, pid, tid);
	struct process_row *process = find_process_row(procs, pid);

	if (!thread || !process)
		return -ENOMEM;
	set_comm(thread->thread.comm, comm);
	if (exec || pid == tid)
		set_comm(process->comm, comm);
	if (exec) {
		clear_maps(procs, process);
		process->process.space.epoch = ++procs->epoch;
		process->process.generation++;
		process->process.executed = true;
		/* Only this thread is left, and it is the leader now (de_thread() in
		 * fs/exec.c): the old leader, which had the same tid, has exited, and no
		 * record reports the end of the thread's former tid. */
		thread->exit_serial = 0;
		process->live_threads = 1;
		process->leader_exited = false;
		process->exit_serial = 0;
	}
	return 0;
}

static void end_thread(struct pm_procs *procs, struct thread_row *thread,
		       struct process_row *process)
{
	struct exited_entry *entry =
		&procs->exited_threads.ring[procs->exited_threads.next++ % EXITED_KEPT];
	struct thread_row *old =
		entry->serial ? procs->threads.data.data[entry->id] : NULL;

	thread->exit_serial = ++procs->exit_serial;
	if (process && process->live_threads > 0)
		process->live_threads--;
	if (old && old->exit_serial == entry->serial)
		drop_thread(procs, old);
	*entry = (struct exited_entry){ thread->id, thread->exit_serial };
}

static void end_process(struct pm_procs *procs, struct process_row *process)
{
	struct exited *exited = &procs->exited_processes;
	struct exited_entry *entry = &exited->ring[exited->next++ % EXITED_KEPT];
	struct process_row *old =
		entry->serial ? procs->processes.data.data[entry->id] : NULL;

	process->exit_serial = ++procs->exit_serial;
	if (old && old->exit_serial == entry->serial)
		drop_process(procs, old);
	*entry = (struct exited_entry){ process->id, process->exit_serial };
}

void pm_procs_exit(struct pm_procs *procs, pid_t pid, pid_t tid)
{
	struct thread_row *thread = find_thread(procs, pid, tid);
	struct process_row *process = find_process_row(procs, pid);

	if (process && pid == tid)
		process->leader_exited = true;
	if (thread && thread->exit_serial == 0)
		end_thread(procs, thread, process);
	/* A process that was not followed from its start may have threads that are not
	 * known here. It counts as ended only if its leader has exited, too. */
	if (process && process->exit_serial == 0 && process->leader_exited &&
	    process->live_threads == 0)
		end_process(procs, process);
}

bool pm_task_is_gone(pid_t id)
{
	return id > 0 && kill(id, 0) < 0 && errno == ESRCH;
}

void pm_procs_sweep(struct pm_procs *procs)
{
	for (size_t i = 0; i < procs->threads.data.len; i++) {
		struct thread_row *row = procs->threads.data.data[i];

		if (row && row->exit_serial == 0 && pm_task_is_gone(row->thread.tid))
			end_thread(procs, row, find_process_row(procs, row->thread.pid));
	}
	for (size_t i = 0; i < procs->processes.data.len; i++) {
		struct process_row *row = procs->processes.data.data[i];

		/* As long as a thread of the process exists, records may refer to the
		 * process by its pid. */
		if (row && row->exit_serial == 0 && pm_task_is_gone(row->process.pid))
			end_process(procs, row);
	}
}

void pm_procs_release_users(struct pm_procs *procs)
{
	for (size_t i = 0; i < procs->processes.data.len; i++) {
		struct process_row *row = procs->processes.data.data[i];

		if (row)
			release_user(procs, row);
	}
}

int pm_procs_drop_modules(struct pm_procs *procs,
			  void (*on_drop)(void *user, uint32_t id), void *user)
{
	PM_AUTO_FREE bool *used = calloc(procs->modules.rows.len + 1, sizeof(*used));

	if (!used)
		return -ENOMEM;
	for (size_t i = 0; i < procs->processes.data.len; i++) {
		const struct process_row *row = procs->processes.data.data[i];

		for (size_t j = 0; row && j < row->process.space.maps.len; j++)
			used[row->process.space.maps.data[j].module] = true;
	}
	for (uint32_t id = 0; id < procs->modules.rows.len; id++)
		if (!used[id] && procs->modules.rows.data[id]) {
			on_drop(user, id);
			pm_modules_drop(&procs->modules, id);
		}
	return 0;
}

void pm_procs_stats(const struct pm_procs *procs, struct pm_procs_stats *out)
{
	*out = (struct pm_procs_stats){
		.processes = procs->processes.index.len,
		.threads = procs->threads.index.len,
		.modules = procs->modules.rows.len - procs->modules.free_ids.len,
		.maps = procs->maps,
		.maps_forgotten = procs->maps_forgotten,
		.modules_refused = procs->modules.refused,
	};
	out->bytes = out->processes * sizeof(struct process_row) +
		     out->threads * sizeof(struct thread_row) +
		     out->maps * sizeof(struct pm_mapping) + procs->modules.bytes;
}
