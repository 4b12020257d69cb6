/* SPDX-License-Identifier: MIT */
/*
 * The program that `make run` records. Its behaviour is known, so that the report can be
 * checked at a glance: two threads spend 60, 30 and 10 % of their time in the three
 * functions with these numbers in their names. thirty_percent() is in a shared library,
 * ten_percent() runs at the bottom of a recursion.
 *
 * Usage: sample [SECONDS of CPU time for each thread, 1.5 by default]
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "burn.h"

enum {
	RECURSION_DEPTH = 100,
	/* About 4 ms per round: short compared with the run, long compared with reading
	 * the clock. */
	UNIT_STEPS = 200 * 1000,
};

static double seconds = 1.5;
/* Uses the results, and thereby keeps the work. */
static volatile uint64_t sink;

static __attribute__((noinline)) uint64_t sixty_percent(uint64_t value)
{
	BURN(value, 6 * UNIT_STEPS, 0x9e3779b97f4a7c15);
	return value;
}

static __attribute__((noinline)) uint64_t ten_percent(uint64_t value)
{
	BURN(value, UNIT_STEPS, 0xd6e8feb86659fd93);
	return value;
}

/* The work after the call keeps the compiler from turning it into a loop. */
static __attribute__((noinline)) uint64_t descend(uint64_t value, unsigned int depth)
{
	uint64_t below = depth ? descend(value, depth - 1) : ten_percent(value);

	return below ^ (below >> (depth % 63 + 1));
}

static double thread_cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static __attribute__((noinline)) uint64_t work(uint64_t value)
{
	while (thread_cpu_seconds() < seconds) {
		value = sixty_percent(value);
		value = thirty_percent(value, 3 * UNIT_STEPS);
		value = descend(value, RECURSION_DEPTH);
	}
	return value;
}

static void *helper(void *result)
{
	*(uint64_t *)result = work(2);
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t results[2] = { 0, 0 };
	pthread_t thread;

	if (argc > 1)
		seconds = strtod(argv[1], NULL);
	if (pthread_create(&thread, NULL, helper, &results[1]) != 0) {
		fputs("sample: cannot start a thread\n", stderr);
		return 1;
	}
	pthread_setname_np(thread, "helper");
	results[0] = work(1);
	pthread_join(thread, NULL);
	sink = results[0] ^ results[1];
	puts("sample: 60, 30 and 10 % of the time went to the functions of these names");
	return 0;
}
