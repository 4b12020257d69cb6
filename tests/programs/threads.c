/* SPDX-License-Identifier: MIT */
/* Four threads, named worker-0 to worker-3, work until they have used 0.6 s of CPU
 * time. */
#include "work.h"

#include <pthread.h>
#include <stdio.h>

static void *run(void *number)
{
	char name[16];

	snprintf(name, sizeof(name), "worker-%d", *(int *)number);
	pthread_setname_np(pthread_self(), name);
	while (cpu_seconds() < 0.6)
		work(1000);
	return NULL;
}

int main(void)
{
	pthread_t threads[4];
	int numbers[4];

	for (int i = 0; i < 4; i++) {
		numbers[i] = i;
		if (pthread_create(&threads[i], NULL, run, &numbers[i]) != 0)
			return 1;
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
