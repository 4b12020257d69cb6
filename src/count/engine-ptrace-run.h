/* SPDX-License-Identifier: MIT */
/* A run of the ptrace engine: shared by the files that drive it and that report it. */
#pragma once

#include "engine-ptrace.h"
#include "passed.h"

#include <poll.h>
#include <signal.h>
#include <time.h>

struct pm_ptr_engine {
	struct pm_ptr ptr;
	struct pm_calls *calls;
	const struct pm_engine_options *options;
	struct pm_stat *stat;
	struct pm_child *child;
	struct rusage usage_before; /* of children other than the command */
	uint32_t run;
	uint64_t began_ns; /* CLOCK_REALTIME */
	uint64_t begin_ns, end_ns, deadline_ns; /* UINT64_MAX: none */
	bool stopped, timed_out;
	size_t outlived; /* processes that were still running when the command ended */
	enum pm_ptr_kind kind;
	struct pm_ptr_costs costs[2]; /* cost of stops; cost of hits */
	struct pm_error no_costs; /* why the costs of stops are unknown */
	timer_t timer;
	bool has_timer;
	struct sigaction before, child_before; /* actions for SIGALRM and for SIGCHLD */
	PM_VEC(struct pollfd) polled;
	struct pm_passed passed;
};

/* To be called at the end: appends the run, its scopes and all reports about them. */
int pm_ptr_tell(struct pm_ptr_engine *it, struct pm_error *err);
