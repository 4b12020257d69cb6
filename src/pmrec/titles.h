/* SPDX-License-Identifier: MIT */
/*
 * The titles of processes. A server may write a text of its own over its command line, as
 * PostgreSQL ("postgres: walwriter") and nginx ("nginx: worker process") do. A read of
 * /proc/PID/cmdline takes the lock of that process's memory and may block. Therefore another
 * thread reads, and the thread that drains the rings only exchanges requests and answers with it.
 */
#pragma once

#include "session.h"

enum {
	PM_REC_TITLE_MAX = 256, /* bytes of a title; the rest is cut off */
	PM_REC_TITLES_MAX = 16, /* recorded of one process, and the last one */
};

struct pm_rec_titles *pm_rec_titles_new(void);
/* Does not wait for the thread. NULL is fine. */
void pm_rec_titles_free(struct pm_rec_titles *titles);

/* Asks for the title of @pid, which has a sample at @time_ns, if it is due. Never blocks. */
int pm_rec_titles_sampled(struct pm_rec_titles *titles, uint32_t pid, uint64_t time_ns);
/* From @time_ns on @pid is another process (@process) or runs another program. The title that
 * the file has of it ends. */
int pm_rec_titles_reset(struct pm_rec_session *session, uint32_t pid, uint64_t time_ns,
			bool process);
/* Writes what has been read meanwhile. Never blocks. */
int pm_rec_titles_collect(struct pm_rec_session *session);
/* Forgets processes that have ended, once there are many. NULL is fine. */
void pm_rec_titles_sweep(struct pm_rec_titles *titles);
/* Asks once more for the titles of all processes that still live, waits a short time for the
 * answers, and writes them. */
int pm_rec_titles_finish(struct pm_rec_session *session);

/*
 * Whether the @len bytes of a /proc/PID/cmdline are a title: one text, with nothing but NULs
 * and blanks behind it, that says more than the name of the first thread (@comm) and the path
 * of the program (@exe, NULL: unknown) do. @ret gets it, cut.
 */
bool pm_rec_title_of(const char *cmdline, size_t len, const char *comm, const char *exe,
		     char ret[PM_REC_TITLE_MAX + 1]);
