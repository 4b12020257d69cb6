/* SPDX-License-Identifier: MIT */
/*
 * What records tell of processes and threads: what they have mapped, their names, that they
 * begin and end.
 */
#pragma once

#include "pm/chain-jit.h"
#include "pm/chain-threads.h"
#include "pm/chain.h"

/* What is to know of it; all borrowed. */
struct pm_chain_tasks {
	struct pm_procs *procs;
	struct pm_chains *chains;
	struct pm_chain_jit *jit;
	struct pm_chain_modules *modules; /* NULL: files do not change */
};

/* MMAP, MMAP2, COMM, FORK and EXIT; others mean nothing here. 0 or negative errno. */
int pm_chain_tasks_record(const struct pm_chain_tasks *tasks,
			  const struct pm_record *record);
/* How the thread of a sample and its process are called now. A thread that the kernel did not
 * report (perf_event_open(2): the tid of a thread that has just ended is -1) has no name.
 * 0 or -ENOMEM. */
int pm_chain_tasks_names(const struct pm_chain_tasks *tasks,
			 const struct pm_record *record, struct pm_chain_names *ret);
