/* SPDX-License-Identifier: MIT */
/*
 * Calls a function of a library that is loaded while the program runs, unloaded, and loaded
 * again: `count-dlopen LIBRARY [TIMES]`.
 */
#include "count.h"

#include <dlfcn.h>
#include <stdlib.h>

typedef unsigned long (*function)(unsigned long value);

static unsigned long use(const char *path, unsigned long times)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	function in_library = library ? (function)dlsym(library, "in_library") : NULL;
	unsigned long result = 0;

	if (!in_library)
		exit(1);
	for (unsigned long i = 0; i < times; i++)
		result += in_library(i);
	dlclose(library);
	return result;
}

int main(int argc, char **argv)
{
	unsigned long times = argc > 2 ? strtoul(argv[2], NULL, 10) : 100;

	if (argc < 2)
		return 2;
	use(argv[1], times);
	use(argv[1], times);
	truth("in_library", 2 * times, 0);
	return 0;
}
