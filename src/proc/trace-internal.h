/* SPDX-License-Identifier: MIT */
/* Shared by trace*.c. */
#pragma once

#include <sys/resource.h>

#include "proc-internal.h"

enum {
	PM_STAT_BYTES = 1024, /* of /proc/PID/stat */
	PM_SCHEDSTAT_MAX = 64, /* three numbers of at most 20 digits */
};

/* /proc/PID/schedstat: ns on a CPU, ns of waiting for one, and how often the thread got
 * one. While the thread runs, the first is updated only now and then; the others are
 * updated when it gets a CPU. */
struct pm_schedstat {
	uint64_t ran_ns, waited_ns, turns;
};

/* What a thread waits for. A fork stops two threads, in either order. */
enum pm_trace_waits {
	PM_TRACE_WAITS_NOT,
	PM_TRACE_WAITS_FOR_CHILD, /* its own stop came first, or the child has not been
	                           * reported */
	PM_TRACE_WAITS_FOR_MAKER,
};

struct pm_trace_thread {
	pid_t tid; /* 0: the row is free */
	uint32_t process; /* row of its process */
	int schedstat_fd, stat_fd; /* -1: not kept open */
	struct pm_stat_line seen;
	bool asked; /* was asked to stop, and has not stopped since */
	bool ticked; /* was asked by a tick */
	struct pm_schedstat at_tick; /* values at that tick */
	uint64_t due_ns; /* time of that tick */
	bool stopped; /* held, kept, or in a group stop */
	bool listening; /* it is in a group stop */
	bool kept;
	enum pm_trace_waits waits; /* a thread that waits is not resumed */
	uint64_t waits_since_ns;
	pid_t parent; /* if the thread waits for its maker: the parent's pid */
	int request; /* how to resume it: PTRACE_CONT or PTRACE_LISTEN */
	int signal; /* the signal to resume it with */
	uint64_t signals; /* number of signals that have stopped it */
};

struct pm_trace_process {
	pid_t pid; /* 0: the row is free */
	size_t threads;
	uint64_t cpu_ns; /* CPU time at the last tick */
	bool moved; /* it has used CPU time since the previous tick */
};

struct pm_trace_made {
	pid_t tid, parent_pid, parent_tid;
	bool by_vfork;
};

struct pm_trace_end {
	struct pm_trace_event event;
	uint64_t since_ns;
};

struct pm_trace {
	PM_VEC(struct pm_trace_thread) threads;
	PM_VEC(struct pm_trace_process) processes;
	PM_VEC(uint32_t) free_threads, free_processes;
	struct pm_index threads_index, processes_index;
	PM_VEC(struct pm_trace_made) made; /* children that have not stopped yet */
	/* Processes that have ended. Each is reported after the processes that it has
	 * created. */
	PM_VEC(struct pm_trace_end) ends;
	/* A lower bound of all waits_since_ns; 0: no thread waits. */
	uint64_t waits_since_ns;
	pid_t met; /* a thread that has waited for its maker and is reported next; 0:
	            * none */
	pid_t maker; /* creator of the last event's thread; resumed together with it; 0:
	              * none */
	size_t len; /* number of traced threads */
	size_t fds, fds_max; /* number of fds that are kept open, and its limit */
	uint64_t unseen; /* threads that a tick could not examine */
	int error; /* why a thread could not be resumed; negative errno; 0: no failure */
	bool stuck; /* a thread could not even be detached */
	uint32_t held; /* row of the last event's thread; PM_INDEX_NONE: none */
	bool schedstat; /* this kernel provides it */
	bool children, detaching;
	bool signals, kill_with_us; /* requested by the caller */
	bool more; /* pm_trace_next() stopped early, and there is more to read */
	pid_t usage_of; /* process whose resource usage was requested; 0: none */
	struct rusage usage;
};

/* ---- trace-rows.c -------------------------------------------------------------------- */

/* These two return rows, or PM_INDEX_NONE. */
uint32_t pm_trace_find_thread(const struct pm_trace *trace, pid_t tid);
uint32_t pm_trace_find_process(const struct pm_trace *trace, pid_t pid);
/* Returns 0 or -ENOMEM. The thread must be unknown; the process may be known. */
int pm_trace_add_thread(struct pm_trace *trace, pid_t pid, pid_t tid, uint32_t *out);
/* Also drops its process if this was the last thread. */
void pm_trace_drop_thread(struct pm_trace *trace, uint32_t row);

/* ---- trace-made.c -------------------------------------------------------------------- */

/* Returns the time of CLOCK_MONOTONIC. */
uint64_t pm_trace_now_ns(void);
/* Notes that the thread of @row, which is stopped, has created @child; 0: the child has
 * no pid in this namespace. */
void pm_trace_note_made(struct pm_trace *trace, uint32_t row, pid_t child, bool by_vfork);
/* Returns and removes the information about the creation of @child; all 0 if there is
 * none. */
struct pm_trace_made pm_trace_take_made(struct pm_trace *trace, pid_t child);
/* Called when an unknown thread has stopped. It either has to wait for its maker, or @out
 * describes it. Returns 0 or a negative errno. */
int pm_trace_meet(struct pm_trace *trace, pid_t tid, bool is_first_stop, uint32_t *row,
		  struct pm_trace_event *out);
/* Whether there is a thread that no longer has to wait for its maker. If there is one, it
 * is held and reported in @out. */
bool pm_trace_tell_met(struct pm_trace *trace, struct pm_trace_event *out);
/* Returns a thread that has waited for its child for too long, or 0 if there is none. */
pid_t pm_trace_overdue_maker(struct pm_trace *trace);
/* If its process has created tasks that have not been reported, delays @end until
 * pm_trace_tell_end(). Returns whether it did; false also if memory runs out. */
bool pm_trace_put_end_off(struct pm_trace *trace, const struct pm_trace_event *end);
/* Whether an end that was put off, or the task that delayed it, can be reported now. Sets
 * @out. */
bool pm_trace_tell_end(struct pm_trace *trace, struct pm_trace_event *out);

/* ---- trace-read.c -------------------------------------------------------------------- */

/* Reads the thread's stat line, see pm_stat_line_parse(). Returns 0 or a negative
 * errno. */
int pm_trace_read_stat(struct pm_trace *trace, struct pm_trace_thread *thread);
/* Whether the thread was scheduled since the last call; true if that is unknown. Stores
 * the new values in thread->at_tick. */
bool pm_trace_was_scheduled(struct pm_trace *trace, struct pm_trace_thread *thread);
/* Returns false if this kernel does not provide the values. */
bool pm_trace_read_schedstat(struct pm_trace *trace, struct pm_trace_thread *thread,
			     struct pm_schedstat *out);
int pm_trace_thread_cpu_ns(struct pm_trace *trace, struct pm_trace_thread *thread,
			   uint64_t *out);
void pm_trace_close(struct pm_trace *trace, struct pm_trace_thread *thread);
/* Calls waitpid(2) for any traced thread; stores the resource usage if it was requested
 * for that process. */
pid_t pm_trace_wait_any(struct pm_trace *trace, int *status, int options);
/* Whether this kernel fills /proc/PID/schedstat. */
bool pm_trace_has_schedstat(void);
/* Reads the CPU time of a whole process. Returns 0 or a negative errno. */
int pm_trace_process_cpu_ns(pid_t pid, uint64_t *out);
/* Reads Tgid and PPid of /proc/TID/status. Returns 0 or a negative errno. */
int pm_trace_read_parents(pid_t tid, pid_t *tgid, pid_t *ppid);

/* ---- trace-explain.c ----------------------------------------------------------------- */

/* Explains why PTRACE_SEIZE of @tid failed with @code (positive). Returns -@code. */
int pm_trace_explain(pid_t tid, int code, struct pm_error *err);
/* Whether the calling thread traces @tid. This stays true until @tid has been waited for
 * after its end, or has been detached. */
bool pm_trace_is_ours(pid_t tid);
