/* SPDX-License-Identifier: MIT */
/*
 * fixed-work ROUNDS STACK_KIB: always the same work, however long it takes, below so much stack.
 * Prints a sum. Unlike tests/programs/storm, which burns a given CPU time, it takes more CPU time
 * when something costs it some.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FRAME_BYTES = 512,
	TABLE_LEN = 1 << 15, /* 256 KiB: what is thrown out of the cache costs, too */
	STEPS = 1000,
};

static uint64_t table[TABLE_LEN];

static __attribute__((noinline)) uint64_t work(unsigned long rounds)
{
	uint64_t state = 88172645463325252u;

	for (unsigned long i = 0; i < rounds * STEPS; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		table[state % TABLE_LEN] += state;
	}
	return table[state % TABLE_LEN];
}

static __attribute__((noinline)) uint64_t deeper(unsigned long rounds,
						 unsigned long frames)
{
	volatile char frame[FRAME_BYTES];
	uint64_t ret;

	frame[0] = (char)frames;
	ret = frames > 0 ? deeper(rounds, frames - 1) : work(rounds);
	return ret + (uint64_t)frame[0];
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	printf("%llu\n", (unsigned long long)deeper(strtoul(argv[1], NULL, 10),
						    strtoul(argv[2], NULL, 10) * 1024 /
							    FRAME_BYTES));
	return 0;
}
