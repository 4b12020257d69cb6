/* SPDX-License-Identifier: MIT */
/*
 * What a program may do with SIGPROF, and with signals in general, while timers sample
 * it: self-signals MODE. Prints `ok`, or what went wrong.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pmself.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "work.h"

#ifndef __has_feature
#define __has_feature(name) 0
#endif

#define CHECK(what)                                                       \
	do {                                                              \
		if (!(what)) {                                            \
			printf("line %d: not so: %s\n", __LINE__, #what); \
			exit(1);                                          \
		}                                                         \
	} while (0)

static atomic_int received;

static void on_prof(int number)
{
	received++;
}

static void burn(double seconds)
{
	struct timespec now;
	double end;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	end = (double)now.tv_sec + (double)now.tv_nsec * 1e-9 + seconds;
	do {
		work(100);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((double)now.tv_sec + (double)now.tv_nsec * 1e-9 < end);
}

/*
 * Minimum number of signals of the timer below. ThreadSanitizer keeps one signal of each
 * number until it calls the handler, and timer signals arrive together at a kernel tick:
 * ours is first.
 */
enum {
#if __has_feature(thread_sanitizer)
	OF_TIMER = 0,
#else
	OF_TIMER = 6,
#endif
};

/* The program's own handler, and a timer that calls it: both keep working, and are
 * restored. */
static void handler(void)
{
	const struct itimerval timer = { { 0, 20000 }, { 0, 20000 } }, off = { 0 };
	struct sigaction own = { .sa_handler = on_prof }, now;
	double begin;

	CHECK(sigaction(SIGPROF, &own, NULL) == 0);
	CHECK(perf_start() == 0);
	burn(0.05);
	CHECK(received == 0);
	raise(SIGPROF);
	CHECK(received == 1);
	begin = cpu_seconds();
	CHECK(setitimer(ITIMER_PROF, &timer, NULL) == 0);
	/* A busy machine has few ticks. */
	for (int i = 0; i < 100 && received <= OF_TIMER; i++)
		burn(0.05);
	CHECK(setitimer(ITIMER_PROF, &off, NULL) == 0);
	CHECK(received > OF_TIMER);
	/* Not one of ours, of which there are many more. */
	CHECK(received < 3 + (cpu_seconds() - begin) / 0.02);
	CHECK(perf_stop() == 0);
	CHECK(sigaction(SIGPROF, NULL, &now) == 0);
	CHECK(now.sa_handler == on_prof);
	received = 0;
	burn(0.05);
	CHECK(received == 0);
	raise(SIGPROF);
	CHECK(received == 1);
}

/* A handler that is set meanwhile stays, and gets hardly any signal that is not its
 * own. */
static void replace(void)
{
	struct sigaction own = { .sa_handler = on_prof }, now;

	CHECK(perf_start() == 0);
	burn(0.1);
	CHECK(sigaction(SIGPROF, &own, NULL) == 0);
	burn(0.1);
	received = 0;
	burn(0.2);
	CHECK(received == 0);
	CHECK(perf_stop() == 0);
	CHECK(sigaction(SIGPROF, NULL, &now) == 0);
	CHECK(now.sa_handler == on_prof);
}

static void *blocking_thread(void *unused)
{
	sigset_t set;

	sigfillset(&set);
	CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
	burn(0.3);
	CHECK(perf_stop() == 0);
	/* A pending signal of ours would end the program here if it were not removed. */
	CHECK(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
	return unused;
}

static void block(void)
{
	pthread_t id;

	CHECK(perf_start() == 0);
	CHECK(pthread_create(&id, NULL, blocking_thread, NULL) == 0);
	burn(0.1);
	pthread_join(id, NULL);
}

static void *writing_thread(void *fd)
{
	burn(0.1);
	CHECK(write(*(int *)fd, "x", 1) == 1);
	return NULL;
}

/* A blocking call continues after a signal. */
static void interrupt(void)
{
	pthread_t id;
	int fds[2];
	char byte;

	CHECK(pipe(fds) == 0);
	CHECK(perf_start() == 0);
	for (int i = 0; i < 3; i++) {
		CHECK(pthread_create(&id, NULL, writing_thread, &fds[1]) == 0);
		burn(0.02);
		CHECK(read(fds[0], &byte, 1) == 1);
		pthread_join(id, NULL);
	}
	CHECK(perf_stop() == 0);
}

static char alternate[1 << 16];

/* Preserves errno and the signal stack of a thread that is interrupted all the time. */
static void keep(void)
{
	const stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	struct timespec now;
	double end;

	CHECK(sigaltstack(&stack, NULL) == 0);
	CHECK(perf_start() == 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	end = (double)now.tv_sec + (double)now.tv_nsec * 1e-9 + 0.3;
	do {
		errno = 4242;
		work(10);
		CHECK(errno == 4242);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while ((double)now.tv_sec + (double)now.tv_nsec * 1e-9 < end);
	CHECK(perf_stop() == 0);
}

/* A signal that is pending at the exec must not end the new program. */
static void replace_program(void)
{
	CHECK(perf_start() == 0);
	burn(0.05);
	execl("/bin/echo", "echo", "ok", (char *)NULL);
}

static void *short_thread(void *unused)
{
	burn(0.0003);
	return unused;
}

/* Hundreds of threads that end before anyone can find them. */
static void shorts(void)
{
	pthread_t id;

	CHECK(perf_start() == 0);
	for (int i = 0; i < 600; i++) {
		CHECK(pthread_create(&id, NULL, short_thread, NULL) == 0);
		pthread_join(id, NULL);
	}
	CHECK(perf_stop() == 0);
}

static void *long_thread(void *unused)
{
	burn(0.25);
	return unused;
}

/* One after the other, so that their number stays the same. */
static void relay(void)
{
	pthread_t id;

	CHECK(perf_start() == 0);
	for (int i = 0; i < 2; i++) {
		CHECK(pthread_create(&id, NULL, long_thread, NULL) == 0);
		pthread_join(id, NULL);
	}
	CHECK(perf_stop() == 0);
}

/* How often the helper went to sleep; -1: there is no helper. */
static long helper_sleeps(void)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	char path[64 + NAME_MAX], line[128];
	long sleeps = -1;

	CHECK(dir);
	while (sleeps < 0 && (entry = readdir(dir))) {
		bool named = false;
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		file = fopen(path, "r");
		while (file && fgets(line, sizeof(line), file)) {
			named |= strcmp(line, "Name:\tpmself\n") == 0;
			if (named)
				sscanf(line, "voluntary_ctxt_switches: %ld", &sleeps);
		}
		if (file)
			fclose(file);
	}
	closedir(dir);
	return sleeps;
}

/* The helper does not wake up at the ticks of the program's threads, 40 at 100 Hz. */
static void helper(void)
{
	long sleeps;

	CHECK(perf_start() == 0);
	burn(0.4);
	sleeps = helper_sleeps();
	CHECK(sleeps > 0 && sleeps < 40);
	CHECK(perf_stop() == 0);
}

/* A container's filter may do this: helpers cannot wait for a signal. */
static void refuse_to_wait(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigtimedwait, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 4, .filter = filter };
	const struct timespec none = { 0, 0 };
	sigset_t set;

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
	sigemptyset(&set);
	CHECK(sigtimedwait(&set, NULL, &none) < 0 && errno == EPERM);
}

/* The helper then polls from time to time, and does not run all the time. */
static void refused(void)
{
	const struct timespec pause = { .tv_nsec = 300000000 };
	long before, after;

	refuse_to_wait();
	CHECK(perf_start() == 0);
	burn(0.2);
	before = helper_sleeps();
	nanosleep(&pause, NULL);
	after = helper_sleeps();
	CHECK(before > 0 && after > before && after < before + 60);
	CHECK(perf_stop() == 0);
}

static const struct mode {
	const char *name;
	void (*run)(void);
} modes[] = {
	{ "handler", handler },     { "replace", replace }, { "block", block },
	{ "interrupt", interrupt }, { "keep", keep },       { "exec", replace_program },
	{ "shorts", shorts },       { "helper", helper },   { "relay", relay },
	{ "refused", refused },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (argc > 1 && strcmp(argv[1], modes[i].name) == 0) {
			modes[i].run();
			puts("ok");
			return 0;
		}
	fputs("usage: self-signals MODE\n", stderr);
	return 2;
}
