/* SPDX-License-Identifier: MIT */
/*
 * Shared by jit.c, which keeps the processes and the modules, and jit-process.c, which
 * reads the files of one process.
 */
#pragma once

#include "pm/chain-jit.h"
#include "pm/symbol.h"

enum {
	/* At the same time; each has at least two files open. */
	PM_CHAIN_JIT_PROCESSES_MAX = 512,
	PM_CHAIN_JIT_DUMPS_MAX = 8, /* of one process */
	/* Generations of forks over which names are inherited. */
	PM_CHAIN_JIT_DEPTH_MAX = 16,
	PM_CHAIN_JIT_MISSES_MAX = 1 << 16, /* of one process */
	/* Bytes of a file that are read in one piece: while it is read, the rings
	 * fill. */
	PM_CHAIN_JIT_READ_BYTES = 1 << 20,
	PM_CHAIN_JIT_READS_AT_ONCE = 4, /* pieces of that size */
};
/* Limit of all unwind information. It is kept until the end, because the unwinder may
 * refer to it. */
#define PM_CHAIN_JIT_UNWIND_BYTES_MAX ((size_t)64 << 20)
/* Memory of all tables. Above this limit, nothing is added to any table. */
#define PM_CHAIN_JIT_BYTES_MAX ((size_t)256 << 20)
/* Above this, a new process replaces the least recently used one. */
#define PM_CHAIN_JIT_BYTES_FULL ((size_t)224 << 20)
/* Above this, a new process replaces all that have exited. */
#define PM_CHAIN_JIT_BYTES_ENDED ((size_t)64 << 20)

/* The time that reading names may take while samples wait; it refills. */
struct pm_chain_jit_time {
	uint64_t left_ns, filled_ns;
};

/* Identifies a frame in the generated code of a process. */
struct pm_chain_jit_place {
	uint64_t address;
	uint32_t generation;
	uint32_t how; /* enum pm_unw_how */
};

/* A place that has no name yet, and the first and last time when it was sampled. */
struct pm_chain_jit_miss {
	struct pm_chain_jit_place place;
	uint32_t frame; /* PM_FILE_NONE until the file has the frame */
	uint64_t first_ns, last_ns;
	bool done; /* it was named, or will never be */
};

struct pm_chain_jit_dump {
	struct pm_jitdump *reader;
	int fd;
	char *path;
	uint32_t major, minor;
	uint64_t inode;
	uint64_t waits_ns; /* time of the next record; UINT64_MAX: there is none */
	bool unusable; /* and counted as unusable */
};

/* A function with unwind information, which is part of the process's space. */
struct pm_chain_jit_covered {
	struct pm_unw_map map;
	uint64_t serial;
};

struct pm_chain_jit_process {
	pid_t pid;
	uint32_t refs;
	struct pm_chain_jit_process *parent; /* its names also apply to this process;
	                                      * holds a reference */
	uint32_t depth; /* the number of ancestors */
	bool over; /* only its names are kept, because children use them */
	bool exited; /* and has not been sampled since */
	struct pm_jit_table *table;
	bool looked; /* whether `files` and the map were searched for */
	struct pm_jit_files files;
	int map_fd; /* -1: none */
	struct pm_error map_why; /* why the last map that was found could not be used */
	struct pm_perf_map map;
	uint64_t map_read_ns; /* everything that was written before this time is in the
	                       * table */
	bool map_rest; /* more is left than is read in one piece */
	PM_VEC(struct pm_chain_jit_dump) dumps;
	bool more_dumps; /* there are more dumps than are read */
	/* The epoch of the process's mappings when these were last searched for dumps. */
	uint64_t scanned_epoch;
	uint64_t dumps_ns; /* records up to this time are in the table */
	uint64_t missed_ns; /* time when misses were last checked */
	uint64_t last_miss_ns; /* time of the latest miss */
	PM_VEC(struct pm_chain_jit_miss) misses;
	struct pm_index misses_index;
	PM_VEC(uint32_t) file_ids; /* indexed by generation; PM_FILE_NONE: no frame yet */
	PM_VEC(struct pm_chain_jit_covered) covered; /* sorted */
	uint64_t covered_changes; /* `changes` of the table when `covered` was checked */
	struct pm_chain_jit_time time;
};

struct pm_chain_jit_module {
	struct pm_chain_jit_process *process; /* NULL: the process is gone */
	uint32_t generation;
	uint32_t file_id;
};

struct pm_chain_jit {
	struct pm_chain_jit_source from;
	/* Shared by the tables of all processes, including processes that only their
	 * children refer to. */
	struct pm_jit_budget budget;
	int64_t since_ns; /* CLOCK_REALTIME */
	struct pm_chain_jit_time time; /* of all processes */
	uint64_t reads_put_off; /* number of reads that were put off because the time was
	                         * used up */
	PM_VEC(struct pm_chain_jit_process *)
	processes; /* the most recently used one is last */
	/* `processes`, and those that only their children refer to. */
	PM_VEC(struct pm_chain_jit_process *) alive;
	PM_VEC(struct pm_chain_jit_module) modules; /* sorted by file_id */
	PM_VEC(struct pm_unw_module *) unwind_modules;
	size_t unwind_bytes;
	uint32_t first_frame; /* `named` was made for the generation that starts with this
	                       * frame */
	PM_VEC(uint8_t) named; /* bitmap, by frame, from first_frame on */
	/* Counted for the warnings at the end. */
	uint64_t ambiguous, left_out;
	uint64_t bad_lines; /* lines of perf maps that are not valid */
	uint64_t misses_left; /* frames that were not kept because of MISSES_MAX */
	uint64_t rewritten; /* frames that have no name because their map was rewritten */
	uint64_t forks_left; /* processes that did not inherit names because of
	                      * DEPTH_MAX */
	uint64_t dumps_left; /* processes with more than DUMPS_MAX */
	uint64_t files_unread; /* files whose end was beyond the reading limit */
	bool unwind_full; /* unwind information of some function was left out */
	struct pm_error unusable; /* the first file that could not be used */
	size_t unusable_count;
};

/* Whether there is time now to read names of @process. If so, pm_chain_jit_end_reading()
 * must follow. */
bool pm_chain_jit_begin_reading(struct pm_chain_jit *jit,
				struct pm_chain_jit_process *process, uint64_t *begun_ns);
void pm_chain_jit_end_reading(struct pm_chain_jit *jit,
			      struct pm_chain_jit_process *process, uint64_t begun_ns);
/* Returns the time until which the remaining names of a process may be read while samples
 * wait. pm_chain_jit_end_dropping() must follow and gets *@begun_ns. */
uint64_t pm_chain_jit_begin_dropping(struct pm_chain_jit *jit, uint64_t *begun_ns);
void pm_chain_jit_end_dropping(struct pm_chain_jit *jit, uint64_t begun_ns);
int pm_chain_jit_open_dump(struct pm_chain_jit *jit, struct pm_chain_jit_process *process,
			   const struct pm_module_identity *mapped);
/* Updates the table with everything written up to @time_ns. Returns 0, or a negative
 * errno if writing the recording fails or memory runs out. */
int pm_chain_jit_refresh(struct pm_chain_jit *jit, struct pm_chain_jit_process *process,
			 uint64_t time_ns);
/* Notes a place without a name. @frame is PM_FILE_NONE if the file does not have the
 * frame yet. */
int pm_chain_jit_miss(struct pm_chain_jit *jit, struct pm_chain_jit_process *process,
		      struct pm_chain_jit_place place, uint64_t time_ns, uint32_t frame);
uint64_t pm_chain_jit_now_ns(void); /* CLOCK_MONOTONIC */
/* Reads the remaining parts of the files until @until_ns (pm_chain_jit_now_ns()), names
 * missed places, and counts problems. */
int pm_chain_jit_finish_process(struct pm_chain_jit *jit,
				struct pm_chain_jit_process *process, uint64_t until_ns);
/* Prints warnings about the problems that were counted. */
void pm_chain_jit_tell(struct pm_chain_jit *jit);

bool pm_chain_jit_is_named(const struct pm_chain_jit *jit, uint32_t frame);
/* Writes the symbol line of @frame. */
int pm_chain_jit_name(struct pm_chain_jit *jit, uint32_t frame,
		      const struct pm_jit_function *function, uint64_t address);
