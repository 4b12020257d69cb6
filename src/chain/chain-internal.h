/* SPDX-License-Identifier: MIT */
/*
 * The inside of chains:
 *   chain.c         the frames of a sample, and their stack in the file
 *   chain-stitch.c  the callers of a stack that was cut off
 *   chain-branches.c  what the CPU has recorded of branches
 */
#pragma once

#include "budget.h"
#include "pm/chain.h"
#include "stitch.h"

enum {
	/* What we take from a callchain at most; the sysctl goes no higher than 640 K. */
	PM_CHAIN_CALLCHAIN_MAX = 1024,
	PM_CHAIN_FRAMES_MAX = PM_UNW_FRAMES_MAX + PM_CHAIN_CALLCHAIN_MAX,
	PM_CHAIN_SLOTS = 256, /* a power of two */
};

struct pm_chain_frame {
	uint64_t address;
	uint32_t module;
	uint32_t how;
};

/* How frames were found, beside the unwinder's ways (enum pm_unw_how). */
enum {
	PM_CHAIN_HOW_LBR = PM_UNW_HOW_COUNT, /* the CPU's record of calls */
	PM_CHAIN_HOW_BRANCH, /* an end of a branch, in no stack */
};

/* The last chain of a thread, root first. Its successor mostly differs at the leaf only. */
struct pm_chain_slot {
	uint32_t pid, tid;
	size_t len, cap;
	struct pm_chain_frame *frames;
	uint32_t *stacks;
};

/* A stack that was unwound before its turn. */
struct pm_chain_ahead {
	const struct pm_record *record;
	const struct pm_process *process;
	uint64_t version; /* of the space */
	struct pm_unw_space space;
	struct pm_unw_regs regs;
	struct pm_unw_frame frames[PM_UNW_FRAMES_MAX];
	size_t len;
	uint64_t missed;
	enum pm_unw_stop stop;
};

enum {
	PM_CHAIN_LOOK_PROCESSES = 64,
};

/* How many bytes looks have read of the stacks of running threads within this second. */
struct pm_chain_looks {
	uint64_t second;
	uint32_t pid;
	uint32_t bytes;
};

struct pm_chains {
	struct pm_chain_source from;
	struct pm_unwinder *unwinder;
	struct pm_chain_stitches *stitches; /* NULL: --no-stitch */
	struct pm_chain_budget *budget; /* NULL: there is no limit */
	char cut_comm[16]; /* of the first process that has used up its share */
	uint64_t stacks_seen; /* ids of the file below this one */
	uint64_t samples; /* so far */
	struct pm_chain_slot slots[PM_CHAIN_SLOTS];
	struct pm_unw_frame found[PM_UNW_FRAMES_MAX];
	struct pm_chain_stitch_frame
		known[PM_UNW_FRAMES_MAX]; /* `found` as stitching sees it */
	struct pm_chain_frame
		frames[PM_CHAIN_FRAMES_MAX]; /* of the sample at hand, leaf first */
	size_t frames_len;
	size_t own_len; /* of them: not from other samples; with a promise only */
	uint32_t own[PM_CHAIN_FRAMES_MAX]; /* for pm_chains_settle() */
	struct pm_chain_ahead ahead[PM_CHAIN_AHEAD_MAX];
	size_t ahead_len;
	const struct pm_record *record; /* the one at hand */
	uint32_t own_stop; /* why they ended before that */
	bool stitched; /* some of them */
	bool wanting; /* no other sample shows the outer callers */
	/* The address of the return address that `found` lacks, above the copy; 0: unknown. */
	uint64_t missed;
	uint64_t wanted_bytes; /* see struct pm_chain; with a promise only */
	uint64_t promise; /* of stitching, or 0 */
	/* Buffer for the pieces that looks read. NULL: none so far. */
	uint8_t *memory;
	struct pm_chain_looks looks, process_looks[PM_CHAIN_LOOK_PROCESSES];
	uint64_t outermost_sp; /* of the last stitched frame */
	PM_VEC(struct pm_file_branch) branches; /* of the last sample */
};

/* Adds the frame at avma @lookup, which is in @map (NULL: in none). 0 or negative errno. */
int pm_chains_push(struct pm_chains *chains, uint64_t lookup,
		   const struct pm_unw_map *map, uint32_t how);
int pm_chains_push_kernel(struct pm_chains *chains, uint64_t lookup, uint32_t how);
enum {
	PM_CHAIN_REOPENED_MAX = 64, /* files with frames in one stack */
};
/*
 * Whether a file that one of the first @len frames of chains->found lies in was closed to make
 * room. It is open again then, and the frames are to be found anew.
 */
bool pm_chains_reopen_closed(struct pm_chains *chains, size_t len);
/* Subtracts work of @ns from the budget of the process of the record at hand. */
void pm_chains_spend(struct pm_chains *chains, uint64_t ns);
/* The callers that PERF_SAMPLE_BRANCH_CALL_STACK gave. */
int pm_chains_push_lbr(struct pm_chains *chains, const struct pm_sample *sample,
		       const struct pm_unw_space *space);
/* The id of @frame, of the record at hand, in the file. */
int pm_chains_frame(struct pm_chains *chains, const struct pm_chain_frame *frame,
		    uint32_t *ret);
/*
 * Goes on above the last @len frames, the user's part of the chain, which were found in
 * @stack from @regs. @stop is what stopped them, and becomes ROOT when the chain is complete.
 * 0 or negative errno.
 */
int pm_chains_stitch(struct pm_chains *chains, const struct pm_record *record,
		     const struct pm_unw_space *space, const struct pm_unw_regs *regs,
		     const struct pm_unw_stack *stack, size_t len, uint32_t *stop);
