/* SPDX-License-Identifier: MIT */
/*
 * bind-lazily SECONDS LIBRARY: repeatedly loads the library, has its calls bound one by
 * one, and unloads it. Samples fall into the resolver of lazy bindings, which is entered
 * from the PLT. The library's frames are relative to the stack pointer.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static __attribute__((noinline)) bool binds(const char *library)
{
	void *handle = dlopen(library, RTLD_LAZY);
	void *symbol = handle ? dlsym(handle, "calls_all") : NULL;
	void (*calls_all)(void);

	if (!symbol) {
		fprintf(stderr, "%s\n", dlerror());
		return false;
	}
	__builtin_memcpy(&calls_all, &symbol, sizeof(calls_all));
	calls_all();
	return dlclose(handle) == 0;
}

int main(int argc, char **argv)
{
	clock_t end;

	if (argc != 3)
		return 2;
	end = clock() + (clock_t)(strtod(argv[1], NULL) * CLOCKS_PER_SEC);
	while (clock() < end)
		if (!binds(argv[2]))
			return 1;
	return 0;
}
