/* SPDX-License-Identifier: MIT */
/*
 * a, b and c do 10, 4 and 2 parts of the work between perf_start() and perf_stop():
 * self-abc [ROUNDS [CYCLES]]. Before and after that x works, which no profile may have.
 */
#include <pmself.h>
#include <stdio.h>
#include <stdlib.h>

#define KEEP __attribute__((noinline, noclone))

static volatile unsigned long sink;

static inline void burn(unsigned long parts)
{
	for (unsigned long i = 0; i < parts * 100000; i++)
		sink = sink * 3 + i;
}

KEEP static void a(void)
{
	burn(10);
}

KEEP static void b(void)
{
	burn(4);
}

KEEP static void c(void)
{
	burn(2);
}

KEEP static void x(void)
{
	burn(100);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 500;
	unsigned long cycles = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
	int ret = 0;

	x();
	for (unsigned long i = 0; i < cycles; i++) {
		ret = perf_start();
		if (ret < 0)
			break;
		for (unsigned long j = 0; j < rounds; j++) {
			a();
			b();
			c();
		}
		ret = perf_stop();
		if (ret < 0)
			break;
	}
	x();
	printf("%d\n", ret);
	return ret < 0;
}
