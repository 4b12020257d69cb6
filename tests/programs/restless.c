/* SPDX-License-Identifier: MIT */
/*
 * restless SECONDS: for SECONDS of their CPU time its threads make short blocking system
 * calls, receive signals, create threads and children, and execute programs; each checks
 * that every result is right. It tests what a tracer must not change: exit status 0, or 1
 * with a line for each surprise. System calls that may fail with EINTR after a stop, by
 * signal(7), are left out.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

enum {
	MOMENT_US = 200,
	RT_SIGNALS = 40, /* queued at once */
};

static atomic_int surprises, alarms, queued;
static double until;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void expect(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "restless: %s: %s\n", what, strerror(errno));
	surprises++;
}

static void on_alarm(int number)
{
	alarms++;
	(void)number;
}

/* Every value arrives once and in order: signal(7), real-time signals. */
static void on_queued(int number, siginfo_t *info, void *context)
{
	expect(info->si_value.sival_int == queued % RT_SIGNALS, "order of signals");
	expect(info->si_pid == getpid(), "sender of a signal");
	queued++;
	(void)number;
	(void)context;
}

/* Alarms go to the main thread only, so nothing here may be interrupted. */
static void *sleeps(void *unused)
{
	struct timespec moment = { .tv_nsec = MOMENT_US * 1000 }, left;
	int fds[2];

	expect(pipe(fds) == 0, "pipe");
	while (now() < until) {
		struct pollfd fd = { .fd = fds[0], .events = POLLIN };
		struct timeval time = { .tv_usec = MOMENT_US };
		fd_set set;

		work(20000);
		expect(nanosleep(&moment, &left) == 0, "nanosleep");
		expect(clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL) == 0,
		       "clock_nanosleep");
		expect(poll(&fd, 1, 1) == 0, "poll");
		FD_ZERO(&set);
		FD_SET(fds[0], &set);
		expect(select(fds[0] + 1, &set, NULL, NULL, &time) == 0, "select");
	}
	return unused;
}

static int ping[2], pong[2];

static void *echoes(void *unused)
{
	char byte;

	while (read(ping[0], &byte, 1) == 1) {
		work(2000);
		expect(write(pong[1], &byte, 1) == 1, "write");
	}
	close(pong[1]);
	return unused;
}

static void *asks(void *unused)
{
	unsigned char sent = 0, got;

	while (now() < until) {
		sent++;
		work(2000);
		expect(write(ping[1], &sent, 1) == 1, "write");
		expect(read(pong[0], &got, 1) == 1 && got == sent, "read");
	}
	close(ping[1]);
	return unused;
}

static sem_t here, there;

static void *waits(void *unused)
{
	while (now() < until) {
		expect(sem_wait(&here) == 0, "sem_wait");
		work(2000);
		expect(sem_post(&there) == 0, "sem_post");
	}
	sem_post(&there);
	return unused;
}

static void *posts(void *unused)
{
	while (now() < until) {
		struct timespec end;

		expect(sem_post(&here) == 0, "sem_post");
		work(2000);
		clock_gettime(CLOCK_REALTIME, &end);
		end.tv_sec += 60;
		expect(sem_timedwait(&there, &end) == 0, "sem_timedwait");
	}
	sem_post(&here);
	return unused;
}

static void *nothing(void *unused)
{
	work(20000);
	return unused;
}

/* Children made in three ways; each status must be the right one. */
static void *makes(void *unused)
{
	for (volatile unsigned int i = 0; now() < until; i++) {
		pthread_t thread;
		pid_t pid = i % 3 == 0 ? vfork() : fork();
		int status;

		if (pid == 0) {
			if (i % 3 == 1)
				_exit((int)(i & 63));
			if (i % 3 == 2)
				raise(SIGKILL);
			execl("/bin/sh", "sh", "-c", "exit 33", NULL);
			_exit(99);
		}
		expect(waitpid(pid, &status, 0) == pid, "waitpid");
		expect(i % 3 == 0 ? WIFEXITED(status) && WEXITSTATUS(status) == 33
		       : i % 3 == 1
			       ? WIFEXITED(status) && WEXITSTATUS(status) == (int)(i & 63)
			       : WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
		       "status of a child");
		expect(pthread_create(&thread, NULL, nothing, NULL) == 0 &&
			       pthread_join(thread, NULL) == 0,
		       "thread");
	}
	return unused;
}

/* Stops and continues a child; the kernel must report both to the parent. */
static void *stops(void *unused)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		for (;;)
			work(100000);
	while (now() < until) {
		kill(pid, SIGSTOP);
		expect(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status) &&
			       WSTOPSIG(status) == SIGSTOP,
		       "stop of a child");
		usleep(MOMENT_US);
		kill(pid, SIGCONT);
		expect(waitpid(pid, &status, WCONTINUED) == pid && WIFCONTINUED(status),
		       "continuation of a child");
		usleep(10 * MOMENT_US);
	}
	kill(pid, SIGKILL);
	expect(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status), "end of a child");
	return unused;
}

static void send_queued(void)
{
	sigset_t set, old;
	int before = queued;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	for (int i = 0; i < RT_SIGNALS; i++) {
		union sigval value = { .sival_int = i };

		expect(pthread_sigqueue(pthread_self(), SIGRTMIN, value) == 0,
		       "sigqueue");
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	expect(queued == before + RT_SIGNALS, "count of signals");
}

int main(int argc, char **argv)
{
	void *(*const mains[])(void *) = { sleeps, echoes, asks, waits,
					   posts,  makes,  stops };
	struct sigaction alarm = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct sigaction info = { .sa_sigaction = on_queued, .sa_flags = SA_SIGINFO };
	struct itimerval every = { .it_interval = { .tv_usec = 3000 },
				   .it_value = { .tv_usec = 3000 } };
	pthread_t threads[sizeof(mains) / sizeof(mains[0])];
	sigset_t set, old;

	until = now() + (argc > 1 ? strtod(argv[1], NULL) : 1);
	expect(pipe(ping) == 0 && pipe(pong) == 0, "pipe");
	sem_init(&here, 0, 0);
	sem_init(&there, 0, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_BLOCK, &set, &old);
	for (size_t i = 0; i < sizeof(mains) / sizeof(mains[0]); i++)
		expect(pthread_create(&threads[i], NULL, mains[i], NULL) == 0, "thread");
	sigaction(SIGALRM, &alarm, NULL);
	sigaction(SIGRTMIN, &info, NULL);
	sigprocmask(SIG_SETMASK, &old, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	while (now() < until) {
		work(50000);
		send_queued();
	}
	for (size_t i = 0; i < sizeof(mains) / sizeof(mains[0]); i++)
		pthread_join(threads[i], NULL);
	expect(alarms > 10, "alarms");
	return surprises ? 1 : 0;
}
