/* SPDX-License-Identifier: MIT */
/* Shared by the programs count-*: functions that compilers leave whole, and the true
 * numbers of their calls on stdout, one line `NAME: CALLS UNFINISHED` each. */
#pragma once

#include <stdio.h>

/* Neither inlined nor copied, nor changed in its interface. */
#ifdef __clang__
#define WHOLE __attribute__((noinline, used))
#else
#define WHOLE __attribute__((noipa))
#endif

static inline void truth(const char *name, unsigned long calls, unsigned long unfinished)
{
	printf("%s: %lu %lu\n", name, calls, unfinished);
}
