/* SPDX-License-Identifier: MIT */
/* setjmp(3) and longjmp(3): over frames, out of handlers, and back from another stack. */
#include "unwind-burn.h"

#include <setjmp.h>
#include <signal.h>

static jmp_buf plain;
static sigjmp_buf with_mask;
static volatile uint64_t sink;

static NOINLINE void jump_from(unsigned int depth)
{
	if (depth > 0)
		jump_from(depth - 1);
	else if (sink != ~0UL)
		longjmp(plain, 1);
	sink++;
}

static NOINLINE uint64_t over_frames(unsigned int depth)
{
	volatile uint64_t count = 0;

	if (setjmp(plain) == 0)
		jump_from(depth);
	count = count + 1;
	return count + burn_steps(sink, 2);
}

static NOINLINE void twice_at_one_place(void)
{
	volatile int count = 0;

	if (setjmp(plain) < 3)
		longjmp(plain, ++count);
	sink = burn_steps(sink, 2);
}

static void handler(int signo)
{
	sink = burn_steps(sink + (uint64_t)signo, 2);
	siglongjmp(with_mask, signo);
}

static NOINLINE void out_of_handler(int signo)
{
	if (sigsetjmp(with_mask, 1) == 0) {
		raise(signo);
		sink++;
	}
	sink = burn_steps(sink, 2);
}

static NOINLINE void jumps_by_builtin(void **buffer)
{
	sink = burn_steps(sink, 2);
	__builtin_longjmp(buffer, 1);
}

static NOINLINE void by_compiler(void)
{
	static void *buffer[5];

	if (__builtin_setjmp(buffer) == 0)
		jumps_by_builtin(buffer);
	sink = burn_steps(sink, 2);
}

int main(int argc, char **argv)
{
	clock_t end = burn_until(argc, argv);
	static uint8_t away[65536];
	stack_t stack = { .ss_size = sizeof(away), .ss_sp = away };
	struct sigaction action = { .sa_handler = handler };

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR2, &action, NULL);
	do {
		sink += over_frames(0) + over_frames(5);
		twice_at_one_place();
		out_of_handler(SIGUSR1);
		out_of_handler(SIGUSR2);
		by_compiler();
	} while (argc <= 2 && clock() < end);
	return sink == 0;
}
