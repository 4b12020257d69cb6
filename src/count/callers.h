/* SPDX-License-Identifier: MIT */
/* Who calls: chains of return addresses as numbers, and what they are called in the end. */
#pragma once

#include "pm/count.h"

struct pm_callers;

enum {
	PM_CALLERS_DEPTH_MAX = 32,
};

/* @depth: how many callers are told apart. NULL without memory. */
struct pm_callers *pm_callers_new(uint32_t depth);
void pm_callers_free(struct pm_callers *callers);
/* How much of the stack a chain of that depth mostly needs, a multiple of 8. */
uint32_t pm_callers_stack_bytes(uint32_t depth);
/* A process that runs already. */
int pm_callers_process(struct pm_callers *callers, pid_t pid);
/* What becomes of processes and their mappings: FORK, EXIT, COMM, MMAP2. 0 or -ENOMEM. */
int pm_callers_record(struct pm_callers *callers, const struct pm_record *record);
/* The number of the chain that led to the first instructions of a function. 0 or -ENOMEM. */
int pm_callers_of_sample(struct pm_callers *callers, pid_t pid,
			 const struct pm_sample *sample, uint32_t *ret);
/* Finds the names of all chains; for a process without other threads. 0 or -ENOMEM. */
int pm_callers_resolve(struct pm_callers *callers);
/* For pm_calls_options.name_caller. */
int pm_callers_name(const struct pm_callers *callers, uint32_t caller,
		    struct pm_stat_caller *ret);
