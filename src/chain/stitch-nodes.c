/* SPDX-License-Identifier: MIT */
#include "stitch-nodes.h"

#include <errno.h>
#include <string.h>

enum {
	SLOTS_MIN = 1 << 10,
	/* If more than this share of the nodes (three quarters) is still used after the
	 * old ones were dropped, all are dropped. */
	CROWDED_DIV = 4,
	CROWDED_MUL = 3,
};

static uint32_t *node_slot_of(const struct pm_chain_stitches *stitches,
			      const struct pm_chain_node *key)
{
	size_t mask = stitches->slots_cap - 1;
	size_t at = pm_hash_mix(pm_hash_mix(key->thread, key->module) ^ key->address,
				key->sp) &
		    mask;

	for (;; at = (at + 1) & mask) {
		uint32_t *slot = &stitches->slots[at];
		const struct pm_chain_node *node;

		if (*slot == 0)
			return slot;
		node = &stitches->nodes.data[*slot - 1];
		if (node->thread == key->thread && node->left_with == key->left_with &&
		    pm_chain_node_same_place(node, key))
			return slot;
	}
}

static void remember_node(struct pm_chain_stitches *stitches, uint32_t id)
{
	const struct pm_chain_node *node = &stitches->nodes.data[id];
	uint32_t *slot = node_slot_of(stitches, node);

	if (*slot == 0 || node->parent != PM_CHAIN_NODE_UNKNOWN)
		*slot = id + 1;
}

static int slots_make(struct pm_chain_stitches *stitches, size_t nodes)
{
	size_t cap = stitches->slots_cap ? stitches->slots_cap : SLOTS_MIN;

	while (cap < nodes * 2)
		cap *= 2;
	if (cap != stitches->slots_cap) {
		uint32_t *slots = calloc(cap, sizeof(*slots));

		if (!slots)
			return -ENOMEM;
		free(stitches->slots);
		stitches->slots = slots;
		stitches->slots_cap = cap;
	} else {
		memset(stitches->slots, 0, cap * sizeof(*stitches->slots));
	}
	for (size_t i = 0; i < stitches->nodes.len; i++)
		remember_node(stitches, (uint32_t)i);
	return 0;
}

/* Returns the number of promises to iterate over. */
static size_t promises_len(const struct pm_chain_stitches *stitches)
{
	return stitches->promises ? PM_CHAIN_STITCH_PROMISES_MAX : 0;
}

static void forget_all(struct pm_chain_stitches *stitches)
{
	for (size_t i = 0; i < promises_len(stitches); i++)
		stitches->promises[i].node = PM_CHAIN_NODE_UNKNOWN;
	stitches->nodes.len = 0;
	for (size_t i = 0; i < stitches->threads.len; i++) {
		stitches->threads.data[i].nodes.len = 0;
		stitches->threads.data[i].hidden_len = 0;
	}
	if (stitches->slots_cap > 0)
		memset(stitches->slots, 0,
		       stitches->slots_cap * sizeof(*stitches->slots));
}

static void mark_kept_nodes(const struct pm_chain_stitches *stitches, uint32_t *kept,
			    uint32_t node)
{
	while (node < PM_CHAIN_NODE_ROOT && !kept[node]) {
		kept[node] = 1;
		node = stitches->nodes.data[node].parent;
	}
}

/* Moves the nodes that are kept to the front. Each only moves down, so none is
 * overwritten. */
static void compact_nodes(struct pm_chain_stitches *stitches, uint32_t *moved)
{
	struct pm_chain_node *nodes = stitches->nodes.data;
	size_t len = 0;

	for (size_t i = 0; i < stitches->nodes.len; i++) {
		if (moved[i])
			moved[i] = (uint32_t)len++;
		else
			moved[i] = PM_CHAIN_NODE_UNKNOWN;
	}
	for (size_t i = 0; i < stitches->nodes.len; i++) {
		if (moved[i] == PM_CHAIN_NODE_UNKNOWN)
			continue;
		nodes[moved[i]] = nodes[i];
		if (nodes[moved[i]].parent < PM_CHAIN_NODE_ROOT)
			nodes[moved[i]].parent = moved[nodes[moved[i]].parent];
	}
	stitches->nodes.len = len;
	for (size_t i = 0; i < stitches->threads.len; i++) {
		struct pm_chain_stitch_thread *thread = &stitches->threads.data[i];

		for (size_t j = 0; j < thread->nodes.len; j++)
			thread->nodes.data[j] = moved[thread->nodes.data[j]];
		for (size_t j = 0; j < thread->hidden_len; j++)
			thread->hidden[j].node = moved[thread->hidden[j].node];
	}
	for (size_t i = 0; i < promises_len(stitches); i++)
		if (stitches->promises[i].node < PM_CHAIN_NODE_ROOT)
			stitches->promises[i].node = moved[stitches->promises[i].node];
}

/* Keeps the last chains and the younger half of the nodes. */
static int forget_old(struct pm_chain_stitches *stitches)
{
	PM_AUTO_FREE uint32_t *kept = calloc(stitches->nodes.len + 1, sizeof(*kept));

	if (!kept)
		return -ENOMEM;
	for (size_t i = stitches->nodes.len / 2; i < stitches->nodes.len; i++)
		mark_kept_nodes(stitches, kept, (uint32_t)i);
	for (size_t i = 0; i < stitches->threads.len; i++) {
		const struct pm_chain_stitch_thread *thread = &stitches->threads.data[i];

		for (size_t j = 0; j < thread->nodes.len; j++)
			mark_kept_nodes(stitches, kept, thread->nodes.data[j]);
		for (size_t j = 0; j < thread->hidden_len; j++)
			mark_kept_nodes(stitches, kept, thread->hidden[j].node);
	}
	compact_nodes(stitches, kept);
	if (stitches->nodes.len > PM_CHAIN_STITCH_NODES_MAX / CROWDED_DIV * CROWDED_MUL)
		forget_all(stitches);
	return slots_make(stitches, stitches->nodes.len);
}

int pm_chain_nodes_reserve(struct pm_chain_stitches *stitches, size_t more)
{
	size_t want;

	if (stitches->nodes.len + more > PM_CHAIN_STITCH_NODES_MAX &&
	    stitches->nodes.len > 0) {
		int ret = forget_old(stitches);

		if (ret < 0)
			return ret;
		if (stitches->nodes.len + more > PM_CHAIN_STITCH_NODES_MAX)
			forget_all(stitches);
	}
	want = stitches->nodes.len + more;
	if (pm_vec_reserve(&stitches->nodes, want) < 0)
		return -ENOMEM;
	if (stitches->slots_cap < want * 2)
		return slots_make(stitches, want);
	return 0;
}

uint32_t pm_chain_nodes_add(struct pm_chain_stitches *stitches,
			    const struct pm_chain_node *node)
{
	uint32_t id = (uint32_t)stitches->nodes.len;

	stitches->nodes.data[stitches->nodes.len++] = *node;
	remember_node(stitches, id);
	return id;
}

void pm_chain_nodes_set_parent(struct pm_chain_stitches *stitches, uint32_t id,
			       uint32_t parent)
{
	stitches->nodes.data[id].parent = parent;
	remember_node(stitches, id);
}

uint32_t pm_chain_nodes_find(const struct pm_chain_stitches *stitches,
			     const struct pm_chain_node *key)
{
	uint32_t slot = stitches->slots_cap > 0 ? *node_slot_of(stitches, key) : 0;

	if (slot > 0)
		return slot - 1;
	return PM_CHAIN_NODE_UNKNOWN;
}
