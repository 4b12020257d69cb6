/* SPDX-License-Identifier: MIT */
/*
 * Calls through the PLT all the time: samples fall on its stubs, whose CFA is an
 * expression of rip. It is linked with lazy binding, so that the first calls go through
 * the resolver as well.
 */
#include "unwind-burn.h"
#include "unwind-plt.h"

static NOINLINE uint64_t call_much(uint64_t x)
{
	for (unsigned int i = 0; i < 100000; i++)
		x += plt_first(x) + plt_second(x) + plt_third(x);
	return x;
}

int main(int argc, char **argv)
{
	clock_t end = burn_until(argc, argv);
	uint64_t x = 1;

	while (clock() < end)
		x = call_much(x);
	return x == 0;
}
