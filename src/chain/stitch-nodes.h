/* SPDX-License-Identifier: MIT */
/*
 * Internals of stitching:
 *   stitch-nodes.c  the known frames, and when they are dropped
 *   stitch.c        which of them belong above the frames of a sample
 */
#pragma once

#include "stitch.h"

enum {
	/* Two consecutive samples are in the same call of one function if both have a
	 * frame of the same file with the same stack pointer and the same size, which is
	 * at least this. */
	PM_CHAIN_LARGE_FRAME_BYTES = 4096,
	/* The number of frames of one thread that can be hidden by samples of deeper
	 * frames at the same time. */
	PM_CHAIN_HIDDEN_MAX = 8,
	/* A thread has at most this many times as many known frames as one sample has: as
	 * it returns from some, outer ones come within reach of the copy. */
	PM_CHAIN_KNOWN_TIMES = 4,
};

/* The module of a node that is not a frame but represents the unknown callers of a large
 * frame. Its return_address is the stack pointer of that frame. */
#define PM_CHAIN_NODE_JOINT (UINT32_MAX - 1)

/* Values of `parent` that are not ids. */
#define PM_CHAIN_NODE_ROOT    (UINT32_MAX - 1)
#define PM_CHAIN_NODE_UNKNOWN UINT32_MAX

/*
 * A frame and its caller; all nodes form a tree. The callers of a node do not change,
 * except that an unknown caller may become known.
 */
struct pm_chain_node {
	uint64_t sp, address, return_address;
	uint32_t module;
	uint32_t thread; /* serial number of its thread */
	uint32_t parent;
	uint16_t evidence
		[PM_CHAIN_EVIDENCE_WORDS]; /* hashes of what its callee saved; 0: unknown */
	/* The last time when `parent` is known to have been the caller; UINT64_MAX: it
	 * still is. After that time there was another caller, and no sample shows when it
	 * replaced the first. 0: no sample shows `parent`, but a look did. */
	uint64_t parent_until;
	/* See struct pm_chain_stitch_sample. Two different values mean that the thread
	 * switched away from the frame twice; the function may also have been called
	 * twice. */
	uint64_t left_with;
};

/* A truncated stack that may still get other outer callers. */
struct pm_chain_promise {
	uint32_t node; /* the outermost of its own frames; PM_CHAIN_NODE_UNKNOWN:
	                * dropped */
	uint32_t len; /* number of its own frames */
	uint32_t outer; /* number of outer frames that were known when it was added */
	bool rooted; /* the outer frames ended at the root */
};

/*
 * A frame with unknown callers that recent samples did not reach, because their copies
 * end further in.
 */
struct pm_chain_hidden {
	/* The frame's node, or for a large frame the node that represents its callers. */
	uint32_t node;
	uint32_t module;
	uint64_t sp; /* of the frame */
	uint64_t time; /* time of the first sample that did not reach it */
};

struct pm_chain_stitch_thread {
	uint32_t pid, tid;
	uint32_t serial; /* 0: the row is free */
	PM_VEC(uint32_t) nodes; /* the last chain, outermost first */
	struct pm_chain_hidden
		hidden[PM_CHAIN_HIDDEN_MAX]; /* the most recently hidden one is last */
	uint32_t hidden_len;
	/* The frames that a look found above nodes[0], leaf first, and the time of the
	 * look; empty if there is no result that waits. */
	PM_VEC(struct pm_chain_stitch_frame) offer;
	uint64_t offer_time;
	bool offer_rooted;
	/* The time of the last look whose result no sample confirmed. */
	uint64_t unconfirmed_time;
	/* The time of the last look at return addresses, and the number of stitched
	 * samples since. */
	uint64_t seen_time;
	uint32_t unseen;
	/* The time of the last look that found all return addresses in place. */
	uint64_t good_time;
	/* The time of a look above nodes[0] that found no more callers; 0: there was
	 * none. */
	uint64_t fruitless_time;
	/* Whether a frame that had been absent was joined to its callers again since
	 * seen_time. */
	bool rejoined;
	/* The innermost frame that the last look did not find in place, and the time of
	 * that look (0: it found all of them). */
	uint64_t doubt_time;
	struct pm_chain_stitch_frame doubted;
};

struct pm_chain_stitches {
	PM_VEC(struct pm_chain_node) nodes;
	/* node + 1, by hash of thread and frame: the last node with a known caller. */
	uint32_t *slots;
	size_t slots_cap; /* 0 or a power of two, at least twice the nodes */
	PM_VEC(struct pm_chain_stitch_thread) threads;
	PM_VEC(uint32_t) free_threads;
	struct pm_index by_id;
	uint32_t serials;
	/* The last PM_CHAIN_STITCH_PROMISES_MAX promises, as a ring: number n is at index
	 * n modulo that size. */
	struct pm_chain_promise *promises;
	uint64_t promised; /* number of promises given so far; they are numbered from 1 */
	PM_VEC(uint32_t) before; /* the last chain of the current thread */
	PM_VEC(struct pm_chain_stitch_frame) outer; /* the last result */
};

static inline bool pm_chain_node_same_place(const struct pm_chain_node *node,
					    const struct pm_chain_node *other)
{
	return node->sp == other->sp && node->address == other->address &&
	       node->module == other->module;
}

/* Whether the two nodes may be the same call. */
static inline bool pm_chain_node_may_be(const struct pm_chain_node *node,
					const struct pm_chain_node *other)
{
	return pm_chain_node_same_place(node, other) &&
	       (node->left_with == other->left_with || node->left_with == 0 ||
		other->left_with == 0);
}

/* Makes room for @more nodes; this may remove old ones. Returns 0 or -ENOMEM. */
int pm_chain_nodes_reserve(struct pm_chain_stitches *stitches, size_t more);
/* Adds a node, for which room was reserved, and returns its id. */
uint32_t pm_chain_nodes_add(struct pm_chain_stitches *stitches,
			    const struct pm_chain_node *node);
/* Sets the caller of @id, which was unknown. */
void pm_chain_nodes_set_parent(struct pm_chain_stitches *stitches, uint32_t id,
			       uint32_t parent);
/* Returns the last node of this frame that has a known caller, or else the last one with
 * an unknown caller, or PM_CHAIN_NODE_UNKNOWN if there is none. */
uint32_t pm_chain_nodes_find(const struct pm_chain_stitches *stitches,
			     const struct pm_chain_node *key);
