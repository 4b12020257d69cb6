/* SPDX-License-Identifier: MIT */
#include "_cgo_export.h"

static __attribute__((noinline)) uint64_t spin_in_c(uint64_t x)
{
	for (int i = 0; i < 2000000; i++) {
		x = x * 6364136223846793005 + 1442695040888963407;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

uint64_t work_in_c(uint64_t x)
{
	return workInGo(spin_in_c(x)) ^ 1;
}
