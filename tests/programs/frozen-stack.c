/* SPDX-License-Identifier: MIT */
/*
 * frozen-stack FILE SECONDS: runs on a stack that is a mapping of FILE, whose pages above
 * the first frame have not been touched. It stops itself (SIGSTOP), so that the server of
 * the file can be stopped, too, and then spends its CPU time in bottom(), below more
 * frames than a copy of the stack holds.
 */
#include <alloca.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#define NOINLINE __attribute__((noinline))

enum {
	STACK_BYTES = 1 << 20,
	FRAME_BYTES = 1024,
	FRAMES = 64,
};

static double seconds;
static ucontext_t before;

static NOINLINE void bottom(void)
{
	clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);

	while (clock() < end)
		for (volatile int i = 0; i < 500; i++)
			;
}

static NOINLINE void go_down(int level)
{
	char *room = alloca(FRAME_BYTES);

	memset(room, 1, FRAME_BYTES);
	__asm__ volatile("" : : "r"(room) : "memory");
	if (level < FRAMES) {
		go_down(level + 1);
	} else {
		raise(SIGSTOP);
		bottom();
	}
	__asm__ volatile("" : : "r"(room) : "memory");
}

static void start(void)
{
	go_down(1);
}

int main(int argc, char **argv)
{
	int fd = argc > 2 ? open(argv[1], O_RDONLY) : -1;
	char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	ucontext_t context;

	if (fd < 0 || stack == MAP_FAILED || getcontext(&context) < 0)
		return 2;
	seconds = atof(argv[2]);
	/* Touching a page must not read others ahead. */
	madvise(stack, STACK_BYTES, MADV_RANDOM);
	context.uc_stack.ss_sp = stack;
	context.uc_stack.ss_size = STACK_BYTES / 2;
	context.uc_link = &before;
	makecontext(&context, start, 0);
	return swapcontext(&before, &context) < 0;
}
