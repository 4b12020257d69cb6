/* SPDX-License-Identifier: MIT */
/*
 * Scopes of known truth: three rounds of `outer`, in each of which `inner` has four
 * fifths of the work, in two threads. self-scope cost [N]: prints the cost of an empty
 * scope in ns; left: one scope never ends.
 */
#include <errno.h>
#include <pmself.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "work.h"

enum {
	COST_SCOPES = 100000,
};

static void *rounds(void *unused)
{
	for (int i = 0; i < 3; i++) {
		pmself_scope_begin("outer");
		work(8000);
		pmself_scope_begin("inner");
		work(32000);
		pmself_scope_end("inner");
		pmself_scope_end("outer");
	}
	return unused;
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* The minimum of several turns, as other load on the machine only adds. */
static void cost(long scopes)
{
	double least = 1e18;

	for (int turn = 0; turn < 10; turn++) {
		double begin = now_ns(), each;

		for (long i = 0; i < scopes / 10; i++) {
			pmself_scope_begin("empty");
			pmself_scope_end("empty");
		}
		each = (now_ns() - begin) / ((double)scopes / 10);
		if (each < least)
			least = each;
	}
	printf("%.1f\n", least);
}

int main(int argc, char **argv)
{
	struct pmself_counts counts = PMSELF_COUNTS_INIT;
	pthread_t id;

	if (argc > 1 && strcmp(argv[1], "cost") == 0) {
		cost(argc > 2 ? strtol(argv[2], NULL, 0) : COST_SCOPES);
		return 0;
	}
	if (argc > 1 && strcmp(argv[1], "unsized") == 0) {
		counts.size = 0;
		return pmself_scope_read("one", &counts) != -EINVAL ||
		       pmself_scope_read("one", &counts) != -EINVAL;
	}
	if (argc > 1 && strcmp(argv[1], "left") == 0)
		return pmself_scope_begin("left");
	if (pthread_create(&id, NULL, rounds, NULL) != 0)
		return 1;
	rounds(NULL);
	pthread_join(id, NULL);
	if (pmself_scope_read("inner", &counts) == 0)
		printf("%llu\n", (unsigned long long)counts.calls);
	return 0;
}
