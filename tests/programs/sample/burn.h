/* SPDX-License-Identifier: MIT */
/* The one piece of work of which the sample program does 6, 3 and 1 parts. */
#pragma once

#include <stdint.h>

/*
 * Each step waits for the one before, so steps take equally long wherever they are. A macro,
 * because an inlined function would own the time in the report; the constant differs for each
 * user, because the compiler merges functions that are equal.
 */
#define BURN(value, steps, constant)                                                   \
	do {                                                                           \
		for (unsigned int step_ = 0; step_ < (unsigned int)(steps); step_++) { \
			(value) ^= (value) >> 29;                                      \
			(value) = (value)*UINT64_C(constant) + 1;                      \
		}                                                                      \
	} while (0)

uint64_t thirty_percent(uint64_t value, unsigned int steps);
