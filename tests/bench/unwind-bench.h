/* SPDX-License-Identifier: MIT */
/*
 * What the files of unwind-bench share:
 *   unwind-bench.c       options, order of things, printing
 *   unwind-bench-load.c  a corpus into memory, as the unwinder wants it
 *   unwind-bench-elf.c   the files of a corpus, for who unwinds from files
 *   unwind-bench-ours.c  our unwinder against the clock
 *   unwind-bench-dw.c    libdw without a cache of rules
 *   unwind-bench-peers.c libdwfl and libdw against the clock, on the same samples
 *   unwind-bench-check.c our chains against libdwfl's
 *
 * A program for developers: without memory it aborts.
 */
#pragma once

#include "pm/corpus.h"
#include "pm/unwind.h"
#include "tests/oracle/dwfl-chain.h"
#include "tests/oracle/spaces.h"

#include <time.h>

enum {
	BENCH_STOPS = PM_UNW_STOP_COUNT,
};

struct bench_module {
	char *path;
	uint8_t build_id[PM_CORPUS_BUILD_ID_MAX];
	uint32_t build_id_len;
	uint32_t machine, flags;
	uint64_t entry;
	PM_VEC(struct pm_corpus_load) loads;
	struct pm_corpus_part eh_frame_hdr, eh_frame, debug_frame; /* data owned */
	/* Of the pieces of code, by svma; data owned. */
	PM_VEC(struct pm_unw_part) code;
	struct pm_unw_module *unw; /* from these bytes */
	bool rebuilt; /* the file for the peers was made from these bytes */
};

struct bench_sample {
	struct pm_unw_regs regs;
	struct pm_unw_stack stack;
	uint32_t space;
};

struct bench_space {
	struct spaces_maps maps; /* tag: index of the module */
	size_t samples; /* of this space */
};

struct bench_corpus {
	const char *path;
	bool cut;
	PM_VEC(struct bench_module) modules;
	PM_VEC(struct bench_space) spaces;
	PM_VEC(struct bench_sample) samples;
	PM_VEC(void *) chunks; /* mappings that hold the stacks */
	size_t chunk_used;
	uint64_t stack_bytes;
	uint64_t left_out; /* samples beyond the limit of memory */
	uint64_t foreign; /* samples of a machine that is not unwound */
	struct spaces_modules files; /* by module; fd -1: not to be had */
	bool files_open;
};

static inline uint64_t bench_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline struct pm_unw_space bench_space_of(const struct bench_corpus *corpus,
						 const struct bench_sample *sample)
{
	const struct spaces_maps *maps = &corpus->spaces.data[sample->space].maps;

	return (struct pm_unw_space){ maps->maps.data, maps->maps.len };
}

/* Takes at most @max_bytes of stacks. 0 or negative errno with a text. */
int bench_corpus_load(struct bench_corpus *ret, const char *path, uint64_t max_bytes,
		      struct pm_error *err);
void bench_corpus_release(struct bench_corpus *corpus);

/* Opens the files of all modules, those on this machine where the build-id is the same, else
 * ones made from the bytes in the corpus. */
void bench_files_open(struct bench_corpus *corpus);
/* A file with these headers and this CFI, each where the original has it; -1: not possible. */
int bench_file_rebuild(const struct bench_module *module);

/* Takes the samples [from, from + len) out of all caches of the CPU. */
void bench_evict(const struct bench_sample *samples, size_t len);

/* ---- ours ------------------------------------------------------------------------------ */

struct bench_ours {
	size_t batch; /* samples that are unwound side by side; set by the caller */
	uint64_t frames, stops[BENCH_STOPS];
	double first_ns, cold_ns, hot_ns; /* a frame */
	struct pm_unw_stats stats; /* of one pass that begins with nothing */
	double start_ms; /* first sample of a process, all its modules opened from files */
	size_t start_modules;
};

/* One pass of each kind. */
void bench_ours_pass(struct bench_corpus *corpus, struct bench_ours *ret);
/* A line per sample: stop reason, program counters in hex, leaf first. */
int bench_ours_print(struct bench_corpus *corpus, FILE *to);

/* ---- the others ------------------------------------------------------------------------ */

struct bench_peer {
	uint64_t samples, frames; /* that were timed */
	double cold_ns, hot_ns; /* a frame */
	size_t bytes; /* that it keeps, from malloc */
};

struct bench_peers;

struct bench_peers *bench_peers_new(struct bench_corpus *corpus, size_t every);
void bench_peers_free(struct bench_peers *peers);
/* One pass over one in `every` samples by each; adds up. */
void bench_peers_pass(struct bench_peers *peers);
void bench_peers_result(const struct bench_peers *peers, struct bench_peer *dwfl,
			struct bench_peer *dw, double *dwfl_start_ms);

struct bench_dw;

struct bench_dw *bench_dw_new(struct bench_corpus *corpus);
void bench_dw_free(struct bench_dw *dw);
/* Returns how many frames; their pcs to @pcs, at most @max. */
size_t bench_dw_unwind(struct bench_dw *dw, const struct bench_sample *sample,
		       uint64_t *pcs, size_t max);

/* ---- comparing --------------------------------------------------------------------------- */

/* Every sample against libdwfl; prints counts. False: there was a mismatch. */
bool bench_check(struct bench_corpus *corpus);
/* As bench_ours_print(), by libdwfl: `error`, or `end`, which to libdwfl is the root and a
 * return address that it cannot read. */
int bench_dwfl_print(struct bench_corpus *corpus, FILE *to);
