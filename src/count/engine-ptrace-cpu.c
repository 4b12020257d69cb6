/* SPDX-License-Identifier: MIT */
/*
 * The tracing thread follows the traced thread to its CPU. Only one of the two runs at a
 * time, and waking the other one on another CPU takes several times as long as a switch
 * on the same CPU.
 */
#include "engine-ptrace.h"

#include <fcntl.h>
#include <string.h>

enum {
	LOOK_EVERY = 64, /* stops */
	HOLD = 1024, /* stops, after the thread was found on another CPU */
	STAT_BYTES = 1024,
};

/* Returns the CPU that the stopped thread last ran on; -1: unknown. */
static int cpu_of(pid_t pid, pid_t tid)
{
	PM_AUTO_CLOSE int fd = -1;
	char path[64], text[STAT_BYTES];
	struct pm_stat_line line;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		len = -1;
	else
		len = read(fd, text, sizeof(text));
	if (len <= 0 || pm_stat_line_parse(text, (size_t)len, &line) < 0 ||
	    line.cpu > INT32_MAX)
		return -1;
	return (int)line.cpu;
}

void pm_ptr_cpu_follow(struct pm_ptr_cpu *cpu, pid_t pid, pid_t tid)
{
	cpu_set_t set;
	int now;

	if (cpu->stops++ % LOOK_EVERY != 0)
		return;
	now = cpu_of(pid, tid);
	if (now < 0 || now >= CPU_SETSIZE || (cpu->moved && now == cpu->on))
		return;
	if (cpu->moved)
		cpu->hold_until = cpu->stops + HOLD;
	if (!cpu->moved && sched_getaffinity(0, sizeof(cpu->before), &cpu->before) < 0)
		return; /* more CPUs than fit into a cpu_set_t */
	CPU_ZERO(&set);
	CPU_SET(now, &set);
	if (sched_setaffinity(0, sizeof(set), &set) == 0) {
		cpu->moved = true;
		cpu->on = now;
	}
}

/*
 * A thread may be woken on an idle CPU, and an idle CPU takes many microseconds to wake
 * up, a virtual machine's most of all. Therefore the thread's affinity is narrowed while
 * it is stopped, and restored while it waits for this CPU: the thread never runs with a
 * smaller set than its own. This costs some microseconds, too, and is done only for
 * threads that do not stay by themselves.
 */
void pm_ptr_cpu_hold(struct pm_ptr_cpu *cpu, pid_t tid)
{
	cpu_set_t here;

	if (!cpu->moved || cpu->stops >= cpu->hold_until ||
	    sched_getaffinity(tid, sizeof(cpu->held_before), &cpu->held_before) < 0 ||
	    !CPU_ISSET(cpu->on, &cpu->held_before))
		return;
	CPU_ZERO(&here);
	CPU_SET(cpu->on, &here);
	if (sched_setaffinity(tid, sizeof(here), &here) == 0)
		cpu->held = tid;
}

void pm_ptr_cpu_let(struct pm_ptr_cpu *cpu)
{
	if (cpu->held != 0)
		sched_setaffinity(cpu->held, sizeof(cpu->held_before), &cpu->held_before);
	cpu->held = 0;
}

void pm_ptr_cpu_release(struct pm_ptr_cpu *cpu)
{
	pm_ptr_cpu_let(cpu);
	if (cpu->moved)
		sched_setaffinity(0, sizeof(cpu->before), &cpu->before);
	*cpu = (struct pm_ptr_cpu){ 0 };
}
