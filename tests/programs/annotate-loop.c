/* SPDX-License-Identifier: MIT */
/*
 * annotate-loop ROUNDS: spends almost all of its time in work(), a loop of about twenty
 * instructions with different shares. For --annotate, and for perf annotate on the same
 * run.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t table[1024];

__attribute__((noinline, noclone)) uint64_t work(uint64_t rounds)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < rounds; i++) {
		uint32_t x = table[i & 1023];

		if (x % 3 == 0)
			sum += x / 7;
		else
			sum ^= x * UINT32_C(2654435761);
	}
	return sum;
}

int main(int argc, char **argv)
{
	uint64_t all = 0, rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;

	for (uint32_t i = 0; i < 1024; i++)
		table[i] = i * 7919;
	for (uint64_t i = 0; i < rounds; i++)
		all += work(1000000 + i);
	printf("%llu\n", (unsigned long long)all);
	return 0;
}
