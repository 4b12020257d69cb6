/* SPDX-License-Identifier: MIT */
/*
 * Realigned stacks. With a variable-sized frame gcc keeps the caller's CFA in a register
 * (DRAP) and describes it by an expression: DW_CFA_def_cfa_expression (breg6 -n; deref).
 */
#include "unwind-burn.h"

#include <alloca.h>
#include <string.h>

struct wide {
	uint64_t lane[8];
} __attribute__((aligned(64)));

static NOINLINE void mix(struct wide *wide, uint64_t x)
{
	for (unsigned int i = 0; i < 8; i++)
		wide->lane[i] ^= burn_steps(x + i, 200);
}

static NOINLINE uint64_t aligned_frame(uint64_t x)
{
	struct wide wide;

	memset(&wide, (int)x, sizeof(wide));
	mix(&wide, x);
	return burn_steps(wide.lane[x & 7], 500);
}

static NOINLINE uint64_t aligned_and_variable(uint64_t x, size_t len, uint64_t a,
					      uint64_t b, uint64_t c, uint64_t d,
					      uint64_t e)
{
	struct wide wide;
	uint8_t *bytes = alloca(len);

	/* a…e: arguments on the stack are what DRAP is kept for. */
	memset(bytes, (int)x, len);
	memset(&wide, bytes[len / 2], sizeof(wide));
	mix(&wide, x + a + b + c + d + e);
	x = aligned_frame(wide.lane[1] + bytes[0]);
	OPAQUE(bytes);
	return x + e;
}

int main(int argc, char **argv)
{
	clock_t end = burn_until(argc, argv);
	uint64_t x = 1;

	while (clock() < end)
		x += aligned_and_variable(x, 16 + (x & 255), x, x, x, x, x);
	return x == 0;
}
