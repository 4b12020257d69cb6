/* SPDX-License-Identifier: MIT */
/*
 * off-cpu [THREADS [SECONDS_BEFORE]]: each thread sleeps 0.3 s in doze(), waits 0.5 s for
 * a lock in await_lock(), and burns 0.2 s of CPU time in burn(). Prints a line for each
 * of the three: the name, and the nanoseconds of real time that all threads together
 * spent there (burn: CPU time). Before that, the first thread waits in prelude(), which
 * allows attaching: for SECONDS_BEFORE, or, if that is "-", for a byte on standard input.
 */
#include "work.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	THREADS_MAX = 256,
};

static atomic_ullong dozed, waited, burned;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t taken;

static unsigned long long now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (unsigned long long)now.tv_sec * 1000000000u +
	       (unsigned long long)now.tv_nsec;
}

static void sleep_ms(long ms)
{
	struct timespec left = { ms / 1000, ms % 1000 * 1000000 };

	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		continue;
}

NOINLINE static void doze(void)
{
	unsigned long long begin = now_ns(CLOCK_MONOTONIC);

	sleep_ms(300);
	dozed += now_ns(CLOCK_MONOTONIC) - begin;
}

NOINLINE static void await_lock(void)
{
	unsigned long long begin = now_ns(CLOCK_MONOTONIC);

	pthread_mutex_lock(&lock);
	waited += now_ns(CLOCK_MONOTONIC) - begin;
	pthread_mutex_unlock(&lock);
}

NOINLINE static void burn(void)
{
	unsigned long long begin = now_ns(CLOCK_THREAD_CPUTIME_ID), now;

	do {
		work(1000);
		now = now_ns(CLOCK_THREAD_CPUTIME_ID);
	} while (now - begin < 200000000);
	burned += now - begin;
}

NOINLINE static void prelude(const char *seconds)
{
	char byte;

	if (strcmp(seconds, "-") != 0)
		sleep_ms(atol(seconds) * 1000);
	else if (read(STDIN_FILENO, &byte, 1) != 1)
		exit(3);
}

static void *run(void *unused)
{
	(void)unused;
	doze();
	pthread_barrier_wait(&taken);
	await_lock();
	burn();
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned int count = argc > 1 ? (unsigned int)atoi(argv[1]) : 1;
	pthread_t threads[THREADS_MAX];

	if (count > THREADS_MAX)
		return 2;
	prelude(argc > 2 ? argv[2] : "0");
	pthread_barrier_init(&taken, NULL, count + 1);
	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, run, NULL) != 0)
			return 1;
	pthread_barrier_wait(&taken);
	sleep_ms(500);
	pthread_mutex_unlock(&lock);
	for (unsigned int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	printf("doze %llu\nawait_lock %llu\nburn %llu\n", dozed, waited, burned);
	return 0;
}
