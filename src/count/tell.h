/* SPDX-License-Identifier: MIT */
/* What all engines leave in the document alike. */
#pragma once

#include <sys/time.h>

#include "pm/count.h"

/* Appends a warning, unless it is there already: runs repeat. -ENOMEM. */
int pm_tell_warning(struct pm_stat *stat, const char *format, ...) PM_PRINTF(2, 3);
/* What came faster than it could be read, once the last round is over. -ENOMEM. */
int pm_tell_lost(struct pm_stat *stat, const struct pm_hits *hits);
/* Processes that the command has started, and that are not counted to their end. -ENOMEM. */
int pm_tell_outlived(struct pm_stat *stat, size_t processes);
/* Whether @pid, which is traced, runs a program without the privileges that it would have. */
bool pm_tell_is_privileged(pid_t pid);
/* How many did so. -ENOMEM. */
int pm_tell_privileged(struct pm_stat *stat, uint64_t programs);
/* What of a scope is known before anything ran. -ENOMEM. */
int pm_tell_scope(struct pm_stat_scope *scope, const struct pm_region *region);
/* Reports what calls of an inlined function mean, once they are counted. -ENOMEM. */
int pm_tell_inlined(struct pm_stat *stat, struct pm_stat_scope *scope,
		    const struct pm_region *region);
/* Reports that its calls and their costs are not known. */
void pm_tell_unknown(const struct pm_stat *stat, struct pm_stat_scope *scope);
uint64_t pm_tell_ns(const struct timeval *time);
/* What clocks and wait4(2) say, into @values by event; of an attached process only clocks. */
void pm_tell_tools(const struct pm_stat *stat, const struct pm_engine_options *options,
		   const struct pm_child *child, uint64_t wall_ns,
		   struct pm_stat_value *values);
