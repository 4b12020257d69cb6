/* SPDX-License-Identifier: MIT */
/* A vfork(2) child that works on its parent's stack and memory until it exits. */
#include "unwind-burn.h"

#include <sys/wait.h>
#include <unistd.h>

static volatile uint64_t sink;

static NOINLINE void child_work(void)
{
	sink = burn_steps(sink + 1, 3000000);
}

static NOINLINE void one_child(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		child_work();
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	/* clock(3) does not include the CPU time of children: count children instead. */
	clock_t unused = burn_until(argc, argv);
	long rounds = argc > 1 ? strtol(argv[1], NULL, 10) / 5 : 100;

	OPAQUE(unused);
	while (rounds-- > 0)
		one_child();
	return sink == 0;
}
