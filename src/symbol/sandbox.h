/* SPDX-License-Identifier: MIT */
/*
 * A process that reads what others made gives up, for good, whatever it could do harm with.
 */
#pragma once

#include "pm/base.h"

struct pm_sandbox {
	uint64_t memory_bytes; /* that may be mapped beyond what is mapped now */
	pid_t parent; /* with which this process ends */
	bool hurried; /* a better nice value than the usual one is the parent's wish */
};

/*
 * For a forked process without other threads that has all its files open: becomes nobody
 * where it is root, without capabilities, without a way to new ones or to any file, and ends
 * with its parent. A user namespace with one user has no nobody: that step is left out there.
 * -EPERM where capabilities would stay, -ENOSYS where the kernel takes no seccomp filter,
 * -ESRCH without the parent: the process must end then.
 */
int pm_sandbox_enter(const struct pm_sandbox *sandbox);

/* Closes all but @fds, which it sorts. What libraries say on standard error as they give up
 * is not for the user: that goes nowhere. */
void pm_sandbox_keep_files(int *fds, size_t len);

/* From now on @seconds of CPU time are left, rounded up; then SIGXCPU ends the process. */
void pm_sandbox_cpu_time(uint64_t seconds);
/* The same, for good: no later call, ours or another's, gets more. */
void pm_sandbox_cpu_time_of_all(uint64_t seconds);
