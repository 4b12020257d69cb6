/* SPDX-License-Identifier: MIT */
/*
 * split SECONDS [STATUS [THREADS]]: spends its CPU time, of all threads together, as 60 %
 * in sixty(), 30 % in thirty(), 10 % in ten(). A round takes some ten microseconds, so
 * that sampling hardly ever runs in step with it. If all rounds take the same time, as on
 * an emulated processor, it may: a qemu guest gave 62.3, 29.5 and 8.1 % at 5921 Hz, and
 * less than a point off at 5003 and 6000 Hz.
 */
#include "work.h"

#include <pthread.h>
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
