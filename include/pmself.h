/* SPDX-License-Identifier: MIT */
/*
 * libpmself: profile a program from inside.
 *
 *	perf_start();
 *	work();
 *	perf_stop();        prints which functions took the time
 *
 * Link with `pkg-config --cflags --libs pmself`, or run an unchanged program with
 * LD_PRELOAD=libpmself.so, which profiles it from start to end. The options below can
 * also be set by environment variables, which take precedence: PMSELF_RATE, PMSELF_EVENT,
 * PMSELF_OUTPUT, PMSELF_TABLE, PMSELF_ENGINE, PMSELF_THREADS, PMSELF_CALL_GRAPH,
 * PMSELF_SCOPES. PMSELF=off makes all functions return 0 without doing anything.
 *
 * All functions may be called at any time and from any thread, except from a signal
 * handler. The program may create threads, fork (the child is not profiled unless it
 * starts a profile itself), and load and unload libraries. No function ends, aborts or
 * blocks the program: errors are reported by a negative errno, and by one line on stderr
 * unless PMSELF_QUIET is set.
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
	PMSELF_ENGINE_AUTO, /* perf if the kernel allows it, otherwise timers */
	PMSELF_ENGINE_PERF, /* perf_event_open(2); uses no signals */
	PMSELF_ENGINE_TIMER, /* timers of CPU time and SIGPROF; needs no permission */
};

enum pmself_call_graph {
	PMSELF_CALL_GRAPH_DWARF, /* with unwind tables: works for all programs */
	PMSELF_CALL_GRAPH_NONE, /* only the sampled function, without callers: cheapest */
};

/* perf_start() uses options that are all zero except `size`. Initialize with
 * PMSELF_OPTIONS_INIT. */
struct pmself_options {
	size_t size; /* of this struct, so that later versions can add members */
	uint32_t rate_hz; /* per second of each thread's CPU time; 0: 999 */
	/* As for `pmrec -e`: "cycles", "cache-misses"; NULL: cycles, or cpu-clock if
	 * there is no PMU. The timer engine only supports cpu-clock. */
	const char *event;
	const char *output; /* file for `pmreport`, %p is the pid; NULL or "": none */
	const char *table; /* file for the table; NULL: stderr; "": none */
	enum pmself_engine engine;
	enum pmself_call_graph call_graph;
	int this_thread_only; /* not 0: profile only the calling thread */
};
#define PMSELF_OPTIONS_INIT                                                             \
	{                                                                               \
		sizeof(struct pmself_options), 0, NULL, NULL, NULL, PMSELF_ENGINE_AUTO, \
			PMSELF_CALL_GRAPH_DWARF, 0                                      \
	}

/* Returns 0 or a negative errno: -EALREADY if a profile is running, -EPERM and -EACCES,
 * -ENOSYS, -EINVAL, -ENOMEM … After any other error than -EALREADY no profile is
 * running. */
int pmself_start(const struct pmself_options *options);
/* Ends the running profile and writes the table and the file. Profiles can be started and
 * stopped any number of times. Returns 0, -ESRCH if no profile is running, or an error
 * from writing. */
int pmself_stop(void);

/* pmself_start() with the default options, and pmself_stop(). */
int perf_start(void);
int perf_stop(void);

/* ---- scopes -------------------------------------------------------------------------- */

/*
 * Counters between two points of one thread, summed by name: number of calls, elapsed
 * time, CPU time, and, if there is a PMU, cycles and instructions in user space (read by
 * rdpmc where allowed, otherwise by one read(2)). Each thread has a stack of at most 64
 * nested scopes. A scope includes the scopes inside of it. Scopes work with and without a
 * running profile. Their table is printed by pmself_stop(), or at the end of the program.
 * PMSELF_SCOPES=time leaves out everything that needs a system call, PMSELF_SCOPES=off
 * everything.
 *
 * Scopes with equal names are the same scope, wherever the string @name is stored; a copy
 * of it is kept. If PMSELF_DISABLE is defined before this header is included, scopes
 * compile to nothing.
 */

/* The counts of a name, summed over all threads. Initialize with PMSELF_COUNTS_INIT. */
struct pmself_counts {
	size_t size; /* of this struct, as in the options */
	uint64_t calls, unfinished; /* scopes that have ended; scopes that have not */
	uint64_t elapsed_ns;
	uint64_t cpu_ns, cycles, instructions; /* UINT64_MAX: unknown */
};
#define PMSELF_COUNTS_INIT                                     \
	{                                                      \
		sizeof(struct pmself_counts), 0, 0, 0, 0, 0, 0 \
	}

#ifndef PMSELF_DISABLE
/* Returns 0. -ENOMEM: no scope was started, so none must be ended. -ENOSPC: more than 64
 * scopes are nested; the scope counts as lost, but must still be ended. -EBUSY: the same,
 * because malloc() or a signal handler made the call during another call of these
 * functions. */
int pmself_scope_begin(const char *name);
/* Ends the innermost scope, whose name must be @name; otherwise -EINVAL, and nothing
 * ends. -ENOSPC, -EBUSY: the scope was a lost one. */
int pmself_scope_end(const char *name);
/* Reads the counts of scopes that have ended. -ENOENT if there are none of this name. */
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
