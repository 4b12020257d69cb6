/* SPDX-License-Identifier: MIT */
/*
 * storm KIND COUNT MICROSECONDS: COUNT tasks, each of which burns MICROSECONDS of CPU
 * time in burn().
 *
 *   threads    one after the other
 *   crowd      threads, all at once
 *   churn      threads, eight at a time
 *   processes  one after the other
 *   tree       processes, each of which starts half of the remaining ones, and waits
 *
 * Prints the CPU time in ns that the kernel accounts for all of them (getrusage), and how
 * often others preempted them.
 */
#include "work.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	AT_A_TIME = 8,
	STACK_BYTES = 1 << 16,
};

static unsigned long long task_ns;
static pthread_barrier_t all_there;

static unsigned long long thread_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (unsigned long long)now.tv_sec * 1000000000u +
	       (unsigned long long)now.tv_nsec;
}

NOINLINE static void burn(void)
{
	unsigned long long begin = thread_ns();

	while (thread_ns() - begin < task_ns)
		work(1);
}

static void *run(void *crowd)
{
	if (crowd)
		pthread_barrier_wait(&all_there);
	burn();
	return NULL;
}

static int start(pthread_t *thread, void *crowd)
{
	pthread_attr_t attr;
	int ret;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	ret = pthread_create(thread, &attr, run, crowd);
	pthread_attr_destroy(&attr);
	return ret;
}

static int threads(unsigned int count, unsigned int at_a_time, void *crowd)
{
	pthread_t *threads = calloc(at_a_time, sizeof(*threads));
	int ret = threads ? 0 : 1;

	for (unsigned int i = 0; i < count + at_a_time && ret == 0; i++) {
		pthread_t *slot = &threads[i % at_a_time];

		if (i >= at_a_time)
			pthread_join(*slot, NULL);
		if (i < count)
			ret = start(slot, crowd);
	}
	free(threads);
	return ret;
}

static int processes(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (pid == 0) {
			burn();
			_exit(0);
		}
		if (waitpid(pid, NULL, 0) != pid)
			return 1;
	}
	return 0;
}

/* @count processes, including this one. */
static int tree(unsigned int count)
{
	unsigned int rest = count - 1;
	int ret = 0, children = 0;

	while (rest > 0) {
		unsigned int half = (rest + 1) / 2;
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (pid == 0)
			_exit(tree(half));
		children++;
		rest -= half;
	}
	burn();
	while (children-- > 0) {
		int status;

		if (wait(&status) < 0 || status != 0)
			ret = 1;
	}
	return ret;
}

static unsigned long long used_ns(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return 1000000000ull * (unsigned long long)(usage.ru_utime.tv_sec +
						    usage.ru_stime.tv_sec) +
	       1000ull * (unsigned long long)(usage.ru_utime.tv_usec +
					      usage.ru_stime.tv_usec);
}

static long preemptions(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return usage.ru_nivcsw;
}

int main(int argc, char **argv)
{
	unsigned int count = argc == 4 ? (unsigned int)atoi(argv[2]) : 0;
	int ret = 2;

	if (count == 0)
		return ret;
	task_ns = 1000ull * (unsigned long long)atoll(argv[3]);
	pthread_barrier_init(&all_there, NULL, count);
	if (strcmp(argv[1], "threads") == 0)
		ret = threads(count, 1, NULL);
	else if (strcmp(argv[1], "churn") == 0)
		ret = threads(count, count < AT_A_TIME ? count : AT_A_TIME, NULL);
	else if (strcmp(argv[1], "crowd") == 0)
		ret = threads(count, count, argv);
	else if (strcmp(argv[1], "processes") == 0)
		ret = processes(count);
	else if (strcmp(argv[1], "tree") == 0)
		ret = tree(count);
	printf("%llu %ld\n", used_ns(RUSAGE_SELF) + used_ns(RUSAGE_CHILDREN),
	       preemptions(RUSAGE_SELF) + preemptions(RUSAGE_CHILDREN));
	return ret;
}
