/* SPDX-License-Identifier: MIT */
/*
 * The titles of processes. A server may overwrite its command line with a string of its
 * own, as PostgreSQL ("postgres: walwriter") and nginx ("nginx: worker process") do.
 * Reading /proc/PID/cmdline takes the lock of that process's memory and may block.
 * Therefore a separate thread reads; the thread that drains the rings only exchanges
 * requests and answers with it.
 */
#pragma once

#include "session.h"

enum {
	PM_REC_TITLE_MAX = 256, /* bytes of a title; the rest is cut off */
	PM_REC_TITLES_MAX = 16, /* recorded per process, in addition to the last one */
};

struct pm_rec_titles *pm_rec_titles_new(void);
/* Does not wait for the thread. @titles may be NULL. */
void pm_rec_titles_free(struct pm_rec_titles *titles);

/* Requests the title of @pid, which has a sample at @time_ns, if a read is due. Never
 * blocks. */
int pm_rec_titles_sampled(struct pm_rec_titles *titles, uint32_t pid, uint64_t time_ns);
/* Call this if @pid is another process (@process) or runs another program from @time_ns
 * on. Its title in the file ends then. */
int pm_rec_titles_reset(struct pm_rec_session *session, uint32_t pid, uint64_t time_ns,
			bool process);
/* Writes the titles that the thread has read since the last call. Never blocks. */
int pm_rec_titles_collect(struct pm_rec_session *session);
/* Discards processes that have ended, once there are many. @titles may be NULL. */
void pm_rec_titles_sweep(struct pm_rec_titles *titles);
/* Requests the titles of all processes that still exist once more, waits a short time for
 * the answers, and writes them. */
int pm_rec_titles_finish(struct pm_rec_session *session);

/*
 * Whether the @len bytes of a /proc/PID/cmdline are a title: one string, followed only by
 * NULs and blanks, that contains more than the name of the first thread (@comm) and the
 * path of the program (@exe, NULL: unknown). Copies it to @out, truncated.
 */
bool pm_rec_title_of(const char *cmdline, size_t len, const char *comm, const char *exe,
		     char out[PM_REC_TITLE_MAX + 1]);
