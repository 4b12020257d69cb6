/* SPDX-License-Identifier: MIT */
/*
 * Ranges of lines, and a function that is inlined wherever it is called: `count-range
 * [TIMES]`. The lines between `range begins` and `range ends` are entered once for each
 * call of with_range(), with a loop inside; those of `branch begins` and `branch ends`
 * every third time; those of `functions begins` and `functions ends` are three functions,
 * with padding between.
 */
#include "count.h"

#include <stdlib.h>

enum {
	LOOPS = 10,
};

static volatile unsigned long sink;

/* The compiler cannot mix this with the code around it. */
static inline __attribute__((always_inline)) void inlined(void)
{
	__asm__ volatile("nop\n\tnop\n\tnop");
}

/* functions begins */
static WHOLE void with_range(unsigned long value)
{
	sink += value;
	/* range begins */
	for (unsigned int i = 0; i < LOOPS; i++)
		sink += i;
	/* range ends */
	if (value % 3 == 0) {
		/* branch begins */
		sink += 100;
		sink ^= 5;
		/* branch ends */
	}
	sink += value;
}

static WHOLE void first_place(unsigned long value)
{
	sink += 1;
	inlined();
	sink += value;
}

static WHOLE void second_place(unsigned long value)
{
	sink += 2;
	inlined();
	sink += value;
	inlined();
	sink += 2;
}
/* functions ends */

int main(int argc, char **argv)
{
	unsigned long times = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;

	for (unsigned long i = 0; i < times; i++) {
		with_range(i);
		first_place(i);
		second_place(i);
	}
	truth("range", times, 0);
	truth("branch", (times + 2) / 3, 0);
	truth("functions", 3 * times, 0);
	truth("inlined", 3 * times, 0);
	return 0;
}
