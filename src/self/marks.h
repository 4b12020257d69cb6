/* SPDX-License-Identifier: MIT */
/*
 * The part of a program that `pmstat --marked` counts: what is between perf_start() and
 * perf_stop(). pmstat says by PMSELF_MARKS how it wants to hear of them: "callgrind", or "fd:N", a
 * socket that takes '+' and '-', and answers when the counters are on or off.
 */
#pragma once

#include <stdbool.h>

/* Whether marks are wanted, in the place of a profile. */
bool pm_self_marks_are_wanted(void);
/* 0, -EALREADY: begun twice; -ESRCH: there is nothing to end; what the socket says. The part begins
 * where this returns. */
int pm_self_mark(bool begin);
/* The first thing at the end of a part, for what comes behind it is no part of it. True: that was
 * all. */
bool pm_self_mark_ends_at_once(void);
