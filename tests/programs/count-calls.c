/* SPDX-License-Identifier: MIT */
/*
 * Functions whose number of calls is known: `count-calls [MANY [crash|wait]]` calls, from
 * each of 4 threads, one function once, one 1000 times and one MANY times (default 1000),
 * and others that are entered and left in all possible ways. Ends with status 7. With
 * `crash` it ends by SIGSEGV in the middle of crashing(); with `wait` it prints "ready"
 * and waits in waiting().
 */
#include "count.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	THREADS = 4,
	DEPTH = 6,
	JUMPS = 30,
	TAILS = 25,
	ODDS = 9,
	SIGNALS = 5,
	ALT_STACK_BYTES = 1 << 16,
};

static unsigned long many;
static volatile unsigned long sink; /* not a count, as threads race for it */
static __thread sigjmp_buf jump;

/* ---- plain ------------------------------------------------------------------------------ */

static WHOLE void called_once(void)
{
	sink += 1;
}

static WHOLE void called_thousand(void)
{
	sink += 2;
}

static WHOLE void called_many(void)
{
	sink += 3;
}

static WHOLE void never_called(void)
{
	sink += 4;
}

/* ---- recursion, jumps, tail calls ---------------------------------------------------------- */

/* Calls itself twice: 2^(depth + 1) - 1 calls, of which all but one are nested. */
static WHOLE unsigned long recursive(unsigned int depth)
{
	if (depth == 0)
		return 1;
	return recursive(depth - 1) + recursive(depth - 1) + sink % 2;
}

/* Its callee also jumps over it. */
static WHOLE void jumps_out(unsigned int i)
{
	sink += i;
	if (i % 3 == 0)
		longjmp(jump, 1);
	sink += i;
}

static WHOLE void jumped_over(unsigned int i)
{
	jumps_out(i);
	sink += i;
}

static WHOLE void jumps(void)
{
	for (volatile unsigned int i = 0; i < JUMPS; i = i + 1)
		if (setjmp(jump) == 0)
			jumped_over(i);
}

static WHOLE unsigned long tail_end(unsigned long value)
{
	sink += value;
	return value + 1;
}

static WHOLE unsigned long tail_begin(unsigned long value)
{
	sink += value;
	return tail_end(value + 1);
}

static unsigned long is_odd(unsigned int n);

static WHOLE unsigned long is_even(unsigned int n)
{
	return n == 0 ? 1 : is_odd(n - 1);
}

static WHOLE unsigned long is_odd(unsigned int n)
{
	return n == 0 ? 0 : is_even(n - 1);
}

/* ---- signals -------------------------------------------------------------------------------- */

static WHOLE void in_handler(void)
{
	sink += 5;
}

static void handler(int signo)
{
	in_handler();
	sink += (unsigned long)signo;
}

static WHOLE void interrupted(void)
{
	raise(SIGUSR1);
	sink += 6;
}

static void with_other_stack(void)
{
	stack_t stack = { .ss_sp = malloc(ALT_STACK_BYTES), .ss_size = ALT_STACK_BYTES };
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };

	if (!stack.ss_sp || sigaltstack(&stack, NULL) < 0 ||
	    sigaction(SIGUSR1, &action, NULL) < 0)
		exit(1);
	for (int i = 0; i < SIGNALS; i++)
		interrupted();
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
	free(stack.ss_sp);
}

/* ---- termination inside functions ----------------------------------------------------------- */

static WHOLE void crashing(volatile int *nowhere)
{
	called_once();
	*nowhere = 1;
}

static WHOLE void waiting(void)
{
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}

static void *work(void *arg)
{
	called_once();
	for (int i = 0; i < 1000; i++)
		called_thousand();
	for (unsigned long i = 0; i < many; i++)
		called_many();
	recursive(DEPTH);
	jumps();
	for (int i = 0; i < TAILS; i++)
		tail_begin(sink);
	return arg;
}

static void tell_truth(void)
{
	unsigned long all = (2UL << DEPTH) - 1;

	truth("called_once", THREADS, 0);
	truth("called_thousand", THREADS * 1000UL, 0);
	truth("called_many", THREADS * many, 0);
	truth("recursive", THREADS * all, 0);
	truth("jumps_out", THREADS * JUMPS, THREADS * ((JUMPS + 2) / 3));
	truth("jumped_over", THREADS * JUMPS, THREADS * ((JUMPS + 2) / 3));
	truth("tail_begin", THREADS * TAILS, 0);
	truth("tail_end", THREADS * TAILS, 0);
	truth("is_even", (ODDS + 1) / 2, 0);
	truth("is_odd", (ODDS + 2) / 2, 0);
	truth("in_handler", SIGNALS, 0);
	truth("interrupted", SIGNALS, 0);
	truth("never_called", 0, 0);
}

int main(int argc, char **argv)
{
	const char *end = argc > 2 ? argv[2] : "";
	pthread_t threads[THREADS];

	many = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	if (strcmp(end, "wait") == 0)
		waiting();
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL) != 0)
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	is_odd(ODDS);
	with_other_stack();
	if (strcmp(end, "crash") == 0)
		crashing(NULL);
	if (strcmp(end, "never") == 0)
		never_called();
	tell_truth();
	return 7;
}
