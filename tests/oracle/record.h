/* SPDX-License-Identifier: MIT */
/* Runs a command under the recorder's own rooms and hands every user sample out. */
#pragma once

#include "pm/perf.h"
#include "pm/proc.h"

struct record_totals {
	uint64_t samples; /* with registers of 64-bit user code */
	uint64_t without_regs; /* kernel threads, 32-bit code */
	uint64_t lost;
	int exit_status;
};

typedef void (*record_fn)(void *arg, struct pm_process *process,
			  const struct pm_record *record);

/* 0; -EACCES, -EPERM, -ENOSYS, … of pm_perf_open(), or what starting the command gave. */
int record_run(char *const argv[], const char *event, uint64_t hz, struct pm_procs *procs,
	       record_fn fn, void *arg, struct record_totals *totals,
	       struct pm_error *err);
