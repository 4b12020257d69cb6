/* SPDX-License-Identifier: MIT */
/*
 * Waits of four kinds, each in a function of its own, in the first thread: nap() sleeps
 * 300 ms, get_lock() waits 200 ms for a lock, read_config() 100 ms for a pipe, and
 * finish() 100 ms for the end of the other thread, which waits only in helper(). The other
 * thread begins each of these times when the first one waits, however late that is on a
 * busy machine. Prints a line for each of them: its name, and the nanoseconds from its
 * call to its return.
 */
#include "work.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t taken;
static pthread_t other;
static int ends[2];

static unsigned long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned long long)now.tv_sec * 1000000000u +
	       (unsigned long long)now.tv_nsec;
}

/* A macro, because a function would be the one that waits. */
#define sleep_ms(ms) nanosleep(&(struct timespec){ 0, (ms)*1000000l }, NULL)

/* The state of the first thread, by proc_pid_stat(5). */
static char first_state(void)
{
	char path[32], line[512], *at;
	FILE *file;
	size_t len;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
	file = fopen(path, "re");
	if (!file)
		_exit(1);
	len = fread(line, 1, sizeof(line) - 1, file);
	fclose(file);
	line[len] = '\0';
	at = strrchr(line, ')');
	return at ? at[2] : '?';
}

/* A macro, as above. */
#define sleep_ms_once_it_waits(ms)           \
	do {                                 \
		while (first_state() != 'S') \
			sleep_ms(1);         \
		sleep_ms(ms);                \
	} while (0)

static void *helper(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&lock);
	pthread_barrier_wait(&taken);
	sleep_ms_once_it_waits(200);
	pthread_mutex_unlock(&lock);
	sleep_ms_once_it_waits(100);
	if (write(ends[1], "", 1) != 1)
		return NULL;
	sleep_ms_once_it_waits(100);
	return NULL;
}

NOINLINE static void nap(void)
{
	sleep_ms(300);
	__asm__ volatile(""); /* prevents a tail call */
}

NOINLINE static void get_lock(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}

NOINLINE static void read_config(void)
{
	char byte;

	if (read(ends[0], &byte, 1) != 1)
		_exit(1);
}

NOINLINE static void finish(void)
{
	if (pthread_join(other, NULL) != 0)
		_exit(1);
}

static void measure(const char *name, void (*function)(void))
{
	unsigned long long begin = now_ns();

	function();
	printf("%s %llu\n", name, now_ns() - begin);
}

int main(void)
{
	measure("nap", nap);
	pthread_barrier_init(&taken, NULL, 2);
	if (pipe(ends) != 0 || pthread_create(&other, NULL, helper, NULL) != 0)
		return 1;
	pthread_barrier_wait(&taken);
	measure("get_lock", get_lock);
	measure("read_config", read_config);
	measure("finish", finish);
	return 0;
}
