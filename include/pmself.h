/* SPDX-License-Identifier: MIT */
/*
 * libpmself: profile a program from inside.
 *
 *	perf_start();
 *	work();
 *	perf_stop();        prints which functions took the time
 *
 * Link with `pkg-config --cflags --libs pmself`, or change nothing and run the program with
 * LD_PRELOAD=libpmself.so, which profiles it from its first to its last moment. What the options
 * below say can be said by environment variables, too, which win over them: PMSELF_RATE,
 * PMSELF_EVENT, PMSELF_OUTPUT, PMSELF_TABLE, PMSELF_ENGINE, PMSELF_THREADS, PMSELF_CALL_GRAPH,
 * PMSELF_SCOPES; PMSELF=off makes all functions return 0 without doing anything.
 *
 * All functions may be called from any thread at any time but from a signal handler, also in
 * programs that have more threads, that fork (the child is not profiled unless it starts anew),
 * load and unload libraries. None of them ends, aborts or locks up the program: what does not
 * work is told by a negative errno, and by one line on stderr unless PMSELF_QUIET is set.
 */
#ifndef PMSELF_H
#define PMSELF_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- sampling ------------------------------------------------------------------------ */

enum pmself_engine {
	PMSELF_ENGINE_AUTO, /* perf where the kernel allows it, else timers */
	PMSELF_ENGINE_PERF, /* perf_event_open(2); uses no signals */
	PMSELF_ENGINE_TIMER, /* CPU-time timers of each thread and SIGPROF; needs no permission */
};

enum pmself_call_graph {
	PMSELF_CALL_GRAPH_DWARF, /* by unwind tables: works for all programs */
	PMSELF_CALL_GRAPH_NONE, /* where samples hit, without callers: cheapest */
};

/* All zero but `size`: what perf_start() does. Begin with PMSELF_OPTIONS_INIT. */
struct pmself_options {
	size_t size; /* of this struct, so that later versions may have more members */
	uint32_t rate_hz; /* 0: 999; of each thread's CPU time */
	const char *event; /* as `pmrec -e`: "cycles", "cache-misses"; NULL: cycles, or
			    * cpu-clock without a PMU. The timer engine knows cpu-clock only. */
	const char *output; /* file for `pmreport`, %p is the pid; NULL, "": none */
	const char *table; /* file for the table; NULL: stderr; "": none */
	enum pmself_engine engine;
	enum pmself_call_graph call_graph;
	int this_thread_only; /* not 0: of the thread that calls, and no other */
};
#define PMSELF_OPTIONS_INIT                                                             \
	{                                                                               \
		sizeof(struct pmself_options), 0, NULL, NULL, NULL, PMSELF_ENGINE_AUTO, \
			PMSELF_CALL_GRAPH_DWARF, 0                                      \
	}

/* 0, or negative: -EALREADY when it is running, -EPERM and -EACCES, -ENOSYS, -EINVAL, -ENOMEM …
 * Nothing is running then. */
int pmself_start(const struct pmself_options *options);
/* Ends the profile that is running, writes table and file. Calls of pmself_start() and
 * pmself_stop() may follow each other for ever. 0; -ESRCH when none is running; what went wrong
 * while writing. */
int pmself_stop(void);

/* pmself_start() with the defaults, and pmself_stop(). */
int perf_start(void);
int perf_stop(void);

/* ---- scopes -------------------------------------------------------------------------- */

/*
 * Counters between two points of one thread, summed up by name: how often, elapsed time, CPU
 * time, and where there is a PMU cycles and instructions of the program's own code (rdpmc where
 * it is allowed, else one read(2)). Scopes nest, a stack of them for each thread, 64 deep; what
 * is inside of a scope counts for it, too. They work with and without a profile that runs; their
 * table is printed by pmself_stop(), or when the program ends. PMSELF_SCOPES=time leaves out what
 * takes a system call, PMSELF_SCOPES=off all.
 *
 * Scopes of the same text are the same, wherever @name stands; a copy of it is kept. With
 * PMSELF_DISABLE defined before this header is included, all of it vanishes.
 */

/* The counts of a name, over all threads. Initialize with PMSELF_COUNTS_INIT. */
struct pmself_counts {
	size_t size; /* of this struct, as with options */
	uint64_t calls, unfinished; /* that have ended; that have not, or not yet */
	uint64_t elapsed_ns;
	uint64_t cpu_ns, cycles, instructions; /* UINT64_MAX: unknown */
};
#define PMSELF_COUNTS_INIT                                     \
	{                                                      \
		sizeof(struct pmself_counts), 0, 0, 0, 0, 0, 0 \
	}

#ifndef PMSELF_DISABLE
/* 0; -ENOMEM, then there is nothing to end; -ENOSPC: more than 64 deep, it is told as lost, and
 * has to be ended all the same; -EBUSY: the same, for it was called by malloc() or a handler of
 * signals that came in the midst of another call of these. */
int pmself_scope_begin(const char *name);
/* Ends the innermost scope, which has to be @name: otherwise -EINVAL, and nothing ends. -ENOSPC,
 * -EBUSY: it was one that was lost. */
int pmself_scope_end(const char *name);
/* Of scopes that have ended. -ENOENT when there is none of this name. */
int pmself_scope_read(const char *name, struct pmself_counts *ret);
#else
static inline int pmself_scope_begin(const char *name)
{
	(void)name;
	return 0;
}
static inline int pmself_scope_end(const char *name)
{
	(void)name;
	return 0;
}
static inline int pmself_scope_read(const char *name, struct pmself_counts *ret)
{
	(void)name;
	(void)ret;
	return -ENOENT;
}
#endif

#ifdef __cplusplus
}
#endif

#endif
