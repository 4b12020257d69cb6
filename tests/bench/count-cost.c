/* SPDX-License-Identifier: MIT */
/*
 * count-cost FUNCTION CALLS: calls `pushing` or `plain` so often, and prints how many
 * nanoseconds one call took. The first begins with a push, as most functions do that call others;
 * of an uprobe there the kernel emulates the instruction. The second begins with a load, which
 * has to be stepped over.
 */
#include "../programs/count.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static volatile unsigned long sink;

static WHOLE void plain(unsigned long value)
{
	sink += value;
}

static WHOLE void pushing(unsigned long value)
{
	plain(value);
	sink += value;
}

/* Never called: more places than a processor has breakpoints for. */
static WHOLE void idle_one(void)
{
	sink += 1;
}

static WHOLE void idle_two(void)
{
	sink += 2;
}

int main(int argc, char **argv)
{
	unsigned long calls = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	void (*function)(unsigned long) =
		argc > 1 && strcmp(argv[1], "plain") == 0 ? plain : pushing;
	struct timespec begin, end;

	if (calls == 0)
		return 2;
	if (sink == 1) {
		idle_one();
		idle_two();
	}
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (unsigned long i = 0; i < calls; i++)
		function(i);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%.3f\n", ((double)(end.tv_sec - begin.tv_sec) * 1e9 +
			  (double)(end.tv_nsec - begin.tv_nsec)) /
				 (double)calls);
	return 0;
}
