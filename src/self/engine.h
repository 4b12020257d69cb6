/* SPDX-License-Identifier: MIT */
/*
 * Who samples this process from inside: the kernel (engine-perf.c), or CPU-time timers of each
 * thread (timer-engine.c). What follows a sample is the same for both: unwinding, interning, names,
 * table and file (recording.c).
 *
 * All of it runs in the helper thread, which has a table of file descriptors of its own (what
 * it opens is not seen by the program, and outlives a closefrom() there), all signals blocked,
 * and is not to be sampled.
 */
#pragma once

#include "pm/file.h"
#include "pm/perf.h"
#include "settings.h"

/* Takes what was recorded, in the order of time; borrowed for the call. 0 or negative errno,
 * which ends the draining. */
struct pm_self_take {
	int (*record)(void *user, const struct pm_record *record);
	/* Where records do not tell of all new mappings (PERF_RECORD_MMAP2): to be called
	 * before samples are given. See pm_self_changes_look(). */
	int (*mappings)(void *user, bool whole, uint64_t *until);
	void *user;
};

/* A sentence for the user, that belongs to the file, too. */
struct pm_self_tell {
	void (*note)(void *user, const char *text);
	void *user;
};

/* An engine's state; its own struct begins with this. */
struct pm_self_engine {
	const struct pm_self_engine_type *type;
};

struct pm_self_engine_type {
	const char *name; /* "perf", "timer" */
	/* How long the helper may sleep when no fd wakes it, so that nothing runs full. */
	int sleep_ms;
	/* Records of what is mapped come from begin() on. */
	bool tells_mappings;

	/*
	 * Ready to begin, nothing is sampled yet. @settings are borrowed for the engine's life;
	 * @helper is the thread that is not to be sampled. -EPERM, -EACCES, -ENOSYS: not
	 * allowed here, another engine may be tried.
	 */
	int (*open)(struct pm_self_engine **ret, const struct pm_self_settings *settings,
		    pid_t helper, struct pm_error *err);
	/* Also of one that was begun and not ended. */
	void (*free)(struct pm_self_engine *engine);

	/* What is sampled, for the file: texts live as long as the engine. `id` and `leader`
	 * are 0. */
	void (*event)(const struct pm_self_engine *engine, struct pm_file_event *ret);
	/* Copied bytes of a stack at most, and bytes of one buffer; for the header. */
	uint32_t (*stack_bytes)(const struct pm_self_engine *engine);
	uint64_t (*ring_bytes)(const struct pm_self_engine *engine);

	int (*begin)(struct pm_self_engine *engine, struct pm_error *err);
	/* Whose readiness (POLLIN) means that draining is due; NULL: none has any. */
	const int *(*poll_fds)(const struct pm_self_engine *engine, size_t *len);
	/* Which means the same when it is sent to the helper, that blocks it; 0: none. With it
	 * nothing is polled. */
	int wake_signal;
	/*
	 * Gives what there is. A sample is a record of PERF_RECORD_SAMPLE with `pid` (ours),
	 * `tid`, `cpu` (UINT32_MAX: unknown), `time` (CLOCK_MONOTONIC), `event` 0, and of
	 * `sample` ip, period (ns of CPU time for a clock), regs, stack, stack_len, stack_asked
	 * and stack_below. Others: MMAP2, COMM, FORK, EXIT, LOST. @final: after end(), the
	 * rest.
	 */
	int (*drain)(struct pm_self_engine *engine, bool final,
		     const struct pm_self_take *take, struct pm_error *err);
	/* No samples are taken any more when it returns. */
	void (*end)(struct pm_self_engine *engine);
	/* Samples that were lost, as far as records have not told; -ENOTSUP: records are all
	 * there is. */
	int (*lost)(const struct pm_self_engine *engine, uint64_t *ret);
	/* What the user has to know of how it was measured. */
	void (*tell)(const struct pm_self_engine *engine,
		     const struct pm_self_tell *tell);
};

/* Whether a thread is the library's own, and not to be sampled (helper.c). */
bool pm_self_is_own_thread(pid_t tid);

extern const struct pm_self_engine_type pm_self_engine_perf, pm_self_engine_timer;
