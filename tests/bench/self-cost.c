/* SPDX-License-Identifier: MIT */
/*
 * A fixed amount of work, by THREADS threads, the first of them the program's first, at the end
 * of stacks of DEPTH frames; prints how many seconds it took, and of CPU time of the process. Profiled, if at all, by what is preloaded.
 * With SELF_COST_HZ in the environment it is only interrupted as often as that.
 */
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	THREADS_MAX = 64,
	ROUNDS = 60,
};

static unsigned long depth, units;

static __attribute__((noinline)) unsigned long dive(unsigned long left)
{
	volatile unsigned long x = left;

	if (left > 0)
		return dive(left - 1) + x;
	for (unsigned long i = 0; i < units; i++)
		__asm__ volatile("" : : "r"(i) : "memory");
	return x;
}

static void *work(void *unused)
{
	unsigned long sum = 0;

	for (int i = 0; i < ROUNDS; i++)
		sum += dive(depth);
	return sum == 1 ? unused : NULL;
}

static double seconds(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* By an event of the kernel whose samples go nowhere: what no profiler of that rate can save. */
static int interrupt(const char *hz)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.sample_type = PERF_SAMPLE_IP,
					.freq = 1,
					.sample_freq = strtoul(hz, NULL, 0),
					.inherit = 1 };

	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0ul) < 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
	unsigned long threads = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
	pthread_t ids[THREADS_MAX];
	const char *hz = getenv("SELF_COST_HZ");
	double begin, begin_cpu;

	depth = argc > 2 ? strtoul(argv[2], NULL, 0) : 20;
	units = argc > 3 ? strtoul(argv[3], NULL, 0) : 30000000;
	if (threads < 1 || threads > THREADS_MAX)
		return 2;
	if (hz && interrupt(hz) < 0) {
		perror("self-cost: perf_event_open");
		return 1;
	}
	begin = seconds(CLOCK_MONOTONIC);
	begin_cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	for (unsigned long i = 1; i < threads; i++)
		if (pthread_create(&ids[i], NULL, work, NULL) != 0)
			return 1;
	work(NULL);
	for (unsigned long i = 1; i < threads; i++)
		pthread_join(ids[i], NULL);
	printf("%.6f %.6f\n", seconds(CLOCK_MONOTONIC) - begin,
	       seconds(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu);
	return 0;
}
