/* SPDX-License-Identifier: MIT */
/*
 * Processes: `count-exec TIMES`. The first one calls in_process() TIMES times, and forks
 * a child in the middle of in_parent(), which makes as many calls and also returns from
 * in_parent(). Another child executes this program anew, and makes TIMES calls. The
 * children end with 4 and 5, the first process with 6.
 */
#include "count.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long sink;

static WHOLE void in_process(unsigned long value)
{
	sink += value;
}

static WHOLE pid_t in_parent(unsigned long times)
{
	pid_t pid;

	for (unsigned long i = 0; i < times; i++)
		in_process(i);
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		for (unsigned long i = 0; i < times; i++)
			in_process(i);
	return pid;
}

static int status_of(pid_t pid)
{
	int status = 0;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
								    : -1;
}

static int as_child(unsigned long times)
{
	for (unsigned long i = 0; i < times; i++)
		in_process(i);
	return 5;
}

int main(int argc, char **argv)
{
	unsigned long times = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;
	pid_t pid;

	if (argc > 2 && strcmp(argv[2], "child") == 0)
		return as_child(times);
	pid = in_parent(times);
	if (pid == 0)
		_exit(4);
	if (status_of(pid) != 4)
		return 1;
	pid = vfork();
	if (pid == 0) {
		char child[] = "child", number[32];
		char *words[] = { argv[0], number, child, NULL };

		snprintf(number, sizeof(number), "%lu", times);
		execv(argv[0], words);
		_exit(1);
	}
	if (status_of(pid) != 5)
		return 1;
	truth("in_process", 3 * times, 0);
	truth("in_parent", 1, 0);
	return 6;
}
