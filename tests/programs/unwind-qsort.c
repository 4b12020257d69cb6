/* SPDX-License-Identifier: MIT */
/* From the program through libc's qsort back into the program. */
#include "unwind-burn.h"

static NOINLINE int compare(const void *a, const void *b)
{
	uint64_t x = burn_steps(*(const uint64_t *)a, 5);
	uint64_t y = burn_steps(*(const uint64_t *)b, 5);

	return (x > y) - (x < y);
}

static NOINLINE uint64_t sort_some(uint64_t *values, size_t len, uint64_t x)
{
	for (size_t i = 0; i < len; i++)
		values[i] = x = burn_steps(x, 1);
	qsort(values, len, sizeof(values[0]), compare);
	return values[len / 2];
}

int main(int argc, char **argv)
{
	clock_t end = burn_until(argc, argv);
	static uint64_t values[3000];
	uint64_t x = 88172645463325252;

	while (clock() < end)
		x += sort_some(values, sizeof(values) / sizeof(values[0]), x);
	return x == 0;
}
