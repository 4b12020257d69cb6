/* SPDX-License-Identifier: MIT */
/*
 * Turns one sample record into the id of an interned stack.
 */
#pragma once

#include "pm/chain-modules.h"
#include "pm/perf.h"
#include "pm/chain-raw.h"

struct pm_chains;

/* The inputs of chains; all borrowed. */
struct pm_chain_source {
	struct pm_procs *procs;
	struct pm_chain_modules *modules;
	struct pm_file_writer *writer;
	enum pm_call_graph call_graph;
	/* With _FP: the branches are calls that have not returned, i.e. the user's
	 * stack. */
	bool lbr;
	/* NULL: generated code is treated like any other memory. */
	struct pm_chain_jit *jit;
	struct pm_chain_raw *raw; /* NULL: no corpus is kept */
	bool stitch; /* put known callers on top of truncated stacks (see stitch.h) */
	bool look; /* if no callers are known, read the stack of the running thread */
	/* A process may cause only a limited amount of work, because the samples of
	 * others wait meanwhile. Its stacks lack the frames that would exceed the limit:
	 * see PM_UNW_STOP_WORK_LIMIT. */
	bool limited;
	uint64_t rate; /* the requested samples per second; 0: the default */
};

/* Processes whose stacks were not unwound for a while, because they had caused too much
 * work. */
struct pm_chain_cut {
	uint64_t pauses; /* how often that happened */
	uint32_t first_pid; /* the first process that was paused */
	char first_comm[16];
	bool others; /* other processes were paused, too */
};

/* A sample's stack in the file, and why it has no more frames. */
struct pm_chain {
	uint32_t stack; /* an index for pm_chain_stop_name() */
	uint32_t stop; /* index for pm_chain_stop_name() */
	uint32_t own_stop; /* the stop before other samples and looks supplied callers */
	/* the copy lacked part of the stack; other samples or looks supplied callers */
	bool stitched;
	/* For pm_chains_settle(): the sample's time, the number of its own frames, and a
	 * number; 0: there is nothing to settle. */
	uint64_t promise, time;
	uint32_t own_len;
	/* The copy needed at least this many bytes to hold one more frame; 0: it was
	 * not too short. */
	uint64_t wanted_bytes;
};

enum {
	/* In addition to the unwinder's stop reasons. */
	PM_CHAIN_STOP_FP_END =
		PM_UNW_STOP_COUNT, /* the kernel's chain ended, root or not */
	PM_CHAIN_STOP_NOT_ASKED, /* --call-graph none */
	PM_CHAIN_STOP_NOT_SAMPLED, /* blocked time: the kernel gave no stack for it */
	/* A return probe has replaced the return address by the kernel's trampoline, or
	 * an instruction with a probe is being executed in the kernel's copy of it. */
	PM_CHAIN_STOP_UPROBE,
	PM_CHAIN_STOP_LBR_END, /* the CPU's record ended, root or not */
	/* In execve(2): the old program is gone, the new one has not started. */
	PM_CHAIN_STOP_EXEC,
	/* The kernel copied fewer bytes than were requested, because a page of the
	 * stack was not present. A larger copy would not help. */
	PM_CHAIN_STOP_NO_PAGE,
	PM_CHAIN_STOP_COUNT,
};
const char *pm_chain_stop_name(uint32_t stop);

enum {
	/* Larger batches are hardly faster, and keep the rings from being drained. */
	PM_CHAIN_AHEAD_MAX = 8,
};

struct pm_chains *pm_chains_new(const struct pm_chain_source *source);
void pm_chains_free(struct pm_chains *chains);
/* Moves what processes have left of their budgets from @from, which ends, to @chains,
 * which is new, with the pauses counted so far. */
void pm_chains_inherit(struct pm_chains *chains, struct pm_chains *from);
/* Returns 0, or negative errno of the file or of memory. */
int pm_chains_add(struct pm_chains *chains, const struct pm_record *record,
		  struct pm_chain *out);
/*
 * Updates the chain of a truncated stack with the callers that are known by now. Later
 * samples and looks at the thread's memory may have added callers. Callers are removed if
 * another caller may have replaced them. Returns 0 or negative errno.
 */
int pm_chains_settle(struct pm_chains *chains, struct pm_chain *chain);
/* The branches of @record, which must be the last record added; valid until the next
 * call. There are none if the branches are the stack. Returns 0 or negative errno. */
int pm_chains_branches(struct pm_chains *chains, const struct pm_record *record,
		       const struct pm_file_branch **out, size_t *len);
/*
 * Unwinds the stacks of @records side by side, which is faster than one by one if they
 * are in no cache. The caller must then call pm_chains_add() for each of these records,
 * in order and before anything else happens. It uses the results that are still valid.
 * @len 0 discards the results; this is required before the memory of @records is used for
 * other records.
 */
void pm_chains_ahead(struct pm_chains *chains, const struct pm_record *records,
		     size_t len);
/* Forget the stack of a thread or process that has ended, or whose id is used again. */
void pm_chains_forget_thread(struct pm_chains *chains, uint32_t pid, uint32_t tid);
void pm_chains_forget_process(struct pm_chains *chains, uint32_t pid);
void pm_chains_cut(const struct pm_chains *chains, struct pm_chain_cut *out);
/* Call this when the writer starts a new generation of stacks. */
void pm_chains_forget_stacks(struct pm_chains *chains);
size_t pm_chains_stitch_bytes(const struct pm_chains *chains);
void pm_chains_stats(const struct pm_chains *chains, struct pm_unw_stats *out);
