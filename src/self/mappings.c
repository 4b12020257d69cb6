/* SPDX-License-Identifier: MIT */
#include "mappings.h"

#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <time.h>

enum {
	BUFFER_BYTES = 16384,
	EXECUTABLE = 2, /* position of the x in rwxp */
	FORK_WAIT_NS = 100000000, /* far longer than a check takes */
};

/* ---- the dynamic linker's counts ----------------------------------------------------------- */

/*
 * Held while the linker's lock is held. If a child were forked at that moment, it would
 * find the linker's lock taken forever, because libc does not reset it.
 */
static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;
static _Atomic pid_t forking; /* the thread that forks and holds the lock; 0: none */

/* If a thread forks while it holds the linker's lock itself, a check may be waiting for
 * that lock and never release ours. Therefore the fork waits for our lock only for a
 * while. */
static void mappings_before_fork(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += FORK_WAIT_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	if (pthread_mutex_timedlock(&looking, &until) == 0)
		forking = gettid();
}

static void mappings_in_parent(void)
{
	if (forking != gettid())
		return;
	forking = 0;
	pthread_mutex_unlock(&looking);
}

static void mappings_in_child(void)
{
	const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	looking = fresh;
	forking = 0;
}

int pm_self_mappings_init(void)
{
	static bool forks_watched;
	int ret = 0;

	if (!forks_watched)
		ret = -pthread_atfork(mappings_before_fork, mappings_in_parent,
				      mappings_in_child);
	forks_watched = ret == 0;
	return ret;
}

/* The counts are the same in each callback (dl_iterate_phdr(3)). */
static int on_library(struct dl_phdr_info *info, size_t size, void *user)
{
	struct pm_self_mappings *now = user;

	if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs)) {
		now->loaded = info->dlpi_adds;
		now->unloaded = info->dlpi_subs;
	}
	return 1;
}

bool pm_self_libraries_changed(struct pm_self_mappings *known)
{
	struct pm_self_mappings now = { 0 };
	bool changed;

	pthread_mutex_lock(&looking);
	dl_iterate_phdr(on_library, &now);
	pthread_mutex_unlock(&looking);
	changed = now.loaded != known->loaded || now.unloaded != known->unloaded;
	known->loaded = now.loaded;
	known->unloaded = now.unloaded;
	return changed;
}

/* ---- the kernel's map ---------------------------------------------------------------------- */

/* The state of the parser within a line of the map (proc(5)). */
struct line {
	uint64_t hash; /* FNV-1a of the line so far */
	size_t words, in_word;
	bool executable;
};

static uint64_t hash_add(uint64_t hash, uint64_t value)
{
	return (hash ^ value) * 0x100000001b3u;
}

/* Adds a character. Only lines of code are hashed, because heaps and stacks grow all the
 * time. */
static void hash_maps_char(struct line *line, uint64_t *sum, char c)
{
	if (c == '\n') {
		if (line->executable)
			*sum = hash_add(*sum, line->hash);
		*line = (struct line){ 0 };
		return;
	}
	line->hash = hash_add(line->hash, (uint8_t)c);
	if (line->words == 1 && line->in_word == EXECUTABLE)
		line->executable = c == 'x';
	line->in_word++;
	if (c == ' ') {
		line->words++;
		line->in_word = 0;
	}
}

bool pm_self_mappings_changed(struct pm_self_mappings *known)
{
	/* If the first thread has ended, the kernel shows no mappings for it. */
	PM_AUTO_CLOSE int fd = open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
	char buffer[BUFFER_BYTES];
	struct line line = { 0 };
	uint64_t sum = 1;
	ssize_t len;

	if (fd < 0)
		return true;
	while ((len = read(fd, buffer, sizeof(buffer))) > 0)
		for (ssize_t i = 0; i < len; i++)
			hash_maps_char(&line, &sum, buffer[i]);
	if (len == 0 && sum == known->sum)
		return false;
	if (len == 0)
		known->sum = sum;
	else
		known->sum = 0;
	return true;
}
