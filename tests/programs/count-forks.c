/* SPDX-License-Identifier: MIT */
/*
 * Forks of a process with threads: `count-forks FORKS [threads|raw]`. One thread calls
 * work() 200 times and ends; another calls it 20 times and stays while two threads fork
 * FORKS times each. Each child calls it 3 times, and once in a handler of
 * pthread_atfork(3). With `threads`, a thread of each child makes 5 more calls; with
 * `raw`, children are made by the system call itself. Prints the total number of calls of
 * work().
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_barrier_t stays, leaves;
static unsigned long forks;
static int with_threads, raw;

void work(void);

__attribute__((noinline)) void work(void)
{
	for (volatile int i = 0; i < 100; i++)
		;
}

static void *work_often(void *times)
{
	for (long i = 0; i < (long)times; i++)
		work();
	return NULL;
}

static void *work_and_stay(void *times)
{
	work_often(times);
	pthread_barrier_wait(&stays);
	pthread_barrier_wait(&leaves);
	return NULL;
}

static void run_thread(void *(*what)(void *), long times)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, what, (void *)times) != 0)
		exit(1);
	pthread_join(thread, NULL);
}

static void *fork_often(void *unused)
{
	for (unsigned long i = 0; i < forks; i++) {
		pid_t pid = raw ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
		int status;

		if (pid == 0) {
			work_often((void *)3);
			if (with_threads)
				run_thread(work_often, 5);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			exit(1);
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	unsigned long each;

	forks = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
	with_threads = argc > 2 && strcmp(argv[2], "threads") == 0;
	raw = argc > 2 && strcmp(argv[2], "raw") == 0;
	each = 3 + (raw ? 0 : 1) + (with_threads ? 5 : 0);
	pthread_barrier_init(&stays, NULL, 2);
	pthread_barrier_init(&leaves, NULL, 2);
	pthread_atfork(NULL, NULL, work);
	run_thread(work_often, 200);
	if (pthread_create(&thread, NULL, work_and_stay, (void *)20) != 0)
		return 1;
	pthread_barrier_wait(&stays);
	fork_often(NULL);
	run_thread(fork_often, 0);
	pthread_barrier_wait(&leaves);
	pthread_join(thread, NULL);
	printf("work: %lu 0\n", 220 + 2 * forks * each);
	return 0;
}
