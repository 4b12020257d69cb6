/* SPDX-License-Identifier: MIT */
/*
 * Internals of stitching:
 *   stitch-nodes.c  the remembered frames, and when they are forgotten
 *   stitch.c        which of them belong above those of a sample
 */
#pragma once

#include "stitch.h"

enum {
	/* Two consecutive samples are in the same call of one function if both have a
	 * frame of the same file with the same stack pointer and the same size, which is
	 * at least this. */
	PM_CHAIN_LARGE_FRAME_BYTES = 4096,
	/* Frames of one thread that samples of deeper frames hide at the same time. */
	PM_CHAIN_HIDDEN_MAX = 8,
	/* The known frames of a thread are at most this many times those of one sample:
	 * as a thread returns from some, others come into reach. */
	PM_CHAIN_KNOWN_TIMES = 4,
};

/* The module of a node that is not a frame but represents the unknown callers of a large
 * frame. Its return_address is the stack pointer of that frame. */
#define PM_CHAIN_NODE_JOINT (UINT32_MAX - 1)

/* Used instead of a caller's node. */
#define PM_CHAIN_NODE_ROOT    (UINT32_MAX - 1)
#define PM_CHAIN_NODE_UNKNOWN UINT32_MAX

/*
 * A frame and its caller; all nodes form a tree. A node's callers do not change, with one
 * exception: an unknown caller may become known.
 */
struct pm_chain_node {
	uint64_t sp, address, return_address;
	uint32_t module;
	uint32_t thread; /* serial number of its thread */
	uint32_t parent;
	uint16_t evidence
		[PM_CHAIN_EVIDENCE_WORDS]; /* hashes of what its callee saved; 0: unknown */
	/* UINT64_MAX, or the last time at which `parent` is known to have been the
	 * caller. Later there was another caller, and no sample shows when it replaced
	 * the first. 0: no sample shows `parent`, but a look at the memory did. */
	uint64_t parent_until;
	/* See struct pm_chain_stitch_sample. Two different values mean that the frame was
	 * left twice; it may also have been called twice. */
	uint64_t left_with;
};

/* A truncated stack that may still get other outer callers. */
struct pm_chain_promise {
	uint32_t node; /* its outermost own frame; PM_CHAIN_NODE_UNKNOWN: forgotten */
	uint32_t len; /* the number of its own frames */
	uint32_t outer; /* the number of outer frames known when it was added */
	bool rooted; /* the outer frames ended at the root */
};

/*
 * A frame with unknown callers that the last samples did not reach: their copies end
 * further in.
 */
struct pm_chain_hidden {
	/* The frame's node. Of a large frame, the node that represents its callers. */
	uint32_t node;
	uint32_t module;
	uint64_t sp; /* of the frame */
	uint64_t time; /* of the first sample that did not reach it */
};

struct pm_chain_stitch_thread {
	uint32_t pid, tid;
	uint32_t serial; /* 0: the row is free */
	PM_VEC(uint32_t) nodes; /* the last chain, outermost first */
	struct pm_chain_hidden
		hidden[PM_CHAIN_HIDDEN_MAX]; /* the most recently hidden one is last */
	uint32_t hidden_len;
	/* What a look found above nodes[0], leaf first, and when; empty: nothing. */
	PM_VEC(struct pm_chain_stitch_frame) offer;
	uint64_t offer_time;
	bool offer_rooted;
	/* The last look whose result no sample confirmed. */
	uint64_t unconfirmed_time;
	/* The time of the last look at return addresses, and the number of stitched
	 * samples since. */
	uint64_t seen_time;
	uint32_t unseen;
	uint64_t good_time; /* the last look that found all of them in place */
	/* When a look at the memory above nodes[0] found no more callers; 0: it did not
	 * happen. */
	uint64_t fruitless_time;
	/* Since then, a frame that had been absent was joined to its callers again. */
	bool rejoined;
	/* The innermost frame that was not in place, and when; 0: none. */
	uint64_t doubt_time;
	struct pm_chain_stitch_frame doubted;
};

struct pm_chain_stitches {
	PM_VEC(struct pm_chain_node) nodes;
	/* node + 1 by thread and frame: the last node with a known caller. */
	uint32_t *slots;
	size_t slots_cap; /* 0 or a power of two, at least twice the nodes */
	PM_VEC(struct pm_chain_stitch_thread) threads;
	PM_VEC(uint32_t) free_threads;
	struct pm_index by_id;
	uint32_t serials;
	/* The last PM_CHAIN_STITCH_PROMISES_MAX, in a ring: number n is at n modulo that
	 * size. */
	struct pm_chain_promise *promises;
	uint64_t promised; /* the number given so far; they are numbered from 1 */
	PM_VEC(uint32_t) before; /* the last chain of the current thread */
	PM_VEC(struct pm_chain_stitch_frame) outer; /* the last result */
};

static inline bool pm_chain_node_same_place(const struct pm_chain_node *node,
					    const struct pm_chain_node *other)
{
	return node->sp == other->sp && node->address == other->address &&
	       node->module == other->module;
}

/* Returns whether the two may be the same call. */
static inline bool pm_chain_node_may_be(const struct pm_chain_node *node,
					const struct pm_chain_node *other)
{
	return pm_chain_node_same_place(node, other) &&
	       (node->left_with == other->left_with || node->left_with == 0 ||
		other->left_with == 0);
}

/* Makes room for @more nodes, which may remove old ones. Returns 0 or -ENOMEM. */
int pm_chain_nodes_reserve(struct pm_chain_stitches *stitches, size_t more);
/* Adds a node, for which room was reserved, and returns its id. */
uint32_t pm_chain_nodes_add(struct pm_chain_stitches *stitches,
			    const struct pm_chain_node *node);
/* Sets the caller of @id, which was unknown. */
void pm_chain_nodes_set_parent(struct pm_chain_stitches *stitches, uint32_t id,
			       uint32_t parent);
/* Returns the last node for this frame with a known caller; if there is none, the last
 * one with an unknown caller; or PM_CHAIN_NODE_UNKNOWN. */
uint32_t pm_chain_nodes_find(const struct pm_chain_stitches *stitches,
			     const struct pm_chain_node *key);
