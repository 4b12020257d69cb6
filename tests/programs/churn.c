/* SPDX-License-Identifier: MIT */
/*
 * churn WHAT SECONDS …: for SECONDS, does as fast as it can things that must not fill the
 * memory of a recorder.
 *
 *   churn rename SECONDS   four threads that change their names all the time
 *   churn fork SECONDS     children that end at once, every tenth with a sample or two
 *   churn deep SECONDS     stacks of 300 calls, different each time
 *   churn load SECONDS LIBRARY DIR
 *                          loads ever new copies of LIBRARY, made in DIR, and works in each
 *
 * The last line has the number of times: "renamed N", "forked N", "called N", "loaded N".
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

enum {
	THREADS = 4,
	DEPTH = 300,
	CHILDREN = 8, /* at a time */
	RENAMES_A_ROUND = 64,
};

static double until;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void *rename_thread(void *arg)
{
	unsigned long *renamed = arg;

	while (now() < until)
		for (int i = 0; i < RENAMES_A_ROUND; i++) {
			char name[16];

			snprintf(name, sizeof(name), "name-%lu", ++*renamed % 1000000);
			prctl(PR_SET_NAME, name);
		}
	return NULL;
}

static int rename_all(void)
{
	pthread_t threads[THREADS];
	unsigned long renamed[THREADS] = { 0 }, all = 0;

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, rename_thread, &renamed[i]) != 0)
			return 1;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		all += renamed[i];
	}
	printf("renamed %lu\n", all);
	return 0;
}

static int fork_all(void)
{
	unsigned long forked = 0;
	int alive = 0;

	while (now() < until) {
		pid_t pid = fork();

		if (pid == 0) {
			if (forked % 10 == 0)
				work(4096);
			_exit(0);
		}
		forked += pid > 0;
		alive += pid > 0;
		if (alive >= CHILDREN || pid < 0)
			alive -= wait(NULL) > 0;
	}
	while (wait(NULL) > 0)
		continue;
	printf("forked %lu\n", forked);
	return 0;
}

/* Each calls one of the two, chosen by a simple random number. */
static NOINLINE unsigned int left(uint32_t *state, int depth);
static NOINLINE unsigned int right(uint32_t *state, int depth);

static unsigned int deeper(uint32_t *state, int depth)
{
	*state = *state * 1103515245u + 12345u;
	if (depth == 0) {
		work(64);
		return 0;
	}
	return *state >> 30 & 1 ? left(state, depth - 1) : right(state, depth - 1);
}

static NOINLINE unsigned int left(uint32_t *state, int depth)
{
	return deeper(state, depth) + 1;
}

static NOINLINE unsigned int right(uint32_t *state, int depth)
{
	return deeper(state, depth) + 2;
}

static int call_deep(void)
{
	uint32_t state = (uint32_t)getpid();
	unsigned long called = 0;
	unsigned int sum = 0;

	while (now() < until) {
		sum += deeper(&state, DEPTH);
		called++;
	}
	printf("called %lu%s\n", called, sum == 0 ? "!" : "");
	return 0;
}

static int copy_file(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	struct stat st;
	int failed = in < 0 || out < 0 || fstat(in, &st) < 0;

	while (!failed && st.st_size > 0) {
		ssize_t n = sendfile(out, in, NULL, (size_t)st.st_size);

		failed = n <= 0;
		st.st_size -= n;
	}
	close(in);
	close(out);
	return failed;
}

static int load_all(const char *library, const char *dir)
{
	unsigned long loaded = 0;

	while (now() < until) {
		void (*spend)(double);
		void *handle, *symbol;
		char path[4096];

		snprintf(path, sizeof(path), "%s/copy-%d-%lu.so", dir, (int)getpid(),
			 loaded);
		if (copy_file(library, path) != 0) {
			perror(path);
			return 1;
		}
		handle = dlopen(path, RTLD_NOW);
		unlink(path);
		symbol = handle ? dlsym(handle, "spend") : NULL;
		if (!symbol) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		memcpy(&spend, &symbol, sizeof(spend));
		spend(0.001);
		dlclose(handle);
		loaded++;
	}
	printf("loaded %lu\n", loaded);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	until = now() + atof(argv[2]);
	if (strcmp(argv[1], "rename") == 0)
		return rename_all();
	if (strcmp(argv[1], "fork") == 0)
		return fork_all();
	if (strcmp(argv[1], "deep") == 0)
		return call_deep();
	if (strcmp(argv[1], "load") == 0 && argc == 5)
		return load_all(argv[3], argv[4]);
	return 2;
}
