/* SPDX-License-Identifier: MIT */
/* How valgrind is called, and what it says of itself: shared by engine-callgrind*.c. */
#pragma once

#include <limits.h>

#include "callgrind.h"

/* A call of valgrind: what is fixed in it is told as settings. */
struct pm_callgrind_call {
	PM_VEC(char *) argv; /* NULL at the end */
	char *tunables; /* GLIBC_TUNABLES of the command */
};
void pm_callgrind_call_release(struct pm_callgrind_call *call);
/* @dir: where its files go. -ENOMEM. */
int pm_callgrind_call_make(struct pm_callgrind_call *call, struct pm_stat *stat,
			   const struct pm_engine_options *options, const char *dir);

/* Sets a setting, unless it is there already: runs repeat. -ENOMEM. */
int pm_callgrind_setting(struct pm_stat *stat, const char *name, const char *value);

/* What became of the processes, by valgrind's messages in @dir; @only: the name of one of these
 * files, NULL: all. */
struct pm_callgrind_log {
	size_t processes; /* that it ran */
	size_t cut; /* of these, those that it did not see to their end */
	size_t running; /* of these, those that have not ended */
	char words[PM_ERROR_TEXT_MAX]; /* its first complaint, "" for none */
	/* The file whose debug information it cannot read, so that it gave a process up;
	 * "": it did not. "?": it did not say the name. */
	char unreadable[PATH_MAX];
};
int pm_callgrind_log_read(struct pm_callgrind_log *ret, struct pm_stat *stat,
			  const char *dir, const char *only);
