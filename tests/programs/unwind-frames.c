/* SPDX-License-Identifier: MIT */
/*
 * Prologues and epilogues of short functions with many callee-saved registers, built once
 * with and once without a frame pointer: samples fall between push and pop.
 */
#include "unwind-burn.h"

static NOINLINE uint64_t leaf(uint64_t x)
{
	x ^= x << 7;
	OPAQUE(x);
	return x ^ x >> 9;
}

static NOINLINE uint64_t six(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
	uint64_t f = leaf(a);
	uint64_t g = leaf(b + f);
	uint64_t h = leaf(c + g);

	return leaf(d + h) + leaf(e + f) + a + b + c + g;
}

static NOINLINE uint64_t big(uint64_t x)
{
	volatile uint64_t room[200];

	room[x & 127] = x;
	x = six(x, room[x & 127], x >> 3, x << 1, x >> 7);
	return x + room[x & 127];
}

static NOINLINE uint64_t early(uint64_t x)
{
	/* A shrink-wrapped prologue: the frame is made on one path only. */
	if (x & 1)
		return x >> 1 | 1ULL << 63;
	return big(x) + six(x, x, x, x, x);
}

int main(int argc, char **argv)
{
	clock_t end = burn_until(argc, argv);
	uint64_t x = 88172645463325252;

	while (clock() < end)
		for (int i = 0; i < 10000; i++)
			x += early(x) + 1;
	return x == 0;
}
