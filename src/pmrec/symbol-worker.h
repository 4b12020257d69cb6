/* SPDX-License-Identifier: MIT */
/*
 * A helper process that reads symbols and debug information for the recorder, which may be
 * root, while the files are anybody's: without privileges, with limits, one for some modules.
 */
#pragma once

#include "session.h"

/* The names of one module. */
struct pm_rec_symbol_job {
	uint32_t module; /* id of struct pm_procs */
	const uint64_t *addresses; /* sorted, ascending, distinct */
	size_t addresses_len;
};

enum {
	/* Of CPU time: for each module, and more for each of so many bytes. */
	PM_REC_SYMBOL_SECONDS = 3,
	PM_REC_SYMBOL_BYTES_A_SECOND = 4 << 20,
	/* Of memory: for each process, and so many times the bytes of its files. zlib makes debug
	 * information three to eight times smaller. */
	PM_REC_SYMBOL_MEMORY_BYTES = 256 << 20,
	PM_REC_SYMBOL_MEMORY_RATIO = 8,
};

struct pm_rec_symbol_process {
	pid_t pid;
	int fd; /* its messages, see symbol-wire.h */
};

/* Starts a process that does @jobs one after the other. To be waited for by its pid, which
 * ends early with the recorder. 0 or negative errno. */
int pm_rec_symbol_worker_start(const struct pm_rec_session *session,
			       const struct pm_rec_symbol_job *jobs, size_t len,
			       struct pm_rec_symbol_process *ret);
