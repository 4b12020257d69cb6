/* SPDX-License-Identifier: MIT */
/*
 * bperf's example: a, b and c do 10, 4 and 2 parts of the work between perf_start() and
 * perf_stop(). Before and after that x works, which no profile may have.
 * self-abc [SECONDS (of CPU time, 1)]
 */
#include <pmself.h>
#include <stdlib.h>

#include "work.h"

NOINLINE static void a(void)
{
	work(400);
	__asm__ volatile("");
}

NOINLINE static void b(void)
{
	work(160);
	__asm__ volatile("");
}

NOINLINE static void c(void)
{
	work(80);
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

	x();
	if (perf_start() < 0)
		return 1;
	end = cpu_seconds() + seconds;
	while (cpu_seconds() < end) {
		a();
		b();
		c();
	}
	if (perf_stop() < 0)
		return 1;
	x();
	return 0;
}
