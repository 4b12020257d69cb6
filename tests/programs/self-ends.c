/* SPDX-License-Identifier: MIT */
/*
 * Programs whose threads all end by pthread_exit(3), and none by exit(3): `self-ends
 * WAY`, profiled from its first to its last moment. Its output is still in stdio's buffer
 * at that point, and a handler of atexit(3) prints one more word.
 *
 *   all      two threads work a little and end, as does main()
 *   stays    main() ends; a thread waits for a signal
 *   blocks   as stays, but the thread blocks SIGTERM, sends it, and ends
 *   stops    main() ends; a thread ends the profile and then itself
 *   forks    a child does what `all` does; after its success its parent does the same
 *
 * Built with -DPLAIN it does not use the library.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef PLAIN
#define perf_start() 0
#define perf_stop()  0
#else
#include <pmself.h>
#endif

static void print_last(void)
{
	printf(" handled");
}

static void *work(void *unused)
{
	for (volatile int i = 0; i < 20000000; i++)
		;
	pthread_exit(unused);
}

static void *stay(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void *block(void *unused)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	usleep(100000);
	kill(getpid(), SIGTERM);
	return unused;
}

static void *stop(void *unused)
{
	usleep(100000);
	if (perf_stop() < 0)
		_exit(1);
	return unused;
}

static void start(void *(*what)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, what, NULL) != 0)
		_exit(1);
}

static void fork_one(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		start(work);
		printf(" child");
		pthread_exit(NULL);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		_exit(1);
	start(work);
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "all";

	if (perf_start() < 0 || atexit(print_last) != 0)
		return 1;
	if (strcmp(way, "stays") == 0) {
		start(stay);
		puts("ready");
		fflush(stdout);
	} else if (strcmp(way, "blocks") == 0) {
		sigset_t set;

		sigemptyset(&set);
		sigaddset(&set, SIGTERM);
		pthread_sigmask(SIG_BLOCK, &set, NULL);
		start(block);
	} else if (strcmp(way, "stops") == 0) {
		start(stop);
	} else if (strcmp(way, "forks") == 0) {
		fork_one();
	} else {
		start(work);
		start(work);
	}
	printf("flushed");
	pthread_exit(NULL);
}
