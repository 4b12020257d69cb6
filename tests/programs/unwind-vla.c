/* SPDX-License-Identifier: MIT */
/* Frames whose size is known only at run time: the CFA can be computed only from rbp. */
#include "unwind-burn.h"

#include <alloca.h>
#include <string.h>

static NOINLINE uint64_t with_alloca(uint8_t *outer, size_t len, uint64_t x)
{
	uint8_t *bytes = alloca(len);

	memcpy(bytes, outer, len < 64 ? len : 64);
	x = burn_steps(x + bytes[len / 2], 4000);
	OPAQUE(bytes);
	return x;
}

static NOINLINE uint64_t with_loop(unsigned int rounds, uint64_t x)
{
	/* alloca in a loop moves rsp between calls within the same frame. */
	for (unsigned int i = 0; i < rounds; i++) {
		uint8_t *bytes = alloca(16 + (x & 63));

		memset(bytes, (int)x, 16);
		OPAQUE(bytes);
		x += with_alloca(bytes, 16, x);
	}
	return x;
}

int main(int argc, char **argv)
{
	clock_t end = burn_until(argc, argv);
	uint64_t x = 1;

	while (clock() < end) {
		x = with_loop(20, x);
		x += with_loop(1 + (x & 7), x);
	}
	return x == 0;
}
