/* SPDX-License-Identifier: MIT */
/*
 * Whom to record when it is no command: processes and threads that run already, all of a
 * user, of a control group, or everybody.
 */
#pragma once

#include "options.h"
#include "pm/perf.h"

/* A process (tid 0) or a thread that was there when the recording began. */
struct pm_rec_root {
	pid_t pid, tid;
	uint64_t
		began; /* starttime of proc(5): tells it from a later one of this number */
	int pidfd; /* -1: kernel or limits do not allow it */
	bool ended;
	uint64_t cpu_ns; /* used before the recording began */
	bool cpu_known;
};

struct pm_rec_targets {
	enum pm_perf_target kind;
	PM_VEC(struct pm_rec_root) roots; /* PM_PERF_TASKS */
	PM_VEC(pid_t) tids; /* all threads of the roots, sorted */
	PM_VEC(pid_t) late; /* threads that began while events were being opened */
	const char *cpus;
	int cgroup_fd,
		ends_fd; /* -1: none; the second is readable when a root may have ended */
	size_t living;
	char *text; /* for people: "-p 123" */
};

void pm_rec_targets_init(struct pm_rec_targets *targets);
void pm_rec_targets_release(struct pm_rec_targets *targets);
/* Finds them; one clear line where one is not there. A command needs none of this. */
int pm_rec_targets_find(struct pm_rec_targets *targets,
			const struct pm_rec_options *options, struct pm_error *err);
/* What pm_perf_open() has to know of them. */
void pm_rec_targets_fill(const struct pm_rec_targets *targets,
			 struct pm_perf_options *perf);
/* Once events are open: finds `late`, and takes the roots' CPU time. */
int pm_rec_targets_begin(struct pm_rec_targets *targets, struct pm_error *err);
/* The first root that acts as another user than we, who has no privileges. 0: nobody. */
pid_t pm_rec_targets_foreign(const struct pm_rec_targets *targets);
/* Looks who has ended. True when that are all of them. */
bool pm_rec_targets_ended(struct pm_rec_targets *targets);
/* CPU time of the roots since _begin(), if that is known. */
bool pm_rec_targets_cpu_ns(const struct pm_rec_targets *targets, uint64_t *ret);
