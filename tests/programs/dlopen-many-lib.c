/* SPDX-License-Identifier: MIT */
/* One of the libraries of dlopen-many. */
#include "work.h"

__attribute__((visibility("default"))) NOINLINE void spend(double seconds);

void spend(double seconds)
{
	double end = cpu_seconds() + seconds;

	while (cpu_seconds() < end)
		work(16);
}
