/* SPDX-License-Identifier: MIT */
/*
 * Runs a recorder and measures the recorder alone: `time` adds up a recorder and the target
 * that it has waited for. Usage: own-cpu RESULT COMMAND [ARGUMENT]..., where RESULT is the
 * file for one line "WALL_S CPU_S STATUS".
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now) != 0) {
		perror("own-cpu: clock_gettime");
		exit(125);
	}
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	double begin, wall, cpu;
	clockid_t clock;
	siginfo_t info;
	FILE *result;
	pid_t pid;

	if (argc < 3) {
		fputs("usage: own-cpu RESULT COMMAND [ARGUMENT]...\n", stderr);
		return 125;
	}
	begin = seconds(CLOCK_MONOTONIC);
	pid = fork();
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	/* Not reaped yet: the process clock still reads, with the time of all its threads
	 * and of none of its children. */
	if (pid < 0 || waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) != 0 ||
	    clock_getcpuclockid(pid, &clock) != 0) {
		perror("own-cpu");
		return 125;
	}
	wall = seconds(CLOCK_MONOTONIC) - begin;
	cpu = seconds(clock);
	waitid(P_PID, (id_t)pid, &info, WEXITED);

	result = fopen(argv[1], "we");
	if (!result || fprintf(result, "%.3f %.4f %d\n", wall, cpu, info.si_status) < 0 ||
	    fclose(result) != 0) {
		perror(argv[1]);
		return 125;
	}
	return 0;
}
