/* SPDX-License-Identifier: MIT */
/*
 * Work inside signal handlers: on the thread's own stack; on a sigaltstack below the
 * interrupted frames in the same mapping, so that one copy of the stack has both; and on
 * a sigaltstack in memory far away, so that no copy has both.
 */
#include "unwind-burn.h"

#include <signal.h>
#include <unistd.h>

enum {
	STACK_BYTES = 24576,
};

static volatile uint64_t sink;

static NOINLINE void in_handler(unsigned int steps)
{
	sink = burn_steps(sink + 1, steps);
}

static void handler(int signo)
{
	in_handler(signo == SIGUSR1 ? 30000 : 60000);
}

static NOINLINE void interrupted(int signo)
{
	kill(getpid(), signo);
	sink = burn_steps(sink + 1, 1000);
}

/* A fault interrupts at an instruction, not after a call: pc - 1 would be wrong there. */
#if defined(__x86_64__)
static NOINLINE __attribute__((naked)) void trap(void)
{
	__asm__ volatile(".byte 0x0f, 0x0b\n\tret");
}
#elif defined(__aarch64__)
static NOINLINE __attribute__((naked)) void trap(void)
{
	__asm__ volatile("udf #0\n\tret");
}
#endif

static void on_trap(int signo, siginfo_t *info, void *context)
{
	ucontext_t *ucontext = context;

	in_handler(30000);
#if defined(__x86_64__)
	ucontext->uc_mcontext.gregs[REG_RIP] += 2;
#elif defined(__aarch64__)
	ucontext->uc_mcontext.pc += 4;
#endif
}

static void install(int signo, int flags)
{
	struct sigaction action = { .sa_flags = flags };

	if (flags & SA_SIGINFO)
		action.sa_sigaction = on_trap;
	else
		action.sa_handler = handler;
	sigaction(signo, &action, NULL);
}

int main(int argc, char **argv)
{
	clock_t end = burn_until(argc, argv);
	static uint8_t away[STACK_BYTES];
	/* Deeper than anything else here goes; a stack grows when it is touched. */
	uint8_t *below = (uint8_t *)__builtin_frame_address(0) - 2 * STACK_BYTES;
	stack_t stack = { .ss_size = STACK_BYTES };

	OPAQUE(below);
	for (size_t i = 0; i + 1024 < 2 * STACK_BYTES; i += 1024)
		below[i] = 1;
	install(SIGUSR1, 0);
	install(SIGUSR2, SA_ONSTACK);
	install(SIGILL, SA_SIGINFO);
	for (unsigned int i = 0; clock() < end; i++) {
		stack.ss_sp = i % 8 ? below : away;
		sigaltstack(&stack, NULL);
		interrupted(SIGUSR1);
		interrupted(SIGUSR2);
		trap();
	}
	return sink == 0;
}
