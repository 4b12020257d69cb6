/* SPDX-License-Identifier: MIT */
/* Spends CPU time in a constructor, which ld.so calls before main(). */
#include "unwind-burn.h"

__attribute__((visibility("default"))) uint64_t constructor_sink;

static NOINLINE uint64_t burn_in_constructor(clock_t end)
{
	uint64_t x = 1;

	while (clock() < end)
		x = burn_steps(x, 100000);
	return x;
}

__attribute__((constructor)) static void construct(void)
{
	constructor_sink = burn_in_constructor(clock() + CLOCKS_PER_SEC / 2) | 1;
}
