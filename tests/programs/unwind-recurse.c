/* SPDX-License-Identifier: MIT */
/* One thousand frames of one function, repeatedly entered and left. */
#include "unwind-burn.h"

static NOINLINE uint64_t descend(unsigned int depth, uint64_t x)
{
	x = burn_steps(x, 3);
	if (depth > 1) {
		x += descend(depth - 1, x);
		OPAQUE(x);
	} else {
		x = burn_steps(x, 20000);
	}
	return x;
}

int main(int argc, char **argv)
{
	clock_t end = burn_until(argc, argv);
	uint64_t x = 1;

	while (clock() < end)
		x = descend(1000, x);
	return x == 0;
}
