/* SPDX-License-Identifier: MIT */
/*
 * split SECONDS: spends its CPU time as 60 % in sixty(), 30 % in thirty(), 10 % in ten().
 * A round takes some ten microseconds, so that no sampling rate can fall into step with it.
 */
#include "work.h"

#include <stdlib.h>

static NOINLINE void sixty(void)
{
	work(60);
}

static NOINLINE void thirty(void)
{
	work(30);
}

static NOINLINE void ten(void)
{
	work(10);
}

static NOINLINE void rounds(double until)
{
	do {
		for (int i = 0; i < 64; i++) {
			sixty();
			thirty();
			ten();
		}
	} while (cpu_seconds() < until);
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	rounds(argc > 1 ? strtod(argv[1], NULL) : 1);
	return argc > 2 ? atoi(argv[2]) : 0;
}
