/* SPDX-License-Identifier: MIT */
/*
 * bare-timer HZ COMMAND [ARGUMENT]...: runs a command while cpu-clock ticks at that rate on every
 * CPU, and nobody gets a sample: what the interrupts alone cost. As root.
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int open_timer(unsigned long long hz, int cpu)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	attr.freq = 1;
	attr.sample_freq = hz;
	attr.sample_type = PERF_SAMPLE_IP;
	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1,
			    PERF_FLAG_FD_CLOEXEC);
}

int main(int argc, char **argv)
{
	unsigned long long hz = argc > 2 ? strtoull(argv[1], NULL, 10) : 0;
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int status, opened = 0;
	pid_t pid;

	if (hz == 0) {
		fputs("usage: bare-timer HZ COMMAND [ARGUMENT]...\n", stderr);
		return 125;
	}
	for (long cpu = 0; cpu < cpus; cpu++)
		opened += open_timer(hz, (int)cpu) >= 0;
	if (opened == 0) {
		perror("bare-timer: perf_event_open");
		return 125;
	}
	pid = fork();
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		perror("bare-timer");
		return 125;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
