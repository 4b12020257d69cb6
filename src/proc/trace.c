/* SPDX-License-Identifier: MIT */
/*
 * Tracing threads with ptrace(2). This file relies on the following behaviour of the
 * kernel:
 *
 * - After PTRACE_SEIZE threads continue to run. Tasks that they create are seized, too,
 *   with the same options, and report PTRACE_EVENT_STOP before their first instruction.
 * - Any stop answers a PTRACE_INTERRUPT (ptrace_stop() clears JOBCTL_TRAP_STOP).
 * - A group stop reports PTRACE_EVENT_STOP with its signal; PTRACE_LISTEN leaves the
 *   thread in it, so that job control works as without a tracer.
 * - In an exec all other threads end, and the executing thread takes over the leader's
 *   tid without an exit of its own: PTRACE_GETEVENTMSG returns its former tid.
 * - PTRACE_O_TRACEEXIT is not needed: wait(2) reports exits, and another stop for each
 *   thread would only cost time.
 */
#include "trace-internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum {
	FDS_MAX = 4096, /* kept open; for more threads, the files are reopened each
	                 * time */
	FDS_SHARE = 4, /* the inverse of our share of the fds that may be open */
	/* Threads may be created while the directory is read. The kernel seizes those
	 * that traced threads create, so each round finds fewer. */
	SEIZE_ROUNDS_MAX = 1000,
	/* Maximum number of consecutive stops that are not reported to the caller. A
	 * thread that receives signals all the time stops all the time, and the function
	 * would never return. */
	QUIET_MAX = 256,
	NEAR_NS = 400000, /* from a tick to the stop of a thread that we preempted */
};

/* ---- resuming ------------------------------------------------------------------------ */

static void detach_thread(struct pm_trace *trace, uint32_t row)
{
	const struct pm_trace_thread *thread = &trace->threads.data[row];

	if (ptrace(PTRACE_DETACH, thread->tid, NULL,
		   thread->listening ? 0L : (long)thread->signal) != 0 &&
	    errno != ESRCH)
		trace->stuck = true;
	pm_trace_drop_thread(trace, row);
}

/* Resumes the thread of @row. If it has been killed, its end is reported soon. No thread
 * may be left stopped: one that cannot be resumed is detached, and the caller gets an
 * error. */
static void resume_thread(struct pm_trace *trace, uint32_t row)
{
	struct pm_trace_thread *thread = &trace->threads.data[row];

	if (trace->detaching) {
		detach_thread(trace, row);
		return;
	}
	if (thread->waits != PM_TRACE_WAITS_NOT)
		return;
	if (ptrace((enum __ptrace_request)thread->request, thread->tid, NULL,
		   (long)thread->signal) != 0 &&
	    errno != ESRCH) {
		trace->error = -errno;
		detach_thread(trace, row);
		return;
	}
	thread->stopped = thread->listening;
}

/* Ends the thread's wait for the other side of a fork. */
static void end_wait(struct pm_trace *trace, pid_t tid)
{
	uint32_t row = tid != 0 ? pm_trace_find_thread(trace, tid) : PM_INDEX_NONE;
	struct pm_trace_thread *thread;

	if (row == PM_INDEX_NONE)
		return;
	thread = &trace->threads.data[row];
	if (thread->waits == PM_TRACE_WAITS_NOT)
		return;
	thread->waits = PM_TRACE_WAITS_NOT;
	if (!thread->kept)
		resume_thread(trace, row);
}

void pm_trace_go_on(struct pm_trace *trace)
{
	uint32_t row = trace->held;
	pid_t maker = trace->maker;

	trace->held = PM_INDEX_NONE;
	trace->maker = 0;
	if (row != PM_INDEX_NONE && !trace->threads.data[row].kept)
		resume_thread(trace, row);
	end_wait(trace, maker);
}

/* Why a thread is interrupted. */
enum interrupt {
	INTERRUPT_TO_STOP,
	INTERRUPT_TO_SAMPLE, /* by a tick, while it had a CPU */
};

static void interrupt_thread(struct pm_trace_thread *thread, enum interrupt why)
{
	thread->ticked = why == INTERRUPT_TO_SAMPLE;
	if (ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL) == 0)
		thread->asked = true;
}

/*
 * Whether the stopped thread had a CPU at the tick that stopped it. A thread that only
 * waited for a CPU is at the place where the scheduler took the CPU away. That is often
 * in system calls that check clocks, and does not show where the thread spends its time.
 * Such a thread has been given a CPU since the tick. The same is true of a thread that
 * our own interrupt preempted, but this one has waited only after the tick. If there is
 * much time between the tick and the stop, neither conclusion is certain, nor is it
 * certain that we chose the place of the preemption.
 */
static bool had_cpu(struct pm_trace *trace, struct pm_trace_thread *thread)
{
	const struct pm_schedstat *then = &thread->at_tick;
	uint64_t late_ns = pm_trace_now_ns() - thread->due_ns;
	struct pm_schedstat now;

	if (!trace->schedstat || !pm_trace_read_schedstat(trace, thread, &now) ||
	    now.turns == then->turns)
		return true;
	return now.turns == then->turns + 1 && late_ns <= NEAR_NS &&
	       now.waited_ns - then->waited_ns <= late_ns;
}

/* ---- results of wait(2) -------------------------------------------------------------- */

static bool is_group_stop(int event, int signal)
{
	return event == PTRACE_EVENT_STOP && (signal == SIGSTOP || signal == SIGTSTP ||
					      signal == SIGTTIN || signal == SIGTTOU);
}

/* Drops all threads except @tid: after an exec they have ended, or are @tid under its
 * former id. */
static void forget_others(struct pm_trace *trace, pid_t pid, pid_t tid)
{
	uint32_t process = pm_trace_find_process(trace, pid);

	for (uint32_t i = 0; i < trace->threads.len; i++) {
		const struct pm_trace_thread *thread = &trace->threads.data[i];

		if (thread->tid != 0 && thread->process == process && thread->tid != tid)
			pm_trace_drop_thread(trace, i);
	}
}

static int take_exit(struct pm_trace *trace, pid_t tid, int status,
		     struct pm_trace_event *out)
{
	uint32_t row = pm_trace_find_thread(trace, tid);

	/* A thread that was never reported must not keep its maker waiting. */
	end_wait(trace, pm_trace_take_made(trace, tid).parent_tid);
	*out = (struct pm_trace_event){
		.what = PM_TRACE_EXIT, .pid = tid, .tid = tid, .status = status
	};
	if (row != PM_INDEX_NONE) {
		out->pid = trace->processes.data[trace->threads.data[row].process].pid;
		pm_trace_drop_thread(trace, row);
	}
	return !pm_trace_put_end_off(trace, out);
}

/* Returns the id that the stop of @tid reports, in our namespace, or @otherwise if @tid
 * was killed. */
static pid_t message_of(pid_t tid, pid_t otherwise)
{
	unsigned long message;

	if (ptrace(PTRACE_GETEVENTMSG, tid, NULL, &message) != 0 || message == 0 ||
	    message > INT32_MAX)
		return otherwise;
	return (pid_t)message;
}

/* Handles a stop. Returns 1 if @out is set, 0 if there is nothing to report, or a
 * negative errno. */
static int take_stop(struct pm_trace *trace, pid_t tid, int status,
		     struct pm_trace_event *out)
{
	int event = status >> 16, signal = WSTOPSIG(status), found = 0;
	uint32_t row = pm_trace_find_thread(trace, tid);
	struct pm_trace_thread *thread;
	bool asked;

	*out = (struct pm_trace_event){ .tid = tid };
	if (row == PM_INDEX_NONE) {
		found = 1;
		if (pm_trace_meet(trace, tid, event == PTRACE_EVENT_STOP, &row, out) <
		    0) {
			/* The thread has been killed, or memory runs out; it must not stay
			 * stopped in either case. */
			ptrace(PTRACE_DETACH, tid, NULL, NULL);
			return 0;
		}
	}
	thread = &trace->threads.data[row];
	asked = thread->asked;
	thread->asked = false;
	thread->stopped = true;
	thread->listening = is_group_stop(event, signal);
	if (thread->listening)
		thread->request = PTRACE_LISTEN;
	else
		thread->request = PTRACE_CONT;
	thread->signal = event == 0 ? signal : 0;
	thread->signals += event == 0;
	out->signals = thread->signals;
	out->pid = trace->processes.data[thread->process].pid;
	if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
	    event == PTRACE_EVENT_CLONE)
		pm_trace_note_made(trace, row, message_of(tid, 0),
				   event == PTRACE_EVENT_VFORK);
	/* A thread that waits for its child is not reported as stopped before the child
	 * is, so ask again. A stop by a tick is reported immediately. */
	if (asked && !thread->ticked && thread->waits == PM_TRACE_WAITS_FOR_CHILD) {
		interrupt_thread(thread, INTERRUPT_TO_STOP);
		asked = false;
	}
	if (event == PTRACE_EVENT_EXEC) {
		out->former_tid = message_of(tid, tid);
		/* The kept fds may be those of another thread's directory. */
		pm_trace_close(trace, thread);
		forget_others(trace, out->pid, tid);
		out->what = PM_TRACE_EXEC;
		found = 1;
	} else if (found == 0 && !trace->detaching &&
		   (asked || (trace->signals && thread->signal != 0))) {
		out->what = PM_TRACE_STOPPED;
		out->signal = thread->signal;
		out->had_cpu = !thread->ticked || had_cpu(trace, thread);
		found = 1;
	}
	if (thread->waits == PM_TRACE_WAITS_FOR_MAKER)
		return 0; /* it is reported when both threads have stopped */
	trace->held = row;
	if (found == 0 || trace->detaching) {
		pm_trace_go_on(trace);
		return 0;
	}
	return found;
}

static int next_event(struct pm_trace *trace, int options, struct pm_trace_event *out,
		      struct pm_error *err)
{
	pm_trace_go_on(trace);
	trace->more = false;
	if (trace->error < 0) {
		int error = trace->error;

		trace->error = 0;
		return pm_error_set(err, error,
				    "a thread cannot be let go on: ptrace: %s",
				    strerror(-error));
	}
	for (int quiet = 0; quiet < QUIET_MAX; quiet++) {
		int status, ret;
		pid_t tid;

		end_wait(trace, pm_trace_overdue_maker(trace));
		if (pm_trace_tell_met(trace, out) || pm_trace_tell_end(trace, out))
			return 1;
		tid = pm_trace_wait_any(trace, &status, options);
		if (tid == 0 || (tid < 0 && (errno == ECHILD || errno == EINTR)))
			return 0;
		if (tid < 0) {
			ret = -errno;
			return pm_error_set(err, ret, "waitpid: %s", strerror(-ret));
		}
		if (WIFSTOPPED(status))
			ret = take_stop(trace, tid, status, out);
		else
			ret = take_exit(trace, tid, status, out);
		if (ret != 0)
			return ret;
	}
	trace->more = true;
	return 0;
}

int pm_trace_next(struct pm_trace *trace, struct pm_trace_event *out,
		  struct pm_error *err)
{
	return next_event(trace, WNOHANG, out, err);
}

int pm_trace_wait(struct pm_trace *trace, struct pm_trace_event *out,
		  struct pm_error *err)
{
	return next_event(trace, 0, out, err);
}

bool pm_trace_more(const struct pm_trace *trace)
{
	return trace->more;
}

void pm_trace_set_signal(struct pm_trace *trace, int signal)
{
	/* In a group stop this number is not a signal: see ptrace(2), "Group-stop". */
	if (trace->held != PM_INDEX_NONE && !trace->threads.data[trace->held].listening)
		trace->threads.data[trace->held].signal = signal;
}

void pm_trace_let_go(struct pm_trace *trace)
{
	if (trace->held != PM_INDEX_NONE)
		detach_thread(trace, trace->held);
}

void pm_trace_keep(struct pm_trace *trace)
{
	if (trace->held != PM_INDEX_NONE)
		trace->threads.data[trace->held].kept = true;
}

/* ---- attaching ----------------------------------------------------------------------- */

/* Whether the thread is a zombie: a leader that has exited while other threads still
 * exist. It cannot be traced. */
static bool has_thread_ended(pid_t pid, pid_t tid)
{
	PM_AUTO_CLOSE int fd = -1;
	struct pm_stat_line line;
	char path[64], text[PM_STAT_BYTES];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		len = -1;
	else
		len = read(fd, text, sizeof(text));
	return len > 0 && pm_stat_line_parse(text, (size_t)len, &line) == 0 &&
	       (line.state == 'Z' || line.state == 'X');
}

/* Returns 1 if the thread was seized now, 0 if it had been seized before or has ended. */
static int seize_thread(struct pm_trace *trace, pid_t pid, pid_t tid,
			struct pm_error *err)
{
	long options = trace->children ? PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
						 PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC
				       : 0;
	uint32_t row;

	if (trace->kill_with_us)
		options |= PTRACE_O_EXITKILL;
	if (pm_trace_find_thread(trace, tid) != PM_INDEX_NONE ||
	    has_thread_ended(pid, tid))
		return 0;
	if (ptrace(PTRACE_SEIZE, tid, NULL, options) != 0) {
		int ret = errno;
		pid_t tgid, ppid;

		/* Other threads may have ended or be zombies; only the process itself is
		 * known to exist. */
		if (tid != pid && (ret == ESRCH || ret == EPERM) &&
		    (pm_trace_read_parents(tid, &tgid, &ppid) < 0 ||
		     pm_trace_len(trace) > 0))
			return 0;
		return pm_trace_explain(tid, ret, err);
	}
	if (pm_trace_add_thread(trace, pid, tid, &row) < 0)
		return pm_error_set(err, -ENOMEM, "out of memory");
	return 1;
}

/* Returns the number of threads of @pid that had not been seized before. */
static int seize_round(struct pm_trace *trace, pid_t pid, struct pm_error *err)
{
	const struct dirent *entry;
	char path[64];
	DIR *folder;
	int found = 0, ret = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	folder = opendir(path);
	if (!folder)
		return pm_trace_explain(pid, errno == ENOENT ? ESRCH : errno, err);
	while (ret >= 0 && (entry = readdir(folder))) {
		uint64_t tid;

		if (!pm_parse_u64(entry->d_name, &tid) || tid > INT32_MAX)
			continue;
		ret = seize_thread(trace, pid, (pid_t)tid, err);
		found += ret == 1;
	}
	closedir(folder);
	if (ret < 0)
		return ret;
	return found;
}

int pm_trace_seize(struct pm_trace *trace, pid_t pid, bool children, struct pm_error *err)
{
	pid_t tgid, ppid;
	int ret = pm_trace_read_parents(pid, &tgid, &ppid);

	if (ret < 0)
		return pm_trace_explain(pid, -ret == ENOENT ? ESRCH : -ret, err);
	if (tgid != pid) {
		pm_error_set(err, -ESRCH, "%d is a thread of process %d", (int)pid,
			     (int)tgid);
		pm_error_fix(err, "%d", (int)tgid);
		return -ESRCH;
	}
	trace->children = children;
	for (int i = 0; i < SEIZE_ROUNDS_MAX; i++) {
		ret = seize_round(trace, pid, err);
		if (ret < 0)
			return ret;
		if (ret == 0 && pm_trace_find_process(trace, pid) == PM_INDEX_NONE)
			return pm_error_set(err, -ESRCH,
					    "process %d has ended: it is a zombie, which "
					    "its parent has not waited for",
					    (int)pid);
		if (ret == 0)
			return 0;
	}
	return 1;
}

int pm_trace_seize_thread(struct pm_trace *trace, pid_t pid, pid_t tid,
			  struct pm_error *err)
{
	pid_t tgid, ppid;
	int ret = pm_trace_read_parents(tid, &tgid, &ppid);

	if (ret == 0 && tgid == pid) {
		ret = seize_thread(trace, pid, tid, err);
		return PM_MIN(ret, 0);
	}
	if (ret == 0)
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
		    (thread->stopped && !thread->listening &&
		     thread->waits == PM_TRACE_WAITS_NOT))
			continue;
		pm_trace_read_stat(trace, thread);
		interrupt_thread(thread, INTERRUPT_TO_STOP);
	}
}

static void look_at_processes(struct pm_trace *trace)
{
	for (size_t i = 0; i < trace->processes.len; i++) {
		struct pm_trace_process *process = &trace->processes.data[i];
		uint64_t now;

		if (process->pid == 0)
			continue;
		/* If the clock cannot be read, only the threads can show whether there
		 * was CPU time. */
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
		int ret;

		if (thread->tid == 0 || thread->asked || thread->stopped ||
		    !trace->processes.data[thread->process].moved)
			continue;
		/* A thread that keeps running is not scheduled anew, and its time is
		 * updated only at the kernel's own ticks. */
		scheduled = pm_trace_was_scheduled(trace, thread);
		if (!scheduled && !ran)
			continue;
		ret = pm_trace_read_stat(trace, thread);
		/* A thread that has ended need not be examined. */
		trace->unseen += ret < 0 && ret != -ENOENT && ret != -ESRCH;
		if (ret < 0 || thread->seen.state != 'R')
			continue;
		thread->due_ns = due_ns;
		interrupt_thread(thread, INTERRUPT_TO_SAMPLE);
		asked += thread->asked;
	}
	return asked;
}

void pm_trace_detach(struct pm_trace *trace)
{
	trace->detaching = true;
	pm_trace_keep(trace); /* the thread stays stopped, for whatever event it was
	                       * held */
	trace->held = PM_INDEX_NONE;
	for (uint32_t i = 0; i < trace->threads.len; i++) {
		struct pm_trace_thread *thread = &trace->threads.data[i];

		if (thread->tid == 0)
			continue;
		/* A listening thread has to stop once more before it can be detached. */
		if (thread->stopped && !(thread->listening && !thread->kept))
			resume_thread(trace, i);
		else if (!thread->asked)
			interrupt_thread(thread, INTERRUPT_TO_STOP);
	}
}

/* ---- creation and release ------------------------------------------------------------ */

struct pm_trace *pm_trace_new(void)
{
	struct pm_trace *trace = calloc(1, sizeof(*trace));
	struct rlimit limit;

	if (!trace)
		return NULL;
	trace->held = PM_INDEX_NONE;
	trace->schedstat = pm_trace_has_schedstat();
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		if (limit.rlim_cur / FDS_SHARE < FDS_MAX)
			trace->fds_max = (size_t)(limit.rlim_cur / FDS_SHARE);
		else
			trace->fds_max = FDS_MAX;
	}
	return trace;
}

void pm_trace_watch_signals(struct pm_trace *trace)
{
	trace->signals = true;
}

void pm_trace_kill_with_us(struct pm_trace *trace)
{
	trace->kill_with_us = true;
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
	pm_vec_release(&trace->made);
	pm_vec_release(&trace->ends);
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
	return trace->len + trace->made.len + trace->ends.len;
}

bool pm_trace_is_stuck(const struct pm_trace *trace)
{
	return trace->stuck;
}

uint64_t pm_trace_unseen(const struct pm_trace *trace)
{
	return trace->unseen;
}

int pm_trace_cpu_ns(struct pm_trace *trace, pid_t tid, uint64_t *out)
{
	uint32_t row = pm_trace_find_thread(trace, tid);

	if (row == PM_INDEX_NONE)
		return -ESRCH;
	return pm_trace_thread_cpu_ns(trace, &trace->threads.data[row], out);
}

const struct pm_stat_line *pm_trace_seen(const struct pm_trace *trace, pid_t tid)
{
	uint32_t row = pm_trace_find_thread(trace, tid);

	if (row == PM_INDEX_NONE)
		return NULL;
	return &trace->threads.data[row].seen;
}
