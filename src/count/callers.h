/* SPDX-License-Identifier: MIT */
/* Callers: numbers chains of return addresses, and finds their names at the end. */
#pragma once

#include "pm/count.h"

struct pm_callers;

enum {
	PM_CALLERS_DEPTH_MAX = 32,
};

/* @depth: number of callers that are distinguished. Returns NULL if out of memory. */
struct pm_callers *pm_callers_new(uint32_t depth);
void pm_callers_free(struct pm_callers *callers);
/* Returns the bytes of stack that a chain of this depth usually needs, a multiple of
 * 8. */
uint32_t pm_callers_stack_bytes(uint32_t depth);
/* Adds a process that is already running. */
int pm_callers_process(struct pm_callers *callers, pid_t pid);
/* To be called for changes of processes and their mappings: FORK, EXIT, COMM, MMAP2.
 * Returns 0 or -ENOMEM. */
int pm_callers_record(struct pm_callers *callers, const struct pm_record *record);
/* Gets the number of the chain of calls that led to a function's first instructions.
 * Returns 0 or -ENOMEM. */
int pm_callers_of_sample(struct pm_callers *callers, pid_t pid,
			 const struct pm_sample *sample, uint32_t *out);
/* Finds the names of all chains. This process must have no other threads. Returns 0 or
 * -ENOMEM. */
int pm_callers_resolve(struct pm_callers *callers);
/* For pm_calls_options.name_caller. */
int pm_callers_name(const struct pm_callers *callers, uint32_t caller,
		    struct pm_stat_caller *out);
