/* SPDX-License-Identifier: MIT */
/* The library of unwind-plt.c: functions so short that the PLT stubs take as much
 * time. */
#include "unwind-plt.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT uint64_t plt_first(uint64_t x)
{
	return x + 1;
}

EXPORT uint64_t plt_second(uint64_t x)
{
	return x ^ x >> 3;
}

EXPORT uint64_t plt_third(uint64_t x)
{
	return plt_second(x) + plt_first(x);
}
