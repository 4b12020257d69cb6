/* SPDX-License-Identifier: MIT */
/*
 * Symbols and debug information of files that anybody made, read by helper processes without
 * privileges and with limits: as many at once as there are CPUs, a new one where one died or
 * took too long, without the module that it died of. What they say is believed only as far as
 * it has the right form.
 */
#pragma once

#include <sys/resource.h>

#include "pm/symbol.h"

struct pm_symbol_early;

/* The names of one module. */
struct pm_symbol_job {
	const uint64_t *addresses; /* as for pm_symbols_resolve() */
	size_t addresses_len;
	struct pm_symbol_early *early; /* has that module open; is used up. NULL: none */
};

/* What is read for a job. */
struct pm_symbol_input {
	int fd; /* of the file; -1: none */
	const void *image; /* of image_len bytes, instead of a file; NULL: none */
	size_t image_len;
	/* Its separate debug file, where that is known beforehand; -1: it is looked for, as
	 * struct pm_symbol_options says, unless no_search. The file that several debug files
	 * share is always looked for. */
	int debug;
	bool no_search;
	const char *debug_dir;
	pid_t pid;
	const char *path;
};

enum {
	PM_SYMBOL_CHAIN_MAX =
		256, /* functions of one inline chain; compilers stay far below */
};

struct pm_symbol_crew_calls {
	void *user;
	/* In the helper, while it still has all rights: opens what the job needs, by small
	 * reads only; @ret has fd and debug -1 and all else empty. Runs in a forked process,
	 * whose end closes everything. */
	void (*open)(void *user, size_t job, struct pm_symbol_input *ret);
	/* The chain of jobs[@job].addresses[@index], innermost first; @index rises with each
	 * call for a job. Nothing is known of the characters of texts, which are borrowed.
	 * 0, or a negative errno to end it all. */
	int (*symbol)(void *user, size_t job, size_t index,
		      const struct pm_symbol_function *functions, size_t len);
	/* The job is over; @why NULL or, in words, why @what was left out. */
	int (*done)(void *user, size_t job, const char *what, const char *why);
	/* Now and then, and when @wake_fd is readable (-1: none); negative to end it all. */
	int (*tick)(void *user);
	int wake_fd;
	const char *process_name; /* of the helpers, up to 15 bytes */
	/* For this many nanoseconds of CPU time, counted over all helpers, they have this
	 * nice value instead of the usual one, if the caller may set it. 0: never. */
	uint64_t hurry_ns;
	int hurry_nice;
	/* A helper that neither ran nor waited for a CPU for this long, as on a file
	 * system that does not answer, loses the file at hand. 0: 15 s. */
	uint64_t wait_ns;
};

struct pm_symbol_crew_cost {
	unsigned int processes;
	struct timeval user, system; /* of all of them */
	long memory_kb; /* of the largest, with what it shares with us */
};

/* Each job goes to one process, in the order of @jobs; the largest should come first.
 * Other threads of the process hold no lock that calls->open needs. Adds to @cost. 0, or
 * the result of a call; -ENOMEM. */
int pm_symbol_crew_run(const struct pm_symbol_job *jobs, size_t len,
		       const struct pm_symbol_crew_calls *calls,
		       struct pm_symbol_crew_cost *cost);

/*
 * A helper that opens one module, and reads what does not depend on the addresses, before
 * these are known: the names are then found sooner. It ends by itself if that is little
 * work, or if no request comes for half a minute. @calls->open gets @key for a job; the
 * helper makes none of the other calls. @yields: until the request, it runs only on a CPU
 * that has nothing else to do; the caller must be allowed to end that. The process may
 * have other threads, which hold no lock that @calls->open needs. 0 or negative errno.
 */
int pm_symbol_early_start(const struct pm_symbol_crew_calls *calls, size_t key,
			  bool yields, struct pm_symbol_early **ret);
/* Whether it can still be asked. */
bool pm_symbol_early_is_there(struct pm_symbol_early *early);
/* Ends it, if it was not asked. */
void pm_symbol_early_free(struct pm_symbol_early *early);
