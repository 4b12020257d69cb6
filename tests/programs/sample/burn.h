/* SPDX-License-Identifier: MIT */
/* The unit of work of which the sample program does 6, 3 and 1 parts. */
#pragma once

#include <stdint.h>

/*
 * Each step depends on the previous one, so that steps take the same time everywhere. A
 * macro, because an inlined function would own the time in the report. The constant
 * differs for each user, because the compiler merges equal functions.
 */
#define BURN(value, steps, constant)                                                   \
	do {                                                                           \
		for (unsigned int step_ = 0; step_ < (unsigned int)(steps); step_++) { \
			(value) ^= (value) >> 29;                                      \
			(value) = (value)*UINT64_C(constant) + 1;                      \
		}                                                                      \
	} while (0)

uint64_t thirty_percent(uint64_t value, unsigned int steps);
