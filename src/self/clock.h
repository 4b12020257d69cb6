/* SPDX-License-Identifier: MIT */
/* The clocks of this process and its threads, in nanoseconds. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Returns 0 if the kernel does not know @clock, because its thread has ended. */
static inline uint64_t pm_self_clock_ns(clockid_t clock)
{
	struct timespec time = { 0 };

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Returns the CPU time of the process except that of the calling thread, the helper.
 * Reads the helper's clock first: if it were read last, the helper would have run in
 * between, and the difference could decrease. */
static inline uint64_t pm_self_cpu_ns(void)
{
	uint64_t own = pm_self_clock_ns(CLOCK_THREAD_CPUTIME_ID);

	return pm_self_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - own;
}
