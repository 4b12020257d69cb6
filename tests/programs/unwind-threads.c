/* SPDX-License-Identifier: MIT */
/*
 * The other roots: a thread (clone3), a ucontext coroutine on a stack from malloc, and the
 * vDSO as the leaf.
 */
#include "unwind-burn.h"

#include <pthread.h>
#include <ucontext.h>

enum {
	STACK_BYTES = 65536,
};

static clock_t end;
static ucontext_t main_context;
static ucontext_t coroutine_context;
static volatile uint64_t sink;

static NOINLINE void coroutine_work(void)
{
	sink = burn_steps(sink + 1, 20000);
}

static void coroutine(void)
{
	for (;;) {
		coroutine_work();
		swapcontext(&coroutine_context, &main_context);
	}
}

static NOINLINE uint64_t read_clock(void)
{
	struct timespec now;
	uint64_t sum = 0;

	for (unsigned int i = 0; i < 1000; i++) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		sum += (uint64_t)now.tv_nsec;
	}
	return sum;
}

static void *thread(void *arg)
{
	while (clock() < end)
		sink = read_clock() + burn_steps(sink, 20000);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t other;
	void *stack = malloc(STACK_BYTES);

	end = burn_until(argc, argv);
	if (!stack || pthread_create(&other, NULL, thread, NULL) != 0)
		return 1;
	getcontext(&coroutine_context);
	coroutine_context.uc_stack.ss_sp = stack;
	coroutine_context.uc_stack.ss_size = STACK_BYTES;
	makecontext(&coroutine_context, coroutine, 0);
	while (clock() < end)
		swapcontext(&main_context, &coroutine_context);
	pthread_join(other, NULL);
	free(stack);
	return sink == 0;
}
