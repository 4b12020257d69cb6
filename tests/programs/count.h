/* SPDX-License-Identifier: MIT */
/* What the programs count-* share: functions that no compiler takes apart, and the truth of how
 * often they were called, `NAME: CALLS UNFINISHED` a line, on stdout. */
#pragma once

#include <stdio.h>

/* Neither inlined nor copied, nor called as something else than it is. */
#ifdef __clang__
#define WHOLE __attribute__((noinline, used))
#else
#define WHOLE __attribute__((noipa))
#endif

static inline void truth(const char *name, unsigned long calls, unsigned long unfinished)
{
	printf("%s: %lu %lu\n", name, calls, unfinished);
}
