/* SPDX-License-Identifier: MIT */
/*
 * If a library is rebuilt in place while its symbols are read, the file is truncated
 * under our mapping, and reading it raises SIGBUS. Copying multi-gigabyte files instead
 * would be worse. The handler therefore replaces missing pages with zeros, and the file
 * is treated like any other broken file.
 *
 * This is the only process-wide state of the symboliser. The handler is installed only
 * while files are open, and passes on signals that are not ours.
 */
#include "symbol-parts.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int users; /* number of images that are open in all threads */
static struct sigaction previous;
/* This kind of SIGBUS is sent to the thread that reads; only its own images need to be
 * searched. */
static _Thread_local struct pm_elf_image *images;

static void on_missing_page(int number, siginfo_t *info, void *context)
{
	int saved = errno;
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t at = (uintptr_t)info->si_addr;

	for (const struct pm_elf_image *image = images; image; image = image->next) {
		uintptr_t start = (uintptr_t)image->map;

		if (at < start || at - start >= image->map_len)
			continue;
		/* mmap() is a plain system call here, and safe in a signal handler. */
		if (mmap((char *)image->map + (at - start) / page * page, page,
			 PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			 -1, 0) != MAP_FAILED) {
			errno = saved;
			return;
		}
	}
	/* The access is repeated after the return, now with the previous handler. */
	sigaction(SIGBUS, &previous, NULL);
	errno = saved;
}

void pm_guard_add(struct pm_elf_image *image)
{
	struct sigaction action = { .sa_sigaction = on_missing_page,
				    .sa_flags = SA_SIGINFO | SA_NODEFER };

	image->next = images;
	images = image;
	image->is_guarded = true;
	pthread_mutex_lock(&lock);
	if (users++ == 0) {
		sigemptyset(&action.sa_mask);
		sigaction(SIGBUS, &action, &previous);
	}
	pthread_mutex_unlock(&lock);
}

void pm_guard_remove(struct pm_elf_image *image)
{
	struct pm_elf_image **link;

	/* A thread that guards no image must not access the thread-local variable: its
	 * first use may need the dynamic linker's lock. */
	if (!image->is_guarded)
		return;
	link = &images;
	while (*link && *link != image)
		link = &(*link)->next;
	if (*link)
		*link = image->next;
	image->is_guarded = false;
	pthread_mutex_lock(&lock);
	if (--users == 0)
		sigaction(SIGBUS, &previous, NULL);
	pthread_mutex_unlock(&lock);
}
