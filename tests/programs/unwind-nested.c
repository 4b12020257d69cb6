/* SPDX-License-Identifier: MIT */
/*
 * Signals inside signals: on one stack and on two, with and without siginfo, in a system
 * call that is restarted and in one that is not, from a fault, and sent by threads to
 * themselves.
 */
#include "unwind-burn.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum {
	STACK_BYTES = 65536,
};

static volatile uint64_t sink;
static int fds[2];

static void innermost(int signo)
{
	sink = burn_steps(sink + (uint64_t)signo, 2);
}

static NOINLINE void send(int signo)
{
	pthread_kill(pthread_self(), signo);
}

static void middle(int signo, siginfo_t *info, void *context)
{
	char text[128];

	memset(text, signo, sizeof(text));
	send(SIGTERM);
	sink += (uint64_t)text[sink & 127] + (info->si_code == 0) + (context != NULL);
}

static void outermost(int signo)
{
	sink += (uint64_t)signo;
	send(SIGUSR2);
	sink = burn_steps(sink, 1);
}

/* Lets a read(2) that waits finish in its restart. */
static void on_alarm(int signo)
{
	if (write(fds[1], "x", 1) != 1)
		sink += (uint64_t)signo;
}

static void on_fault(int signo, siginfo_t *info, void *context)
{
	ucontext_t *ucontext = context;

	sink += (uint64_t)signo + (info != NULL);
	/* 48 8b 00: mov (%rax), %rax */
	ucontext->uc_mcontext.gregs[REG_RIP] += 3;
}

static NOINLINE uint64_t fault(void)
{
	uint64_t x = 0;

	__asm__ volatile(".byte 0x48, 0x8b, 0x00" : "+a"(x) : : "memory");
	return x;
}

static void install(int signo, int flags, void *handler)
{
	struct sigaction action = { .sa_flags = flags };

	if (flags & SA_SIGINFO)
		action.sa_sigaction = (void (*)(int, siginfo_t *, void *))handler;
	else
		action.sa_handler = (void (*)(int))handler;
	sigaction(signo, &action, NULL);
}

static NOINLINE void waits(int flags)
{
	struct itimerval soon = { .it_value.tv_usec = 1000 };
	char byte;

	install(SIGALRM, flags, (void *)on_alarm);
	setitimer(ITIMER_REAL, &soon, NULL);
	if (read(fds[0], &byte, 1) < 0 && errno == EINTR && read(fds[0], &byte, 1) < 0)
		sink++;
}

static NOINLINE void all(void)
{
	send(SIGUSR1);
	send(SIGUSR2);
	sink += fault();
	waits(SA_RESTART);
	waits(0);
}

static void *thread(void *arg)
{
	stack_t stack = { .ss_size = STACK_BYTES, .ss_sp = arg };

	sigaltstack(&stack, NULL);
	all();
	return arg;
}

int main(int argc, char **argv)
{
	clock_t end = burn_until(argc, argv);
	void *away = malloc(STACK_BYTES);
	pthread_t other;

	if (!away || pipe(fds) != 0)
		return 1;
	install(SIGTERM, 0, (void *)innermost);
	install(SIGUSR2, SA_SIGINFO | SA_ONSTACK, (void *)middle);
	install(SIGUSR1, SA_NODEFER, (void *)outermost);
	install(SIGSEGV, SA_SIGINFO, (void *)on_fault);
	do {
		all();
		if (pthread_create(&other, NULL, thread, away) != 0)
			return 1;
		pthread_join(other, NULL);
	} while (argc <= 2 && clock() < end);
	return sink == 0;
}
