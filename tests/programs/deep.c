/* SPDX-License-Identifier: MIT */
/*
 * Stacks deeper than a small copy, by two ways that look the same from their inner end:
 * left and right go down the same 24 frames of 2 KiB, work on each of them, and end in a
 * function of their own, which reveals the outer callers. Runs for argv[1] seconds.
 */
#include <stdint.h>
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
	FRAMES = 24,
	FRAME_BYTES = 2048,
	STEP_US = 1500, /* one or two samples on each frame on the way down */
	END_US = 30000,
};

static NOINLINE void work(long us)
{
	clock_t end = clock() + us * (CLOCKS_PER_SEC / 1000000);

	while (clock() < end)
		for (volatile int i = 0; i < 2000; i++)
			;
}

static NOINLINE void left_end(void)
{
	work(END_US);
	OPAQUE(NULL);
}

static NOINLINE void right_end(void)
{
	work(END_US);
	OPAQUE(NULL);
}

static NOINLINE void down(int frames, void (*end)(void))
{
	char bytes[FRAME_BYTES];

	memset(bytes, frames, sizeof(bytes));
	OPAQUE(bytes);
	work(STEP_US);
	if (frames > 1)
		down(frames - 1, end);
	else
		end();
	OPAQUE(bytes);
}

static NOINLINE void left(void)
{
	down(FRAMES, left_end);
	OPAQUE(NULL);
}

static NOINLINE void right(void)
{
	down(FRAMES, right_end);
	OPAQUE(NULL);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);

	while (clock() < end) {
		left();
		right();
	}
	return 0;
}
