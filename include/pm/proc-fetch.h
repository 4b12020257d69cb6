/* SPDX-License-Identifier: MIT */
/*
 * Helper processes do what may block. A file server that has stopped answers no open(2), no
 * statx(2) and no page fault, and a thread that waits for it can neither be interrupted nor
 * killed; its whole process then cannot end. The helpers therefore read /proc and the memory of
 * other processes, and open the files that are not known to be local: this process opens those
 * itself. The caller waits for an answer for a bounded time. A helper that misses its time-out is
 * killed, but not waited for, and another one takes its place.
 *
 * A call with a ticket of 0 asks, and waits a little. -EINPROGRESS: the answer is late; the
 * ticket is set, and the same call with that ticket looks for the answer without waiting.
 * -EBUSY: nothing was asked, because too many helpers wait already. -ETIMEDOUT: there will be no
 * answer. Calls without a ticket drop an answer that is late, and return -ETIMEDOUT.
 */
#pragma once

#include "pm/proc.h"

struct pm_fetch;

/* Forks the process that forks the helpers: to be called while this process is small. NULL without
 * memory or processes. */
struct pm_fetch *pm_fetch_new(void);
void pm_fetch_free(struct pm_fetch *fetch);
/* Starts a helper. All have this priority of SCHED_FIFO, which is that of the thread that waits
 * for them, where that is permitted; 0: none. */
void pm_fetch_begin(struct pm_fetch *fetch, int priority);
/* Which file systems are local: for pm_jit_files_init(). NULL: no @fetch. */
struct pm_mounts *pm_fetch_mounts(struct pm_fetch *fetch);

enum {
	PM_FETCH_FDS_MAX = 4,
};
/*
 * Runs @run in a process of its own, forked from the state of pm_fetch_new(), with duplicates of
 * @fds, which it owns. The process ends when @run returns, and at the latest with
 * pm_fetch_free(). 0 or negative errno.
 */
int pm_fetch_start(struct pm_fetch *fetch, void (*run)(const int *fds), const int *fds,
		   size_t len);

/* Nobody asks for the answer with *@ticket any more, which becomes 0. */
void pm_fetch_drop(struct pm_fetch *fetch, uint64_t *ticket);

/* A file that was opened. */
struct pm_fetch_file {
	int fd; /* the caller's */
	/* It is a copy in memory: the file is on a file system that may stop answering. */
	bool copied;
	bool partial; /* … without what only names need */
	uint64_t copied_bytes;
};

/* As pm_module_open(). @copy_bytes_max limits a copy: -EFBIG. */
int pm_fetch_module(struct pm_fetch *fetch, uint64_t *ticket,
		    const struct pm_module *module, uint64_t copy_bytes_max,
		    struct pm_fetch_file *ret, struct pm_error *err);
/* Opens a regular file for reading. -EREMOTE: it is not known to be local. @path is one of /proc/@pid
 * that leads to it. */
int pm_fetch_open_local(struct pm_fetch *fetch, pid_t pid, const char *path);
/* As pm_debug_find(), with the place of @module. */
int pm_fetch_debug(struct pm_fetch *fetch, uint64_t *ticket, int fd,
		   const struct pm_module *module, uint64_t *crc_bytes_left,
		   uint64_t copy_bytes_max, struct pm_fetch_file *ret);
/* As pm_procs_read(). What records have shown since it was asked stands. The process is `unread`
 * until then. */
int pm_fetch_process(struct pm_fetch *fetch, uint64_t *ticket, struct pm_procs *procs,
		     pid_t pid, struct pm_error *err);
/* The same without a look at the mapped files, for when one of them does not answer. */
int pm_fetch_maps_only(struct pm_fetch *fetch, uint64_t *ticket, struct pm_procs *procs,
		       pid_t pid, struct pm_error *err);
/* As pm_trace_read(). A process for whose memory a helper was blocked is not read again. */
size_t pm_fetch_memory(struct pm_fetch *fetch, pid_t pid, uint64_t address, void *ret,
		       size_t len);
