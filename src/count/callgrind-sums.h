/* SPDX-License-Identifier: MIT */
/* Sums of regions, collected while files are read: callgrind-sums.c fills them,
 * callgrind-scopes.c makes scopes of them. */
#pragma once

#include "callgrind-stacks.h"

#include <sys/stat.h>

/* The counts of one region in one function, of all threads or of the thread (pid,
 * thread). */
struct pm_callgrind_tally {
	uint32_t region, function;
	int32_t pid, thread; /* 0, 0: all of them */
	bool at_entry; /* this function contains the region's first instruction */
	bool recursive; /* calls itself from within the region */
	uint32_t max_level; /* at the first instruction */
	/* `back` counts jumps to the first instruction from inside. */
	uint64_t entered, nested, back;
	uint64_t left; /* by its known exits */
	/* One value per column: own costs and calls at the first level of recursion; the
	 * same at deeper levels; and, at the first level, costs of code that was jumped
	 * to at the end, which is not part of the region. */
	uint64_t *first, *deeper, *tail;
};

/* A place where a region was called. */
struct pm_callgrind_site {
	uint32_t region, function;
	uint64_t address;
	uint32_t file;
	uint64_t line, calls;
	uint64_t *costs; /* one for each column */
};

struct pm_callgrind_thread {
	int32_t pid, thread;
	uint64_t *costs;
};

/*
 * A process that is a copy of another one. It starts with the costs of all threads of its
 * parent, and reports them again. Only the thread that called fork exists in the copy,
 * too. The costs of this thread up to the fork belong to the parent, and later ones to
 * the copy; a few instructions of the copy itself are lost with the first part. The costs
 * of the other threads never belong to the copy.
 */
struct pm_callgrind_copy {
	int32_t pid;
	/* The thread that exists in the copy; 0: no thread's costs are known to be the
	 * copy's own; -1: all are, since it has executed a program. */
	int32_t thread;
	uint64_t last_block; /* in its first part */
	/* The copy created threads. Their costs are added to those of the threads with
	 * the same numbers in the parent. */
	bool made_threads;
};

/* A piece of a region; sorted by module and address. */
struct pm_callgrind_piece {
	uint32_t module, region;
	uint64_t low, high;
	uint64_t high_before; /* the greatest `high` up to here, of the module */
};

struct pm_callgrind_exit {
	uint64_t address;
	uint32_t region;
	bool returns;
};

struct pm_callgrind_module {
	dev_t device;
	ino_t inode;
	const char *path; /* borrowed from a region */
};

struct pm_callgrind_sums {
	const struct pm_engine_options *options;
	const struct pm_regions *regions;
	struct pm_callgrind_table table;
	PM_VEC(struct pm_callgrind_module) modules;
	PM_VEC(struct pm_callgrind_piece) pieces;
	PM_VEC(struct pm_callgrind_exit) exits; /* by region and address */
	PM_VEC(uint32_t) module_of; /* by object of the table; NONE: no regions in it */
	PM_VEC(struct pm_callgrind_tally) tallies;
	PM_VEC(struct pm_callgrind_site) sites;
	PM_VEC(struct pm_callgrind_thread) threads;
	PM_VEC(struct pm_callgrind_copy) copies; /* processes that started as copies */
	size_t copies_left_out; /* copies whose own costs cannot be determined */
	/* Copies with handlers of pthread_atfork(3), whose costs are lost with the first
	 * part. */
	size_t copies_with_handlers;
	size_t copies_with_threads;
	enum pm_callgrind_trigger last_trigger; /* of the last file of any process */
	struct pm_index tally_index, site_index;
	/* The columns of the first file. The other files have the same columns, as they
	 * were written with the same options. */
	char *columns[PM_CALLGRIND_COLUMNS_MAX];
	size_t columns_len, instructions;
	uint64_t *total;
	char creator[64];
	bool damaged;
	struct pm_callgrind_stacks *stacks; /* NULL: not requested */
	pid_t root; /* 0: unknown */
	/* The process and thread of the file that is being read. */
	int32_t pid, thread;
};

/* Sums of values from files saturate. */
static inline void pm_callgrind_add(uint64_t *to, uint64_t value)
{
	if (__builtin_add_overflow(*to, value, to))
		*to = UINT64_MAX;
}

/* Returns NULL if there is no such tally. */
const struct pm_callgrind_tally *pm_callgrind_find_tally(
	const struct pm_callgrind_sums *sums, const struct pm_callgrind_tally *key);

/* ---- callgrind-places.c ---------------------------------------------------------------- */

/* Records the addresses of the regions. Returns 0 or -ENOMEM. */
int pm_callgrind_places_add(struct pm_callgrind_sums *sums);
/* Returns NULL if @address is no known exit of the region. */
const struct pm_callgrind_exit *pm_callgrind_find_exit(
	const struct pm_callgrind_sums *sums, uint32_t region, uint64_t address);
bool pm_callgrind_is_inside(const struct pm_region *region, uint64_t address);
/* Gets the module of an object of the table; NONE if no region is in it. Returns 0 or
 * -ENOMEM. */
int pm_callgrind_module_of(struct pm_callgrind_sums *sums, uint32_t object,
			   uint32_t *out);
/* Find the pieces that contain an address: start at _end() and go back while _before()
 * returns true. */
size_t pm_callgrind_pieces_end(const struct pm_callgrind_sums *sums, uint32_t module,
			       uint64_t address);
bool pm_callgrind_piece_before(const struct pm_callgrind_sums *sums, size_t *at,
			       uint32_t module, uint64_t address);
