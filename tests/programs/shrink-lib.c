/* SPDX-License-Identifier: MIT */
/* The library of shrink.c, where the time is spent. */
int turn(int value);

__attribute__((noinline, visibility("default"))) int turn(int value)
{
	for (int i = 0; i < 100000; i++)
		value = value * 1103515245 + 12345;
	return value;
}
