/* SPDX-License-Identifier: MIT */
/*
 * A 32-bit task on a 64-bit kernel: a recursion of DEPTH frames, handlers with both kinds
 * of signal frame, and a path through the C library back into the program. Runs for
 * argv[1] milliseconds of CPU time.
 */
#include "unwind-burn.h"

#include <search.h>
#include <signal.h>
#include <unistd.h>

enum {
	DEPTH = 100,
};

static volatile uint64_t sink;

static NOINLINE void at_bottom(void)
{
	sink = burn_steps(sink + 1, 20000);
}

static NOINLINE void deep(unsigned int depth)
{
	if (depth > 1)
		deep(depth - 1);
	else
		at_bottom();
	OPAQUE(depth);
}

static NOINLINE void in_handler(void)
{
	sink = burn_steps(sink + 2, 20000);
}

static NOINLINE void handler(int signo)
{
	in_handler();
	OPAQUE(signo);
}

static NOINLINE void info_handler(int signo, siginfo_t *info, void *context)
{
	in_handler();
	OPAQUE(signo);
	OPAQUE(info);
	OPAQUE(context);
}

static NOINLINE void interrupted(int signo)
{
	kill(getpid(), signo);
	OPAQUE(signo);
}

static NOINLINE int from_libc(const void *a, const void *b)
{
	sink = burn_steps(sink + 1, 2000);
	OPAQUE(a);
	return a != b;
}

static NOINLINE void through_libc(void)
{
	static const char keys[10] = "012345678";
	size_t len = sizeof(keys);

	lfind("", keys, &len, 1, from_libc);
	OPAQUE(len);
}

int main(int argc, char **argv)
{
	clock_t end = burn_until(argc, argv);
	struct sigaction action = { .sa_handler = handler };

	sigaction(SIGUSR1, &action, NULL);
	action.sa_sigaction = info_handler;
	action.sa_flags = SA_SIGINFO;
	sigaction(SIGUSR2, &action, NULL);
	while (clock() < end) {
		deep(DEPTH);
		interrupted(SIGUSR1);
		interrupted(SIGUSR2);
		through_libc();
	}
	return 0;
}
