/* SPDX-License-Identifier: MIT */
/*
 * A helper process that reads symbols and debug information of some modules for us. We
 * may be root, while any user may have written the files: the helper has no privileges,
 * and limits on its resources.
 */
#pragma once

#include "pm/symbol-crew.h"

enum {
	/* Limits of CPU time: so many seconds for each module, and one more for each so
	 * many bytes. */
	PM_SYMBOL_SECONDS = 3,
	PM_SYMBOL_BYTES_A_SECOND = 4 << 20,
	/* Limits of memory: a fixed size for each process, and a multiple of the size of
	 * its files. zlib compresses debug information to between a third and an
	 * eighth. */
	PM_SYMBOL_MEMORY_BYTES = 256 << 20,
	PM_SYMBOL_MEMORY_RATIO = 8,
	/* Exit statuses. */
	PM_SYMBOL_WORKER_FAILED = 1,
	PM_SYMBOL_WORKER_UNFILTERED = 3, /* no seccomp filter; no file was read */
};

struct pm_symbol_process {
	pid_t pid;
	int fd; /* for its messages, see wire.h */
};

/* Starts a process that does jobs [@first, @end) one after the other. A job that is
 * marked in @hung is not opened and ends with -ETIMEDOUT. The caller has to wait(2) for
 * the process, which exits early if we exit. Returns 0 or a negative errno. */
int pm_symbol_worker_start(const struct pm_symbol_job *jobs, size_t first, size_t end,
			   const bool *hung, const struct pm_symbol_crew_calls *calls,
			   struct pm_symbol_process *out);
/* Starts a process that opens module @key, see pm_symbol_early_start(). The process reads
 * the number of addresses (u64) and then the addresses from the pipe whose other end is
 * @ask. */
int pm_symbol_worker_start_early(const struct pm_symbol_crew_calls *calls, size_t key,
				 bool yields, struct pm_symbol_process *out, int *ask);
/* Sends the job to the waiting helper, and passes the helper's process to the caller.
 * Returns a negative errno if the helper is not available. */
int pm_symbol_early_ask(struct pm_symbol_early *early, const struct pm_symbol_job *job,
			struct pm_symbol_process *out);
