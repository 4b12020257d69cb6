/* SPDX-License-Identifier: MIT */
/* How valgrind is called, and what its log contains: shared by engine-callgrind*.c. */
#pragma once

#include <limits.h>

#include "callgrind.h"

/* A command line for valgrind. The parameters that it fixes are recorded as settings. */
struct pm_callgrind_call {
	PM_VEC(char *) argv; /* ends with NULL */
	char *tunables; /* GLIBC_TUNABLES of the command */
};
void pm_callgrind_call_release(struct pm_callgrind_call *call);
/* @dir: the directory for valgrind's files. Returns 0 or -ENOMEM. */
int pm_callgrind_call_make(struct pm_callgrind_call *call, struct pm_stat *stat,
			   const struct pm_engine_options *options, const char *dir);

/* Adds a setting unless it is already there, as runs repeat. Returns 0 or -ENOMEM. */
int pm_callgrind_setting(struct pm_stat *stat, const char *name, const char *value);

/* How the processes ended, from valgrind's messages in @dir. @only: the name of the
 * only file to read; NULL: all. */
struct pm_callgrind_log {
	size_t processes; /* processes that valgrind ran */
	size_t cut; /* of these, the processes that it did not observe to their end */
	size_t running; /* of these, the processes that have not ended */
	char words[PM_ERROR_TEXT_MAX]; /* its first complaint; "": none */
	/* The file whose debug information valgrind could not read, which made it give up
	 * a process; "": none. "?": it did not give the name. */
	char unreadable[PATH_MAX];
};
int pm_callgrind_log_read(struct pm_callgrind_log *out, struct pm_stat *stat,
			  const char *dir, const char *only);
