/* SPDX-License-Identifier: MIT */
/*
 * A process that reads untrusted files permanently gives up every right with which it
 * could do harm.
 */
#pragma once

#include "pm/base.h"

struct pm_sandbox {
	uint64_t memory_bytes; /* may be mapped in addition to what is mapped now */
	pid_t parent; /* this process ends with it */
	bool hurried; /* keep a better priority, which the parent has set */
};

/*
 * For a forked process without other threads that has all its files open. It becomes
 * nobody if it is root, gives up its capabilities and every way to new ones or to any
 * file, and ends with its parent. A user namespace with one user has no nobody; that step
 * is skipped there. Returns -EPERM: capabilities would remain; -ENOSYS: the kernel
 * accepts no seccomp filter; -ESRCH: the parent is gone. The process must exit then.
 */
int pm_sandbox_enter(const struct pm_sandbox *sandbox);

/* Closes all descriptors except @fds, which it sorts. Redirects standard error to
 * nowhere, because messages of libraries that abort are not meant for the user. */
void pm_sandbox_keep_files(int *fds, size_t len);

/* Allows @seconds more of CPU time, rounded up; then SIGXCPU ends the process. */
void pm_sandbox_cpu_time(uint64_t seconds);
/* The same, permanently: no later call, by us or anyone else, allows more. */
void pm_sandbox_cpu_time_of_all(uint64_t seconds);
