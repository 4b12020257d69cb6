/* SPDX-License-Identifier: MIT */
/* The reports that all engines write to the document. */
#pragma once

#include <sys/time.h>

#include "pm/count.h"

/* Appends a warning unless it is already there, as runs repeat. Returns 0 or -ENOMEM. */
int pm_tell_warning(struct pm_stat *stat, const char *format, ...) PM_PRINTF(2, 3);
/* Reports records that arrived faster than they could be read. To be called after the
 * last read. Returns 0 or -ENOMEM. */
int pm_tell_lost(struct pm_stat *stat, const struct pm_hits *hits);
/* Reports processes that the command has started and that were not counted to their end.
 * Returns 0 or -ENOMEM. */
int pm_tell_outlived(struct pm_stat *stat, size_t processes);
/* Whether @pid, which is traced, runs a program without the privileges that it would
 * normally get. */
bool pm_tell_is_privileged(pid_t pid);
/* Reports the number of such programs. Returns 0 or -ENOMEM. */
int pm_tell_privileged(struct pm_stat *stat, uint64_t programs);
/* Fills in the parts of a scope that are known before the run. Returns 0 or -ENOMEM. */
int pm_tell_scope(struct pm_stat_scope *scope, const struct pm_region *region);
/* Reports what an inlined function's calls mean, once they are counted. Returns 0 or
 * -ENOMEM. */
int pm_tell_inlined(struct pm_stat *stat, struct pm_stat_scope *scope,
		    const struct pm_region *region);
/* Marks the scope's calls and their costs as unknown. */
void pm_tell_unknown(const struct pm_stat *stat, struct pm_stat_scope *scope);
/* Returns the count as a value of the document. */
struct pm_stat_value pm_tell_value(const struct pm_count *count);
/* Fills in how the command ended, from the status of wait4(2). */
void pm_tell_status(struct pm_stat_run *run, int status);
uint64_t pm_tell_ns(const struct timeval *time);
/* Fills @values, by event, from clocks and wait4(2); for an attached process, only from
 * clocks. */
void pm_tell_tools(const struct pm_stat *stat, const struct pm_engine_options *options,
		   const struct pm_child *child, uint64_t wall_ns,
		   struct pm_stat_value *values);
