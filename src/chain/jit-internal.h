/* SPDX-License-Identifier: MIT */
/*
 * What jit.c (who asks for what) and jit-process.c (what one process tells) share.
 */
#pragma once

#include "pm/chain-jit.h"
#include "pm/symbol.h"

enum {
	PM_CHAIN_JIT_PROCESSES_MAX = 512, /* at a time; each has two files open or more */
	PM_CHAIN_JIT_DUMPS_MAX = 8, /* of one process */
	PM_CHAIN_JIT_DEPTH_MAX = 16, /* forks that names come through */
	PM_CHAIN_JIT_MISSES_MAX = 1 << 16, /* of one process */
	PM_CHAIN_JIT_READ_BYTES = 1
				  << 20, /* of a file at once: the rings fill meanwhile */
	PM_CHAIN_JIT_READS_AT_ONCE = 4, /* of that many bytes */
	PM_CHAIN_JIT_READS_AT_THE_END = 1024,
};
/* Of all that is here for unwinding: it is kept to the end, for who unwinds may know it. */
#define PM_CHAIN_JIT_UNWIND_BYTES_MAX ((size_t)64 << 20)
/* Of all tables and that, before the oldest process goes. */
#define PM_CHAIN_JIT_BYTES_MAX ((size_t)512 << 20)

/* The time that reading may take while others wait; it refills. */
struct pm_chain_jit_time {
	uint64_t left_ns, filled_ns;
};

/* What makes a frame of a process's generated code. */
struct pm_chain_jit_place {
	uint64_t address;
	uint32_t generation;
	uint32_t how; /* enum pm_unw_how */
};

/* A place without a name yet, and when it was met. */
struct pm_chain_jit_miss {
	struct pm_chain_jit_place place;
	uint32_t frame; /* PM_FILE_NONE until it is one of the file */
	uint64_t first_ns, last_ns;
	bool done; /* named, or never to be */
};

struct pm_chain_jit_dump {
	struct pm_jitdump *reader;
	int fd;
	char *path;
	uint32_t major, minor;
	uint64_t inode;
	uint64_t
		waits_ns; /* time of the record that is next; UINT64_MAX: none is there */
	bool unusable; /* and that is told */
};

/* A function that the process's space shows with unwind information. */
struct pm_chain_jit_covered {
	struct pm_unw_map map;
	uint64_t serial;
};

struct pm_chain_jit_process {
	pid_t pid;
	uint32_t refs;
	struct pm_chain_jit_process *parent; /* whose names it has, too; held */
	uint32_t depth; /* how many such there are */
	bool over; /* only its names are left, for its children */
	struct pm_jit_table *table;
	bool looked; /* files, map: were looked for */
	struct pm_jit_files files;
	int map_fd; /* -1: none */
	struct pm_error map_why; /* why the last one that was there could not be used */
	struct pm_perf_map map;
	uint64_t map_read_ns; /* what was written before is in the table */
	bool map_rest; /* there was more than is read at once */
	PM_VEC(struct pm_chain_jit_dump) dumps;
	bool more_dumps; /* than are read */
	uint64_t
		scanned_epoch; /* of its mappings, when they were looked through for dumps */
	uint64_t dumps_ns; /* records up to this time are in the table */
	uint64_t missed_ns; /* when misses were last looked through */
	uint64_t last_miss_ns; /* time of the youngest */
	PM_VEC(struct pm_chain_jit_miss) misses;
	struct pm_index misses_index;
	PM_VEC(uint32_t) file_ids; /* by generation; PM_FILE_NONE: no frame yet */
	PM_VEC(struct pm_chain_jit_covered) covered; /* sorted */
	uint64_t covered_changes; /* of the table, when it was checked */
	struct pm_chain_jit_time time;
};

struct pm_chain_jit_module {
	struct pm_chain_jit_process *process; /* NULL: is over */
	uint32_t generation;
	uint32_t file_id;
};

struct pm_chain_jit {
	struct pm_chain_jit_source from;
	int64_t since_ns; /* CLOCK_REALTIME */
	struct pm_chain_jit_time time; /* of all processes */
	uint64_t reads_put_off; /* because of the time that they take */
	PM_VEC(struct pm_chain_jit_process *)
	processes; /* the one asked for last is last */
	PM_VEC(struct pm_chain_jit_process *) alive; /* these, and whom children hold */
	PM_VEC(struct pm_chain_jit_module) modules; /* by file_id */
	PM_VEC(struct pm_unw_module *) unwind_modules;
	size_t unwind_bytes;
	uint32_t first_frame; /* of the generation of the file that this is for */
	PM_VEC(uint8_t) named; /* bitmap, by frame, from first_frame on */
	/* What is told once, at the end. */
	uint64_t ambiguous, left_out;
	uint64_t bad_lines; /* of perf maps */
	uint64_t misses_left; /* frames beyond MISSES_MAX */
	uint64_t rewritten; /* frames without a name whose map was written anew */
	uint64_t forks_left; /* processes that could have names of their parents */
	uint64_t dumps_left; /* processes with more than DUMPS_MAX */
	uint64_t dumps_unread; /* that went on beyond what is read */
	bool unwind_full; /* some function's unwinding was left out */
	struct pm_error unusable; /* the first file that could not be used */
	size_t unusable_count;
};

/* Whether pmrec may spend time now to read names of @process; then
 * pm_chain_jit_end_reading() must follow. */
bool pm_chain_jit_begin_reading(struct pm_chain_jit *jit,
				struct pm_chain_jit_process *process, uint64_t *begun_ns);
void pm_chain_jit_end_reading(struct pm_chain_jit *jit,
			      struct pm_chain_jit_process *process, uint64_t begun_ns);
int pm_chain_jit_open_dump(struct pm_chain_jit *jit, struct pm_chain_jit_process *process,
			   const struct pm_module_identity *mapped);
/* Brings the table to what was told up to @time_ns. 0, errno of the file or of memory. */
int pm_chain_jit_refresh(struct pm_chain_jit *jit, struct pm_chain_jit_process *process,
			 uint64_t time_ns);
/* Remembers a place without a name; @frame PM_FILE_NONE: it is not a frame yet. */
int pm_chain_jit_miss(struct pm_chain_jit *jit, struct pm_chain_jit_process *process,
		      struct pm_chain_jit_place place, uint64_t time_ns, uint32_t frame);
/* Reads all that is left, names what was missed, and counts what was wrong. */
int pm_chain_jit_finish_process(struct pm_chain_jit *jit,
				struct pm_chain_jit_process *process);
/* Says what was wrong. */
void pm_chain_jit_tell(struct pm_chain_jit *jit);

bool pm_chain_jit_is_named(const struct pm_chain_jit *jit, uint32_t frame);
/* Writes the symbol line of @frame. */
int pm_chain_jit_name(struct pm_chain_jit *jit, uint32_t frame,
		      const struct pm_jit_function *function, uint64_t address);
