/* SPDX-License-Identifier: MIT */
/*
 * The inside of stitching:
 *   stitch-nodes.c  the frames that are remembered, and what is forgotten when
 *   stitch.c        which of them belong above a sample's
 */
#pragma once

#include "stitch.h"

enum {
	/* A function pushes the registers it has to save right below its return address: up
	 * to six in the psABI. They are its caller's, and tell one run of it from another. */
	PM_CHAIN_EVIDENCE_WORDS = 6,
	/* Two samples in a row that have a frame of the same file, the same stack pointer and the
	 * same size, which is this at least, are in the same call of one function. */
	PM_CHAIN_LARGE_FRAME_BYTES = 4096,
	/* Large frames of one thread that samples of deeper ones hide at a time. */
	PM_CHAIN_HIDDEN_MAX = 4,
};

/* The module of a node that is no frame but stands for the callers of a large one. */
#define PM_CHAIN_NODE_JOINT (UINT32_MAX - 1)

/* Instead of a caller's node. */
#define PM_CHAIN_NODE_ROOT    (UINT32_MAX - 1)
#define PM_CHAIN_NODE_UNKNOWN UINT32_MAX

/*
 * A frame under its callers: a tree of everything remembered. A node's callers do not change,
 * but for one: where the caller was unknown, it may become known.
 */
struct pm_chain_node {
	uint64_t sp, address, return_address;
	uint32_t module;
	uint32_t thread; /* serial number of its thread */
	uint32_t parent;
	uint16_t evidence
		[PM_CHAIN_EVIDENCE_WORDS]; /* hashes of what its callee saved; 0: unknown */
	/* UINT64_MAX, or the last time at which `parent` is known to have been its caller: later
	 * another one was, without a sample that shows when the two changed places. */
	uint64_t parent_until;
	/* See struct pm_chain_stitch_sample. Of two different values, the frame was left twice:
	 * it may have been called twice, too. */
	uint64_t left_with;
};

/* A truncated stack that may still get other outer callers. */
struct pm_chain_promise {
	uint32_t node; /* its last own frame; PM_CHAIN_NODE_UNKNOWN: forgotten */
	uint32_t len; /* its own frames */
	uint32_t outer; /* those that were known above, when it was added */
	bool rooted; /* these ended at the root */
};

/*
 * A large frame with unknown callers that the last samples did not reach: their copies end in
 * another large frame further in.
 */
struct pm_chain_hidden {
	uint32_t joint; /* the node that stands for the callers */
	uint32_t module;
	uint64_t sp; /* of the large frame */
	uint64_t time; /* of the first sample that did not reach it */
};

struct pm_chain_stitch_thread {
	uint32_t pid, tid;
	uint32_t serial; /* 0: the row is free */
	PM_VEC(uint32_t) nodes; /* the last chain, outermost first */
	struct pm_chain_hidden
		hidden[PM_CHAIN_HIDDEN_MAX]; /* the last one hidden is last */
	uint32_t hidden_len;
	/* What was seen above nodes[0] at a time, leaf first; empty: nothing. */
	PM_VEC(struct pm_chain_stitch_frame) offer;
	uint64_t offer_time;
	bool offer_rooted;
	/* The last look at return addresses, and stitched samples since. */
	uint64_t seen_time;
	uint32_t unseen;
	uint64_t good_time; /* the last look that found all of them */
	/* A look at the memory above nodes[0] at that time found no more callers; 0: none. */
	uint64_t fruitless_time;
	bool rejoined; /* since then, by a frame that had been gone */
	/* The innermost frame that was not in place at a time; 0: none. */
	uint64_t doubt_time;
	struct pm_chain_stitch_frame doubted;
};

struct pm_chain_stitches {
	PM_VEC(struct pm_chain_node) nodes;
	uint32_t *slots; /* node + 1 by thread and frame: the last with a known caller */
	size_t slots_cap; /* 0 or a power of two, at least twice the nodes */
	PM_VEC(struct pm_chain_stitch_thread) threads;
	PM_VEC(uint32_t) free_threads;
	struct pm_index by_id;
	uint32_t serials;
	/* The last PM_CHAIN_STITCH_PROMISES_MAX, in a ring: number n stands at n modulo that. */
	struct pm_chain_promise *promises;
	uint64_t promised; /* so many so far; they are numbered from 1 */
	PM_VEC(uint32_t) before; /* the last chain of the thread at hand */
	PM_VEC(struct pm_chain_stitch_frame) outer; /* the last result */
};

static inline bool pm_chain_node_same_place(const struct pm_chain_node *node,
					    const struct pm_chain_node *other)
{
	return node->sp == other->sp && node->address == other->address &&
	       node->module == other->module;
}

/* Whether the two may be the same call. */
static inline bool pm_chain_node_may_be(const struct pm_chain_node *node,
					const struct pm_chain_node *other)
{
	return pm_chain_node_same_place(node, other) &&
	       (node->left_with == other->left_with || node->left_with == 0 ||
		other->left_with == 0);
}

/* Room for @more nodes, for which old ones may have to go. 0 or -ENOMEM. */
int pm_chain_nodes_reserve(struct pm_chain_stitches *stitches, size_t more);
/* Adds a node, for which there is room, and returns its id. */
uint32_t pm_chain_nodes_add(struct pm_chain_stitches *stitches,
			    const struct pm_chain_node *node);
/* Makes the unknown caller of @id known. */
void pm_chain_nodes_set_parent(struct pm_chain_stitches *stitches, uint32_t id,
			       uint32_t parent);
/* The last node for this frame, whose caller is known unless no such node was ever seen;
 * or PM_CHAIN_NODE_UNKNOWN. */
uint32_t pm_chain_nodes_find(const struct pm_chain_stitches *stitches,
			     const struct pm_chain_node *key);
