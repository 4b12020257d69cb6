/* SPDX-License-Identifier: MIT */
/* A library of count-life. */
__attribute__((noinline, visibility("default"))) int from_library(int x);

int from_library(int x)
{
	return x * 3;
}
