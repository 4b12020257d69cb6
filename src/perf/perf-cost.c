/* SPDX-License-Identifier: MIT */
/*
 * Measures the cost of a clock's sample on this machine: this thread does the same work
 * with and without a timer. A timer interrupt takes a microsecond on bare metal and
 * twenty in some virtual machines, so no constant would do.
 */
#include "perf-state.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
	COST_HZ = 10000,
	COST_ROUNDS = 9, /* of each kind; the fastest counts */
	COST_STACK_BYTES = 32 * 1024, /* copied per sample */
	COST_RING_PAGES = 64,
	WORK_STEPS = 1000000, /* one or two milliseconds */
};
#define NS_PER_S 1000000000ull

static uint64_t cpu_ns_of_this_thread(void)
{
	struct timespec now;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) < 0)
		return 0;
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static __attribute__((noinline)) uint64_t measure_work_ns(void)
{
	uint64_t begin = cpu_ns_of_this_thread();
	volatile uint64_t state = 88172645463325252u;

	for (int i = 0; i < WORK_STEPS; i++)
		state = state * 6364136223846793005u + 1;
	return cpu_ns_of_this_thread() - begin;
}

/* Does the work with COST_STACK_BYTES of stack above it, so that samples copy that
 * much. */
static __attribute__((noinline)) uint64_t measure_work_below_stack_ns(void)
{
	volatile char stack[COST_STACK_BYTES];
	uint64_t ret;

	for (size_t i = 0; i < sizeof(stack); i += 64)
		stack[i] = 1;
	ret = measure_work_ns();
	if (stack[0] == 1)
		return ret;
	return 0;
}

/* Opens a timer with an overwriting ring: the kernel writes every sample although there
 * is no reader. */
static int open_cost_timer(bool kernel, uint32_t stack_bytes, void **ring,
			   size_t *ring_bytes)
{
	const struct pm_regs_arch *arch = pm_regs_native();
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct perf_event_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	attr.freq = 1;
	attr.sample_freq = COST_HZ;
	attr.exclude_kernel = !kernel;
	attr.exclude_callchain_user = 1;
	attr.write_backward = 1;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			   PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN;
	if (stack_bytes > 0 && arch) {
		attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr.sample_regs_user = arch->mask;
		attr.sample_stack_user = stack_bytes;
	}
	fd = pm_sys_perf_event_open(&attr, 0, -1, -1, 0);
	if (fd < 0)
		return -errno;
	*ring_bytes = (COST_RING_PAGES + 1) * page;
	*ring = mmap(NULL, *ring_bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (*ring == MAP_FAILED) {
		int ret = -errno;

		close(fd);
		return ret;
	}
	return fd;
}

static int measure_tick_ns(bool kernel, uint32_t stack_bytes, uint64_t without,
			   double *out)
{
	uint64_t with = UINT64_MAX;
	size_t ring_bytes = 0;
	void *ring = NULL;
	int fd = open_cost_timer(kernel, stack_bytes, &ring, &ring_bytes);

	if (fd < 0)
		return fd;
	for (int i = 0; i < COST_ROUNDS; i++) {
		uint64_t one = measure_work_below_stack_ns();

		with = PM_MIN(one, with);
	}
	munmap(ring, ring_bytes);
	close(fd);
	if (with <= without)
		return -EAGAIN;
	*out = (double)(with - without) / ((double)with * COST_HZ / (double)NS_PER_S);
	return 0;
}

int pm_perf_measure_cost(bool kernel, struct pm_perf_cost *out)
{
	uint64_t without = UINT64_MAX;
	double plain = 0, copied = 0;
	int ret;

	for (int i = 0; i < COST_ROUNDS; i++) {
		uint64_t one = measure_work_below_stack_ns();

		without = PM_MIN(one, without);
	}
	ret = measure_tick_ns(kernel, 0, without, &plain);
	if (ret == 0)
		ret = measure_tick_ns(kernel, COST_STACK_BYTES, without, &copied);
	if (ret < 0)
		return ret;
	out->sample_ns = plain;
	if (copied > plain)
		out->byte_ns = (copied - plain) / COST_STACK_BYTES;
	else
		out->byte_ns = 0;
	return 0;
}
