/* SPDX-License-Identifier: MIT */
/*
 * bare-timer [-s BYTES] HZ COMMAND [ARGUMENT]...: runs a command while cpu-clock ticks at
 * that rate on every CPU, and nobody gets a sample: what the interrupts alone cost. With
 * -s the kernel also does all the rest of a recording with BYTES of stack in each sample,
 * and reports mappings, names and ends of the command's processes. It writes all that into
 * rings that nobody reads. As root.
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RING_BYTES   ((size_t)16 * 1024 * 1024)
#define GENERAL_REGS 0xff01ffULL /* of x86-64, in a 64-bit process */

static int open_event(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	attr->size = sizeof(*attr);
	attr->type = PERF_TYPE_SOFTWARE;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1,
			    PERF_FLAG_FD_CLOEXEC);
}

/* Returns the event that has the ring, which the kernel overwrites, or -1. */
static int open_ring(int cpu)
{
	struct perf_event_attr attr = { .config = PERF_COUNT_SW_DUMMY };
	int fd = open_event(&attr, -1, cpu);

	if (fd >= 0 && mmap(NULL, RING_BYTES + (size_t)getpagesize(), PROT_READ,
			    MAP_SHARED, fd, 0) == MAP_FAILED)
		return -1;
	return fd;
}

static int open_timer(unsigned long long hz, unsigned int stack_bytes, int cpu, int ring)
{
	struct perf_event_attr attr = { .config = PERF_COUNT_SW_CPU_CLOCK,
					.freq = 1,
					.sample_freq = hz,
					.sample_type = PERF_SAMPLE_IP };
	int fd;

	if (ring >= 0) {
		attr.sample_type |= PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
				    PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER |
				    PERF_SAMPLE_STACK_USER;
		attr.exclude_callchain_user = 1;
		attr.exclude_idle = 1;
		attr.sample_regs_user = GENERAL_REGS;
		attr.sample_stack_user = stack_bytes;
	}
	fd = open_event(&attr, -1, cpu);
	if (fd >= 0 && ring >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring) < 0)
		return -1;
	return fd;
}

static int open_processes(pid_t pid, int cpu, int ring)
{
	struct perf_event_attr attr = { .config = PERF_COUNT_SW_DUMMY,
					.inherit = 1,
					.mmap = 1,
					.mmap2 = 1,
					.comm = 1,
					.comm_exec = 1,
					.task = 1,
					.disabled = 1,
					.enable_on_exec = 1 };
	int fd = open_event(&attr, pid, cpu);

	if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring) < 0)
		return -1;
	return fd;
}

/* The child waits until @go is closed. */
static pid_t start_child(char **command, int go[2])
{
	pid_t pid;
	char byte;

	if (pipe(go) < 0)
		return -1;
	pid = fork();
	if (pid != 0)
		return pid;
	close(go[1]);
	(void)!read(go[0], &byte, 1);
	close(go[0]);
	execvp(command[0], command);
	perror(command[0]);
	_exit(127);
}

int main(int argc, char **argv)
{
	unsigned int stack_bytes = 0;
	unsigned long long hz;
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int status, opened = 0, go[2];
	pid_t pid;

	if (argc > 2 && strcmp(argv[1], "-s") == 0) {
		stack_bytes = (unsigned int)strtoul(argv[2], NULL, 10);
		argc -= 2;
		argv += 2;
	}
	hz = argc > 2 ? strtoull(argv[1], NULL, 10) : 0;
	if (hz == 0) {
		fputs("usage: bare-timer [-s BYTES] HZ COMMAND [ARGUMENT]...\n", stderr);
		return 125;
	}
	pid = start_child(argv + 2, go);
	if (pid < 0) {
		perror("bare-timer");
		return 125;
	}
	for (int cpu = 0; cpu < cpus; cpu++) {
		int ring = stack_bytes > 0 ? open_ring(cpu) : -1;

		if ((stack_bytes == 0 || ring >= 0) &&
		    open_timer(hz, stack_bytes, cpu, ring) >= 0 &&
		    (stack_bytes == 0 || open_processes(pid, cpu, ring) >= 0))
			opened++;
	}
	if (opened == 0)
		perror("bare-timer: perf_event_open");
	close(go[0]);
	close(go[1]);
	if (waitpid(pid, &status, 0) != pid) {
		perror("bare-timer");
		return 125;
	}
	if (opened == 0)
		return 125;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
