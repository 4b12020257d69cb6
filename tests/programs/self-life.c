/* SPDX-License-Identifier: MIT */
/*
 * Things that a program may do around and during its profile: self-life MODE [NUMBER].
 * Prints `ok`, or what went wrong.
 */
#include <dirent.h>
#include <errno.h>
#include <pmself.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

enum {
	THREADS_MAX = 64,
	MALLOC_THREADS = 4,
	/* Of half of c's work: about a millisecond in total, a few ticks at 4000 Hz. */
	UNITS = 1000,
};

#define CHECK(what)                                                       \
	do {                                                              \
		if (!(what)) {                                            \
			printf("line %d: not so: %s\n", __LINE__, #what); \
			exit(1);                                          \
		}                                                         \
	} while (0)

static atomic_bool ended;

NOINLINE static void a(unsigned int units)
{
	work(10 * units);
	__asm__ volatile("");
}

NOINLINE static void b(unsigned int units)
{
	work(4 * units);
	__asm__ volatile("");
}

NOINLINE static void c(unsigned int units)
{
	work(2 * units);
	__asm__ volatile("");
}

static void abc(double seconds, bool of_thread)
{
	clockid_t clock = of_thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_PROCESS_CPUTIME_ID;
	struct timespec now;
	uint32_t state;
	double end;

	clock_gettime(clock, &now);
	end = (double)now.tv_sec + (double)now.tv_nsec * 1e-9 + seconds;
	state = (uint32_t)gettid();
	do {
		unsigned int units = vary(&state, UNITS);

		a(units);
		b(units);
		c(units);
		clock_gettime(clock, &now);
	} while ((double)now.tv_sec + (double)now.tv_nsec * 1e-9 < end);
}

static int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	CHECK(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static long count_lines(const char *path)
{
	FILE *file = fopen(path, "r");
	long n = 0;
	int c;

	CHECK(file);
	while ((c = getc(file)) != EOF)
		n += c == '\n';
	fclose(file);
	return n;
}

/* ---- threads ------------------------------------------------------------------------------ */

static void *abc_thread(void *seconds)
{
	abc(*(const double *)seconds, true);
	return NULL;
}

/* Half of the threads start before the profile, half during it. */
static void threads(unsigned long number)
{
	pthread_t ids[THREADS_MAX];
	double seconds = 0.25;

	CHECK(number <= THREADS_MAX);
	for (unsigned long i = 0; i < number; i++) {
		if (i == number / 2)
			CHECK(perf_start() == 0);
		CHECK(pthread_create(&ids[i], NULL, abc_thread, &seconds) == 0);
	}
	for (unsigned long i = 0; i < number; i++)
		pthread_join(ids[i], NULL);
	CHECK(perf_stop() == 0);
}

/* ---- repetition --------------------------------------------------------------------------- */

static void *malloc_thread(void *unused)
{
	void *kept[16] = { NULL };

	for (unsigned long i = 0; !ended; i++) {
		free(kept[i % 16]);
		kept[i % 16] = malloc(i % 5000);
		if (i % 250 == 0)
			usleep(100);
	}
	for (int i = 0; i < 16; i++)
		free(kept[i]);
	return unused;
}

static void cycles(unsigned long number)
{
	pthread_t ids[MALLOC_THREADS];
	int fds, tasks;
	long maps = 0;

	for (int i = 0; i < MALLOC_THREADS; i++)
		CHECK(pthread_create(&ids[i], NULL, malloc_thread, NULL) == 0);
	fds = count_entries("/proc/self/fd");
	tasks = count_entries("/proc/self/task");
	for (unsigned long i = 0; i < number; i++) {
		CHECK(perf_start() == 0);
		CHECK(perf_start() == -EALREADY);
		abc(0.0005, true);
		CHECK(perf_stop() == 0);
		CHECK(perf_stop() == -ESRCH);
		if (i == number / 4)
			maps = count_lines("/proc/self/maps");
	}
	CHECK(count_entries("/proc/self/fd") == fds);
	/* A thread that was joined may still be ending. */
	for (int i = 0; i < 1000 && count_entries("/proc/self/task") != tasks; i++)
		usleep(1000);
	CHECK(count_entries("/proc/self/task") == tasks);
	/* Heaps of threads come and go; mappings must not grow with the cycles. */
	CHECK(count_lines("/proc/self/maps") < maps + 32);
	ended = true;
	for (int i = 0; i < MALLOC_THREADS; i++)
		pthread_join(ids[i], NULL);
}

static void *race_thread(void *cycles)
{
	for (unsigned long i = 0; i < *(const unsigned long *)cycles; i++) {
		int ret = perf_start();

		CHECK(ret == 0 || ret == -EALREADY);
		abc(0.0002, true);
		ret = perf_stop();
		CHECK(ret == 0 || ret == -ESRCH);
	}
	return NULL;
}

static void race(unsigned long number)
{
	pthread_t ids[2];

	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&ids[i], NULL, race_thread, &number) == 0);
	for (int i = 0; i < 2; i++)
		pthread_join(ids[i], NULL);
}

/* ---- other actions ------------------------------------------------------------------------ */

static int wait_child(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

NOINLINE static void of_child(void)
{
	abc(0.1, true);
	__asm__ volatile("");
}

/* With 1, the child has a profile of its own. */
static void forks(unsigned long number)
{
	int fds = count_entries("/proc/self/fd");
	pid_t pid;

	CHECK(perf_start() == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(count_entries("/proc/self/fd") == fds);
		CHECK(perf_stop() == -ESRCH);
		if (number > 0)
			CHECK(perf_start() == 0);
		of_child();
		if (number > 0)
			CHECK(perf_stop() == 0);
		_exit(7);
	}
	abc(0.2, true);
	CHECK(wait_child(pid) == 7);
	CHECK(perf_stop() == 0);
}

/* As forks(), but by the system call, of which libc knows nothing; the child just
 * ends. */
static void clones(unsigned long number)
{
	pid_t pid;

	CHECK(perf_start() == 0);
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	CHECK(pid >= 0);
	if (pid == 0) {
		alarm(120);
		CHECK(perf_stop() == -ESRCH);
		if (number > 0)
			CHECK(perf_start() == 0);
		of_child();
		exit(7);
	}
	abc(0.1, true);
	CHECK(wait_child(pid) == 7);
	CHECK(perf_stop() == 0);
}

/* A daemon that closes all files that it might have. */
static void closes(unsigned long number)
{
	CHECK(perf_start() == 0);
	abc(0.1, true);
	closefrom(3);
	abc(0.1, true);
	CHECK(dup(1) == 3);
	CHECK(perf_stop() == 0);
	CHECK(write(3, "", 0) == 0);
}

/* The smallest limit of files and threads: an error, and then everything works again. */
static void limits(unsigned long number)
{
	struct rlimit before, none = { 0, 0 };

	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	none.rlim_max = before.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	CHECK(perf_start() < 0);
	CHECK(perf_stop() == -ESRCH);
	CHECK(perf_stop() == -ESRCH);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	CHECK(perf_start() == 0);
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	abc(0.05, true);
	CHECK(perf_stop() == 0);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

static void *idle_thread(void *barrier)
{
	pthread_barrier_wait(barrier);
	return NULL;
}

/* Events of all threads need more files than the limit, which must stay unchanged. */
static void crowd(unsigned long number)
{
	struct rlimit before, small, after;
	pthread_t ids[THREADS_MAX];
	pthread_barrier_t barrier;

	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	small = (struct rlimit){ .rlim_cur = 32, .rlim_max = before.rlim_max };
	CHECK(setrlimit(RLIMIT_NOFILE, &small) == 0);
	pthread_barrier_init(&barrier, NULL, THREADS_MAX + 1);
	for (int i = 0; i < THREADS_MAX; i++)
		CHECK(pthread_create(&ids[i], NULL, idle_thread, &barrier) == 0);
	CHECK(perf_start() == 0);
	abc(0.05, true);
	CHECK(perf_stop() == 0);
	CHECK(getrlimit(RLIMIT_NOFILE, &after) == 0);
	CHECK(after.rlim_cur == 32 && after.rlim_max == before.rlim_max);
	/* The same if the limit cannot be raised. */
	small.rlim_max = 32;
	CHECK(setrlimit(RLIMIT_NOFILE, &small) == 0);
	CHECK(perf_start() == 0);
	abc(0.05, true);
	CHECK(perf_stop() == 0);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < THREADS_MAX; i++)
		pthread_join(ids[i], NULL);
}

static void at_exit(void)
{
	abc(0.05, true);
	CHECK(perf_stop() == 0);
}

/* The profile starts in main and ends while the program ends. */
static void exits(unsigned long number)
{
	CHECK(atexit(at_exit) == 0);
	CHECK(perf_start() == 0);
	abc(0.05, true);
}

static void forgets(unsigned long number)
{
	CHECK(perf_start() == 0);
	abc(0.1, true);
}

/* The recording gets its name with its first sample, which may be late on a busy
 * machine. */
static void executes(unsigned long number)
{
	const char *file = getenv("PMSELF_OUTPUT");
	int tries = 100;

	CHECK(perf_start() == 0);
	do
		abc(0.2, true);
	while (file && access(file, F_OK) != 0 && --tries > 0);
	execl("/bin/echo", "echo", "other", (char *)NULL);
}

static void *stop_thread(void *unused)
{
	CHECK(perf_stop() == 0);
	return unused;
}

/* Stopped by a thread with the smallest possible stack, after the first thread has
 * ended. */
static void *lonely_thread(void *unused)
{
	pthread_attr_t attr;
	pthread_t id;

	abc(0.1, true);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16384);
	CHECK(pthread_create(&id, &attr, stop_thread, NULL) == 0);
	pthread_join(id, NULL);
	puts("ok");
	exit(0);
}

static void leaves(unsigned long number)
{
	pthread_t id;

	CHECK(perf_start() == 0);
	CHECK(pthread_create(&id, NULL, lonely_thread, NULL) == 0);
	pthread_exit(NULL);
}

static const struct mode {
	const char *name;
	void (*run)(unsigned long number);
} modes[] = {
	{ "threads", threads }, { "cycles", cycles },    { "race", race },
	{ "fork", forks },      { "closefrom", closes }, { "limits", limits },
	{ "atexit", exits },    { "forget", forgets },   { "exec", executes },
	{ "leave", leaves },    { "clone", clones },     { "crowd", crowd },
};

int main(int argc, char **argv)
{
	unsigned long number = argc > 2 ? strtoul(argv[2], NULL, 0) : 0;

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (argc > 1 && strcmp(argv[1], modes[i].name) == 0) {
			modes[i].run(number);
			puts("ok");
			return 0;
		}
	fputs("usage: self-life MODE [NUMBER]\n", stderr);
	return 2;
}
