/* SPDX-License-Identifier: MIT */
/*
 * A frame larger than any copy of the stack: all the work is done below a frame of 300
 * KiB. Runs for argv[1] seconds.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NOINLINE        __attribute__((noinline, noclone))
#define OPAQUE(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")
#if defined(__clang__)
#undef NOINLINE
#define NOINLINE __attribute__((noinline))
#endif

static NOINLINE void work(void)
{
	for (volatile int i = 0; i < 200000; i++)
		;
}

static NOINLINE void giant(clock_t end)
{
	char bytes[300 * 1024];

	memset(bytes, 1, sizeof(bytes));
	OPAQUE(bytes);
	while (clock() < end)
		work();
	OPAQUE(bytes);
}

static NOINLINE void above(clock_t end)
{
	giant(end);
	OPAQUE(NULL);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;

	above(clock() + (clock_t)(seconds * CLOCKS_PER_SEC));
	return 0;
}
