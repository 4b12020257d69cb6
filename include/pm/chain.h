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
	bool stitch; /* complete truncated stacks with known callers (see stitch.h) */
	/* if no callers are known, read the stack of the running thread: a look */
	bool look;
	/* A process may cause only a limited amount of work, because the samples of
	 * others wait for it. Its stacks lack the frames that would exceed the limit: see
	 * PM_UNW_STOP_WORK_LIMIT. */
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

/* A sample's stack in the file, and the reason why it has no more frames. */
struct pm_chain {
	uint32_t stack; /* id in the file; PM_FILE_NONE: no frames */
	uint32_t stop; /* index for pm_chain_stop_name() */
	uint32_t own_stop; /* the stop before other samples and looks supplied callers */
	/* the copy lacked part of the stack; other samples or looks supplied callers */
	bool stitched;
	/* For pm_chains_settle(): the number of a promise (0: there is nothing to
	 * settle), the sample's time, and the number of its own frames. */
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
	PM_CHAIN_STOP_NOT_SAMPLED, /* blocked time: the kernel provided no stack */
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
/* Moves the remaining budgets of processes, and the pauses counted so far, from @from,
 * which is about to be freed, to the new @chains. */
void pm_chains_inherit(struct pm_chains *chains, struct pm_chains *from);
/* Unwinds the stack of @record and interns it. Returns 0, or a negative errno from the
 * file or from memory. */
int pm_chains_add(struct pm_chains *chains, const struct pm_record *record,
		  struct pm_chain *out);
/*
 * Updates the chain of a truncated stack with the callers that are known by now. Later
 * samples, and later looks at the thread's memory, may have found callers. A caller is
 * removed if another function may have been the caller. Returns 0 or negative errno.
 */
int pm_chains_settle(struct pm_chains *chains, struct pm_chain *chain);
/* Returns the branches of @record, which must be the last record added; they are valid
 * until the next call. There are none if the stack was made from the branches. Returns 0
 * or a negative errno. */
int pm_chains_branches(struct pm_chains *chains, const struct pm_record *record,
		       const struct pm_file_branch **out, size_t *len);
/*
 * Unwinds the stacks of @records side by side, which is faster than one by one if they
 * are not in the CPU's caches. The caller must then call pm_chains_add() for each of
 * these records, in order and before anything else happens; it uses the results that are
 * still valid. If @len is 0, the results are discarded; this is required before the
 * memory of @records is used for other records.
 */
void pm_chains_ahead(struct pm_chains *chains, const struct pm_record *records,
		     size_t len);
/* Call these for a thread or process that has exited, or whose id was reused: they
 * discard its stacks. */
void pm_chains_forget_thread(struct pm_chains *chains, uint32_t pid, uint32_t tid);
void pm_chains_forget_process(struct pm_chains *chains, uint32_t pid);
void pm_chains_cut(const struct pm_chains *chains, struct pm_chain_cut *out);
/* Call this when the writer starts a new generation of stacks. */
void pm_chains_forget_stacks(struct pm_chains *chains);
size_t pm_chains_stitch_bytes(const struct pm_chains *chains);
void pm_chains_stats(const struct pm_chains *chains, struct pm_unw_stats *out);
