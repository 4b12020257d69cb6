/* SPDX-License-Identifier: MIT */
/*
 * A helper process that reads symbols and debug information for us, who may be root, while
 * the files are anybody's: without privileges, with limits, one for some modules.
 */
#pragma once

#include "pm/symbol-crew.h"

enum {
	/* Of CPU time: for each module, and more for each of so many bytes. */
	PM_SYMBOL_SECONDS = 3,
	PM_SYMBOL_BYTES_A_SECOND = 4 << 20,
	/* Of memory: for each process, and so many times the bytes of its files. zlib makes debug
	 * information three to eight times smaller. */
	PM_SYMBOL_MEMORY_BYTES = 256 << 20,
	PM_SYMBOL_MEMORY_RATIO = 8,
	/* Exit statuses. */
	PM_SYMBOL_WORKER_FAILED = 1,
	PM_SYMBOL_WORKER_UNFILTERED = 3, /* no seccomp filter, so it has read nothing */
};

struct pm_symbol_process {
	pid_t pid;
	int fd; /* its messages, see wire.h */
};

/* Starts a process that does jobs [@first, @end) one after the other. What is @hung, by job, is
 * not opened, and ends with -ETIMEDOUT. To be waited for by its pid, which ends early with us. 0
 * or negative errno. */
int pm_symbol_worker_start(const struct pm_symbol_job *jobs, size_t first, size_t end,
			   const bool *hung, const struct pm_symbol_crew_calls *calls,
			   struct pm_symbol_process *ret);
/* Starts a process that opens module @key, see pm_symbol_early_start(). It reads @ask for the
 * number of addresses (u64) and the addresses. */
int pm_symbol_worker_start_early(const struct pm_symbol_crew_calls *calls, size_t key,
				 bool yields, struct pm_symbol_process *ret, int *ask);
/* Gives the job to the helper that waits for it, and that helper to the caller; negative: it
 * cannot be had. */
int pm_symbol_early_ask(struct pm_symbol_early *early, const struct pm_symbol_job *job,
			struct pm_symbol_process *ret);
