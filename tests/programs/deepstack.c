/* SPDX-License-Identifier: MIT */
/*
 * Stacks of which hardly anything is in a copy:
 *   deepstack PLACE BYTES FRAMES WORK_US SECONDS
 * calls FRAMES frames of BYTES bytes in one another (200, 1000 or 100000), works at the
 * bottom for WORK_US, returns from all of them, and does so again for SECONDS of CPU time.
 * It comes by two ways in turn, and each has a bottom of its own: left_bottom() has
 * left_way() above FRAMES frames, right_bottom() has right_way() above half as many.
 * PLACE: main, thread, library, or library-thread.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "deepstack.h"

#define NOINLINE        __attribute__((noinline, noclone))
#define OPAQUE(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")
#if defined(__clang__)
#undef NOINLINE
#define NOINLINE __attribute__((noinline))
#endif

enum {
	THREAD_STACK_BYTES = 16 << 20,
};

static void (*bottom)(void);
static void (*descend_there)(int bytes, int frames, void (*const *bottom)(void));
static int bytes, frames;
static long work_us;
static double seconds;

static NOINLINE void work(void)
{
	clock_t end = clock() + work_us * (CLOCKS_PER_SEC / 1000000);

	while (clock() < end)
		for (volatile int i = 0; i < 500; i++)
			;
	OPAQUE(NULL);
}

static NOINLINE void left_bottom(void)
{
	work();
	OPAQUE(NULL);
}

static NOINLINE void right_bottom(void)
{
	work();
	__asm__ volatile("nop" ::: "memory"); /* equal functions would be merged */
}

static NOINLINE void left_way(void)
{
	bottom = left_bottom;
	descend_there(bytes, frames, &bottom);
	OPAQUE(NULL);
}

static NOINLINE void right_way(void)
{
	char room[5000]; /* no frame has the place of one that left_way() calls */

	memset(room, 1, 64);
	OPAQUE(room);
	bottom = right_bottom;
	descend_there(bytes, frames / 2, &bottom);
	OPAQUE(room);
}

static NOINLINE void *cycles(void *unused)
{
	clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);

	while (clock() < end) {
		left_way();
		if (clock() < end)
			right_way();
	}
	return unused;
}

int main(int argc, char **argv)
{
	if (argc != 6)
		return 2;
	descend_there = strstr(argv[1], "library") ? descend_in_library : descend;
	bytes = atoi(argv[2]);
	frames = atoi(argv[3]);
	work_us = atol(argv[4]);
	seconds = atof(argv[5]);
	if (strstr(argv[1], "thread")) {
		pthread_attr_t attr;
		pthread_t thread;

		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
		if (pthread_create(&thread, &attr, cycles, NULL) != 0)
			return 1;
		pthread_join(thread, NULL);
	} else {
		cycles(NULL);
	}
	return 0;
}
