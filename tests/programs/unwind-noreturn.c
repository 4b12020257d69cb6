/* SPDX-License-Identifier: MIT */
/*
 * A call as the last instruction of its function, as before abort(3): the return address
 * belongs to the next function, so only pc - 1 finds the caller.
 */
#include "unwind-burn.h"

static clock_t end;
static volatile uint64_t sink;

static NOINLINE __attribute__((noreturn)) void leave(uint64_t x)
{
	while (clock() < end)
		sink = burn_steps(x, 5000);
	exit(sink == 0);
}

/* Pushes registers, so that the wrong function's CFI gives a wrong CFA. */
NOINLINE uint64_t give_up(uint64_t a, uint64_t b);
NOINLINE uint64_t give_up(uint64_t a, uint64_t b)
{
	volatile uint64_t room[12];

	room[a & 7] = burn_steps(b, 10);
	leave(a + b + room[b & 7]);
}

/* Follows in the text, and needs no stack at its first instruction. */
NOINLINE uint64_t neighbour(uint64_t a);
NOINLINE uint64_t neighbour(uint64_t a)
{
	return burn_steps(a, 10);
}

int main(int argc, char **argv)
{
	end = burn_until(argc, argv);
	return (int)give_up(neighbour(sink + 1), sink);
}
