/* SPDX-License-Identifier: MIT */
/*
 * split-stack MS: built with -fsplit-stack, runs for MS milliseconds of CPU time in each
 * of two threads. Functions with large frames call each other, until some are on other
 * segments of the stack than their callers (__morestack). Which of two callers is active
 * is known: below called_by_a() only work_of_a() runs, and below called_by_b() only
 * work_of_b(); the functions between have the same stack pointers below both.
 */
#include "unwind-burn.h"

#include <pthread.h>

enum {
	DEPTH = 4,
	/* Lasts for more samples at 999 Hz than pmrec takes between two looks at a live
	 * thread. */
	STEPS = 150000000,
};

struct frame {
	volatile char bytes[400000];
};

static clock_t end;
static __thread volatile uint64_t sink;

static NOINLINE void work_of_a(void)
{
	sink = burn_steps(sink + 1, STEPS);
	sink++;
}

static NOINLINE void work_of_b(void)
{
	sink = burn_steps(sink + 2, STEPS);
	sink++;
}

static NOINLINE void go_deeper(void (*work)(void), int depth)
{
	struct frame frame;

	frame.bytes[0] = (char)depth;
	if (depth == 0)
		work();
	else
		go_deeper(work, depth - 1);
	sink += (uint64_t)frame.bytes[0];
}

static NOINLINE void called_by_a(void)
{
	go_deeper(work_of_a, DEPTH);
	sink++;
}

static NOINLINE void called_by_b(void)
{
	go_deeper(work_of_b, DEPTH);
	sink++;
}

static NOINLINE void *in_thread(void *user)
{
	do {
		called_by_a();
		called_by_b();
	} while (clock() < end);
	return user;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	end = burn_until(argc, argv);
	if (pthread_create(&thread, NULL, in_thread, NULL) != 0)
		return 1;
	in_thread(NULL);
	pthread_join(thread, NULL);
	return sink == 0;
}
