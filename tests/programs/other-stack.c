/* SPDX-License-Identifier: MIT */
/*
 * Spends half of its CPU time in a signal handler, which has a stack of its own
 * (sigaltstack(2)), and half of that in a handler that interrupts the handler.
 */
#include "unwind-burn.h"

enum {
	STACK_BYTES = 1 << 18,
};

static volatile uint64_t sink;

static NOINLINE void inner_handler(int signo)
{
	sink = burn_steps(sink + (uint64_t)signo, 20000);
}

static NOINLINE void outer_handler(int signo)
{
	sink = burn_steps(sink + (uint64_t)signo, 20000);
	raise(SIGUSR2);
	sink++;
}

static NOINLINE void interrupted(void)
{
	sink = burn_steps(sink, 40000);
	raise(SIGUSR1);
	sink++;
}

static void install(int signo, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };

	if (sigaction(signo, &action, NULL) != 0)
		exit(1);
}

int main(int argc, char **argv)
{
	clock_t end = burn_until(argc, argv);
	stack_t stack = { .ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES };

	if (!stack.ss_sp || sigaltstack(&stack, NULL) != 0)
		return 1;
	install(SIGUSR1, outer_handler);
	install(SIGUSR2, inner_handler);
	while (clock() < end)
		interrupted();
	return sink == 0;
}
