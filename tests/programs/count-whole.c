/* SPDX-License-Identifier: MIT */
/*
 * count-whole PAGES SLEEPS MS [THREADS]: touches PAGES new pages, sleeps SLEEPS times,
 * and computes until it has used MS milliseconds of CPU time since its start. Then it
 * runs threads named "worker", one after the other, each of which touches as many pages
 * again, plus one for each thread before it.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "work.h"

static void touch(size_t pages)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *memory = mmap(NULL, pages * page + 1, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		exit(1);
	/* Huge pages would cause fewer faults. */
	madvise(memory, pages * page, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < pages; i++)
		((volatile char *)memory)[i * page] = 1;
	munmap(memory, pages * page + 1);
}

static void *work_in_thread(void *pages)
{
	prctl(PR_SET_NAME, "worker");
	touch(*(size_t *)pages);
	return NULL;
}

int main(int argc, char **argv)
{
	struct timespec moment = { .tv_nsec = 100000 };
	size_t pages = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	long sleeps = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	long ms = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
	double begin = cpu_seconds(); /* some was used before the exec */
	long threads = argc > 4 ? strtol(argv[4], NULL, 10) : 0;

	touch(pages);
	for (long i = 0; i < sleeps; i++)
		nanosleep(&moment, NULL);
	while ((cpu_seconds() - begin) * 1000 < (double)ms)
		work(10);
	for (long i = 0; i < threads; i++) {
		size_t more = pages + (size_t)i;
		pthread_t thread;

		if (pthread_create(&thread, NULL, work_in_thread, &more) != 0 ||
		    pthread_join(thread, NULL) != 0)
			return 1;
	}
	puts("done");
	return 0;
}
