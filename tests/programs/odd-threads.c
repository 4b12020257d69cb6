/* SPDX-License-Identifier: MIT */
/*
 * odd-threads WHAT [SECONDS]: unusual behaviour of threads, for SECONDS of CPU time (with
 * storm, of real time).
 *
 * leaderless  The main thread ends at once; another one burns in main_is_gone().
 * exec        Burns in before_exec(); then another thread executes the program anew, which
 *             burns as long in after_exec().
 * storm       64 threads send themselves signals without a pause.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	STORM = 64,
};
static double seconds = 1;
static const char *seconds_text;
static volatile unsigned long work;

static double now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

#define BURN(name, step)                                             \
	static __attribute__((noinline)) void name(void)             \
	{                                                            \
		double end = now(CLOCK_THREAD_CPUTIME_ID) + seconds; \
		while (now(CLOCK_THREAD_CPUTIME_ID) < end)           \
			for (int i = 0; i < 100000; i++)             \
				work += step;                        \
	}
/* They differ, as the compiler would merge equal functions. */
BURN(main_is_gone, 1)
BURN(before_exec, 2)
BURN(after_exec, 3)

static void *burn_alone(void *unused)
{
	main_is_gone();
	return unused;
}

static void *execute(void *unused)
{
	execl("/proc/self/exe", "odd-threads", "executed", seconds_text, (char *)NULL);
	_exit(99);
	return unused;
}

static void on_signal(int number)
{
	(void)number;
	work++;
}

static void *send(void *unused)
{
	double end = now(CLOCK_MONOTONIC) + seconds;

	while (now(CLOCK_MONOTONIC) < end)
		raise(SIGUSR1);
	return unused;
}

static void start(pthread_t *thread, void *(*function)(void *))
{
	if (pthread_create(thread, NULL, function, NULL) != 0)
		exit(98);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	pthread_t threads[STORM];

	seconds_text = argc > 2 ? argv[2] : "1";
	seconds = atof(seconds_text);
	if (strcmp(what, "leaderless") == 0) {
		start(threads, burn_alone);
		pthread_exit(NULL);
	} else if (strcmp(what, "exec") == 0) {
		before_exec();
		start(threads, execute);
		pause();
	} else if (strcmp(what, "executed") == 0) {
		after_exec();
	} else if (strcmp(what, "storm") == 0) {
		signal(SIGUSR1, on_signal);
		for (int i = 0; i < STORM; i++)
			start(&threads[i], send);
		for (int i = 0; i < STORM; i++)
			pthread_join(threads[i], NULL);
	} else {
		fprintf(stderr, "odd-threads leaderless|exec|storm [SECONDS]\n");
		return 97;
	}
	return 0;
}
