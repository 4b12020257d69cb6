/* SPDX-License-Identifier: MIT */
/*
 * From one sample record to the id of an interned stack.
 */
#pragma once

#include "pm/chain-modules.h"
#include "pm/perf.h"
#include "pm/chain-raw.h"

struct pm_chains;

/* What chains are made from; all borrowed. */
struct pm_chain_source {
	struct pm_procs *procs;
	struct pm_chain_modules *modules;
	struct pm_file_writer *writer;
	enum pm_call_graph call_graph;
	bool lbr; /* with _FP: branches are calls that have not returned, the user's stack */
	struct pm_chain_jit *jit; /* NULL: generated code is memory like any other */
	struct pm_chain_raw *raw; /* NULL: the stacks themselves are not kept */
	bool stitch; /* put known callers on top of truncated stacks (see stitch.h) */
	bool look; /* where none are known, read the stack of the running thread */
	/* A process may cause only a limited amount of work, because the samples of
	 * others wait meanwhile. Its stacks lack the frames that would exceed the limit:
	 * see PM_UNW_STOP_WORK_LIMIT. */
	bool limited;
	uint64_t rate; /* samples a second that were asked for; 0: as usual */
};

/* Processes whose stacks were not unwound for a while, because they had caused too much
 * work. */
struct pm_chain_cut {
	uint64_t pauses; /* how often that happened */
	uint32_t first_pid; /* to whom it happened first */
	char first_comm[16];
	bool others; /* it happened to others, too */
};

/* Why there are no more frames, as the file says it; for counting, too. */
struct pm_chain {
	uint32_t stack; /* PM_FILE_NONE: no frame at all */
	uint32_t stop; /* index for pm_chain_stop_name() */
	uint32_t own_stop; /* the stop before other samples and looks supplied callers */
	/* the copy lacked part of the stack; other samples or looks supplied callers */
	bool stitched;
	/* For pm_chains_settle(): the sample's time, the frames that are its own, and a number;
	 * 0: there is nothing to settle. */
	uint64_t promise, time;
	uint32_t own_len;
	/* The copy needed at least this many bytes to hold one more frame; 0: it was
	 * not too short. */
	uint64_t wanted_bytes;
};

enum {
	/* Beside the unwinder's own: what the other two kinds of call graph can say. */
	PM_CHAIN_STOP_FP_END =
		PM_UNW_STOP_COUNT, /* the kernel's chain ended, root or not */
	PM_CHAIN_STOP_NOT_ASKED, /* --call-graph none */
	PM_CHAIN_STOP_NOT_SAMPLED, /* blocked time: the kernel gave no stack for it */
	/* A return probe has put the kernel's trampoline in the place of the return address,
	 * or an instruction with a probe is being executed in the kernel's copy of it. */
	PM_CHAIN_STOP_UPROBE,
	PM_CHAIN_STOP_LBR_END, /* the CPU's record ended, root or not */
	PM_CHAIN_STOP_EXEC, /* in execve(2): the old program is gone, the new one not begun */
	/* The kernel copied fewer bytes than were requested, because a page of the
	 * stack was not present. A larger copy would not help. */
	PM_CHAIN_STOP_NO_PAGE,
	PM_CHAIN_STOP_COUNT,
};
const char *pm_chain_stop_name(uint32_t stop);

enum {
	PM_CHAIN_AHEAD_MAX = 8, /* more at once are hardly faster, and hold the rings */
};

struct pm_chains *pm_chains_new(const struct pm_chain_source *source);
void pm_chains_free(struct pm_chains *chains);
/* Processes have left in @chains, which is new, what they had left in @from, which ends; and what
 * happened to them there is known. */
void pm_chains_inherit(struct pm_chains *chains, struct pm_chains *from);
/* 0 or negative errno of the file or of memory. */
int pm_chains_add(struct pm_chains *chains, const struct pm_record *record,
		  struct pm_chain *ret);
/*
 * Updates the chain of a truncated stack with the callers that are known by now. Later
 * samples and looks at the thread's memory may have added callers. Callers are removed if
 * another caller may have replaced them. Returns 0 or negative errno.
 */
int pm_chains_settle(struct pm_chains *chains, struct pm_chain *chain);
/* The branches of @record, which was the last one added; good until the next call. None where
 * they are its stack. 0 or negative errno. */
int pm_chains_branches(struct pm_chains *chains, const struct pm_record *record,
		       const struct pm_file_branch **ret, size_t *len);
/*
 * Unwinds the stacks of @records side by side, which is faster than one by one when they are
 * in no cache. pm_chains_add() has to follow for each of these very records, in order and
 * before anything else happens; it takes what was found if that still holds. @len 0 forgets
 * what was found, as has to be done before other records come to stand where these did.
 */
void pm_chains_ahead(struct pm_chains *chains, const struct pm_record *records,
		     size_t len);
/* What was known of its stack holds no more: it ended, or its id is a new one's. */
void pm_chains_forget_thread(struct pm_chains *chains, uint32_t pid, uint32_t tid);
void pm_chains_forget_process(struct pm_chains *chains, uint32_t pid);
void pm_chains_cut(const struct pm_chains *chains, struct pm_chain_cut *ret);
/* To be called when the writer begins a new generation of stacks. */
void pm_chains_forget_stacks(struct pm_chains *chains);
size_t pm_chains_stitch_bytes(const struct pm_chains *chains);
void pm_chains_stats(const struct pm_chains *chains, struct pm_unw_stats *ret);
