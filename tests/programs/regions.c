/* SPDX-License-Identifier: MIT */
/* Functions and ranges whose places are known: inlined functions, jumps, functions with
 * two names. Lines are found by the words in their comments. */
#include <stdio.h>
#include <stdlib.h>

#ifdef __clang__
#define KEEP static __attribute__((noinline, used))
#else
#define KEEP static __attribute__((noinline, noclone, used))
#endif

static inline __attribute__((always_inline)) int clamp(int value)
{
	int kept = value & 0xffff;

	if (kept > 1000)
		kept = kept % 1000;
	return kept;
}

KEEP int twice(int value) /* twice */
{
	return value * 2 + 1;
}
static int doubled(int value) __attribute__((alias("twice"), used));

KEEP int choose(int what, int value) /* choose */
{
	switch (what) {
	case 0:
		return twice(value);
	case 1:
		return puts("one");
	case 2:
		return value / 3;
	case 3:
		return clamp(value) ^ 77;
	case 4:
		return value - 5;
	case 5:
		abort();
	case 6:
		return rand();
	}
	return 8;
}

KEEP int loop(const int *values, int len) /* loop */
{
	int sum = 0;

	for (int i = 0; i < len; i++) {
		sum += clamp(values[i]); /* body */
		if (sum > 1000000)
			sum = twice(sum); /* end of body */
	}
	return sum ^ 3;
}

KEEP int hand_over(int value) /* hand over */
{
	return choose(value & 7, value);
}

int main(void)
{
	int values[] = { 3, 5, 70000 };

	return hand_over(4) + loop(values, 3) == 1;
}
