/* SPDX-License-Identifier: MIT */
/*
 * stack-faults SECONDS: for SECONDS of CPU time, touches the pages of a large frame from
 * the outermost to the innermost, and releases them. Nearly all the time is spent in page
 * faults of fault_in(), while the page of the stack pointer is not present.
 */
#include "work.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
	PAGE = 4096,
	FRAME = 512 * PAGE,
	STACK = 2 * FRAME,
	/* The innermost ones, including that of the stack pointer. */
	UNTOUCHED = 4 * PAGE,
	KEPT = 4 * PAGE, /* of the callers of madvise(2) */
};

static NOINLINE void fault_in(void)
{
	volatile char pages[FRAME];

	for (size_t at = FRAME; at > UNTOUCHED; at -= PAGE)
		pages[at - PAGE] = 1;
	__asm__ volatile("" : : "r"(pages) : "memory");
}

static NOINLINE void give_back(char *below)
{
	uintptr_t end = ((uintptr_t)below - KEPT) / PAGE * PAGE;

	if (madvise((void *)(end - FRAME), FRAME, MADV_DONTNEED) < 0)
		abort();
}

static void *repeat(void *seconds)
{
	double until = cpu_seconds() + *(double *)seconds;

	while (cpu_seconds() < until) {
		give_back(__builtin_frame_address(0));
		fault_in();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 0.3;
	pthread_attr_t attr;
	pthread_t thread;

	if (pthread_attr_init(&attr) != 0 ||
	    pthread_attr_setstacksize(&attr, STACK) != 0 ||
	    pthread_create(&thread, &attr, repeat, &seconds) != 0)
		return 1;
	return pthread_join(thread, NULL) != 0;
}
