/* SPDX-License-Identifier: MIT */
/*
 * The parts of a command that it marks itself. Where counters count, it says so by a socket, and
 * waits for the answer; where callgrind does, by valgrind's own requests.
 */
#pragma once

#include "pm/base.h"

#define PM_MARKS_CALLGRIND "callgrind"

struct pm_marks {
	int fd; /* ours; -1: none */
	int theirs; /* the command inherits it; -1: it has it */
	bool on; /* the part has begun */
	size_t parts;
	uint64_t begin_ns, ns; /* of the last part; of all of them together */
};

/* Sets the variable for commands that are started from now on; NULL takes it away. */
int pm_marks_export(const char *value, struct pm_error *err);
/* Makes the socket, for the command that is prepared next. */
int pm_marks_open(struct pm_marks *marks, struct pm_error *err);
/* The command has its end. */
void pm_marks_give(struct pm_marks *marks);
void pm_marks_close(struct pm_marks *marks);
/* 1: the command has marked: '+' or '-', or something foreign; 0: nothing more. */
int pm_marks_next(struct pm_marks *marks, char *ret);
void pm_marks_answer(struct pm_marks *marks, char mark);
/* -ENODATA: nothing was marked. */
int pm_marks_none(const char *command, struct pm_error *err);
