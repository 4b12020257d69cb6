/* SPDX-License-Identifier: MIT */
/*
 * Frames larger than any copy of the stack, at places of which each has its own callers:
 *   bigframe PLACE BYTES SECONDS
 * main: the frame of main. thread: of a function of a thread. alloca: of a size that is
 * known only at run time. recursion: of the third of five calls of one function, which
 * their lines distinguish. ways: of a function with two callers, which is called for 30
 * ms by one and then by the other, with the same registers and at the same stack pointer.
 * All the time is spent in work(), which is called from several places of the frame.
 */
#include <alloca.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NOINLINE        __attribute__((noinline, noclone))
#define OPAQUE(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")
#if defined(__clang__)
#undef NOINLINE
#define NOINLINE __attribute__((noinline))
#endif

enum {
	WAYS_US = 30000,
	LEVELS = 5,
	LARGE_LEVEL = 3,
};

static size_t bytes;
static long work_us;

static NOINLINE void work(long us)
{
	clock_t end = clock() + us * (CLOCKS_PER_SEC / 1000000);

	while (clock() < end)
		for (volatile int i = 0; i < 500; i++)
			;
	OPAQUE(NULL);
}

/* Three places in one frame. */
#define WORK(us)                \
	do {                    \
		work((us) / 3); \
		OPAQUE(NULL);   \
		work((us) / 3); \
		OPAQUE(NULL);   \
		work((us) / 3); \
		OPAQUE(NULL);   \
	} while (0)

static NOINLINE void large(long us)
{
	char *room = alloca(bytes);

	memset(room, 1, 64);
	OPAQUE(room);
	WORK(us);
	OPAQUE(room);
}

static NOINLINE void first_way(long us)
{
	large(us);
	OPAQUE(NULL);
}

static NOINLINE void second_way(long us)
{
	large(us);
	__asm__ volatile("nop" ::: "memory"); /* equal functions would be merged */
}

static NOINLINE void *in_thread(void *unused)
{
	large(work_us);
	OPAQUE(unused);
	return unused;
}

static NOINLINE void recurse(int level)
{
	char *room = alloca(level == LARGE_LEVEL ? bytes : 64);

	memset(room, 1, 64);
	OPAQUE(room);
	if (level < LEVELS)
		recurse(level + 1);
	else
		WORK(work_us);
	OPAQUE(room);
}

int main(int argc, char **argv)
{
	const char *place = argc > 1 ? argv[1] : "main";

	bytes = argc > 2 ? (size_t)atol(argv[2]) : 100000;
	work_us = (long)((argc > 3 ? atof(argv[3]) : 1) * 1e6);
	if (strcmp(place, "thread") == 0) {
		pthread_attr_t attr;
		pthread_t thread;

		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, bytes + (1 << 20));
		if (pthread_create(&thread, &attr, in_thread, NULL) == 0)
			pthread_join(thread, NULL);
	} else if (strcmp(place, "recursion") == 0) {
		recurse(1);
	} else if (strcmp(place, "ways") == 0) {
		first_way(WAYS_US);
		second_way(work_us);
	} else if (strcmp(place, "alloca") == 0) {
		large(work_us);
	} else {
		char *room = alloca(bytes);

		memset(room, 1, 64);
		OPAQUE(room);
		WORK(work_us);
		OPAQUE(room);
	}
	return 0;
}
