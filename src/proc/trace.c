/* SPDX-License-Identifier: MIT */
/*
 * Following threads with ptrace(2). What this file relies on, by the kernel's source:
 *
 * - After PTRACE_SEIZE threads run on; what they make is seized, too, with the same options,
 *   and reports PTRACE_EVENT_STOP before its first instruction.
 * - Any stop answers a PTRACE_INTERRUPT (ptrace_stop() clears JOBCTL_TRAP_STOP).
 * - A group stop reports PTRACE_EVENT_STOP with its signal; PTRACE_LISTEN leaves the thread in
 *   it, so that job control works as without us.
 * - In an exec all other threads end, and the one that executes takes over the leader's tid
 *   without an exit of its own: PTRACE_GETEVENTMSG tells the tid that it had.
 * - PTRACE_O_TRACEEXIT is not needed: exits are reported by wait(2), and one stop more for
 *   each thread would only cost.
 */
#include "trace-internal.h"

#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

enum {
	/* Threads may be made while the folder is read; the followed ones' are seized by the
	 * kernel, so that each round finds less. */
	SEIZE_ROUNDS_MAX = 1000,
	NEAR_NS = 400000, /* from a tick to the stop of a thread that made room for it */
};

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- rows ---------------------------------------------------------------------------- */

static bool equal_thread(const void *table, uint32_t id, const void *key)
{
	const struct pm_trace *trace = table;

	return trace->threads.data[id].tid == *(const pid_t *)key;
}

static bool equal_process(const void *table, uint32_t id, const void *key)
{
	const struct pm_trace *trace = table;

	return trace->processes.data[id].pid == *(const pid_t *)key;
}

static uint64_t hash(pid_t id)
{
	return pm_hash_mix((uint32_t)id, 0);
}

static uint32_t find_thread(const struct pm_trace *trace, pid_t tid)
{
	return pm_index_find(&trace->threads_index, hash(tid), equal_thread, trace, &tid);
}

static uint32_t find_process(const struct pm_trace *trace, pid_t pid)
{
	return pm_index_find(&trace->processes_index, hash(pid), equal_process, trace,
			     &pid);
}

static int add_process(struct pm_trace *trace, pid_t pid, uint32_t *ret)
{
	uint32_t row;

	*ret = find_process(trace, pid);
	if (*ret != PM_INDEX_NONE)
		return 0;
	if (trace->free_processes.len == 0) {
		/* Room to take the row back is made where failing is possible. */
		row = (uint32_t)trace->processes.len;
		if (pm_vec_reserve(&trace->free_processes, (size_t)row + 1) < 0 ||
		    pm_vec_push(&trace->processes, (struct pm_trace_process){ 0 }) < 0)
			return -ENOMEM;
		trace->free_processes.data[trace->free_processes.len++] = row;
	}
	row = trace->free_processes.data[trace->free_processes.len - 1];
	if (pm_index_add(&trace->processes_index, hash(pid), row) < 0)
		return -ENOMEM;
	trace->free_processes.len--;
	trace->processes.data[row] = (struct pm_trace_process){ .pid = pid };
	*ret = row;
	return 0;
}

static void drop_process_if_empty(struct pm_trace *trace, uint32_t row)
{
	struct pm_trace_process *process = &trace->processes.data[row];

	if (process->threads > 0)
		return;
	pm_index_remove(&trace->processes_index, hash(process->pid), row);
	process->pid = 0;
	trace->free_processes.data[trace->free_processes.len++] = row;
}

static int add_thread(struct pm_trace *trace, pid_t pid, pid_t tid, uint32_t *ret)
{
	uint32_t row, process;
	int rc = add_process(trace, pid, &process);

	if (rc < 0)
		return rc;
	rc = -ENOMEM;
	if (trace->free_threads.len == 0) {
		row = (uint32_t)trace->threads.len;
		if (pm_vec_reserve(&trace->free_threads, (size_t)row + 1) < 0 ||
		    pm_vec_push(&trace->threads, (struct pm_trace_thread){ 0 }) < 0)
			goto failed;
		trace->free_threads.data[trace->free_threads.len++] = row;
	}
	row = trace->free_threads.data[trace->free_threads.len - 1];
	if (pm_index_add(&trace->threads_index, hash(tid), row) < 0)
		goto failed;
	trace->free_threads.len--;
	trace->threads.data[row] = (struct pm_trace_thread){
		.tid = tid, .process = process, .schedstat_fd = -1, .stat_fd = -1
	};
	trace->processes.data[process].threads++;
	trace->len++;
	*ret = row;
	return 0;
failed:
	drop_process_if_empty(trace, process);
	return rc;
}

static void drop_thread(struct pm_trace *trace, uint32_t row)
{
	struct pm_trace_thread *thread = &trace->threads.data[row];

	pm_trace_close(trace, thread);
	pm_index_remove(&trace->threads_index, hash(thread->tid), row);
	thread->tid = 0;
	trace->free_threads.data[trace->free_threads.len++] = row;
	trace->len--;
	trace->processes.data[thread->process].threads--;
	drop_process_if_empty(trace, thread->process);
	if (trace->held == row)
		trace->held = PM_INDEX_NONE;
}

/* ---- going on ------------------------------------------------------------------------ */

/* A thread that cannot be let go on was killed: its end is reported soon. */
static void resume(struct pm_trace *trace, uint32_t row)
{
	struct pm_trace_thread *thread = &trace->threads.data[row];

	if (trace->detaching) {
		ptrace(PTRACE_DETACH, thread->tid, NULL,
		       thread->listening ? 0L : (long)thread->signal);
		drop_thread(trace, row);
		return;
	}
	ptrace((enum __ptrace_request)thread->request, thread->tid, NULL,
	       (long)thread->signal);
	thread->stopped = thread->listening;
}

static void resume_held(struct pm_trace *trace)
{
	uint32_t row = trace->held;

	trace->held = PM_INDEX_NONE;
	if (row != PM_INDEX_NONE && !trace->threads.data[row].kept)
		resume(trace, row);
}

static void ask(struct pm_trace_thread *thread, bool ticked)
{
	thread->ticked = ticked;
	if (ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL) == 0)
		thread->asked = true;
}

/*
 * Whether the stopped thread had a CPU at the tick that asked it. One that only waited stands
 * where the scheduler took its CPU away, which is often in the very system calls that look at
 * clocks, and says nothing about where its time goes. Such a thread has got a CPU since; and
 * so has one that had to make room for us, but then all that it waited was after the tick.
 * With much time between tick and stop, neither is sure, nor that it was we who chose the
 * place where it had to make room.
 */
static bool had_cpu(struct pm_trace *trace, struct pm_trace_thread *thread)
{
	const struct pm_schedstat *then = &thread->at_tick;
	uint64_t late_ns = monotonic_ns() - thread->due_ns;
	struct pm_schedstat now;

	if (!trace->schedstat || !pm_trace_read_schedstat(trace, thread, &now) ||
	    now.turns == then->turns)
		return true;
	return now.turns == then->turns + 1 && late_ns <= NEAR_NS &&
	       now.waited_ns - then->waited_ns <= late_ns;
}

/* ---- what wait(2) says --------------------------------------------------------------- */

static bool is_group_stop(int event, int signal)
{
	return event == PTRACE_EVENT_STOP && (signal == SIGSTOP || signal == SIGTSTP ||
					      signal == SIGTTIN || signal == SIGTTOU);
}

/* Everybody but @tid has ended; @former is what it was called before. */
static void forget_others(struct pm_trace *trace, pid_t pid, pid_t tid)
{
	uint32_t process = find_process(trace, pid);

	for (uint32_t i = 0; i < trace->threads.len; i++) {
		const struct pm_trace_thread *thread = &trace->threads.data[i];

		if (thread->tid != 0 && thread->process == process && thread->tid != tid)
			drop_thread(trace, i);
	}
}

static int take_exit(struct pm_trace *trace, pid_t tid, int status,
		     struct pm_trace_event *ret)
{
	uint32_t row = find_thread(trace, tid);

	*ret = (struct pm_trace_event){
		.what = PM_TRACE_EXIT, .pid = tid, .tid = tid, .status = status
	};
	if (row != PM_INDEX_NONE) {
		ret->pid = trace->processes.data[trace->threads.data[row].process].pid;
		drop_thread(trace, row);
	}
	return 1;
}

/* The first stop of what a followed thread has made. */
static int meet(struct pm_trace *trace, pid_t tid, uint32_t *row,
		struct pm_trace_event *ret)
{
	pid_t pid, parent;
	int rc = pm_trace_read_parents(tid, &pid, &parent);

	if (rc == 0)
		rc = add_thread(trace, pid, tid, row);
	if (rc == 0) {
		ret->what = PM_TRACE_NEW;
		ret->parent_pid = tid == pid ? parent : pid;
	}
	return rc;
}

/* 1: @ret is set; 0: the thread goes on; or negative. */
static int take_stop(struct pm_trace *trace, pid_t tid, int status,
		     struct pm_trace_event *ret)
{
	int event = status >> 16, signal = WSTOPSIG(status), found = 0;
	uint32_t row = find_thread(trace, tid);
	struct pm_trace_thread *thread;
	bool asked;

	*ret = (struct pm_trace_event){ .tid = tid };
	if (row == PM_INDEX_NONE) {
		found = 1;
		if (meet(trace, tid, &row, ret) < 0) {
			/* It has been killed meanwhile, or must at least not stand still. */
			ptrace(PTRACE_DETACH, tid, NULL, NULL);
			return 0;
		}
	}
	thread = &trace->threads.data[row];
	asked = thread->asked;
	thread->asked = false;
	thread->stopped = true;
	thread->listening = is_group_stop(event, signal);
	thread->request = thread->listening ? PTRACE_LISTEN : PTRACE_CONT;
	thread->signal = event == 0 ? signal : 0;
	ret->pid = trace->processes.data[thread->process].pid;
	if (event == PTRACE_EVENT_EXEC) {
		/* The folder of another thread may have been read so far. */
		pm_trace_close(trace, thread);
		forget_others(trace, ret->pid, tid);
		ret->what = PM_TRACE_EXEC;
		found = 1;
	} else if (found == 0 && asked && !trace->detaching) {
		ret->what = PM_TRACE_STOPPED;
		ret->had_cpu = !thread->ticked || had_cpu(trace, thread);
		found = 1;
	}
	trace->held = row;
	if (found == 0 || trace->detaching) {
		resume_held(trace);
		return 0;
	}
	return found;
}

int pm_trace_next(struct pm_trace *trace, struct pm_trace_event *ret,
		  struct pm_error *err)
{
	resume_held(trace);
	for (;;) {
		int status, rc;
		pid_t tid = waitpid(-1, &status, __WALL | WNOHANG);

		if (tid == 0 || (tid < 0 && errno == ECHILD))
			return 0;
		if (tid < 0 && errno != EINTR) {
			rc = -errno;
			return pm_error_set(err, rc, "waitpid: %s", strerror(-rc));
		}
		if (tid < 0)
			continue;
		rc = WIFSTOPPED(status) ? take_stop(trace, tid, status, ret)
					: take_exit(trace, tid, status, ret);
		if (rc != 0)
			return rc;
	}
}

void pm_trace_keep(struct pm_trace *trace)
{
	if (trace->held != PM_INDEX_NONE)
		trace->threads.data[trace->held].kept = true;
}

/* ---- following ----------------------------------------------------------------------- */

/* 1: seized now; 0: was before, or is gone. */
static int seize_thread(struct pm_trace *trace, pid_t pid, pid_t tid,
			struct pm_error *err)
{
	long options = trace->children ? PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
						 PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC
				       : 0;
	uint32_t row;

	if (find_thread(trace, tid) != PM_INDEX_NONE)
		return 0;
	if (ptrace(PTRACE_SEIZE, tid, NULL, options) != 0) {
		int code = errno;
		pid_t tgid, ppid;

		/* Other threads come and go, or are zombies; only of the process we know that
		 * it has to be there. */
		if (tid != pid && (code == ESRCH || code == EPERM) &&
		    (pm_trace_read_parents(tid, &tgid, &ppid) < 0 ||
		     pm_trace_len(trace) > 0))
			return 0;
		return pm_trace_explain(tid, code, err);
	}
	if (add_thread(trace, pid, tid, &row) < 0)
		return pm_error_set(err, -ENOMEM, "out of memory");
	return 1;
}

/* How many threads of @pid were found that had not been seized. */
static int seize_round(struct pm_trace *trace, pid_t pid, struct pm_error *err)
{
	const struct dirent *entry;
	char path[64];
	DIR *folder;
	int found = 0, rc = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	folder = opendir(path);
	if (!folder)
		return pm_trace_explain(pid, errno == ENOENT ? ESRCH : errno, err);
	while (rc >= 0 && (entry = readdir(folder))) {
		uint64_t tid;

		if (!pm_parse_u64(entry->d_name, &tid) || tid > INT32_MAX)
			continue;
		rc = seize_thread(trace, pid, (pid_t)tid, err);
		found += rc == 1;
	}
	closedir(folder);
	return rc < 0 ? rc : found;
}

int pm_trace_seize(struct pm_trace *trace, pid_t pid, bool children, struct pm_error *err)
{
	pid_t tgid, ppid;
	int rc = pm_trace_read_parents(pid, &tgid, &ppid);

	if (rc < 0)
		return pm_trace_explain(pid, -rc == ENOENT ? ESRCH : -rc, err);
	if (tgid != pid) {
		pm_error_set(err, -ESRCH, "%d is a thread of process %d", (int)pid,
			     (int)tgid);
		pm_error_fix(err, "%d", (int)tgid);
		return -ESRCH;
	}
	trace->children = children;
	for (int i = 0; i < SEIZE_ROUNDS_MAX; i++) {
		rc = seize_round(trace, pid, err);
		if (rc <= 0)
			return rc;
	}
	return 0;
}

int pm_trace_seize_thread(struct pm_trace *trace, pid_t pid, pid_t tid,
			  struct pm_error *err)
{
	pid_t tgid, ppid;
	int rc = pm_trace_read_parents(tid, &tgid, &ppid);

	if (rc == 0 && tgid == pid) {
		rc = seize_thread(trace, pid, tid, err);
		return rc < 0 ? rc : 0;
	}
	if (rc == 0)
		return pm_error_set(err, -ESRCH,
				    "%d is a thread of process %d, not of %d", (int)tid,
				    (int)tgid, (int)pid);
	return pm_error_set(err, -ESRCH, "process %d has no thread %d", (int)pid,
			    (int)tid);
}

void pm_trace_interrupt(struct pm_trace *trace)
{
	for (size_t i = 0; i < trace->threads.len; i++) {
		struct pm_trace_thread *thread = &trace->threads.data[i];

		if (thread->tid == 0 || thread->asked ||
		    (thread->stopped && !thread->listening))
			continue;
		pm_trace_read_stat(trace, thread);
		ask(thread, false);
	}
}

static void look_at_processes(struct pm_trace *trace)
{
	for (size_t i = 0; i < trace->processes.len; i++) {
		struct pm_trace_process *process = &trace->processes.data[i];
		uint64_t now;

		if (process->pid == 0)
			continue;
		/* Where the clock cannot be read, only the threads can tell. */
		process->moved = pm_trace_process_cpu_ns(process->pid, &now) < 0 ||
				 now != process->cpu_ns;
		if (process->moved)
			process->cpu_ns = now;
	}
}

size_t pm_trace_tick(struct pm_trace *trace, uint64_t due_ns)
{
	size_t asked = 0;

	look_at_processes(trace);
	for (size_t i = 0; i < trace->threads.len; i++) {
		struct pm_trace_thread *thread = &trace->threads.data[i];
		bool ran = thread->seen.state == 'R', scheduled;

		if (thread->tid == 0 || thread->asked || thread->stopped ||
		    !trace->processes.data[thread->process].moved)
			continue;
		/* One that runs on was not scheduled anew, and its time is brought up to date
		 * by the kernel's own ticks only. */
		scheduled = pm_trace_was_scheduled(trace, thread);
		if ((!scheduled && !ran) || pm_trace_read_stat(trace, thread) < 0 ||
		    thread->seen.state != 'R')
			continue;
		thread->due_ns = due_ns;
		ask(thread, true);
		asked += thread->asked;
	}
	return asked;
}

void pm_trace_detach(struct pm_trace *trace)
{
	trace->detaching = true;
	pm_trace_keep(trace); /* it stands still, whatever it was held for */
	trace->held = PM_INDEX_NONE;
	for (uint32_t i = 0; i < trace->threads.len; i++) {
		struct pm_trace_thread *thread = &trace->threads.data[i];

		if (thread->tid == 0)
			continue;
		/* A thread that listens has to stop once more before it can be let go. */
		if (thread->stopped && !(thread->listening && !thread->kept))
			resume(trace, i);
		else if (!thread->asked)
			ask(thread, false);
	}
}

/* ---- life ---------------------------------------------------------------------------- */

struct pm_trace *pm_trace_new(void)
{
	struct pm_trace *trace = calloc(1, sizeof(*trace));

	if (!trace)
		return NULL;
	trace->held = PM_INDEX_NONE;
	trace->schedstat = pm_trace_has_schedstat();
	return trace;
}

void pm_trace_free(struct pm_trace *trace)
{
	if (!trace)
		return;
	for (size_t i = 0; i < trace->threads.len; i++)
		if (trace->threads.data[i].tid != 0)
			pm_trace_close(trace, &trace->threads.data[i]);
	pm_vec_release(&trace->threads);
	pm_vec_release(&trace->processes);
	pm_vec_release(&trace->free_threads);
	pm_vec_release(&trace->free_processes);
	pm_index_release(&trace->threads_index);
	pm_index_release(&trace->processes_index);
	free(trace);
}

pid_t pm_trace_next_tid(const struct pm_trace *trace, pid_t tid)
{
	pid_t next = 0;

	for (size_t i = 0; i < trace->threads.len; i++) {
		pid_t other = trace->threads.data[i].tid;

		if (other > tid && (next == 0 || other < next))
			next = other;
	}
	return next;
}

size_t pm_trace_len(const struct pm_trace *trace)
{
	return trace->len;
}

int pm_trace_cpu_ns(struct pm_trace *trace, pid_t tid, uint64_t *ret)
{
	uint32_t row = find_thread(trace, tid);

	if (row == PM_INDEX_NONE)
		return -ESRCH;
	return pm_trace_thread_cpu_ns(trace, &trace->threads.data[row], ret);
}

const struct pm_stat_line *pm_trace_seen(const struct pm_trace *trace, pid_t tid)
{
	uint32_t row = find_thread(trace, tid);

	return row == PM_INDEX_NONE ? NULL : &trace->threads.data[row].seen;
}
