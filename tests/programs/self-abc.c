/* SPDX-License-Identifier: MIT */
/*
 * bperf's example: a, b and c do 10, 4 and 2 parts of the work between perf_start() and
 * perf_stop(). Before and after that, x works, which must not be in any profile.
 *
 * self-abc [SECONDS (of CPU time, 1)]
 */
#include <pmself.h>
#include <stdlib.h>

#include "work.h"

enum {
	/* Of half of c's work: about a millisecond in total, a few ticks at 4000 Hz. */
	UNITS = 1000,
};

NOINLINE static void a(unsigned int units)
{
	work(10 * units);
	__asm__ volatile("");
}

NOINLINE static void b(unsigned int units)
{
	work(4 * units);
	__asm__ volatile("");
}

NOINLINE static void c(unsigned int units)
{
	work(2 * units);
	__asm__ volatile("");
}

NOINLINE static void x(void)
{
	double end = cpu_seconds() + 0.05;

	while (cpu_seconds() < end)
		work(40);
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 1, end;
	uint32_t state = 1;

	x();
	if (perf_start() < 0)
		return 1;
	end = cpu_seconds() + seconds;
	while (cpu_seconds() < end) {
		unsigned int units = vary(&state, UNITS);

		a(units);
		b(units);
		c(units);
	}
	if (perf_stop() < 0)
		return 1;
	x();
	return 0;
}
