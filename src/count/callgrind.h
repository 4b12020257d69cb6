/* SPDX-License-Identifier: MIT */
/*
 * Files of valgrind's callgrind, read as foreign input (format:
 * valgrind.org/docs/manual/cl-format.html), and the sums of the regions that are counted.
 */
#pragma once

#include "pm/count.h"

/* ---- reading ------------------------------------------------------------------------- */

enum {
	PM_CALLGRIND_COLUMNS_MAX = 32,
	PM_CALLGRIND_LINE_MAX = 1 << 20,
	PM_CALLGRIND_NONE = UINT32_MAX,
};

/* The names of one run. Its processes and threads have a file each, whose rows mean ids of
 * this table. */
struct pm_callgrind_table {
	PM_VEC(char *) objects, files;
	struct pm_index object_index, file_index, function_index;
	PM_VEC(struct pm_callgrind_function {
		char *name; /* without the level of recursion */
		uint32_t object;
	})
	functions;
};
void pm_callgrind_table_release(struct pm_callgrind_table *table);
/* The id of a name, which is added where it is new. NONE without memory. */
uint32_t pm_callgrind_object_id(struct pm_callgrind_table *table, const char *text);
uint32_t pm_callgrind_file_id(struct pm_callgrind_table *table, const char *text);
/* Of `name'3` the level is 3, of `name` 1. */
uint32_t pm_callgrind_function_id(struct pm_callgrind_table *table, uint32_t object,
				  const char *text, uint32_t *level);

/* A function, or what one of its levels of recursion did: `fn'2` is what it did when it was
 * called while it ran already. */
struct pm_callgrind_who {
	uint32_t object, file, function; /* NONE: nothing was said */
	uint32_t level; /* from 1 on */
};

enum pm_callgrind_kind {
	PM_CALLGRIND_SELF, /* what an instruction or a line cost by itself */
	PM_CALLGRIND_CALL, /* what its calls of @callee cost with all that they called */
	PM_CALLGRIND_JUMP,
};

struct pm_callgrind_row {
	enum pm_callgrind_kind kind;
	struct pm_callgrind_who who, callee;
	uint64_t address; /* svma; 0 in files without positions of instructions */
	uint64_t line;
	uint64_t target; /* where a call or a jump went */
	uint64_t times; /* calls, or jumps that were made */
	const uint64_t *counts; /* by column; not of jumps */
};

/* The reason why a file was written, as far as it matters for whose costs are in it. */
enum pm_callgrind_trigger {
	PM_CALLGRIND_OTHERWISE,
	PM_CALLGRIND_BEFORE_SPAWN, /* a thread is about to call posix_spawn(3) */
	/* A thread has come back from fork, here or in the child: of the system call alone; or of
	 * fork(3) with all its handlers. */
	PM_CALLGRIND_AFTER_FORK,
	PM_CALLGRIND_AFTER_HANDLERS,
};

struct pm_callgrind_header {
	char *columns[PM_CALLGRIND_COLUMNS_MAX];
	size_t columns_len;
	int32_t pid, thread; /* 0: not said */
	char creator[64]; /* "callgrind-3.19.0"; "": not said */
	uint64_t part; /* the number of the dump in its process; 0: not said */
	uint64_t
		last_block; /* how many blocks of code had run when it was made; 0: not said */
	enum pm_callgrind_trigger trigger;
	char dumped_before[128]; /* the function whose call made the dump; "": none did */
	bool ended; /* the totals were there: it was written to its end */
	uint64_t totals[PM_CALLGRIND_COLUMNS_MAX];
};

struct pm_callgrind;
/* @fd is owned by the reader from then on, also when this fails; @name is for messages. */
int pm_callgrind_open(struct pm_callgrind **ret, struct pm_callgrind_table *table, int fd,
		      const char *name, struct pm_error *err);
void pm_callgrind_close(struct pm_callgrind *reader);
/* What was read of it until now. */
const struct pm_callgrind_header *pm_callgrind_header(const struct pm_callgrind *reader);
/* 1, 0 at the end; -EBADMSG, -ENOMEM. Counts are borrowed until the next call. */
int pm_callgrind_next(struct pm_callgrind *reader, struct pm_callgrind_row *ret,
		      struct pm_error *err);

enum {
	/* How deep callgrind tells the recursion of functions that are counted. */
	PM_CALLGRIND_LEVELS = 100,
};

/* ---- sums of regions ------------------------------------------------------------------ */

struct pm_callgrind_sums;

int pm_callgrind_sums_new(struct pm_callgrind_sums **ret,
			  const struct pm_engine_options *options);
void pm_callgrind_sums_free(struct pm_callgrind_sums *sums);
/* Adds a file of a process and thread, read from @fd, which is closed. -EBADMSG: it is damaged,
 * and what stands before the damage is added all the same. */
int pm_callgrind_sums_add(struct pm_callgrind_sums *sums, int fd, const char *name,
			  struct pm_error *err);
/* The process that began with the command: all others are copies of an existing one. */
void pm_callgrind_sums_root(struct pm_callgrind_sums *sums, pid_t pid);
/* Something is missing: numbers of calls are "at least". */
void pm_callgrind_sums_cut(struct pm_callgrind_sums *sums);
/* Writes what each stack has cost, as a recording: of options->stacks. */
int pm_callgrind_sums_write_stacks(const struct pm_callgrind_sums *sums,
				   const struct pm_stat *stat, struct pm_error *err);
/* Whether no file has any cost in it. */
bool pm_callgrind_sums_are_empty(const struct pm_callgrind_sums *sums);
/* What wrote the files, "" before there was one. */
const char *pm_callgrind_sums_creator(const struct pm_callgrind_sums *sums);
/* Fills @run's values and rows, and appends scopes, from stat->events' sim.* events. */
int pm_callgrind_sums_finish(struct pm_callgrind_sums *sums, struct pm_stat *stat,
			     uint32_t run);
