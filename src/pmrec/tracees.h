/* SPDX-License-Identifier: MIT */
/*
 * What the ptrace engine knows of each thread between its samples.
 */
#pragma once

#include "pm/proc.h"

struct pm_rec_tracee {
	pid_t pid, tid; /* tid 0: the row is free */
	uint64_t sampled_ns; /* its CPU time at its last sample */
	uint64_t sampled_signals; /* that it had stopped for by then */
	uint32_t stack_bytes; /* to copy of its stack */
	char comm[16];
	/* Of a leader: its process's executable mappings, as they were read last. */
	bool maps_known;
	uint64_t maps_hash, maps_read_ns;
	uint64_t virtual_bytes; /* of the process, at that time */
};

struct pm_rec_tracees {
	PM_VEC(struct pm_rec_tracee) rows;
	PM_VEC(uint32_t) free_rows;
	struct pm_index index; /* by tid */
};

void pm_rec_tracees_release(struct pm_rec_tracees *tracees);
/* Made when it is not known; NULL only without memory. Borrowed until the next call. */
struct pm_rec_tracee *pm_rec_tracees_get(struct pm_rec_tracees *tracees, pid_t pid,
					 pid_t tid);
void pm_rec_tracees_drop(struct pm_rec_tracees *tracees, pid_t tid);
/* After an exec: of @pid only the leader is left, which is the thread that was @former, and
 * its mappings are not known. */
void pm_rec_tracees_exec(struct pm_rec_tracees *tracees, pid_t pid, pid_t former);

/* A hash of the lines of /proc/TID/maps that are executable: equal as long as nothing was
 * mapped or unmapped that stacks can lead into. 0 or negative errno; -ESRCH when the thread
 * has ended, a leader, too, whose process lives on. */
int pm_rec_maps_hash(pid_t tid, uint64_t *ret);
