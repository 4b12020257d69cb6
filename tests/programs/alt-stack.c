/* SPDX-License-Identifier: MIT */
/*
 * alt-stack MS MODE: for MS milliseconds of CPU time, threads are interrupted by handlers
 * on stacks of their own (sigaltstack(2)). It is known which of two callers was
 * interrupted: called_by_a() is interrupted only by handle_a() and called_by_b() only by
 * handle_b(); loop() has the same stack pointer below both. MODE is one of
 *   timer     SIGALRM arrives early in loop(), its handler takes most of the time
 *   nested    the same, and handlers are interrupted by nested_handler() on the same stack
 *   threads   two threads, each with its own stack for handlers
 *   overflow  a recursion runs into the guard page: SIGSEGV, and siglongjmp(3) out of the handler
 *   jump      siglongjmp(3) out of the handler of SIGALRM, into the other caller
 */
#include "unwind-burn.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum {
	STACK_BYTES = 1 << 18,
	THREAD_STACK_BYTES = 1 << 18,
	HANDLER_STEPS = 10000000,
	LOOP_STEPS = 1000,
	TIMER_NS = 50 * 1000,
	THREADS = 2,
};

static volatile uint64_t sink;
static bool is_nested, is_jumping, is_overflowing;
static clock_t end;
static __thread volatile char current;
static __thread sigjmp_buf out;
static __thread timer_t timer;
static __thread volatile bool is_handled;

static NOINLINE void nested_handler(int signo)
{
	sink = burn_steps(sink + (uint64_t)signo, HANDLER_STEPS / 2);
}

static NOINLINE void handle_a(void)
{
	sink = burn_steps(sink, HANDLER_STEPS);
	if (is_nested)
		raise(SIGUSR2);
	sink++;
}

static NOINLINE void handle_b(void)
{
	sink = burn_steps(sink + 1, HANDLER_STEPS);
	if (is_nested)
		raise(SIGUSR2);
	sink++;
}

static void on_signal(int signo)
{
	(void)signo;
	is_handled = true;
	if (current == 'a')
		handle_a();
	else if (current == 'b')
		handle_b();
	if (is_jumping || is_overflowing)
		siglongjmp(out, 1);
}

/* Runs until a signal arrives. */
static NOINLINE uint64_t loop(uint64_t x)
{
	struct itimerspec soon = { .it_value = { .tv_nsec = TIMER_NS } };

	is_handled = false;
	timer_settime(timer, 0, &soon, NULL);
	while (!is_handled)
		x = burn_steps(x, LOOP_STEPS);
	return x;
}

static NOINLINE uint64_t recurse(uint64_t x, const volatile char *above)
{
	volatile char here[512];

	here[0] = (char)x;
	if (here == above)
		return x;
	return recurse(x, here) + (uint64_t)here[0];
}

static NOINLINE void called_by_a(void)
{
	current = 'a';
	sink += is_overflowing ? recurse(sink, NULL) : loop(sink);
	current = 0;
}

static NOINLINE void called_by_b(void)
{
	current = 'b';
	sink += is_overflowing ? recurse(sink, NULL) : loop(sink);
	current = 0;
}

static NOINLINE void repeat(void)
{
	volatile unsigned int round = 0;

	while (clock() < end) {
		if (sigsetjmp(out, 1) != 0) {
			current = 0;
			continue;
		}
		if (round++ % 2)
			called_by_a();
		else
			called_by_b();
	}
}

static void install(int signo, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };

	if (sigaction(signo, &action, NULL) != 0)
		exit(1);
}

static void *in_thread(void *unused)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = SIGALRM };
	stack_t stack = { .ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES };

	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	if (!stack.ss_sp || sigaltstack(&stack, NULL) != 0 ||
	    timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
		exit(1);
	repeat();
	timer_delete(timer);
	return unused;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[2] : "timer";
	size_t len = strcmp(mode, "threads") == 0 ? THREADS : 1;
	pthread_t threads[THREADS];
	pthread_attr_t attr;

	end = burn_until(2, argv);
	is_nested = strcmp(mode, "nested") == 0;
	is_jumping = strcmp(mode, "jump") == 0;
	is_overflowing = strcmp(mode, "overflow") == 0;
	install(SIGALRM, on_signal);
	install(SIGSEGV, on_signal);
	install(SIGUSR2, nested_handler);
	if (len == 1 && !is_overflowing) {
		in_thread(NULL);
		return sink == 0;
	}
	if (pthread_attr_init(&attr) != 0 ||
	    pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES) != 0)
		return 1;
	for (size_t i = 0; i < len; i++)
		if (pthread_create(&threads[i], &attr, in_thread, NULL) != 0)
			return 1;
	for (size_t i = 0; i < len; i++)
		pthread_join(threads[i], NULL);
	return sink == 0;
}
