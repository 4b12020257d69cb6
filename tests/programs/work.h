/* SPDX-License-Identifier: MIT */
/* Equal units of work for programs with a known truth. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Each function stays one of its own: nothing inlined, no copies made for its arguments. */
#if defined(__clang__)
#define NOINLINE __attribute__((noinline, aligned(64)))
#else
#define NOINLINE __attribute__((noinline, noclone, aligned(64)))
#endif

/* One dependent chain of a few cycles a step: the same cost wherever it is inlined. */
static inline __attribute__((always_inline)) void work(unsigned int units)
{
	for (unsigned int i = 0; i < units * 256; i++)
		__asm__ volatile("" : : "r"(i) : "memory");
}

static inline double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
