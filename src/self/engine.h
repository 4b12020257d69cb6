/* SPDX-License-Identifier: MIT */
/*
 * An engine samples this process from inside, with the kernel (engine-perf.c) or with a
 * CPU-time timer for each thread (timer-engine.c). The steps that follow are the same for
 * both: unwinding, interning, names, table and file (recording.c).
 *
 * Everything runs in the helper thread. It has its own table of file descriptors (the
 * program does not see the files that it opens, and closefrom() in the program does not
 * close them), blocks all signals, and must not be sampled.
 */
#pragma once

#include "pm/file.h"
#include "pm/perf.h"
#include "settings.h"

/* Receives the records in order of time; each is borrowed for the call. Returns 0, or a
 * negative errno, which ends the draining. */
struct pm_self_take {
	int (*record)(void *user, const struct pm_record *record);
	/* For engines whose records do not report all new mappings (PERF_RECORD_MMAP2):
	 * to be called before samples are passed on. See pm_self_changes_look(). */
	int (*mappings)(void *user, bool whole, uint64_t *until);
	void *user;
};

/* Receives a sentence for the user, which is also stored in the file. */
struct pm_self_tell {
	void (*note)(void *user, const char *text);
	void *user;
};

/* The state of an engine. Each engine's own struct starts with it. */
struct pm_self_engine {
	const struct pm_self_engine_type *type;
};

struct pm_self_engine_type {
	const char *name; /* "perf", "timer" */
	/* The longest time for which the helper may sleep when no descriptor wakes it, so
	 * that no buffer overflows. */
	int sleep_ms;
	/* Records report new mappings from begin() on. */
	bool tells_mappings;

	/*
	 * Prepares sampling without starting it. @settings are borrowed until free();
	 * @helper is the thread that must not be sampled. Returns -EPERM, -EACCES or
	 * -ENOSYS if it is not allowed here; then another engine may be tried.
	 */
	int (*open)(struct pm_self_engine **out, const struct pm_self_settings *settings,
		    pid_t helper, struct pm_error *err);
	/* May also be called between begin() and end(). */
	void (*free)(struct pm_self_engine *engine);

	/* Describes the sampled event, for the file. Strings stay valid as long as the
	 * engine exists. `id` and `leader` are 0. */
	void (*event)(const struct pm_self_engine *engine, struct pm_file_event *out);
	/* These return the most bytes that are copied of a stack, and the size of one
	 * buffer in bytes, for the header. */
	uint32_t (*stack_bytes)(const struct pm_self_engine *engine);
	uint64_t (*ring_bytes)(const struct pm_self_engine *engine);

	int (*begin)(struct pm_self_engine *engine, struct pm_error *err);
	/* Returns descriptors. Draining is due when one of them is readable (POLLIN).
	 * NULL: there are none. */
	const int *(*poll_fds)(const struct pm_self_engine *engine, size_t *len);
	/* A signal to the helper, which blocks it, that has the same meaning; 0: none. If
	 * there is one, no descriptors are polled. */
	int wake_signal;
	/*
	 * Passes on the available records. A sample is a PERF_RECORD_SAMPLE with `pid`
	 * (ours), `tid`, `cpu` (UINT32_MAX: unknown), `time` (CLOCK_MONOTONIC), `event`
	 * 0, and of `sample` ip, period (ns of CPU time for a clock), regs, stack,
	 * stack_len, stack_asked and stack_below. Other records: MMAP2, COMM, FORK, EXIT,
	 * LOST. @final: called after end(), so that all remaining records are passed on.
	 */
	int (*drain)(struct pm_self_engine *engine, bool final,
		     const struct pm_self_take *take, struct pm_error *err);
	/* Ends sampling. No more samples are taken after it has returned. */
	void (*end)(struct pm_self_engine *engine);
	/* Sets the number of lost samples, including those that no record reported.
	 * Returns -ENOTSUP if records report them all. */
	int (*lost)(const struct pm_self_engine *engine, uint64_t *out);
	/* Reports everything that users have to know about the measurement. */
	void (*tell)(const struct pm_self_engine *engine,
		     const struct pm_self_tell *tell);
};

/* Whether the thread belongs to the library and must not be sampled (guard.c). */
bool pm_self_is_own_thread(pid_t tid);

extern const struct pm_self_engine_type pm_self_engine_perf, pm_self_engine_timer;
