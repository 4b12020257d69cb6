/* SPDX-License-Identifier: MIT */
/*
 * What the ptrace engine remembers about each thread between its samples.
 */
#pragma once

#include "pm/proc.h"

struct pm_rec_tracee {
	pid_t pid, tid; /* tid 0: the row is free */
	uint64_t sampled_ns; /* the thread's CPU time at its last sample */
	uint64_t sampled_signals; /* signals that had stopped it before that sample */
	uint32_t stack_bytes; /* bytes of its stack to copy */
	char comm[16];
	/* Only for a leader: its process's executable mappings, as last read. */
	bool maps_known;
	uint64_t maps_hash, maps_read_ns;
	uint64_t virtual_bytes; /* memory size of the process when the maps were read */
};

struct pm_rec_tracees {
	PM_VEC(struct pm_rec_tracee) rows;
	PM_VEC(uint32_t) free_rows;
	struct pm_index index; /* by tid */
};

void pm_rec_tracees_release(struct pm_rec_tracees *tracees);
/* Finds or creates the row. Returns NULL only without memory. The row is borrowed until
 * the next call. */
struct pm_rec_tracee *pm_rec_tracees_get(struct pm_rec_tracees *tracees, pid_t pid,
					 pid_t tid);
void pm_rec_tracees_drop(struct pm_rec_tracees *tracees, pid_t tid);
/* Call this after an exec: only the leader of @pid is left. It is the thread that was
 * @former, and its mappings are unknown. */
void pm_rec_tracees_exec(struct pm_rec_tracees *tracees, pid_t pid, pid_t former);

/* Computes a hash of the executable lines of /proc/TID/maps. It changes if code was
 * mapped or unmapped that stacks may contain. Returns 0 or a negative errno; -ESRCH if
 * the thread has ended, even if it is the leader of a process that still exists. */
int pm_rec_maps_hash(pid_t tid, uint64_t *out);
