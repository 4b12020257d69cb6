/* SPDX-License-Identifier: MIT */
/*
 * Runs a command and measures it with all its descendants that were waited for. Usage:
 * cpu-time RESULT COMMAND [ARGUMENT]..., where RESULT is the file for one line
 * "WALL_S CPU_S STATUS MEMORY_BYTES". Around a recorder and around what it records, the
 * difference of CPU_S is what the recorder and its helpers used themselves. MEMORY_BYTES is
 * what the largest one of all the processes had in memory at its peak.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double seconds(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

int main(int argc, char **argv)
{
	struct rusage usage;
	double begin, wall;
	FILE *result;
	int status;
	pid_t pid;

	if (argc < 3) {
		fputs("usage: cpu-time RESULT COMMAND [ARGUMENT]...\n", stderr);
		return 125;
	}
	begin = now();
	pid = fork();
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid ||
	    getrusage(RUSAGE_CHILDREN, &usage) != 0) {
		perror("cpu-time");
		return 125;
	}
	wall = now() - begin;
	status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);

	result = fopen(argv[1], "we");
	if (!result ||
	    fprintf(result, "%.3f %.4f %d %lld\n", wall,
		    seconds(usage.ru_utime) + seconds(usage.ru_stime), status,
		    usage.ru_maxrss * 1024LL) < 0 ||
	    fclose(result) != 0) {
		perror(argv[1]);
		return 125;
	}
	return 0;
}
