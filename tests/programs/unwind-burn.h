/* SPDX-License-Identifier: MIT */
/*
 * Shared by the unwind-*.c targets: work that cannot be optimised away, and a limit of
 * CPU time, so that a loaded machine gets as many samples as an idle one. Each target
 * runs for argv[1] milliseconds of CPU time (default 500), most of it at the place it is
 * named for. argv[2] limits each piece of work to so many rounds, for single-stepping;
 * then there is also a handler for SIGURG, to interrupt each step.
 */
#pragma once

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))
#if defined(__clang__)
#undef NOINLINE
#define NOINLINE __attribute__((noinline))
#endif

/* Hides a value from the compiler, and keeps it from turning a call into a jump. */
#define OPAQUE(value) __asm__ volatile("" : "+r"(value) : : "memory")

static unsigned int burn_limit = ~0U;

static void burn_interrupted(int signo)
{
	(void)signo;
}

static inline uint64_t burn_steps(uint64_t x, unsigned int steps)
{
	if (steps > burn_limit)
		steps = burn_limit;
	while (steps--) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		OPAQUE(x);
	}
	return x;
}

/* Code between two of these, in one function, is not single-stepped. */
static inline void burn_skip(void)
{
	if (burn_limit != ~0U)
		__asm__ volatile("int3" ::: "memory");
}

static inline clock_t burn_until(int argc, char **argv)
{
	long ms = argc > 1 ? strtol(argv[1], NULL, 10) : 500;

	if (argc > 2) {
		burn_limit = (unsigned int)strtol(argv[2], NULL, 10);
		signal(SIGURG, burn_interrupted);
	}
	return clock() + (clock_t)(ms * (CLOCKS_PER_SEC / 1000));
}
