/* SPDX-License-Identifier: MIT */
/*
 * Two ways to the bottom of the same deep recursion, with the same registers saved on the
 * way. The first is slow, so that samples see all of it; the second reaches the bottom
 * before the next sample, and stays there. From below, nothing distinguishes the two.
 * Runs for argv[1] seconds, nearly all of them at the bottom of the second.
 */
#include <stdlib.h>
#include <time.h>

#define NOINLINE        __attribute__((noinline, noclone))
#define OPAQUE(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")
#if defined(__clang__)
#undef NOINLINE
#define NOINLINE __attribute__((noinline))
#endif

enum {
	FRAMES = 1500,
	FRAME_BYTES = 96,
	STEP_US = 20,
	BOTTOM_US = 50000,
};

static NOINLINE void work(long us)
{
	clock_t end = clock() + us * (CLOCKS_PER_SEC / 1000000);

	while (clock() < end)
		for (volatile int i = 0; i < 500; i++)
			;
}

static NOINLINE void down(int frames, long step_us, long bottom_us)
{
	volatile char bytes[FRAME_BYTES];

	bytes[0] = (char)frames;
	if (step_us > 0)
		work(step_us);
	if (frames > 1)
		down(frames - 1, step_us, bottom_us);
	else
		work(bottom_us);
	OPAQUE(bytes);
}

static NOINLINE void slow_way(void)
{
	down(FRAMES, STEP_US, BOTTOM_US);
	OPAQUE(NULL);
}

static NOINLINE void fast_way(long us)
{
	down(FRAMES, 0, us);
	OPAQUE(NULL);
}

int main(int argc, char **argv)
{
	slow_way();
	fast_way((long)((argc > 1 ? atof(argv[1]) : 1) * 1e6));
	return 0;
}
