/* SPDX-License-Identifier: MIT */
/*
 * Threads that end in the middle of a function: by pthread_cancel(3) and pthread_exit(3),
 * which unwind their stacks by force through cleanup handlers.
 */
#include "unwind-burn.h"

#include <pthread.h>
#include <unistd.h>

static volatile uint64_t sink;

static void clean_up(void *arg)
{
	sink = burn_steps(sink + (uint64_t)(arg != NULL), 2);
}

static NOINLINE void ends(void *arg)
{
	pthread_cleanup_push(clean_up, arg);
	sink = burn_steps(sink, 2);
	pthread_exit(arg);
	pthread_cleanup_pop(0);
}

static void *exits(void *arg)
{
	pthread_cleanup_push(clean_up, NULL);
	ends(arg);
	pthread_cleanup_pop(0);
	return arg;
}

static NOINLINE void cancels(void *arg)
{
	pthread_cleanup_push(clean_up, arg);
	pthread_cancel(pthread_self());
	pthread_testcancel();
	pthread_cleanup_pop(0);
}

static void *canceled(void *arg)
{
	pthread_cleanup_push(clean_up, NULL);
	cancels(arg);
	pthread_cleanup_pop(0);
	return arg;
}

/* The cancellation's signal interrupts it at once. */
static void *canceled_anywhere(void *arg)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	pthread_cancel(pthread_self());
	for (;;)
		sink = burn_steps(sink, 2);
	return arg;
}

static NOINLINE void run(void *(*function)(void *))
{
	pthread_t thread;
	void *result;

	if (pthread_create(&thread, NULL, function, NULL) == 0)
		pthread_join(thread, &result);
}

int main(int argc, char **argv)
{
	clock_t end = burn_until(argc, argv);

	do {
		/* The first one loads libgcc_s, which takes long. */
		burn_skip();
		run(exits);
		burn_skip();
		run(exits);
		run(canceled);
		run(canceled_anywhere);
	} while (argc <= 2 && clock() < end);
	return sink == 0;
}
