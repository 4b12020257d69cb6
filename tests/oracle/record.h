/* SPDX-License-Identifier: MIT */
/* Runs a command with the recorder's own modules, and passes on every user sample. */
#pragma once

#include "pm/perf.h"
#include "pm/proc.h"

struct record_totals {
	uint64_t samples; /* with registers of 64-bit user code */
	uint64_t without_regs; /* of kernel threads or 32-bit code */
	uint64_t lost;
	int exit_status;
};

typedef void (*record_fn)(void *arg, struct pm_process *process,
			  const struct pm_record *record);

/* Returns 0; -EACCES, -EPERM, -ENOSYS, … of pm_perf_open(), or the error of starting the
 * command. */
int record_run(char *const argv[], const char *event, uint64_t hz, struct pm_procs *procs,
	       record_fn fn, void *arg, struct record_totals *totals,
	       struct pm_error *err);
