/* SPDX-License-Identifier: MIT */
/*
 * ping-pong ROUNDS: two processes called `ping` and `pong` on one CPU pass a byte back
 * and forth through pipes: the scheduler must switch between them twice a round. In each
 * round `ping` writes once and reads once, and so does `pong`.
 */
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void play(const char *name, int from, int to, long rounds, int serves)
{
	char ball = 'o';

	prctl(PR_SET_NAME, name);
	for (long i = 0; i < rounds; i++) {
		if (serves && write(to, &ball, 1) != 1)
			_exit(1);
		if (read(from, &ball, 1) != 1)
			_exit(1);
		if (!serves && write(to, &ball, 1) != 1)
			_exit(1);
	}
}

/* The first CPU that we may run on. */
static void stay_on_one_cpu(void)
{
	cpu_set_t all, one;
	int cpu = 0;

	if (sched_getaffinity(0, sizeof(all), &all) < 0)
		exit(1);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one) < 0)
		exit(1);
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 100;
	int there[2], back[2], status = 1;
	pid_t pid;

	stay_on_one_cpu();
	if (pipe(there) < 0 || pipe(back) < 0)
		return 1;
	pid = fork();
	if (pid == 0) {
		play("pong", there[0], back[1], rounds, 0);
		_exit(0);
	}
	if (pid < 0)
		return 1;
	play("ping", back[0], there[1], rounds, 1);
	return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1;
}
