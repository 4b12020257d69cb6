/* SPDX-License-Identifier: MIT */
/*
 * A helper process that reads symbols and debug information of some modules for us. We
 * may be root, while anyone may have written the files: the helper has no privileges, and
 * limits.
 */
#pragma once

#include "pm/symbol-crew.h"

enum {
	/* CPU time: for each module, and more for each such number of bytes. */
	PM_SYMBOL_SECONDS = 3,
	PM_SYMBOL_BYTES_A_SECOND = 4 << 20,
	/* Memory: for each process, and in proportion to the bytes of its files. zlib
	 * makes debug information three to eight times smaller. */
	PM_SYMBOL_MEMORY_BYTES = 256 << 20,
	PM_SYMBOL_MEMORY_RATIO = 8,
	/* Exit statuses. */
	PM_SYMBOL_WORKER_FAILED = 1,
	PM_SYMBOL_WORKER_UNFILTERED = 3, /* no seccomp filter; nothing was read */
};

struct pm_symbol_process {
	pid_t pid;
	int fd; /* its messages, see wire.h */
};

/* Starts a process that does jobs [@first, @end) one after the other. A job that @hung
 * marks is not opened and ends with -ETIMEDOUT. The caller waits for the process, which
 * ends early if we do. Returns 0 or negative errno. */
int pm_symbol_worker_start(const struct pm_symbol_job *jobs, size_t first, size_t end,
			   const bool *hung, const struct pm_symbol_crew_calls *calls,
			   struct pm_symbol_process *out);
/* Starts a process that opens module @key, see pm_symbol_early_start(). From @ask it
 * reads the number of addresses (u64) and the addresses. */
int pm_symbol_worker_start_early(const struct pm_symbol_crew_calls *calls, size_t key,
				 bool yields, struct pm_symbol_process *out, int *ask);
/* Gives the job to the waiting helper, and that helper to the caller. Negative: it is not
 * available. */
int pm_symbol_early_ask(struct pm_symbol_early *early, const struct pm_symbol_job *job,
			struct pm_symbol_process *out);
