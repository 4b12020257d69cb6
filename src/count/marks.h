/* SPDX-License-Identifier: MIT */
/*
 * The parts of a command that it marks itself. With counters, the command sends each mark
 * through a socket and waits for the answer; with callgrind, it uses valgrind's client
 * requests.
 */
#pragma once

#include "pm/base.h"

#define PM_MARKS_CALLGRIND "callgrind"

struct pm_marks {
	int fd; /* ours; -1: none */
	int theirs; /* the end that the command inherits; -1: closed on our side */
	bool on; /* a part is running */
	size_t parts;
	uint64_t begin_ns, ns; /* start of the current part; total time of all parts */
};

/* Sets the environment variable for commands that are started later. NULL removes it. */
int pm_marks_export(const char *value, struct pm_error *err);
/* Creates the socket for the command that is prepared next. */
int pm_marks_open(struct pm_marks *marks, struct pm_error *err);
/* To be called after the command has inherited its end: closes our copy and unsets the
 * variable. */
void pm_marks_give(struct pm_marks *marks);
void pm_marks_close(struct pm_marks *marks);
/* Returns 1 if the command has sent a mark ('+', '-', or something unknown), 0 if there
 * are no more marks. */
int pm_marks_next(struct pm_marks *marks, char *out);
void pm_marks_answer(struct pm_marks *marks, char mark);
/* Reports that nothing was marked; returns -ENODATA. @from, @to: the functions that were
 * to mark a part; NULL: the command itself was to. */
int pm_marks_none(const char *command, const char *from, const char *to,
		  struct pm_error *err);
