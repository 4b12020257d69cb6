/* SPDX-License-Identifier: MIT */
#include "stitch.h"

#include <errno.h>
#include <string.h>

enum {
	/* A function pushes the registers it has to save right below its return address: up
	 * to six in the psABI. They are its caller's, and tell one run of it from another. */
	EVIDENCE_BYTES = 6 * 8,
	RETURN_BYTES = 8,
	SLOTS_MIN = 1 << 10,
	/* Above this share of the room after forgetting, everything is forgotten. */
	CROWDED_DIV = 4,
	CROWDED_MUL = 3,
};

/* Instead of a caller's node. */
#define ROOT    (UINT32_MAX - 1)
#define UNKNOWN UINT32_MAX

/*
 * A frame under its callers: a tree of everything remembered. A node's callers do not change,
 * but for one: where the caller was unknown, it may become known.
 */
struct node {
	uint64_t sp, address;
	uint32_t module;
	uint32_t thread; /* serial number of its thread */
	uint32_t parent;
	uint32_t evidence; /* hash of what its callee saved; 0: unknown */
};

struct thread {
	uint32_t pid, tid;
	uint32_t serial; /* 0: the row is free */
	PM_VEC(uint32_t) nodes; /* the last chain, outermost first */
};

struct pm_rec_stitches {
	PM_VEC(struct node) nodes;
	uint32_t *slots; /* node + 1 by thread and frame: the last with a known caller */
	size_t slots_cap; /* 0 or a power of two, at least twice the nodes */
	PM_VEC(struct thread) threads;
	PM_VEC(uint32_t) free_threads;
	struct pm_index by_id;
	uint32_t serials;
	PM_VEC(uint32_t) before; /* the last chain of the thread at hand */
	PM_VEC(struct pm_rec_stitch_frame) outer; /* the last result */
};

struct pm_rec_stitches *pm_rec_stitches_new(void)
{
	return calloc(1, sizeof(struct pm_rec_stitches));
}

void pm_rec_stitches_free(struct pm_rec_stitches *stitches)
{
	if (!stitches)
		return;
	for (size_t i = 0; i < stitches->threads.len; i++)
		pm_vec_release(&stitches->threads.data[i].nodes);
	pm_vec_release(&stitches->threads);
	pm_vec_release(&stitches->free_threads);
	pm_vec_release(&stitches->nodes);
	pm_vec_release(&stitches->before);
	pm_vec_release(&stitches->outer);
	pm_index_release(&stitches->by_id);
	free(stitches->slots);
	free(stitches);
}

size_t pm_rec_stitches_bytes(const struct pm_rec_stitches *stitches)
{
	size_t bytes = stitches->nodes.cap * sizeof(struct node) +
		       stitches->slots_cap * sizeof(*stitches->slots) +
		       stitches->threads.cap * sizeof(struct thread);

	for (size_t i = 0; i < stitches->threads.len; i++)
		bytes += stitches->threads.data[i].nodes.cap * sizeof(uint32_t);
	return bytes;
}

/* ---- threads ------------------------------------------------------------------------- */

static bool thread_equal(const void *table, uint32_t id, const void *key)
{
	const struct thread *row =
		&((const struct pm_rec_stitches *)table)->threads.data[id];
	const struct thread *wanted = key;

	return row->pid == wanted->pid && row->tid == wanted->tid;
}

static uint32_t thread_find(const struct pm_rec_stitches *stitches, uint32_t pid,
			    uint32_t tid)
{
	struct thread key = { .pid = pid, .tid = tid };

	return pm_index_find(&stitches->by_id, pm_hash_mix(pid, tid), thread_equal,
			     stitches, &key);
}

static struct thread *thread_get(struct pm_rec_stitches *stitches, uint32_t pid,
				 uint32_t tid)
{
	uint32_t id = thread_find(stitches, pid, tid);
	struct thread *thread;

	if (id != PM_INDEX_NONE)
		return &stitches->threads.data[id];
	if (stitches->free_threads.len > 0) {
		id = stitches->free_threads.data[stitches->free_threads.len - 1];
	} else {
		id = (uint32_t)stitches->threads.len;
		/* So that to give a row back needs no memory. */
		if (pm_vec_push(&stitches->threads, (struct thread){ 0 }) < 0 ||
		    pm_vec_reserve(&stitches->free_threads, stitches->threads.cap) < 0)
			return NULL;
		stitches->free_threads.data[stitches->free_threads.len++] = id;
	}
	if (pm_index_add(&stitches->by_id, pm_hash_mix(pid, tid), id) < 0)
		return NULL;
	stitches->free_threads.len--;
	thread = &stitches->threads.data[id];
	thread->pid = pid;
	thread->tid = tid;
	thread->serial = ++stitches->serials;
	return thread;
}

/* Its nodes are found by nobody any more. */
static void thread_drop(struct pm_rec_stitches *stitches, uint32_t id)
{
	struct thread *thread = &stitches->threads.data[id];

	pm_index_remove(&stitches->by_id, pm_hash_mix(thread->pid, thread->tid), id);
	thread->serial = 0;
	pm_vec_release(&thread->nodes);
	stitches->free_threads.data[stitches->free_threads.len++] = id;
}

void pm_rec_stitches_forget_thread(struct pm_rec_stitches *stitches, uint32_t pid,
				   uint32_t tid)
{
	uint32_t id = thread_find(stitches, pid, tid);

	if (id != PM_INDEX_NONE)
		thread_drop(stitches, id);
}

void pm_rec_stitches_forget_process(struct pm_rec_stitches *stitches, uint32_t pid)
{
	for (size_t i = 0; i < stitches->threads.len; i++)
		if (stitches->threads.data[i].serial != 0 &&
		    stitches->threads.data[i].pid == pid)
			thread_drop(stitches, (uint32_t)i);
}

/* ---- nodes --------------------------------------------------------------------------- */

static bool same_place(const struct node *node, const struct node *other)
{
	return node->sp == other->sp && node->address == other->address &&
	       node->module == other->module;
}

static uint32_t *slot_of(const struct pm_rec_stitches *stitches, const struct node *key)
{
	size_t mask = stitches->slots_cap - 1;
	size_t at = pm_hash_mix(pm_hash_mix(key->thread, key->module) ^ key->address,
				key->sp) &
		    mask;

	for (;; at = (at + 1) & mask) {
		uint32_t *slot = &stitches->slots[at];
		const struct node *node;

		if (*slot == 0)
			return slot;
		node = &stitches->nodes.data[*slot - 1];
		if (node->thread == key->thread && same_place(node, key))
			return slot;
	}
}

/* The node at hand for this frame, whose caller is known unless no such node was ever seen. */
static uint32_t recall(const struct pm_rec_stitches *stitches, const struct node *key)
{
	uint32_t slot = stitches->slots_cap > 0 ? *slot_of(stitches, key) : 0;

	return slot > 0 ? slot - 1 : UNKNOWN;
}

static void remember(struct pm_rec_stitches *stitches, uint32_t id)
{
	const struct node *node = &stitches->nodes.data[id];
	uint32_t *slot = slot_of(stitches, node);

	if (*slot == 0 || node->parent != UNKNOWN)
		*slot = id + 1;
}

static int slots_make(struct pm_rec_stitches *stitches, size_t nodes)
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
		remember(stitches, (uint32_t)i);
	return 0;
}

static void forget_all(struct pm_rec_stitches *stitches)
{
	stitches->nodes.len = 0;
	for (size_t i = 0; i < stitches->threads.len; i++)
		stitches->threads.data[i].nodes.len = 0;
	if (stitches->slots_cap > 0)
		memset(stitches->slots, 0,
		       stitches->slots_cap * sizeof(*stitches->slots));
}

static void keep(const struct pm_rec_stitches *stitches, uint32_t *kept, uint32_t node)
{
	while (node < ROOT && !kept[node]) {
		kept[node] = 1;
		node = stitches->nodes.data[node].parent;
	}
}

/* Moves what is kept together. Nodes only move down, so that none is overwritten. */
static void compact(struct pm_rec_stitches *stitches, uint32_t *moved)
{
	struct node *nodes = stitches->nodes.data;
	size_t len = 0;

	for (size_t i = 0; i < stitches->nodes.len; i++)
		moved[i] = moved[i] ? (uint32_t)len++ : UNKNOWN;
	for (size_t i = 0; i < stitches->nodes.len; i++) {
		if (moved[i] == UNKNOWN)
			continue;
		nodes[moved[i]] = nodes[i];
		if (nodes[moved[i]].parent < ROOT)
			nodes[moved[i]].parent = moved[nodes[moved[i]].parent];
	}
	stitches->nodes.len = len;
	for (size_t i = 0; i < stitches->threads.len; i++) {
		struct thread *thread = &stitches->threads.data[i];

		for (size_t j = 0; j < thread->nodes.len; j++)
			thread->nodes.data[j] = moved[thread->nodes.data[j]];
	}
}

/* Keeps the last chains and the younger half. */
static int forget_old(struct pm_rec_stitches *stitches)
{
	PM_AUTO_FREE uint32_t *kept = calloc(stitches->nodes.len + 1, sizeof(*kept));

	if (!kept)
		return -ENOMEM;
	for (size_t i = stitches->nodes.len / 2; i < stitches->nodes.len; i++)
		keep(stitches, kept, (uint32_t)i);
	for (size_t i = 0; i < stitches->threads.len; i++) {
		const struct thread *thread = &stitches->threads.data[i];

		for (size_t j = 0; j < thread->nodes.len; j++)
			keep(stitches, kept, thread->nodes.data[j]);
	}
	compact(stitches, kept);
	if (stitches->nodes.len > PM_REC_STITCH_NODES_MAX / CROWDED_DIV * CROWDED_MUL)
		forget_all(stitches);
	return slots_make(stitches, stitches->nodes.len);
}

/* Room for @more nodes. */
static int make_room(struct pm_rec_stitches *stitches, size_t more)
{
	size_t want;

	if (stitches->nodes.len + more > PM_REC_STITCH_NODES_MAX &&
	    stitches->nodes.len > 0) {
		int error = forget_old(stitches);

		if (error < 0)
			return error;
		if (stitches->nodes.len + more > PM_REC_STITCH_NODES_MAX)
			forget_all(stitches);
	}
	want = stitches->nodes.len + more;
	if (pm_vec_reserve(&stitches->nodes, want) < 0)
		return -ENOMEM;
	return stitches->slots_cap < want * 2 ? slots_make(stitches, want) : 0;
}

/* ---- joining ------------------------------------------------------------------------- */

static uint32_t evidence_of(const struct pm_rec_stitch_sample *sample, uint64_t sp)
{
	uint64_t offset = sp - RETURN_BYTES - EVIDENCE_BYTES - sample->stack_start;
	uint32_t hash;

	if (sample->stack_len < EVIDENCE_BYTES ||
	    offset > sample->stack_len - EVIDENCE_BYTES)
		return 0;
	hash = (uint32_t)pm_hash_bytes(sample->stack + offset, EVIDENCE_BYTES);
	return hash ? hash : 1;
}

/* The frame as a node; the leaf has no callee that could have saved anything. */
static struct node node_of(const struct thread *thread,
			   const struct pm_rec_stitch_sample *sample, size_t i)
{
	const struct pm_rec_stitch_frame *frame = &sample->frames[i];

	return (struct node){ .sp = frame->sp,
			      .address = frame->address,
			      .module = frame->module,
			      .thread = thread->serial,
			      .parent = UNKNOWN,
			      .evidence = i > 0 ? evidence_of(sample, frame->sp) : 0 };
}

/* Where @key stands in a chain of nodes, or its length. */
static size_t find_in(const struct pm_rec_stitches *stitches, const uint32_t *chain,
		      size_t len, const struct node *key)
{
	size_t i = 0;

	while (i < len && !same_place(&stitches->nodes.data[chain[i]], key))
		i++;
	return i;
}

/* The caller of @key as an earlier frame like it had it, or UNKNOWN. */
static uint32_t find_caller(const struct pm_rec_stitches *stitches,
			    const struct node *key)
{
	uint32_t id = recall(stitches, key);
	const struct node *node;
	size_t at;

	if (id == UNKNOWN || stitches->nodes.data[id].parent >= ROOT || key->sp == 0)
		return UNKNOWN;
	node = &stitches->nodes.data[id];
	if (node->evidence == key->evidence && key->evidence != 0)
		return node->parent;
	/* It stood at this very call a sample ago: then its own callers are those of then. */
	at = find_in(stitches, stitches->before.data, stitches->before.len,
		     &stitches->nodes.data[node->parent]);
	return at < stitches->before.len ? stitches->before.data[at] : UNKNOWN;
}

/* Puts @id and its callers, outermost first, in front of the thread's chain. */
static int prepend(struct pm_rec_stitches *stitches, struct thread *thread, uint32_t id,
		   size_t max)
{
	size_t len = 0;

	for (uint32_t at = id; at < ROOT && len <= max;
	     at = stitches->nodes.data[at].parent)
		len++;
	if (thread->nodes.len + len > max)
		return -E2BIG;
	if (pm_vec_reserve(&thread->nodes, thread->nodes.len + len) < 0)
		return -ENOMEM;
	if (thread->nodes.len > 0)
		memmove(thread->nodes.data + len, thread->nodes.data,
			thread->nodes.len * sizeof(*thread->nodes.data));
	thread->nodes.len += len;
	for (uint32_t at = id; len > 0; at = stitches->nodes.data[at].parent)
		thread->nodes.data[--len] = at;
	return 0;
}

/* Follows a chain that ends in the unknown on to its root, as far as that can be had. */
static int extend(struct pm_rec_stitches *stitches, struct thread *thread, size_t max)
{
	for (;;) {
		uint32_t outermost = thread->nodes.data[0];
		struct node *node = &stitches->nodes.data[outermost];
		uint32_t parent;
		int error;

		if (node->parent != UNKNOWN)
			return 0;
		parent = find_caller(stitches, node);
		if (parent == UNKNOWN)
			return 0;
		/* A circle is none of a stack. */
		for (uint32_t at = parent; at < ROOT;
		     at = stitches->nodes.data[at].parent)
			if (at == outermost)
				return 0;
		error = prepend(stitches, thread, parent, max);
		if (error < 0)
			return error == -E2BIG ? 0 : error;
		node->parent = parent;
	}
}

/* For the look whether a caller was there in the last sample. */
static int save_before(struct pm_rec_stitches *stitches, const struct thread *thread)
{
	stitches->before.len = 0;
	if (pm_vec_reserve(&stitches->before, thread->nodes.len) < 0)
		return -ENOMEM;
	if (thread->nodes.len > 0)
		memcpy(stitches->before.data, thread->nodes.data,
		       thread->nodes.len * sizeof(*thread->nodes.data));
	stitches->before.len = thread->nodes.len;
	return 0;
}

/*
 * Makes the thread's chain begin with the callers of @last, the outermost frame of a
 * truncated stack. @outer is how many are known, none above @max.
 */
static int join(struct pm_rec_stitches *stitches, struct thread *thread,
		const struct node *last, size_t max, size_t *outer)
{
	size_t at = find_in(stitches, thread->nodes.data, thread->nodes.len, last);
	size_t len = thread->nodes.len;
	uint32_t caller;
	int error = save_before(stitches, thread);

	*outer = 0;
	if (error < 0)
		return error;
	if (at < len && at > 0 && last->sp != 0) {
		/* It has not been gone. What comes after it stays: it may not have, either. */
		if (at > max)
			return 0;
		error = extend(stitches, thread, max);
		*outer = at + thread->nodes.len - len;
		return error;
	}
	caller = find_caller(stitches, last);
	if (caller == UNKNOWN)
		return 0;
	thread->nodes.len = 0;
	error = prepend(stitches, thread, caller, max);
	if (error == 0)
		error = extend(stitches, thread, max);
	*outer = thread->nodes.len;
	return error == -E2BIG ? 0 : error;
}

static int give_outer(struct pm_rec_stitches *stitches, const struct thread *thread,
		      size_t len, struct pm_rec_stitched *ret)
{
	if (pm_vec_reserve(&stitches->outer, len) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++) {
		const struct node *node =
			&stitches->nodes.data[thread->nodes.data[len - 1 - i]];

		stitches->outer.data[i] = (struct pm_rec_stitch_frame){
			.sp = node->sp, .address = node->address, .module = node->module
		};
	}
	*ret = (struct pm_rec_stitched){
		.frames = stitches->outer.data,
		.len = len,
		.rooted = stitches->nodes.data[thread->nodes.data[0]].parent == ROOT
	};
	return 0;
}

/*
 * Makes the sample's frames the thread's chain from place @at on, outermost first; what is in
 * front of it stays. Nodes that are there already are used again.
 */
static int follow(struct pm_rec_stitches *stitches, struct thread *thread,
		  const struct pm_rec_stitch_sample *sample, size_t at)
{
	if (pm_vec_reserve(&thread->nodes, at + sample->len) < 0)
		return -ENOMEM;
	for (size_t i = sample->len; i-- > 0; at++) {
		struct node node = node_of(thread, sample, i);
		uint32_t id = at < thread->nodes.len ? thread->nodes.data[at] : UNKNOWN;

		if (at > 0)
			node.parent = thread->nodes.data[at - 1];
		else if (sample->end == PM_REC_STITCH_ROOTED)
			node.parent = ROOT;
		if (id != UNKNOWN && same_place(&stitches->nodes.data[id], &node) &&
		    stitches->nodes.data[id].parent == node.parent) {
			stitches->nodes.data[id].evidence = node.evidence;
			continue;
		}
		id = (uint32_t)stitches->nodes.len;
		stitches->nodes.data[stitches->nodes.len++] = node;
		remember(stitches, id);
		thread->nodes.data[at] = id;
		thread->nodes.len = at + 1;
	}
	thread->nodes.len = at;
	return 0;
}

int pm_rec_stitches_add(struct pm_rec_stitches *stitches,
			const struct pm_rec_stitch_sample *sample, size_t max,
			struct pm_rec_stitched *ret)
{
	struct pm_rec_stitched stitched = { 0 };
	struct thread *thread;
	size_t outer = 0;
	int error;

	if (sample->len == 0 || sample->len > max) {
		*ret = stitched;
		return 0;
	}
	thread = thread_get(stitches, sample->pid, sample->tid);
	if (!thread)
		return -ENOMEM;
	error = make_room(stitches, sample->len);
	if (error == 0 && sample->end == PM_REC_STITCH_TRUNCATED) {
		struct node last = node_of(thread, sample, sample->len - 1);

		error = join(stitches, thread, &last, max - sample->len, &outer);
		if (error == 0 && outer > 0)
			error = give_outer(stitches, thread, outer, &stitched);
	}
	if (error == 0)
		error = follow(stitches, thread, sample, outer);
	if (error == 0)
		*ret = stitched;
	return error;
}
