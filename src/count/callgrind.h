/* SPDX-License-Identifier: MIT */
/*
 * Reads the files of valgrind's callgrind, as untrusted input (format:
 * valgrind.org/docs/manual/cl-format.html), and sums up the regions that are counted.
 */
#pragma once

#include "pm/count.h"

/* ---- reading ------------------------------------------------------------------------- */

enum {
	PM_CALLGRIND_COLUMNS_MAX = 32,
	PM_CALLGRIND_LINE_MAX = 1 << 20,
	PM_CALLGRIND_NONE = UINT32_MAX,
};

/* The names of one run. Each process and thread of the run has a file of its own; the
 * rows of these files refer to names by ids of this table. */
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
/* Returns the id of a name, which is added if it is new; NONE if out of memory. */
uint32_t pm_callgrind_object_id(struct pm_callgrind_table *table, const char *text);
uint32_t pm_callgrind_file_id(struct pm_callgrind_table *table, const char *text);
/* The level of `name'3` is 3, that of `name` is 1. */
uint32_t pm_callgrind_function_id(struct pm_callgrind_table *table, uint32_t object,
				  const char *text, uint32_t *level);

/* A function at one of its levels of recursion: `fn'2` is the function when it is called
 * while it is already running. */
struct pm_callgrind_who {
	uint32_t object, file, function; /* NONE: not given */
	uint32_t level; /* from 1 on */
};

enum pm_callgrind_kind {
	PM_CALLGRIND_SELF, /* cost of an instruction or a line itself */
	/* The cost of calls of `callee`, including all that these called. */
	PM_CALLGRIND_CALL,
	PM_CALLGRIND_JUMP,
};

struct pm_callgrind_row {
	enum pm_callgrind_kind kind;
	struct pm_callgrind_who who, callee;
	uint64_t address; /* svma; 0 in files without positions of instructions */
	uint64_t line;
	uint64_t target; /* address that a call or a jump went to */
	uint64_t times; /* number of calls, or of jumps that were taken */
	const uint64_t *counts; /* by column; not of jumps */
};

/* Why a file was written, as far as that determines whose costs it has. */
enum pm_callgrind_trigger {
	PM_CALLGRIND_OTHERWISE,
	PM_CALLGRIND_BEFORE_SPAWN, /* a thread is about to call posix_spawn(3) */
	/* A thread has returned from fork, in the parent or in the child: from the system
	 * call alone, or from fork(3) with all its handlers. */
	PM_CALLGRIND_AFTER_FORK,
	PM_CALLGRIND_AFTER_HANDLERS,
};

struct pm_callgrind_header {
	char *columns[PM_CALLGRIND_COLUMNS_MAX];
	size_t columns_len;
	int32_t pid, thread; /* 0: not given */
	char creator[64]; /* "callgrind-3.19.0"; "": not given */
	uint64_t part; /* the number of the dump in its process; 0: not given */
	/* Number of blocks of code that had run when the file was written; 0: not
	 * given. */
	uint64_t last_block;
	enum pm_callgrind_trigger trigger;
	/* The function whose call caused the dump; "": none did. */
	char dumped_before[128];
	bool ended; /* the totals were found: the file is complete */
	uint64_t totals[PM_CALLGRIND_COLUMNS_MAX];
};

struct pm_callgrind;
/* The reader owns @fd from then on, also on failure; @name is for messages. */
int pm_callgrind_open(struct pm_callgrind **out, struct pm_callgrind_table *table, int fd,
		      const char *name, struct pm_error *err);
void pm_callgrind_close(struct pm_callgrind *reader);
/* The header as far as it has been read. */
const struct pm_callgrind_header *pm_callgrind_header(const struct pm_callgrind *reader);
/* Reads the next row. Returns 1; 0 at the end; -EBADMSG or -ENOMEM. Counts are borrowed
 * until the next call. */
int pm_callgrind_next(struct pm_callgrind *reader, struct pm_callgrind_row *out,
		      struct pm_error *err);

enum {
	/* The number of levels of recursion that callgrind separates in functions that
	 * are counted. */
	PM_CALLGRIND_LEVELS = 100,
};

/* ---- sums of regions ------------------------------------------------------------------ */

struct pm_callgrind_sums;

int pm_callgrind_sums_new(struct pm_callgrind_sums **out,
			  const struct pm_engine_options *options);
void pm_callgrind_sums_free(struct pm_callgrind_sums *sums);
/* Adds the file of a process and thread, which is read from @fd and closed. Returns
 * -EBADMSG if the file is damaged; the rows before the damage are added nevertheless. */
int pm_callgrind_sums_add(struct pm_callgrind_sums *sums, int fd, const char *name,
			  struct pm_error *err);
/* Sets the pid of the command's first process: all others are copies of existing
 * processes. */
void pm_callgrind_sums_root(struct pm_callgrind_sums *sums, pid_t pid);
/* To be called when something is missing: numbers of calls become "at least". */
void pm_callgrind_sums_cut(struct pm_callgrind_sums *sums);
/* Writes the cost of each stack as a recording, to options->stacks. */
int pm_callgrind_sums_write_stacks(const struct pm_callgrind_sums *sums,
				   const struct pm_stat *stat, struct pm_error *err);
/* Whether no file contains any cost. */
bool pm_callgrind_sums_are_empty(const struct pm_callgrind_sums *sums);
/* Returns the name of the program that wrote the files; "" before the first one. */
const char *pm_callgrind_sums_creator(const struct pm_callgrind_sums *sums);
/* Fills @run's values and rows, and appends scopes, for the sim.* events of
 * stat->events. */
int pm_callgrind_sums_finish(struct pm_callgrind_sums *sums, struct pm_stat *stat,
			     uint32_t run);
