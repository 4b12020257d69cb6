/* SPDX-License-Identifier: MIT */
/*
 * Works for 0.2 s in an inlined function at the bottom of a short call chain, then
 * crashes there with SIGSEGV.
 */
#include "work.h"

static inline __attribute__((always_inline)) void step(void)
{
	work(1000);
}

static NOINLINE void fall(volatile int *where)
{
	while (cpu_seconds() < 0.2)
		step();
	*where = 1;
}

static NOINLINE void lean(int depth)
{
	if (depth > 0)
		lean(depth - 1);
	else
		fall((volatile int *)16);
	__asm__ volatile("");
}

int main(void)
{
	lean(5);
	return 0;
}
