/* SPDX-License-Identifier: MIT */
/*
 * The example of perforator's README: main() fills an array, sum() adds it up, once.
 * `sumbench [INTS]`: 10 million by default. Prints the sum.
 */
#include <stdio.h>
#include <stdlib.h>

static __attribute__((noinline)) unsigned long sum(const int *numbers, size_t len)
{
	unsigned long total = 0;

	for (size_t i = 0; i < len; i++)
		total += (unsigned long)numbers[i];
	return total;
}

int main(int argc, char **argv)
{
	size_t len = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000000;
	int *numbers = malloc(len * sizeof(*numbers));

	if (!numbers)
		return 1;
	for (size_t i = 0; i < len; i++)
		numbers[i] = (int)(i * 7 & 1023);
	printf("%lu\n", sum(numbers, len));
	free(numbers);
	return 0;
}
