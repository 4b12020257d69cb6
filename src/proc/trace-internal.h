/* SPDX-License-Identifier: MIT */
/* What trace*.c share. */
#pragma once

#include <sys/resource.h>

#include "proc-internal.h"

enum {
	PM_STAT_BYTES = 1024, /* of /proc/PID/stat */
	PM_SCHEDSTAT_MAX = 64, /* three numbers of at most 20 digits */
};

/* /proc/PID/schedstat: ns on a CPU, ns waiting for one, and how often it got one. While it
 * runs, the first is brought up to date only now and then; the others when it gets a CPU. */
struct pm_schedstat {
	uint64_t ran_ns, waited_ns, turns;
};

/* A fork stops two threads, in any order. */
enum pm_trace_waits {
	PM_TRACE_WAITS_NOT,
	PM_TRACE_WAITS_FOR_CHILD, /* its stop at the fork came first, or the child's is not told */
	PM_TRACE_WAITS_FOR_MAKER,
};

struct pm_trace_thread {
	pid_t tid; /* 0: the row is free */
	uint32_t process; /* row */
	int schedstat_fd, stat_fd; /* -1: not kept open */
	struct pm_stat_line seen;
	bool asked; /* to stop; not yet stopped since */
	bool ticked; /* … by a tick */
	struct pm_schedstat at_tick; /* what was seen then */
	uint64_t due_ns; /* of that tick */
	bool stopped; /* held, kept, or in a group stop */
	bool listening; /* in a group stop */
	bool kept;
	enum pm_trace_waits waits; /* and so stands still */
	uint64_t waits_since_ns;
	pid_t parent; /* of one that waits for its maker */
	int request; /* how it goes on: PTRACE_CONT or PTRACE_LISTEN … */
	int signal; /* … and with which signal */
	uint64_t signals; /* it has stopped for so far */
};

struct pm_trace_process {
	pid_t pid; /* 0: the row is free */
	size_t threads;
	uint64_t cpu_ns; /* at the last tick */
	bool moved; /* it has used CPU time since the tick before */
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
	PM_VEC(struct pm_trace_made) made; /* that are still to be met */
	/* Processes that have ended, to be told after those that they have made. */
	PM_VEC(struct pm_trace_end) ends;
	/* The oldest of waits_since_ns that there may be; 0: none. */
	uint64_t waits_since_ns;
	pid_t met; /* waited for its maker, and is to be told of now; 0: none */
	pid_t maker; /* of the last event's thread, and waits until that goes on; 0: none */
	size_t len; /* threads followed */
	size_t fds, fds_max; /* kept open */
	uint64_t unseen; /* threads that a tick could not look at */
	int error; /* why a thread could not be let go on; negative errno */
	bool stuck; /* nor let go */
	uint32_t held; /* row of the last event's thread, PM_INDEX_NONE: none */
	bool schedstat; /* this kernel keeps it */
	bool children, detaching;
	bool signals, kill_with_us; /* asked for */
	bool more; /* pm_trace_next() gave up early */
	pid_t usage_of; /* 0: nobody */
	struct rusage usage;
};

/* ---- trace-rows.c -------------------------------------------------------------------- */

/* Rows, or PM_INDEX_NONE. */
uint32_t pm_trace_find_thread(const struct pm_trace *trace, pid_t tid);
uint32_t pm_trace_find_process(const struct pm_trace *trace, pid_t pid);
/* 0, or -ENOMEM. The thread is not known yet; the process may be. */
int pm_trace_add_thread(struct pm_trace *trace, pid_t pid, pid_t tid, uint32_t *ret);
/* With its process when it was the last of it. */
void pm_trace_drop_thread(struct pm_trace *trace, uint32_t row);

/* ---- trace-made.c -------------------------------------------------------------------- */

/* CLOCK_MONOTONIC. */
uint64_t pm_trace_now_ns(void);
/* The thread of @row, which stands still, has made @child; 0: it has no number here. */
void pm_trace_note_made(struct pm_trace *trace, uint32_t row, pid_t child, bool by_vfork);
/* Who made it and how, all 0: unknown. From now on it is. */
struct pm_trace_made pm_trace_take_made(struct pm_trace *trace, pid_t child);
/* An unknown thread has stopped. It waits, or @ret is told of it. 0 or negative. */
int pm_trace_meet(struct pm_trace *trace, pid_t tid, bool is_first_stop, uint32_t *row,
		  struct pm_trace_event *ret);
/* Whether there is one who waited for its maker and need not any more; it is held. */
bool pm_trace_tell_met(struct pm_trace *trace, struct pm_trace_event *ret);
/* One that has waited for its child for too long; 0: none. */
pid_t pm_trace_overdue_maker(struct pm_trace *trace);
/* Whether @end is told later, since its process has made somebody who is still to be told of. */
bool pm_trace_put_end_off(struct pm_trace *trace, const struct pm_trace_event *end);
/* Whether there is an end that was put off and need not be any more, or who has it wait. */
bool pm_trace_tell_end(struct pm_trace *trace, struct pm_trace_event *ret);

/* ---- trace-read.c -------------------------------------------------------------------- */

/* Reads as pm_stat_line_parse(); 0 or negative errno. */
int pm_trace_read_stat(struct pm_trace *trace, struct pm_trace_thread *thread);
/* Whether the thread was scheduled since the last call; true where it cannot be told. What
 * was read is in thread->at_tick. */
bool pm_trace_was_scheduled(struct pm_trace *trace, struct pm_trace_thread *thread);
/* False where this kernel does not tell. */
bool pm_trace_read_schedstat(struct pm_trace *trace, struct pm_trace_thread *thread,
			     struct pm_schedstat *ret);
int pm_trace_thread_cpu_ns(struct pm_trace *trace, struct pm_trace_thread *thread,
			   uint64_t *ret);
void pm_trace_close(struct pm_trace *trace, struct pm_trace_thread *thread);
/* waitpid(2) for any of them; notes what it has used of whom that is asked. */
pid_t pm_trace_wait_any(struct pm_trace *trace, int *status, int options);
/* Whether this kernel writes numbers into /proc/PID/schedstat. */
bool pm_trace_has_schedstat(void);
/* CPU time of a whole process; 0 or negative errno. */
int pm_trace_process_cpu_ns(pid_t pid, uint64_t *ret);
/* Tgid, PPid of /proc/TID/status; 0 or negative errno. */
int pm_trace_read_parents(pid_t tid, pid_t *tgid, pid_t *ppid);

/* ---- trace-explain.c ----------------------------------------------------------------- */

/* Why PTRACE_SEIZE of @tid failed with @code (positive). Returns -@code. */
int pm_trace_explain(pid_t tid, int code, struct pm_error *err);
/* Whether this thread of ours traces @tid: until its end has been waited for, or it was let go. */
bool pm_trace_is_ours(pid_t tid);
