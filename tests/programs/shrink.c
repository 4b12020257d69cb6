/* SPDX-License-Identifier: MIT */
/*
 * shrink LIBRARY MS: runs code of a copy of a library, shrink.so in this directory,
 * truncates it to almost nothing while it is mapped, and ends at once. The library
 * exports `int turn(int)`.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* CPU time, as other processes may delay us. */
static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	long end = now_ms() + (argc > 2 ? strtol(argv[2], NULL, 10) : 200);
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int (*turn)(int) = NULL;

	if (library)
		*(void **)&turn = dlsym(library, "turn");
	if (!turn) {
		fprintf(stderr, "shrink: %s\n", dlerror());
		return 1;
	}
	for (int value = 1; now_ms() < end;)
		value = turn(value);
	if (truncate(argv[1], 100) < 0)
		return 1;
	/* Any function called now might be in the library. */
	_exit(0);
}
