/* SPDX-License-Identifier: MIT */
/*
 * Applies records about processes and threads: their mappings, their names, their starts
 * and their ends.
 */
#pragma once

#include "pm/chain-jit.h"
#include "pm/chain-threads.h"
#include "pm/chain.h"

/* The state that records change; all borrowed. */
struct pm_chain_tasks {
	struct pm_procs *procs;
	struct pm_chains *chains;
	struct pm_chain_jit *jit;
	/* NULL: files do not change during the recording. */
	struct pm_chain_modules *modules;
};

/* Handles MMAP, MMAP2, COMM, FORK and EXIT records, and ignores others. Returns 0 or
 * negative errno. */
int pm_chain_tasks_record(const struct pm_chain_tasks *tasks,
			  const struct pm_record *record);
/* Returns the current names of a sample's thread and its process. A thread that the
 * kernel did not report (perf_event_open(2): the tid of a thread that has just ended is
 * -1) has no name. Returns 0 or -ENOMEM. */
int pm_chain_tasks_names(const struct pm_chain_tasks *tasks,
			 const struct pm_record *record, struct pm_chain_names *out);
