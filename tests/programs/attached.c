/* SPDX-License-Identifier: MIT */
/*
 * attached LIBRARY: runs until it is killed, for at most ten minutes. The first thread
 * spends 60 % of its time in sixty(), 30 % in thirty(), 10 % in ten(). Thread "before"
 * works in early(), thread "library" in spend() of the library that was loaded
 * (libdlopen-many.so). SIGUSR1 starts thread "after", which works in late(); SIGUSR2
 * starts a process that works in child(). Prints its pid and the tids of "before" and
 * "library" once they run.
 */
#include "work.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static void (*spend)(double);
static volatile sig_atomic_t wants_thread, wants_child;
static volatile pid_t before_tid, library_tid;
static sem_t begun;

static NOINLINE void sixty(void)
{
	work(60);
}

static NOINLINE void thirty(void)
{
	work(30);
}

static NOINLINE void ten(void)
{
	work(10);
}

/* They differ, as the compiler would merge equal functions. */
static NOINLINE void early(void)
{
	work(101);
}

static NOINLINE void late(void)
{
	work(102);
}

static NOINLINE void child(void)
{
	for (;;)
		work(103);
}

static void *before(void *none)
{
	pthread_setname_np(pthread_self(), "before");
	before_tid = (pid_t)syscall(SYS_gettid);
	sem_post(&begun);
	for (;;)
		early();
	return none;
}

static void *library(void *none)
{
	pthread_setname_np(pthread_self(), "library");
	library_tid = (pid_t)syscall(SYS_gettid);
	sem_post(&begun);
	for (;;)
		spend(0.001);
	return none;
}

static void *after(void *none)
{
	pthread_setname_np(pthread_self(), "after");
	for (;;)
		late();
	return none;
}

static void on_signal(int number)
{
	if (number == SIGUSR1)
		wants_thread = 1;
	else
		wants_child = 1;
}

static void begin(void *(*run)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, NULL) != 0)
		_exit(1);
}

int main(int argc, char **argv)
{
	void *loaded = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	void *symbol;

	alarm(600);
	sem_init(&begun, 0, 0);
	symbol = loaded ? dlsym(loaded, "spend") : NULL;
	if (!symbol)
		return 2;
	__builtin_memcpy(&spend, &symbol, sizeof(spend));
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	begin(before);
	begin(library);
	sem_wait(&begun);
	sem_wait(&begun);
	printf("%d %d %d\n", (int)getpid(), (int)before_tid, (int)library_tid);
	fflush(stdout);
	for (;;) {
		sixty();
		thirty();
		ten();
		if (wants_thread)
			begin(after);
		if (wants_child && fork() == 0) {
			alarm(600);
			child();
		}
		wants_thread = wants_child = 0;
	}
}
