/* SPDX-License-Identifier: MIT */
/*
 * The part of a program that `pmstat --marked` counts, which is between perf_start() and
 * perf_stop(). pmstat sets PMSELF_MARKS to the way in which it wants to be notified:
 * "callgrind", or "fd:N", a socket that receives '+' and '-', and answers when the
 * counters are on or off.
 */
#pragma once

#include <stdbool.h>

/* Whether marks are requested instead of a profile. */
bool pm_self_marks_are_wanted(void);
/* Starts or ends the counted part. Returns 0; -EALREADY: it was started twice; -ESRCH:
 * there is no part to end; or the error that the socket returns. The part starts when
 * this function returns. */
int pm_self_mark(bool begin);
/* To be called first at the end of a part, so that nothing after the end is counted.
 * Returns true if nothing else has to be done. */
bool pm_self_mark_ends_at_once(void);
