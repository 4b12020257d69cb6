/* SPDX-License-Identifier: MIT */
/* A thread and the main thread burn CPU time, half of it below a caller in the C
 * library. */
#include "unwind-burn.h"

#include <pthread.h>

static clock_t end;
static volatile uint64_t sink;

static NOINLINE int compare(const void *a, const void *b)
{
	sink = burn_steps(sink, 2000);
	return *(const int *)a - *(const int *)b;
}

static NOINLINE void burn_for_long(void)
{
	int numbers[] = { 5, 3, 8, 1, 7, 2, 6, 4 };

	while (clock() < end) {
		sink = burn_steps(sink, 20000);
		qsort(numbers, sizeof(numbers) / sizeof(numbers[0]), sizeof(numbers[0]),
		      compare);
	}
}

static void *in_thread(void *arg)
{
	burn_for_long();
	sink++;
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t other;

	end = burn_until(argc, argv);
	if (pthread_create(&other, NULL, in_thread, NULL) != 0)
		return 1;
	burn_for_long();
	sink++;
	return pthread_join(other, NULL);
}
