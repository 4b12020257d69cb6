/* SPDX-License-Identifier: MIT */
/* Works in alone() until it has used 0.4 s of CPU time, then in together() in two threads
 * until it has used 1 s. */
#include "work.h"

#include <pthread.h>

static NOINLINE void alone(void)
{
	while (cpu_seconds() < 0.4)
		work(1000);
}

static NOINLINE void together(void)
{
	while (cpu_seconds() < 1)
		work(1000);
}

static void *run(void *unused)
{
	(void)unused;
	together();
	return NULL;
}

int main(void)
{
	pthread_t threads[2];

	alone();
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, run, NULL) != 0)
			return 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
