/* SPDX-License-Identifier: MIT */
/* The library of count-dlopen. */
unsigned long in_library(unsigned long value);

static volatile unsigned long sink;

__attribute__((visibility("default"))) unsigned long in_library(unsigned long value)
{
	sink += value;
	return sink;
}
