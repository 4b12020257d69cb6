/* SPDX-License-Identifier: MIT */
/* Equal units of work, for programs with a known truth. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Each function stays separate: nothing is inlined, and no copies are made for its
 * arguments. */
#if defined(__clang__)
#define NOINLINE __attribute__((noinline, aligned(64)))
#else
#define NOINLINE __attribute__((noinline, noclone, aligned(64)))
#endif

/*
 * Units of the same cost everywhere, a few cycles per step. A macro, because an inlined
 * function would own the time.
 */
#define work(units)                                                  \
	do {                                                         \
		unsigned int end_ = (units)*256u;                    \
		for (unsigned int i_ = 0; i_ < end_; i_++)           \
			__asm__ volatile("" : : "r"(i_) : "memory"); \
	} while (0)

/*
 * Between half and one and a half times @units, different each time. Work that always
 * takes the same time would run in step with the sampling, and always be sampled in the
 * same places.
 */
static inline unsigned int vary(uint32_t *state, unsigned int units)
{
	*state = *state * 1103515245u + 12345u;
	return units / 2 + (*state >> 16) % units;
}

static inline double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
