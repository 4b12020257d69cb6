/* SPDX-License-Identifier: MIT */
/*
 * The threads that the file already knows, and their names there. A thread gets a line
 * when a sample of it is written, and another one if its name has changed before a later
 * sample.
 */
#pragma once

#include "pm/file.h"

enum {
	/* The most lines for one thread in one second. Its other samples in that second
	 * have the name of the last line. */
	PM_CHAIN_RENAMES_MAX = 1024,
	/* With more threads, the table forgets all of them, and each gets a line again
	 * with its next sample. 3.3 MB. */
	PM_CHAIN_THREADS_MAX = 1 << 16,
};

/* A name, and when it became known. */
struct pm_chain_name {
	char comm[16]; /* "": none is known */
	uint64_t since_ns; /* 0: unknown */
};

/* The names of the thread of a sample and of the first thread of its process, whose name
 * is also the process's, at the time of the sample. */
struct pm_chain_names {
	struct pm_chain_name thread, leader; /* `leader` is empty for the first thread */
	bool known; /* false: the kernel did not report whose sample it is */
};

struct pm_chain_thread {
	uint32_t pid, tid;
	char comm[16];
	uint32_t second; /* of the last line */
	uint32_t lines; /* in that second */
};

struct pm_chain_threads {
	PM_VEC(struct pm_chain_thread) list;
	struct pm_index index;
	/* samples that got an outdated name, because the limit was reached */
	uint64_t misnamed;
	uint64_t clamped; /* number of times beyond the file's range */
};

void pm_chain_threads_release(struct pm_chain_threads *threads);
size_t pm_chain_threads_bytes(const struct pm_chain_threads *threads);
/* To be called right before a sample of (@pid, @tid) at @time is written: writes the
 * `thread` lines that the sample needs. */
int pm_chain_threads_name(struct pm_chain_threads *threads, struct pm_file_writer *writer,
			  uint32_t pid, uint32_t tid, const struct pm_chain_names *names,
			  uint64_t time);
