/* SPDX-License-Identifier: MIT */
/*
 * odd-life KIND [ARGUMENT]: a program that does something unusual, and then uses 0.3 s of
 * CPU time in odd_life().
 *
 *   close         closes all its files
 *   comm          has a name of control characters
 *   unlink        removes its own file
 *   chroot DIR    loses access to other files
 *   exec N        executes itself N times, each with some milliseconds of CPU time
 *   libraries N   loads all the libraries that follow, and then has N threads that all
 *                 run odd_life() at once
 *   reuse A B     runs A; then B, with the pid that A had. Needs a PID namespace whose
 *                 ns_last_pid it may write. Prints only the pid.
 */
#include "work.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	FILES_MAX = 1024,
	REUSE_TRIES = 100,
};

static pthread_barrier_t all_there;

static double thread_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

NOINLINE static void odd_life(double seconds)
{
	double end = thread_seconds() + seconds;

	while (thread_seconds() < end)
		work(100);
}

static int executes(char **argv)
{
	int left = atoi(argv[2]);
	char name[16], next[16];

	snprintf(name, sizeof(name), "stage-%d", left);
	prctl(PR_SET_NAME, name);
	odd_life(0.004);
	if (left == 0)
		return 0;
	snprintf(next, sizeof(next), "%d", left - 1);
	argv[2] = next;
	execv("/proc/self/exe", argv);
	return 1;
}

static void *one_of_many(void *unused)
{
	(void)unused;
	pthread_barrier_wait(&all_there);
	odd_life(0.02);
	return NULL;
}

static int libraries(unsigned int threads, char **paths)
{
	pthread_t *ids = calloc(threads, sizeof(*ids));

	pthread_barrier_init(&all_there, NULL, threads);
	for (; *paths; paths++)
		if (!dlopen(*paths, RTLD_NOW))
			return 1;
	for (unsigned int i = 0; i < threads; i++)
		if (!ids || pthread_create(&ids[i], NULL, one_of_many, NULL) != 0)
			return 1;
	for (unsigned int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	free(ids);
	return 0;
}

static pid_t run(char *path)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl(path, path, "0.3", (char *)NULL);
		_exit(1);
	}
	return pid;
}

/* 0: the next process will get the pid. */
static int ask_for(pid_t pid)
{
	FILE *file = fopen("/proc/sys/kernel/ns_last_pid", "we");

	if (!file)
		return -1;
	fprintf(file, "%d", (int)pid - 1);
	return fclose(file);
}

static int reuse(char *first, char *second)
{
	pid_t wanted = run(first);

	waitpid(wanted, NULL, 0);
	/* Another process may be faster. */
	for (int i = 0; i < REUSE_TRIES; i++) {
		pid_t pid = ask_for(wanted) == 0 ? fork() : -1;

		if (pid < 0)
			return 1;
		if (pid == 0 && getpid() == wanted)
			execl(second, second, "0.3", (char *)NULL);
		if (pid == 0)
			_exit(1);
		waitpid(pid, NULL, 0);
		if (pid != wanted)
			continue;
		printf("%d\n", (int)pid);
		return 0;
	}
	return 1;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";

	if (strcmp(kind, "exec") == 0 && argc == 3)
		return executes(argv);
	if (strcmp(kind, "libraries") == 0 && argc > 2)
		return libraries((unsigned int)atoi(argv[2]), argv + 3);
	if (strcmp(kind, "reuse") == 0 && argc == 4)
		return reuse(argv[2], argv[3]);
	if (strcmp(kind, "close") == 0) {
		for (int fd = 0; fd < FILES_MAX; fd++)
			close(fd);
	} else if (strcmp(kind, "comm") == 0) {
		prctl(PR_SET_NAME, "\x1b[31m\n\r\t\x7f\xff");
	} else if (strcmp(kind, "unlink") == 0) {
		if (unlink(argv[0]) != 0)
			return 1;
	} else if (strcmp(kind, "chroot") == 0 && argc == 3) {
		if (chroot(argv[2]) != 0 || chdir("/") != 0)
			return 1;
	} else {
		return 2;
	}
	odd_life(0.3);
	return 0;
}
