// SPDX-License-Identifier: MIT
// Ranges of lines that exceptions enter and leave: `count-catch` prints how often the
// lines between `NAME begins` and `NAME ends` were entered, and how often they were left
// for good.
#include "count.h"

static volatile unsigned long sink;

static WHOLE void throws_int(unsigned long i)
{
	sink += i;
	if (i % 2 == 1)
		throw 1;
	sink += 1;
}

static WHOLE void throws_double(unsigned long i)
{
	sink += i;
	if (i % 4 == 2)
		throw 2.5;
	sink += 1;
}

static WHOLE void catches_both(unsigned long i)
{
	for (unsigned long k = 0; k < 4; k++) {
		unsigned long n = i + k;

		try {
			// first begins
			throws_double(n);
			// first ends
		} catch (double) {
			// double begins
			sink += 2;
			// double ends
		}
		sink += k;
		try {
			// second begins
			throws_int(n);
			// second ends
		} catch (int) {
			// int begins
			sink += 3;
			// int ends
		}
		sink += i;
	}
}

static WHOLE void quiet(unsigned long i)
{
	sink += i;
}

// Has nothing to clean up: its end by an exception cannot be observed.
static WHOLE void passes(unsigned long i)
{
	quiet(i);
	// passed begins
	throws_int(i);
	// passed ends
	sink += 2;
}

int main()
{
	for (unsigned long i = 0; i < 100; i++) {
		catches_both(i);
		try {
			passes(i);
		} catch (int) {
			sink += 1;
		}
	}
	truth("first", 400, 0);
	truth("second", 400, 0);
	truth("double", 100, 0);
	truth("int", 200, 0);
	truth("passed", 100, 50);
	return 0;
}
