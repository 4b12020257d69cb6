/* SPDX-License-Identifier: MIT */
/*
 * Internals of chains:
 *   chain.c           the stack of a sample in the file
 *   chain-frames.c    the frames of a sample
 *   chain-stitch.c    the callers of a truncated stack
 *   chain-branches.c  branches recorded by the CPU
 */
#pragma once

#include "budget.h"
#include "pm/chain.h"
#include "stitch.h"

enum {
	/* The most entries of a callchain that are used; the sysctl's maximum is 640
	 * K. */
	PM_CHAIN_CALLCHAIN_MAX = 1024,
	PM_CHAIN_FRAMES_MAX = PM_UNW_FRAMES_MAX + PM_CHAIN_CALLCHAIN_MAX,
	PM_CHAIN_SLOTS = 256, /* a power of two */
};

struct pm_chain_frame {
	uint64_t address;
	uint32_t module;
	uint32_t how;
};

/* How a frame was found, in addition to enum pm_unw_how. */
enum {
	PM_CHAIN_HOW_LBR = PM_UNW_HOW_COUNT, /* the CPU's record of calls */
	PM_CHAIN_HOW_BRANCH, /* one end of a branch; not part of a stack */
};

/* The last chain of a thread, root first. The next chain usually differs only at the
 * leaf. */
struct pm_chain_slot {
	uint32_t pid, tid;
	size_t len, cap;
	struct pm_chain_frame *frames;
	uint32_t *stacks;
};

/* The result for a stack that was unwound ahead of its turn. */
struct pm_chain_ahead {
	const struct pm_record *record;
	const struct pm_process *process;
	uint64_t version; /* version of the space */
	uint64_t reopened; /* `reopened` of the modules */
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

/* How much of the stacks of running threads was read within this second, and the time
 * that took. Reading part of a running thread's stack is called a look. */
struct pm_chain_looks {
	uint64_t second;
	uint32_t pid;
	uint32_t bytes;
	uint64_t ns;
};

struct pm_chains {
	struct pm_chain_source from;
	struct pm_unwinder *unwinder;
	struct pm_chain_stitches *stitches; /* NULL: --no-stitch */
	struct pm_chain_budget *budget; /* NULL: there is no limit */
	char cut_comm[16]; /* of the first process that has used up its share */
	uint64_t stacks_seen; /* stacks with ids below this one have been used */
	uint64_t samples; /* so far */
	struct pm_chain_slot slots[PM_CHAIN_SLOTS];
	struct pm_unw_frame found[PM_UNW_FRAMES_MAX];
	struct pm_chain_stitch_frame
		known[PM_UNW_FRAMES_MAX]; /* `found`, in the form that stitching needs */
	struct pm_chain_frame
		frames[PM_CHAIN_FRAMES_MAX]; /* of the current sample, leaf first */
	size_t frames_len;
	/* The number of frames that are not from other samples; set only with a
	 * promise. */
	size_t own_len;
	uint32_t own[PM_CHAIN_FRAMES_MAX]; /* for pm_chains_settle() */
	struct pm_chain_ahead ahead[PM_CHAIN_AHEAD_MAX];
	size_t ahead_len;
	const struct pm_record *record; /* the current record */
	uint32_t own_stop; /* the stop reason before stitching */
	bool stitched; /* some frames are from other samples */
	bool wanting; /* no sample so far shows the outer callers */
	bool is_i386; /* of the last sample that was stitched */
	/* Where the return address that `found` lacks is on the stack, beyond the copy;
	 * 0: unknown. */
	uint64_t missed;
	uint64_t wanted_bytes; /* see struct pm_chain; set only with a promise */
	uint64_t promise; /* what stitching promised for this stack; 0: nothing */
	/* Buffer for the pieces that looks read; NULL: not allocated. */
	uint8_t *memory;
	struct pm_chain_looks looks, process_looks[PM_CHAIN_LOOK_PROCESSES];
	uint64_t outermost_sp; /* of the last stitched frame */
	PM_VEC(struct pm_file_branch) branches; /* of the last sample */
};

/* Adds the frame at avma @lookup, which is in @map (NULL: in none). Returns 0 or negative
 * errno. */
int pm_chains_push(struct pm_chains *chains, uint64_t lookup,
		   const struct pm_unw_map *map, uint32_t how);
int pm_chains_push_kernel(struct pm_chains *chains, uint64_t lookup, uint32_t how);
enum {
	PM_CHAIN_REOPENED_MAX = 64, /* files with frames in one stack */
};
/*
 * If one of the first @len frames of chains->found is in a file that had been closed to
 * make room, opens the file again and returns true; the caller must then unwind again.
 */
bool pm_chains_reopen_closed(struct pm_chains *chains, size_t len);
/* Subtracts work of @ns from the budget of the current record's process. */
void pm_chains_spend(struct pm_chains *chains, uint64_t ns);
/* Adds the callers from PERF_SAMPLE_BRANCH_CALL_STACK. */
int pm_chains_push_lbr(struct pm_chains *chains, const struct pm_sample *sample,
		       const struct pm_unw_space *space);
/* Sets @out to the id in the file of @frame of the current record. */
int pm_chains_frame(struct pm_chains *chains, const struct pm_chain_frame *frame,
		    uint32_t *out);
/* The same for a sample at @time. */
int pm_chains_frame_at(struct pm_chains *chains, const struct pm_chain_frame *frame,
		       uint64_t time, uint32_t *out);
/*
 * Adds the callers above the last @len frames, which are the user part of the chain and
 * were found in @stack starting from @regs. @stop is the reason why they ended; it
 * becomes ROOT if the chain is now complete, or LIMIT. Returns 0 or a negative errno.
 */
int pm_chains_stitch(struct pm_chains *chains, const struct pm_record *record,
		     const struct pm_unw_space *space, const struct pm_unw_regs *regs,
		     const struct pm_unw_stack *stack, size_t len, uint32_t *stop);
/* Releases chains->memory. */
void pm_chains_release_look_memory(struct pm_chains *chains);
