/* SPDX-License-Identifier: MIT */
/* dlopen-many LIBRARY...: loads each and works in each for some milliseconds. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		void *library = dlopen(argv[i], RTLD_NOW);
		void *symbol = library ? dlsym(library, "spend") : NULL;
		void (*spend)(double);

		if (!symbol) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		__builtin_memcpy(&spend, &symbol, sizeof(spend));
		spend(0.003);
	}
	return 0;
}
