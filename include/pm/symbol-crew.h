/* SPDX-License-Identifier: MIT */
/*
 * Helper processes read symbols and debug information of untrusted files, without
 * privileges and with limits. As many run at once as there are CPUs. If one dies or takes
 * too long, another one continues without the module that caused it. Their output is
 * checked before it is used.
 */
#pragma once

#include <sys/resource.h>

#include "pm/symbol.h"

struct pm_symbol_early;

/* The addresses in one module that need names. */
struct pm_symbol_job {
	const uint64_t *addresses; /* as for pm_symbols_resolve() */
	size_t addresses_len;
	/* a helper with that module open; is consumed. NULL: none */
	struct pm_symbol_early *early;
};

/* The files for a job. */
struct pm_symbol_input {
	int fd; /* of the file; -1: none */
	const void *image; /* of image_len bytes, instead of a file; NULL: none */
	size_t image_len;
	/* Its separate debug file, if already known; -1: search for it as struct
	 * pm_symbol_options says, unless no_search. The file that several debug files
	 * share is always searched for. */
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
	/* Called in the helper while it still has all rights: opens the files of the job,
	 * with small reads only. @out has fd and debug -1 and everything else empty. The
	 * forked process closes everything when it exits. */
	void (*open)(void *user, size_t job, struct pm_symbol_input *out);
	/* The chain of jobs[@job].addresses[@index], innermost first; @index rises with
	 * each call for a job. The strings are borrowed and may contain any characters.
	 * Returns 0, or a negative errno to end everything. */
	int (*symbol)(void *user, size_t job, size_t index,
		      const struct pm_symbol_function *functions, size_t len);
	/* The job is over. @why is NULL, or says why @what was left out. */
	int (*done)(void *user, size_t job, const char *what, const char *why);
	/* Called now and then, and when @wake_fd is readable (-1: none). Negative ends
	 * everything. */
	int (*tick)(void *user);
	int wake_fd;
	const char *process_name; /* of the helpers, up to 15 bytes */
	/* For this many nanoseconds of CPU time, counted over all helpers, they have this
	 * nice value instead of the normal one, if the caller may set it, and real-time
	 * priority if hurry_realtime. 0: never. */
	uint64_t hurry_ns;
	int hurry_nice;
	bool hurry_realtime;
	/* A helper that neither ran nor waited for a CPU for this long, as on a file
	 * system that does not answer, gives up the file that it is reading. 0: 15 s. */
	uint64_t wait_ns;
};

struct pm_symbol_crew_cost {
	unsigned int processes;
	struct timeval user, system; /* of all processes */
	long memory_kb; /* of the largest process, including memory shared with us */
};

/* Each job goes to one process, in the order of @jobs; the largest should come first. No
 * other thread of the process may hold a lock that calls->open needs. Adds to @cost.
 * Returns 0, the result of a callback, or -ENOMEM. */
int pm_symbol_crew_run(const struct pm_symbol_job *jobs, size_t len,
		       const struct pm_symbol_crew_calls *calls,
		       struct pm_symbol_crew_cost *cost);

/*
 * Starts a helper that opens one module, and reads everything that does not depend on the
 * addresses, before these are known; names are then found sooner. It exits by itself if
 * that is little work, or if no request comes for half a minute. @calls->open gets @key
 * as the job; the helper makes none of the other calls. @yields: until the request, it
 * runs only on an otherwise idle CPU; the caller must have the right to end that. The
 * process may have other threads, which hold no lock that @calls->open needs. Returns 0
 * or negative errno.
 */
int pm_symbol_early_start(const struct pm_symbol_crew_calls *calls, size_t key,
			  bool yields, struct pm_symbol_early **out);
/* Whether the helper can still be asked. */
bool pm_symbol_early_is_there(struct pm_symbol_early *early);
/* Ends the helper if it was not asked. */
void pm_symbol_early_free(struct pm_symbol_early *early);
