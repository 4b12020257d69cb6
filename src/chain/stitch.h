/* SPDX-License-Identifier: MIT */
/*
 * The outer callers of a stack that was longer than the bytes copied of it, from earlier
 * stacks of the same thread. Pure: sees frames and bytes, never a process.
 *
 * Outer frames stay while inner ones come and go, so what was above a frame a moment ago
 * mostly still is. That is an inference and never proof: a frame is taken for the same when
 * stack pointer and place in the code are, as long as it has been in every sample since; one
 * that was gone in between counts only if its caller was not, or if its callee saved the same
 * registers. Between two samples a thread may return from all of it and come back to the same
 * place by another way, with the same registers. So now and then the return addresses are
 * looked for in the thread's memory; what is not in place any more is not given to samples
 * from after the look. docs/how-it-works.md has the share of wrong guesses. Where no earlier
 * stack tells more, a look at the memory may.
 * A large frame may also be hidden: the copies of later samples end in another large frame
 * further in. For a short time it counts as still there if no sample shows that it has gone.
 *
 * Callers that become known also belong to earlier samples, if the frame has been in every
 * sample since. pm_chain_stitches_add() therefore gives a promise for each truncated stack, for
 * which pm_chain_stitches_settle() later returns the callers that are known by then.
 */
#pragma once

#include "pm/base.h"

struct pm_chain_stitches;

/* What a frame is known by. */
struct pm_chain_stitch_frame {
	uint64_t sp; /* 0: unknown */
	uint64_t address;
	uint32_t module;
	/* The return address as it lies right below sp; 0: it does not, or was not seen. */
	uint64_t return_address;
};

enum pm_chain_stitch_end {
	PM_CHAIN_STITCH_ROOTED,
	PM_CHAIN_STITCH_TRUNCATED, /* the last frame's caller is beyond the copied bytes */
	PM_CHAIN_STITCH_OTHER, /* ended for a reason that no earlier stack can mend */
};

/* The chain of one sample, leaf first, and the bytes it came from; all borrowed. */
struct pm_chain_stitch_sample {
	uint32_t pid, tid;
	const struct pm_chain_stitch_frame *frames;
	size_t len;
	enum pm_chain_stitch_end end;
	uint64_t time;
	const uint8_t *stack;
	uint64_t stack_start; /* the address of stack[0] */
	size_t stack_len;
	/* With _TRUNCATED: the stack pointer that the caller of the last frame has; 0: unknown. */
	uint64_t caller_sp;
	/* With _TRUNCATED: a hash of the state of the last frame when the thread switched
	 * to another stack, e.g. its registers. 0: unknown, or on the same stack. */
	uint64_t left_with;
};

/* The callers that go on after the chain's last frame. */
struct pm_chain_stitched {
	const struct pm_chain_stitch_frame *frames; /* leaf first; until the next call */
	size_t len; /* 0: nothing is known */
	bool rooted; /* they end at the root */
	/* For pm_chain_stitches_settle(); 0: nothing can be added later. */
	uint64_t promise;
	bool wanting; /* what is above all this is not known, and nothing is on offer */
	bool unseen; /* it is time to look whether they are there: pm_chain_stitches_seen() */
};

/* How much is remembered, all threads together; beyond it the older half is forgotten. */
enum {
	PM_CHAIN_STITCH_NODES_MAX = 1 << 17, /* of 64 bytes, and 8 to find them by */
	/* The most truncated stacks that wait for callers from later samples; a power of
	 * two. */
	PM_CHAIN_STITCH_PROMISES_MAX = 1 << 15,
};

struct pm_chain_stitches *pm_chain_stitches_new(void); /* NULL without memory */
void pm_chain_stitches_free(struct pm_chain_stitches *stitches);
/*
 * Takes note of a chain, and says what goes on above it; nothing unless it is truncated. The
 * two together never have more than @max frames. Samples of a thread in the order of time. 0
 * or -ENOMEM.
 */
int pm_chain_stitches_add(struct pm_chain_stitches *stitches,
			  const struct pm_chain_stitch_sample *sample, size_t max,
			  struct pm_chain_stitched *ret);
/*
 * Finds the callers that are known by now above the truncated stack of @promise, which
 * was sampled at @time. Returns true and sets *ret if they differ from those that
 * pm_chain_stitches_add() gave. Returns false if they do not, if the stack is forgotten,
 * or without memory.
 */
bool pm_chain_stitches_settle(struct pm_chain_stitches *stitches, uint64_t promise,
			      uint64_t time, size_t max, struct pm_chain_stitched *ret);
/*
 * What a look at the thread's memory at @time, after its last sample, found above all that is
 * known of that sample, leaf first; @len 0: nothing. It is taken for true once a sample from
 * after that time shows that the outermost known frame has been there all along. 0 or -ENOMEM.
 */
int pm_chain_stitches_offer(struct pm_chain_stitches *stitches, uint32_t pid,
			    uint32_t tid, const struct pm_chain_stitch_frame *frames,
			    size_t len, bool rooted, uint64_t time);
/*
 * What a look at @time at the return addresses of the last result found, which was for this
 * thread: @present of its frames, leaf first, are in place, and the next one, if any, is not.
 * A sample from after that time cannot have the next one for continuing to be there: those
 * that would are not given it, nor what is above it. Samples from between that look and the
 * last one that found everything in place lose both when they are settled. @present SIZE_MAX:
 * the memory could not be read.
 */
void pm_chain_stitches_seen(struct pm_chain_stitches *stitches, uint32_t pid,
			    uint32_t tid, size_t present, uint64_t time);
/* The thread has ended, or its id belongs to another one now. */
void pm_chain_stitches_forget_thread(struct pm_chain_stitches *stitches, uint32_t pid,
				     uint32_t tid);
/* The process has another program now. */
void pm_chain_stitches_forget_process(struct pm_chain_stitches *stitches, uint32_t pid);
size_t pm_chain_stitches_bytes(const struct pm_chain_stitches *stitches);
