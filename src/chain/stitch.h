/* SPDX-License-Identifier: MIT */
/*
 * Finds the outer callers of a stack that was longer than its copy, from earlier stacks
 * of the same thread. This part does no I/O: its input is frames and bytes. Reading part
 * of the running thread's stack, which the caller does on request, is called a look.
 *
 * Outer frames stay while inner ones come and go, so the callers that a frame had a
 * moment ago are usually still there. This is an inference, not proof. A frame counts as
 * the same if its stack pointer and its place in the code are the same, as long as every
 * sample since then has it. A frame that was absent in between counts only if its caller
 * was not absent, or if its callee saved the same registers. Between two samples a thread
 * may return from all these frames and reach the same place in another way, with the same
 * registers. For this reason, stitching requests a look at the return addresses from time
 * to time. Samples that are taken after the look do not get frames that were no longer in
 * place. docs/how-it-works.md has the share of wrong guesses. If no earlier stack shows
 * the callers, a look may show them. A large frame may also be hidden: the copies of
 * later samples end in another large frame further in. For a short time it counts as
 * still there if no sample shows that it has returned.
 *
 * Callers that become known also belong to earlier samples, if every sample since then
 * has the frame. Therefore, pm_chain_stitches_add() returns a promise for each truncated
 * stack; with it, pm_chain_stitches_settle() later returns the callers that are known at
 * that time.
 */
#pragma once

#include "pm/base.h"

struct pm_chain_stitches;

enum {
	/* A function pushes the registers that it has to save right below its return
	 * address: up to six in the psABI. They belong to its caller, and distinguish one
	 * call of the function from another. */
	PM_CHAIN_EVIDENCE_WORDS = 6,
};

/* Identifies a frame. */
struct pm_chain_stitch_frame {
	uint64_t sp; /* 0: unknown */
	uint64_t address;
	uint32_t module;
	/* Hashes of the words that its callee saved, see pm_chain_stitch_hash(); 0:
	 * unknown. */
	uint16_t saved[PM_CHAIN_EVIDENCE_WORDS];
	/* The return address if it is right below sp; 0: it is elsewhere, or was not
	 * read. */
	uint64_t return_address;
};

/* Returns the hash of @word for the member `saved`; never 0. */
static inline uint16_t pm_chain_stitch_hash(uint64_t word)
{
	return (uint16_t)(pm_hash_mix(word, 0) >> 48 | 1);
}

enum pm_chain_stitch_end {
	PM_CHAIN_STITCH_ROOTED,
	PM_CHAIN_STITCH_TRUNCATED, /* the last frame's caller is beyond the copied bytes */
	/* The stack ended for a reason that earlier stacks cannot help with. */
	PM_CHAIN_STITCH_OTHER,
};

/*
 * Whether the return addresses of @frames, leaf first, are in the thread's memory now.
 * Returns false if one is not, or if they cannot be read.
 */
typedef bool (*pm_chain_stitch_in_place_fn)(void *user,
					    const struct pm_chain_stitch_frame *frames,
					    size_t len);

/* The chain of one sample, leaf first; borrowed. */
struct pm_chain_stitch_sample {
	uint32_t pid, tid;
	const struct pm_chain_stitch_frame *frames;
	size_t len;
	enum pm_chain_stitch_end end;
	uint64_t time;
	/* With _TRUNCATED: the stack pointer of the caller of the last frame; 0:
	 * unknown. */
	uint64_t caller_sp;
	/* With _TRUNCATED: a hash of the last frame's state, e.g. its registers, when the
	 * thread switched to another stack. 0: it is unknown, or there was no switch. */
	uint64_t left_with;
	/* With _TRUNCATED: the callers are on another stack, and the switch was not by a
	 * signal; caller_sp is known. */
	bool elsewhere;
	pm_chain_stitch_in_place_fn in_place; /* NULL: the memory cannot be read */
	void *in_place_user;
};

/* The callers above the last frame of the chain. */
struct pm_chain_stitched {
	/* Leaf first; valid until the next call. */
	const struct pm_chain_stitch_frame *frames;
	size_t len; /* 0: no callers are known */
	bool rooted; /* they end at the root */
	bool limited; /* they end because the stack has @max frames */
	/* For pm_chain_stitches_settle(); 0: no callers can be added later. */
	uint64_t promise;
	/* The callers above `frames` are unknown, and no result of a look waits for its
	 * confirmation. */
	bool wanting;
	/* A look at the return addresses of `frames` is due: see
	 * pm_chain_stitches_seen(). */
	bool unseen;
};

/* The limit of nodes of all threads together; beyond it, the older half is dropped. */
enum {
	PM_CHAIN_STITCH_NODES_MAX = 1 << 17, /* each has 64 bytes, and 8 more in the hash
	                                      * table */
	/* The limit of truncated stacks that wait for callers from later samples; a power
	 * of two. */
	PM_CHAIN_STITCH_PROMISES_MAX = 1 << 15,
};

struct pm_chain_stitches *pm_chain_stitches_new(void); /* NULL: out of memory */
void pm_chain_stitches_free(struct pm_chain_stitches *stitches);
/*
 * Adds a chain, and returns its callers, if it is truncated. Chain and callers together
 * never have more than @max frames. The samples of a thread must be added in order of
 * time. Returns 0 or -ENOMEM.
 */
int pm_chain_stitches_add(struct pm_chain_stitches *stitches,
			  const struct pm_chain_stitch_sample *sample, size_t max,
			  struct pm_chain_stitched *out);
/*
 * Finds the callers that are known now above the truncated stack of @promise, which was
 * sampled at @time. Returns true and sets *out if they differ from the result of
 * pm_chain_stitches_add(). Returns false if they do not differ, if the stack was dropped,
 * or if memory runs out.
 */
bool pm_chain_stitches_settle(struct pm_chain_stitches *stitches, uint64_t promise,
			      uint64_t time, size_t max, struct pm_chain_stitched *out);
/*
 * Adds the result of a look at @time, after the thread's last sample: the callers that
 * were found above all known frames of that sample, leaf first; @len is 0 if there were
 * none. The result is used only after a sample from after that time shows that the
 * outermost known frame has stayed. If that frame has not stayed, a later sample may end
 * in one of the others, with the same words saved below it. That sample gets its callers
 * if in_place() then finds all of them. Returns 0 or -ENOMEM.
 */
int pm_chain_stitches_offer(struct pm_chain_stitches *stitches, uint32_t pid,
			    uint32_t tid, const struct pm_chain_stitch_frame *frames,
			    size_t len, bool rooted, uint64_t time);
/*
 * Adds the result of a look at @time at the return addresses of the last result, which
 * was for this thread: the first @present frames, leaf first, are in place, and the next
 * one, if any, is not. For samples from after that time, it cannot be inferred that the
 * next frame stayed: they get neither that frame nor those above it. Samples between this
 * look and the previous one that found everything in place lose these frames when they
 * are settled. @present is SIZE_MAX if the memory could not be read.
 */
void pm_chain_stitches_seen(struct pm_chain_stitches *stitches, uint32_t pid,
			    uint32_t tid, size_t present, uint64_t time);
/* To be called if the thread has exited, or if its id was reused. */
void pm_chain_stitches_forget_thread(struct pm_chain_stitches *stitches, uint32_t pid,
				     uint32_t tid);
/* To be called if the process has executed another program. */
void pm_chain_stitches_forget_process(struct pm_chain_stitches *stitches, uint32_t pid);
size_t pm_chain_stitches_bytes(const struct pm_chain_stitches *stitches);
