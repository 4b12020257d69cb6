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
	struct pm_chain_threads *threads;
	struct pm_file_writer *writer;
	uint64_t *clamped; /* counts times that the file cannot hold; or NULL */
};

/* MMAP, MMAP2, COMM, FORK and EXIT; others mean nothing here. 0 or negative errno. */
int pm_chain_tasks_record(const struct pm_chain_tasks *tasks,
			  const struct pm_record *record);
/* The file gets to know the thread that a record is about, by the name it has. One that the kernel
 * did not tell (perf_event_open(2): the tid of a thread that has just ended is -1) has none. */
int pm_chain_tasks_name(const struct pm_chain_tasks *tasks,
			const struct pm_record *record);
