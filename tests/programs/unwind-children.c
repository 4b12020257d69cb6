/* SPDX-License-Identifier: MIT */
/* All ways to create a child: fork(2), vfork(2), posix_spawn(3), system(3), popen(3). */
#include "unwind-burn.h"

#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile uint64_t sink;

static NOINLINE void child_work(void)
{
	sink = burn_steps(sink + 1, 20);
}

static NOINLINE void wait_for(pid_t pid)
{
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static NOINLINE void by_fork(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		child_work();
		_exit(0);
	}
	wait_for(pid);
}

static NOINLINE void by_vfork(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		child_work();
		_exit(0);
	}
	wait_for(pid);
}

static NOINLINE void by_vfork_exec(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		child_work();
		execl("/bin/true", "true", NULL);
		_exit(127);
	}
	wait_for(pid);
}

static NOINLINE void by_spawn(void)
{
	char program[] = "true";
	char *argv[] = { program, NULL };
	char *environment[] = { NULL };
	pid_t pid;

	if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environment) == 0)
		wait_for(pid);
}

static NOINLINE void by_shell(void)
{
	FILE *pipe;

	sink += (uint64_t)system("exit 0");
	pipe = popen("exit 0", "r");
	if (pipe)
		sink += (uint64_t)pclose(pipe);
}

int main(int argc, char **argv)
{
	clock_t end = burn_until(argc, argv);

	do {
		by_vfork();
		by_vfork_exec();
		by_fork();
		by_spawn();
		by_shell();
	} while (argc <= 2 && clock() < end);
	return sink == 0;
}
