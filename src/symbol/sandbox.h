/* SPDX-License-Identifier: MIT */
/*
 * Restricts a process that reads untrusted files: it permanently gives up every right
 * that it could do harm with.
 */
#pragma once

#include "pm/base.h"

struct pm_sandbox {
	uint64_t memory_bytes; /* that may be mapped in addition to the current
	                        * mappings */
	pid_t parent; /* this process is killed when the parent exits */
	bool hurried; /* keep a higher priority, which the parent has set */
};

/*
 * Restricts the calling process, which was forked, has a single thread, and has opened
 * all its files. It becomes the user nobody if it is root, gives up its capabilities and
 * every way to obtain new ones or to open any file, and is killed when its parent exits.
 * In a user namespace without the user nobody, that step is skipped. Returns -EPERM:
 * capabilities would remain; -ENOSYS: the kernel accepts no seccomp filter; -ESRCH: the
 * parent has exited. The process must exit in these cases.
 */
int pm_sandbox_enter(const struct pm_sandbox *sandbox);

/* Closes all descriptors except @fds, and sorts these. Redirects standard error to
 * /dev/null, because messages of libraries that abort are not meant for the user. */
void pm_sandbox_keep_files(int *fds, size_t len);

/* Limits the process to @seconds more of CPU time, rounded up; after that, SIGXCPU ends
 * it. */
void pm_sandbox_cpu_time(uint64_t seconds);
/* The same, but permanently: no later call can raise the limit. */
void pm_sandbox_cpu_time_of_all(uint64_t seconds);
