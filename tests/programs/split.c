/* SPDX-License-Identifier: MIT */
/*
 * split SECONDS [STATUS [THREADS]]: spends its CPU time, of all threads together, as 60 %
 * in sixty(), 30 % in thirty(), 10 % in ten(). A round takes some ten microseconds. Rounds
 * have different lengths: if all took the same time, as on an emulated processor, sampling
 * could run in step with them.
 */
#include "work.h"

#include <pthread.h>
#include <stdlib.h>

static NOINLINE void sixty(unsigned int units)
{
	work(6 * units);
}

static NOINLINE void thirty(unsigned int units)
{
	work(3 * units);
}

static NOINLINE void ten(unsigned int units)
{
	work(units);
}

static NOINLINE void rounds(double until)
{
	uint32_t state = 1;

	do {
		for (int i = 0; i < 64; i++) {
			unsigned int units = vary(&state, 10);

			sixty(units);
			thirty(units);
			ten(units);
		}
	} while (cpu_seconds() < until);
	__asm__ volatile("");
}

static double seconds = 1;

static void *run(void *nothing)
{
	rounds(seconds);
	return nothing;
}

int main(int argc, char **argv)
{
	int others = argc > 3 ? atoi(argv[3]) - 1 : 0;
	pthread_t thread;

	if (argc > 1)
		seconds = strtod(argv[1], NULL);
	/* They are not joined: they end when the time is used up, as this thread does. */
	for (int i = 0; i < others; i++)
		if (pthread_create(&thread, NULL, run, NULL) != 0)
			return 125;
	rounds(seconds);
	return argc > 2 ? atoi(argv[2]) : 0;
}
