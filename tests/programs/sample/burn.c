/* SPDX-License-Identifier: MIT */
#include "burn.h"

__attribute__((visibility("default"), noinline)) uint64_t thirty_percent(
	uint64_t value, unsigned int steps)
{
	BURN(value, steps, 0xbf58476d1ce4e5b9);
	return value;
}
