/* SPDX-License-Identifier: MIT */
/* Shared by trace*.c. */
#pragma once

#include <sys/resource.h>

#include "proc-internal.h"

enum {
	PM_STAT_BYTES = 1024, /* of /proc/PID/stat */
	PM_SCHEDSTAT_MAX = 64, /* three numbers of at most 20 digits */
};

/* /proc/PID/schedstat: ns on a CPU, ns waiting for one, and how often it got one.
 * While the thread runs, the first is updated only now and then; the others are
 * updated when it gets a CPU. */
struct pm_schedstat {
	uint64_t ran_ns, waited_ns, turns;
};

/* What a thread waits for. A fork stops two threads, in either order. */
enum pm_trace_waits {
	PM_TRACE_WAITS_NOT,
	PM_TRACE_WAITS_FOR_CHILD, /* its stop came first, or the child is unreported */
	PM_TRACE_WAITS_FOR_MAKER,
};

struct pm_trace_thread {
	pid_t tid; /* 0: the row is free */
	uint32_t process; /* row */
	int schedstat_fd, stat_fd; /* -1: not kept open */
	struct pm_stat_line seen;
	bool asked; /* asked to stop, and not yet stopped since */
	bool ticked; /* … by a tick */
	struct pm_schedstat at_tick; /* as of that tick */
	uint64_t due_ns; /* of that tick */
	bool stopped; /* held, kept, or in a group stop */
	bool listening; /* it is in a group stop */
	bool kept;
	enum pm_trace_waits waits; /* if it waits, it is not resumed */
	uint64_t waits_since_ns;
	pid_t parent; /* of a thread that waits for its maker */
	int request; /* how to resume it: PTRACE_CONT or PTRACE_LISTEN … */
	int signal; /* … and with which signal */
	uint64_t signals; /* how many have stopped it so far */
};

struct pm_trace_process {
	pid_t pid; /* 0: the row is free */
	size_t threads;
	uint64_t cpu_ns; /* at the last tick */
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
	PM_VEC(struct pm_trace_made) made; /* not yet met */
	/* Processes that have ended; reported after the processes
	 * that they have created. */
	PM_VEC(struct pm_trace_end) ends;
	/* A lower bound of all waits_since_ns; 0: none. */
	uint64_t waits_since_ns;
	pid_t met; /* has waited for its maker and is reported next; 0: none */
	pid_t maker; /* creator of the last event's thread, resumed with it; 0: none */
	size_t len; /* number of traced threads */
	size_t fds, fds_max; /* number of fds kept open, and its limit */
	uint64_t unseen; /* threads that a tick could not examine */
	int error; /* why a thread could not be resumed; negative errno */
	bool stuck; /* a thread could not even be detached */
	uint32_t held; /* row of the last event's thread; PM_INDEX_NONE: none */
	bool schedstat; /* this kernel provides it */
	bool children, detaching;
	bool signals, kill_with_us; /* requested by the caller */
	bool more; /* pm_trace_next() stopped early */
	pid_t usage_of; /* 0: none */
	struct rusage usage;
};

/* ---- trace-rows.c -------------------------------------------------------------------- */

/* Return rows, or PM_INDEX_NONE. */
uint32_t pm_trace_find_thread(const struct pm_trace *trace, pid_t tid);
uint32_t pm_trace_find_process(const struct pm_trace *trace, pid_t pid);
/* 0, or -ENOMEM. The thread must be unknown; the process may be known. */
int pm_trace_add_thread(struct pm_trace *trace, pid_t pid, pid_t tid, uint32_t *out);
/* Also drops its process if this was the last thread. */
void pm_trace_drop_thread(struct pm_trace *trace, uint32_t row);

/* ---- trace-made.c -------------------------------------------------------------------- */

/* CLOCK_MONOTONIC. */
uint64_t pm_trace_now_ns(void);
/* The thread of @row, which is stopped, has created @child; 0: the
 * child has no pid here. */
void pm_trace_note_made(struct pm_trace *trace, uint32_t row, pid_t child, bool by_vfork);
/* Returns and removes what is known about the creation of @child; all 0: unknown. */
struct pm_trace_made pm_trace_take_made(struct pm_trace *trace, pid_t child);
/* An unknown thread has stopped. It either waits, or @out describes it. 0 or negative. */
int pm_trace_meet(struct pm_trace *trace, pid_t tid, bool is_first_stop, uint32_t *row,
		  struct pm_trace_event *out);
/* Whether there is a thread that no longer has to wait for its maker. If so, it is held
 * and reported in @out. */
bool pm_trace_tell_met(struct pm_trace *trace, struct pm_trace_event *out);
/* A thread that has waited for its child for too long; 0: none. */
pid_t pm_trace_overdue_maker(struct pm_trace *trace);
/* Whether @end is reported later, because its process has created tasks that are
 * still to be reported. */
bool pm_trace_put_end_off(struct pm_trace *trace, const struct pm_trace_event *end);
/* Whether an end that was put off can be reported now, or the task that
 * delayed it. Sets @out. */
bool pm_trace_tell_end(struct pm_trace *trace, struct pm_trace_event *out);

/* ---- trace-read.c -------------------------------------------------------------------- */

/* Same contract as pm_stat_line_parse(); 0 or negative errno. */
int pm_trace_read_stat(struct pm_trace *trace, struct pm_trace_thread *thread);
/* Whether the thread was scheduled since the last call; true if unknown. Stores the new
 * values in thread->at_tick. */
bool pm_trace_was_scheduled(struct pm_trace *trace, struct pm_trace_thread *thread);
/* False if this kernel does not provide it. */
bool pm_trace_read_schedstat(struct pm_trace *trace, struct pm_trace_thread *thread,
			     struct pm_schedstat *out);
int pm_trace_thread_cpu_ns(struct pm_trace *trace, struct pm_trace_thread *thread,
			   uint64_t *out);
void pm_trace_close(struct pm_trace *trace, struct pm_trace_thread *thread);
/* waitpid(2) for any of them; stores the resource usage if it was
 * requested for that process. */
pid_t pm_trace_wait_any(struct pm_trace *trace, int *status, int options);
/* Whether this kernel fills /proc/PID/schedstat. */
bool pm_trace_has_schedstat(void);
/* CPU time of a whole process; 0 or negative errno. */
int pm_trace_process_cpu_ns(pid_t pid, uint64_t *out);
/* Reads Tgid and PPid of /proc/TID/status; 0 or negative errno. */
int pm_trace_read_parents(pid_t tid, pid_t *tgid, pid_t *ppid);

/* ---- trace-explain.c ----------------------------------------------------------------- */

/* Explains why PTRACE_SEIZE of @tid failed with @code (positive). Returns -@code. */
int pm_trace_explain(pid_t tid, int code, struct pm_error *err);
/* Whether the calling thread traces @tid. Remains true until its end has been waited
 * for, or it was detached. */
bool pm_trace_is_ours(pid_t tid);
