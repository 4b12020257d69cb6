/* SPDX-License-Identifier: MIT */
#include "stitch.h"

#include <errno.h>
#include <string.h>

#include "stitch-nodes.h"

enum {
	/* Two frames are the same call if this many of the words that their callees saved
	 * are equal. One may differ, because it may be a loop counter. */
	EVIDENCE_ENOUGH = PM_CHAIN_EVIDENCE_WORDS - 1,
	/* A look at the return addresses is due after this many samples, or one sample
	 * per so many frames if that is more, or this much time. */
	UNSEEN_SAMPLES_MAX = 16,
	UNSEEN_FRAMES_PER_SAMPLE = 64,
	UNSEEN_NS_MAX = 50 * 1000 * 1000,
	/* After a look that found no callers, the next look above the same frame waits
	 * this long. */
	FRUITLESS_NS = 50 * 1000 * 1000,
	/* A frame that no sample has reached for this long may have been left and called
	 * again. */
	HIDDEN_NS = 100 * 1000 * 1000,
};

struct pm_chain_stitches *pm_chain_stitches_new(void)
{
	return calloc(1, sizeof(struct pm_chain_stitches));
}

void pm_chain_stitches_free(struct pm_chain_stitches *stitches)
{
	if (!stitches)
		return;
	for (size_t i = 0; i < stitches->threads.len; i++) {
		pm_vec_release(&stitches->threads.data[i].nodes);
		pm_vec_release(&stitches->threads.data[i].offer);
	}
	pm_vec_release(&stitches->threads);
	pm_vec_release(&stitches->free_threads);
	pm_vec_release(&stitches->nodes);
	pm_vec_release(&stitches->before);
	pm_vec_release(&stitches->outer);
	pm_index_release(&stitches->by_id);
	free(stitches->slots);
	free(stitches->promises);
	free(stitches);
}

size_t pm_chain_stitches_bytes(const struct pm_chain_stitches *stitches)
{
	size_t bytes = stitches->nodes.cap * sizeof(struct pm_chain_node) +
		       stitches->slots_cap * sizeof(*stitches->slots) +
		       stitches->threads.cap * sizeof(struct pm_chain_stitch_thread);

	if (stitches->promises)
		bytes += PM_CHAIN_STITCH_PROMISES_MAX * sizeof(*stitches->promises);

	for (size_t i = 0; i < stitches->threads.len; i++)
		bytes += stitches->threads.data[i].nodes.cap * sizeof(uint32_t);
	return bytes;
}

/* ---- threads ------------------------------------------------------------------------- */

static bool thread_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_chain_stitch_thread *row =
		&((const struct pm_chain_stitches *)table)->threads.data[id];
	const struct pm_chain_stitch_thread *wanted = key;

	return row->pid == wanted->pid && row->tid == wanted->tid;
}

static uint32_t thread_find(const struct pm_chain_stitches *stitches, uint32_t pid,
			    uint32_t tid)
{
	struct pm_chain_stitch_thread key = { .pid = pid, .tid = tid };

	return pm_index_find(&stitches->by_id, pm_hash_mix(pid, tid), thread_equal,
			     stitches, &key);
}

static struct pm_chain_stitch_thread *thread_get(struct pm_chain_stitches *stitches,
						 uint32_t pid, uint32_t tid)
{
	uint32_t id = thread_find(stitches, pid, tid);
	struct pm_chain_stitch_thread *thread;

	if (id != PM_INDEX_NONE)
		return &stitches->threads.data[id];
	if (stitches->free_threads.len > 0) {
		id = stitches->free_threads.data[stitches->free_threads.len - 1];
	} else {
		id = (uint32_t)stitches->threads.len;
		/* Reserve room now, so that returning a row to the list cannot fail. */
		if (pm_vec_push(&stitches->threads,
				(struct pm_chain_stitch_thread){ 0 }) < 0 ||
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

/* Drops the thread. Its nodes can no longer be found. */
static void thread_drop(struct pm_chain_stitches *stitches, uint32_t id)
{
	struct pm_chain_stitch_thread *thread = &stitches->threads.data[id];

	pm_index_remove(&stitches->by_id, pm_hash_mix(thread->pid, thread->tid), id);
	pm_vec_release(&thread->nodes);
	pm_vec_release(&thread->offer);
	*thread = (struct pm_chain_stitch_thread){ 0 };
	stitches->free_threads.data[stitches->free_threads.len++] = id;
}

void pm_chain_stitches_forget_thread(struct pm_chain_stitches *stitches, uint32_t pid,
				     uint32_t tid)
{
	uint32_t id = thread_find(stitches, pid, tid);

	if (id != PM_INDEX_NONE)
		thread_drop(stitches, id);
}

void pm_chain_stitches_forget_process(struct pm_chain_stitches *stitches, uint32_t pid)
{
	for (size_t i = 0; i < stitches->threads.len; i++)
		if (stitches->threads.data[i].serial != 0 &&
		    stitches->threads.data[i].pid == pid)
			thread_drop(stitches, (uint32_t)i);
}

/* ---- joining ------------------------------------------------------------------------- */

static bool same_evidence(const struct pm_chain_node *node,
			  const struct pm_chain_node *other)
{
	size_t same = 0;

	for (size_t i = 0; i < PM_CHAIN_EVIDENCE_WORDS; i++)
		same += node->evidence[i] != 0 && node->evidence[i] == other->evidence[i];
	return same >= EVIDENCE_ENOUGH;
}

/* Returns the node for a frame of @sample; the leaf has no callee that could have saved
 * anything. */
static struct pm_chain_node node_of(const struct pm_chain_stitch_thread *thread,
				    const struct pm_chain_stitch_sample *sample, size_t i)
{
	const struct pm_chain_stitch_frame *frame = &sample->frames[i];
	struct pm_chain_node node = { .sp = frame->sp,
				      .address = frame->address,
				      .module = frame->module,
				      .thread = thread->serial,
				      .parent = PM_CHAIN_NODE_UNKNOWN,
				      .parent_until = UINT64_MAX };

	if (i + 1 == sample->len && sample->end == PM_CHAIN_STITCH_TRUNCATED)
		node.left_with = sample->left_with;
	if (i == 0)
		return node;
	node.return_address = frame->return_address;
	memcpy(node.evidence, frame->saved, sizeof(node.evidence));
	return node;
}

/* Whether the stack is truncated and its last frame is a large one. */
static bool is_large_outer_frame(const struct pm_chain_stitch_sample *sample)
{
	uint64_t sp = sample->frames[sample->len - 1].sp;

	return sample->end == PM_CHAIN_STITCH_TRUNCATED && sp != 0 &&
	       (sample->caller_sp > sp || sample->elsewhere) &&
	       sample->caller_sp - sp >= PM_CHAIN_LARGE_FRAME_BYTES;
}

/* Returns the node that represents the unknown callers of a large frame. It is the same
 * for all samples within the function. */
static struct pm_chain_node joint_of(const struct pm_chain_stitch_thread *thread,
				     const struct pm_chain_stitch_sample *sample)
{
	return (struct pm_chain_node){ .sp = sample->caller_sp,
				       .return_address =
					       sample->frames[sample->len - 1].sp,
				       .module = PM_CHAIN_NODE_JOINT,
				       .thread = thread->serial,
				       .parent = PM_CHAIN_NODE_UNKNOWN,
				       .parent_until = UINT64_MAX };
}

/* Returns the index of @key in a chain of nodes, or the chain's length. Starts with the
 * innermost nodes, because samples mostly end there. */
static size_t find_in(const struct pm_chain_stitches *stitches, const uint32_t *chain,
		      size_t len, const struct pm_chain_node *key)
{
	for (size_t i = len; i-- > 0;)
		if (pm_chain_node_may_be(&stitches->nodes.data[chain[i]], key))
			return i;
	return len;
}

/*
 * Returns the index in a chain of the last frame of @sample, a truncated stack, or the
 * chain's length. A large frame also counts as the same if execution within its function
 * has moved on. A frame whose caller is elsewhere counts as the same only if the caller
 * has the same stack pointer, because another caller may have moved to the same place.
 */
static size_t find_last(const struct pm_chain_stitches *stitches, const uint32_t *chain,
			size_t len, const struct pm_chain_node *last,
			const struct pm_chain_stitch_sample *sample)
{
	uint64_t caller_sp = sample->caller_sp;
	size_t at = find_in(stitches, chain, len, last);

	if (at > 0 && at < len && sample->elsewhere &&
	    stitches->nodes.data[chain[at - 1]].sp != caller_sp)
		at = len;
	if (at < len || !is_large_outer_frame(sample))
		return at;
	for (at = 1; at < len; at++) {
		const struct pm_chain_node *node = &stitches->nodes.data[chain[at]];

		if (node->sp == last->sp && node->module == last->module &&
		    stitches->nodes.data[chain[at - 1]].sp == caller_sp)
			return at;
	}
	return len;
}

/* Returns the caller that an earlier frame like @key had, or PM_CHAIN_NODE_UNKNOWN. */
static uint32_t find_caller(const struct pm_chain_stitches *stitches,
			    const struct pm_chain_node *key)
{
	uint32_t id = pm_chain_nodes_find(stitches, key);
	const struct pm_chain_node *node;
	size_t at;

	if (id == PM_CHAIN_NODE_UNKNOWN ||
	    stitches->nodes.data[id].parent >= PM_CHAIN_NODE_ROOT ||
	    stitches->nodes.data[id].parent_until != UINT64_MAX || key->sp == 0)
		return PM_CHAIN_NODE_UNKNOWN;
	node = &stitches->nodes.data[id];
	if (same_evidence(node, key))
		return node->parent;
	/* The previous sample contains the same call of the caller: the caller's own
	 * callers are those in that sample. */
	at = find_in(stitches, stitches->before.data, stitches->before.len,
		     &stitches->nodes.data[node->parent]);
	if (at < stitches->before.len)
		return stitches->before.data[at];
	return PM_CHAIN_NODE_UNKNOWN;
}

/* Appends the frame to stitches->outer, which has room for it. */
static void push_outer(struct pm_chain_stitches *stitches,
		       const struct pm_chain_node *node)
{
	if (node->module == PM_CHAIN_NODE_JOINT)
		return;
	stitches->outer.data[stitches->outer.len++] =
		(struct pm_chain_stitch_frame){ .sp = node->sp,
						.address = node->address,
						.module = node->module,
						.return_address = node->return_address };
}

/* Adds @id and its callers, outermost first, to the front of the thread's chain. Returns
 * -E2BIG if it would then have more than @max nodes. */
static int prepend_callers(struct pm_chain_stitches *stitches,
			   struct pm_chain_stitch_thread *thread, uint32_t id, size_t max)
{
	size_t len = 0;

	for (uint32_t at = id; at < PM_CHAIN_NODE_ROOT && len <= max;
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

/* Extends a chain whose outermost caller is unknown towards its root, as far as
 * possible. */
static int extend_to_root(struct pm_chain_stitches *stitches,
			  struct pm_chain_stitch_thread *thread, size_t max)
{
	for (;;) {
		uint32_t outermost = thread->nodes.data[0];
		struct pm_chain_node *node = &stitches->nodes.data[outermost];
		uint32_t parent;
		int ret;

		if (node->parent != PM_CHAIN_NODE_UNKNOWN)
			return 0;
		parent = find_caller(stitches, node);
		if (parent == PM_CHAIN_NODE_UNKNOWN)
			return 0;
		/* Stop at a cycle, which no stack has. */
		for (uint32_t at = parent; at < PM_CHAIN_NODE_ROOT;
		     at = stitches->nodes.data[at].parent)
			if (at == outermost)
				return 0;
		ret = prepend_callers(stitches, thread, parent, max);
		if (ret < 0) {
			if (ret == -E2BIG)
				return 0;
			return ret;
		}
		thread->rejoined = true;
		pm_chain_nodes_set_parent(stitches, outermost, parent);
	}
}

/* Whether two nodes for the callers of large frames, at the same place, are for frames of
 * the same size. */
static bool are_same_joints(const struct pm_chain_node *node,
			    const struct pm_chain_node *other)
{
	return node->module == PM_CHAIN_NODE_JOINT &&
	       node->return_address == other->return_address;
}

/*
 * Returns the caller that an earlier frame like @last, the last frame of @sample, had, or
 * PM_CHAIN_NODE_UNKNOWN. This is a caller that a look showed and no sample has confirmed,
 * or the caller of a large frame, for which @last may be the joint. The callers count if
 * they were known before the sample and are still in place after it.
 */
static int find_unconfirmed_caller(struct pm_chain_stitches *stitches,
				   struct pm_chain_stitch_thread *thread,
				   const struct pm_chain_node *last,
				   const struct pm_chain_stitch_sample *sample,
				   size_t max, uint32_t *out)
{
	uint32_t own =
		thread->nodes.len > 0 ? thread->nodes.data[0] : PM_CHAIN_NODE_UNKNOWN;
	uint32_t id = pm_chain_nodes_find(stitches, last), first = id;
	struct pm_chain_node *node;

	*out = PM_CHAIN_NODE_UNKNOWN;
	if (id == PM_CHAIN_NODE_UNKNOWN || last->sp == 0 || !sample->in_place ||
	    sample->time <= thread->unconfirmed_time)
		return 0;
	node = &stitches->nodes.data[id];
	if (node->parent >= PM_CHAIN_NODE_ROOT)
		return 0;
	if (!are_same_joints(node, last) &&
	    (node->parent_until != 0 || !same_evidence(node, last)))
		return 0;
	stitches->outer.len = 0;
	while (node->parent < PM_CHAIN_NODE_ROOT) {
		/* Stop at a cycle, which no stack has. */
		if (stitches->outer.len == max || node->parent == own ||
		    (node->parent_until != 0 && node->parent_until != UINT64_MAX))
			return 0;
		if (pm_vec_reserve(&stitches->outer, stitches->outer.len + 1) < 0)
			return -ENOMEM;
		node = &stitches->nodes.data[node->parent];
		push_outer(stitches, node);
	}
	if (!sample->in_place(sample->in_place_user, stitches->outer.data,
			      stitches->outer.len))
		return 0;
	for (; id < PM_CHAIN_NODE_ROOT; id = stitches->nodes.data[id].parent)
		stitches->nodes.data[id].parent_until = UINT64_MAX;
	thread->seen_time = thread->good_time = sample->time;
	thread->unseen = 0;
	*out = stitches->nodes.data[first].parent;
	return 0;
}

/* Extends a chain whose outermost caller is unknown by the result of
 * find_unconfirmed_caller(). All samples that have this chain get these callers. */
static int extend_unconfirmed(struct pm_chain_stitches *stitches,
			      struct pm_chain_stitch_thread *thread,
			      const struct pm_chain_stitch_sample *sample, size_t max)
{
	uint32_t outermost = thread->nodes.data[0], caller;
	struct pm_chain_node key = stitches->nodes.data[outermost];
	int ret;

	if (key.parent != PM_CHAIN_NODE_UNKNOWN || thread->nodes.len >= max)
		return 0;
	ret = find_unconfirmed_caller(stitches, thread, &key, sample,
				      max - thread->nodes.len, &caller);
	if (ret < 0 || caller == PM_CHAIN_NODE_UNKNOWN)
		return ret;
	ret = prepend_callers(stitches, thread, caller, max);
	if (ret == 0)
		pm_chain_nodes_set_parent(stitches, outermost, caller);
	return ret == -E2BIG ? 0 : ret;
}

/* Saves the previous sample's chain, so that it can be checked whether a caller was in
 * it. */
static int save_before(struct pm_chain_stitches *stitches,
		       const struct pm_chain_stitch_thread *thread)
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

/* Replaces the thread's nodes, starting at index @from, with new ones. The caller of the
 * first new node is unknown. The calling function has reserved room for them. */
static void renew_nodes(struct pm_chain_stitches *stitches,
			struct pm_chain_stitch_thread *thread, size_t from)
{
	uint32_t parent = PM_CHAIN_NODE_UNKNOWN;

	for (size_t i = from; i < thread->nodes.len; i++) {
		struct pm_chain_node node = stitches->nodes.data[thread->nodes.data[i]];

		node.parent = parent;
		node.parent_until = UINT64_MAX;
		parent = pm_chain_nodes_add(stitches, &node);
		thread->nodes.data[i] = parent;
	}
}

/*
 * If a look before @sample did not find a frame in place, the frame has not stayed: the
 * chain loses it and the frames above it. If @last implies that the frames below it have
 * stayed, another caller has replaced that frame, and nothing shows when. Samples since
 * the last look that found everything in place then get neither of the two callers:
 * `parent_until` of their nodes ends at that look, and samples from now on have new
 * nodes.
 */
static void drop_doubted(struct pm_chain_stitches *stitches,
			 struct pm_chain_stitch_thread *thread,
			 const struct pm_chain_node *last,
			 const struct pm_chain_stitch_sample *sample)
{
	struct pm_chain_node key = { .sp = thread->doubted.sp,
				     .address = thread->doubted.address,
				     .module = thread->doubted.module };
	size_t len = thread->nodes.len, doubted, at;

	if (thread->doubt_time == 0 || sample->time <= thread->doubt_time)
		return;
	thread->doubt_time = 0;
	doubted = find_in(stitches, thread->nodes.data, len, &key);
	at = find_last(stitches, thread->nodes.data, len, last, sample);
	if (doubted >= at)
		return;
	doubted++;
	if (at < len) {
		stitches->nodes.data[thread->nodes.data[doubted]].parent_until =
			PM_MAX(thread->good_time, 1);
		renew_nodes(stitches, thread, doubted);
	}
	memmove(thread->nodes.data, thread->nodes.data + doubted,
		(len - doubted) * sizeof(*thread->nodes.data));
	thread->nodes.len -= doubted;
}

/*
 * Makes the thread's chain start with the callers of the outermost frame of @sample, a
 * truncated stack. Sets @outer to the number of known callers. The whole chain has at most
 * @max frames.
 */
static int join_sample_callers(struct pm_chain_stitches *stitches,
			       struct pm_chain_stitch_thread *thread,
			       const struct pm_chain_stitch_sample *sample, size_t max,
			       size_t *outer)
{
	struct pm_chain_node node = node_of(thread, sample, sample->len - 1);
	const struct pm_chain_node *last = &node;
	size_t at =
		find_last(stitches, thread->nodes.data, thread->nodes.len, last, sample);
	size_t len = thread->nodes.len;
	bool is_rejoined = true;
	uint32_t caller;
	int ret = save_before(stitches, thread);

	*outer = 0;
	if (ret < 0)
		return ret;
	if (at < len && at > 0 && last->sp != 0) {
		/* The frame has stayed. Keep the frames below it as well: they may have
		 * stayed, too. */
		if (at > max - sample->len)
			return 0;
		ret = extend_to_root(stitches, thread, max - sample->len);
		if (ret == 0)
			ret = extend_unconfirmed(stitches, thread, sample,
						 max - sample->len);
		*outer = at + thread->nodes.len - len;
		return ret;
	}
	caller = find_caller(stitches, last);
	if (caller == PM_CHAIN_NODE_UNKNOWN && is_large_outer_frame(sample)) {
		struct pm_chain_node joint = joint_of(thread, sample);

		caller = find_caller(stitches, &joint);
	}
	if (caller == PM_CHAIN_NODE_UNKNOWN) {
		struct pm_chain_node joint = joint_of(thread, sample);

		is_rejoined = false;
		ret = find_unconfirmed_caller(
			stitches, thread, is_large_outer_frame(sample) ? &joint : last,
			sample, max - sample->len, &caller);
	}
	if (ret < 0 || caller == PM_CHAIN_NODE_UNKNOWN)
		return ret;
	thread->nodes.len = 0;
	ret = prepend_callers(stitches, thread, caller, max - sample->len);
	if (ret == 0)
		ret = extend_to_root(stitches, thread, max - sample->len);
	*outer = thread->nodes.len;
	thread->rejoined |= is_rejoined;
	if (ret == -E2BIG)
		return 0;
	return ret;
}

/* Sets @out to the innermost of the thread's first @len nodes, but no more than @max
 * frames. */
static int give_outer(struct pm_chain_stitches *stitches,
		      const struct pm_chain_stitch_thread *thread, size_t len, size_t max,
		      struct pm_chain_stitched *out)
{
	size_t i = len;
	bool is_rooted;

	stitches->outer.len = 0;
	if (pm_vec_reserve(&stitches->outer, PM_MIN(len, max) + 1) < 0)
		return -ENOMEM;
	while (i > 0 && stitches->outer.len < max)
		push_outer(stitches, &stitches->nodes.data[thread->nodes.data[--i]]);
	is_rooted = i == 0 && stitches->nodes.data[thread->nodes.data[0]].parent ==
				      PM_CHAIN_NODE_ROOT;
	*out = (struct pm_chain_stitched){ .frames = stitches->outer.data,
					   .len = stitches->outer.len,
					   .rooted = is_rooted,
					   .limited = !is_rooted &&
						      stitches->outer.len == max };
	return 0;
}

/* Like find_reached(), for a large frame. */
static size_t find_reached_joint(const struct pm_chain_stitches *stitches,
				 const struct pm_chain_stitch_thread *thread,
				 const struct pm_chain_stitch_sample *sample)
{
	const struct pm_chain_node *joint = &stitches->nodes.data[thread->nodes.data[0]];
	const struct pm_chain_node *large;

	if (thread->nodes.len < 2)
		return 0;
	large = &stitches->nodes.data[thread->nodes.data[1]];
	for (size_t i = sample->len; i-- > 1;)
		if (sample->frames[i].sp == joint->sp) {
			if (sample->frames[i - 1].sp == large->sp &&
			    sample->frames[i - 1].module == large->module)
				return i;
			return 0;
		}
	return 0;
}

/*
 * Returns the index of that frame of the sample which is the caller of the thread's
 * outermost frame, whose caller was unknown so far, or 0 if there is none. The sample
 * shows the caller if it contains the outermost frame, and the callee saved the same
 * registers. @at is the number of known callers of the sample.
 */
static size_t find_reached(const struct pm_chain_stitches *stitches,
			   const struct pm_chain_stitch_thread *thread,
			   const struct pm_chain_stitch_sample *sample, size_t at)
{
	const struct pm_chain_node *outermost;

	if (at > 0 || thread->nodes.len == 0)
		return 0;
	outermost = &stitches->nodes.data[thread->nodes.data[0]];
	if (outermost->parent != PM_CHAIN_NODE_UNKNOWN || outermost->sp == 0)
		return 0;
	if (outermost->module == PM_CHAIN_NODE_JOINT)
		return find_reached_joint(stitches, thread, sample);
	for (size_t i = sample->len - 1; i-- > 1;) {
		struct pm_chain_node node;

		if (sample->frames[i].sp != outermost->sp)
			continue;
		node = node_of(thread, sample, i);
		if (pm_chain_node_same_place(&node, outermost) &&
		    same_evidence(&node, outermost))
			return i + 1;
		return 0;
	}
	return 0;
}

/* ---- frames that deeper ones hide ------------------------------------------------------- */

static void remove_hidden(struct pm_chain_stitch_thread *thread, size_t at)
{
	memmove(&thread->hidden[at], &thread->hidden[at + 1],
		(thread->hidden_len - at - 1) * sizeof(thread->hidden[0]));
	thread->hidden_len--;
}

/*
 * Keeps the outermost node of the thread's chain if its callers are unknown and @sample,
 * a truncated stack, ends further in: the frame may still exist.
 */
static void hide_outermost(const struct pm_chain_stitches *stitches,
			   struct pm_chain_stitch_thread *thread,
			   const struct pm_chain_stitch_sample *sample)
{
	const struct pm_chain_node *node, *frame;

	if (thread->nodes.len < 2 || sample->end != PM_CHAIN_STITCH_TRUNCATED)
		return;
	node = frame = &stitches->nodes.data[thread->nodes.data[0]];
	if (node->parent != PM_CHAIN_NODE_UNKNOWN || node->parent_until != UINT64_MAX)
		return;
	if (node->module == PM_CHAIN_NODE_JOINT) {
		frame = &stitches->nodes.data[thread->nodes.data[1]];
	} else {
		struct pm_chain_node last = node_of(thread, sample, sample->len - 1);

		/* The node is not lost yet if the sample continues its chain. */
		if (node->sp == 0 ||
		    find_last(stitches, thread->nodes.data, thread->nodes.len, &last,
			      sample) < thread->nodes.len)
			return;
	}
	if (sample->caller_sp == 0 || sample->caller_sp > frame->sp)
		return;
	if (thread->hidden_len == PM_CHAIN_HIDDEN_MAX)
		remove_hidden(thread, 0);
	thread->hidden[thread->hidden_len++] =
		(struct pm_chain_hidden){ .node = thread->nodes.data[0],
					  .module = frame->module,
					  .sp = frame->sp,
					  .time = sample->time };
}

/*
 * Returns the index of that frame of the thread's chain which is the caller of a hidden
 * frame, or the chain's length. A frame is the same if the same words are saved below it;
 * a large frame is the same if it has the same size.
 */
static size_t find_hidden_caller(const struct pm_chain_stitches *stitches,
				 const struct pm_chain_stitch_thread *thread,
				 const struct pm_chain_hidden *hidden)
{
	const struct pm_chain_node *node = &stitches->nodes.data[hidden->node];

	for (size_t i = 0; i + 1 < thread->nodes.len; i++) {
		const struct pm_chain_node *caller =
			&stitches->nodes.data[thread->nodes.data[i]];
		const struct pm_chain_node *frame =
			&stitches->nodes.data[thread->nodes.data[i + 1]];

		if (frame->sp != hidden->sp || frame->module != hidden->module ||
		    caller->module == PM_CHAIN_NODE_JOINT)
			continue;
		if (node->module == PM_CHAIN_NODE_JOINT
			    ? caller->sp == node->sp
			    : pm_chain_node_same_place(frame, node) &&
				      same_evidence(frame, node))
			return i;
	}
	return thread->nodes.len;
}

static bool has_node_above(const struct pm_chain_stitches *stitches, uint32_t from,
			   uint32_t wanted)
{
	while (from < PM_CHAIN_NODE_ROOT && from != wanted)
		from = stitches->nodes.data[from].parent;
	return from == wanted;
}

/*
 * Sets the callers of hidden frames that are known now, from the thread's chain, which is
 * that of a sample at @time. Drops hidden frames that have returned according to the
 * chain.
 */
static void find_hidden(struct pm_chain_stitches *stitches,
			struct pm_chain_stitch_thread *thread, uint64_t time)
{
	uint64_t outermost_sp = thread->nodes.len > 0
					? stitches->nodes.data[thread->nodes.data[0]].sp
					: 0;

	for (size_t i = thread->hidden_len; i-- > 0;) {
		struct pm_chain_hidden hidden = thread->hidden[i];
		size_t at = find_hidden_caller(stitches, thread, &hidden);

		if (at == thread->nodes.len && outermost_sp != 0 &&
		    outermost_sp <= hidden.sp && time - hidden.time <= HIDDEN_NS)
			continue;
		remove_hidden(thread, i);
		if (at < thread->nodes.len && time - hidden.time <= HIDDEN_NS &&
		    stitches->nodes.data[hidden.node].parent == PM_CHAIN_NODE_UNKNOWN &&
		    !has_node_above(stitches, thread->nodes.data[at], hidden.node))
			pm_chain_nodes_set_parent(stitches, hidden.node,
						  thread->nodes.data[at]);
	}
}

/* If @sample reaches a hidden joint at the same place as @joint, returns that joint,
 * which is then no longer hidden. Otherwise returns PM_CHAIN_NODE_UNKNOWN. */
static uint32_t reach_hidden(const struct pm_chain_stitches *stitches,
			     struct pm_chain_stitch_thread *thread,
			     const struct pm_chain_stitch_sample *sample,
			     const struct pm_chain_node *joint)
{
	const struct pm_chain_stitch_frame *large = &sample->frames[sample->len - 1];

	for (size_t i = thread->hidden_len; i-- > 0;) {
		struct pm_chain_hidden hidden = thread->hidden[i];

		if (hidden.sp != large->sp || hidden.module != large->module ||
		    sample->time - hidden.time > HIDDEN_NS ||
		    !pm_chain_node_same_place(&stitches->nodes.data[hidden.node], joint))
			continue;
		remove_hidden(thread, i);
		return hidden.node;
	}
	return PM_CHAIN_NODE_UNKNOWN;
}

/* Starts the thread's chain with the joint of a large frame. Returns 1, its length. */
static size_t put_joint(struct pm_chain_stitches *stitches,
			struct pm_chain_stitch_thread *thread,
			const struct pm_chain_stitch_sample *sample)
{
	struct pm_chain_node joint = joint_of(thread, sample);
	uint32_t id;
	const struct pm_chain_node *first =
		thread->nodes.len > 0 ? &stitches->nodes.data[thread->nodes.data[0]]
				      : NULL;

	if (first && first->parent == joint.parent && first->parent_until == UINT64_MAX &&
	    pm_chain_node_same_place(first, &joint))
		return 1;
	id = reach_hidden(stitches, thread, sample, &joint);
	if (id == PM_CHAIN_NODE_UNKNOWN)
		id = pm_chain_nodes_add(stitches, &joint);
	thread->nodes.data[0] = id;
	thread->nodes.len = 1;
	return 1;
}

/*
 * Replaces the thread's chain from index @at on by the sample's frames, outermost first;
 * the part before it is kept. Existing nodes are reused if they match.
 */
static int follow_whole_sample(struct pm_chain_stitches *stitches,
			       struct pm_chain_stitch_thread *thread,
			       const struct pm_chain_stitch_sample *sample, size_t at)
{
	size_t reached = find_reached(stitches, thread, sample, at);
	uint32_t unknown = reached > 0 ? thread->nodes.data[0] : PM_CHAIN_NODE_UNKNOWN;

	if (pm_vec_reserve(&thread->nodes, at + sample->len + 1) < 0)
		return -ENOMEM;
	if (at == 0 && is_large_outer_frame(sample))
		at = put_joint(stitches, thread, sample);
	for (size_t i = sample->len; i-- > 0; at++) {
		struct pm_chain_node node = node_of(thread, sample, i);
		uint32_t id = at < thread->nodes.len ? thread->nodes.data[at]
						     : PM_CHAIN_NODE_UNKNOWN;

		if (at > 0)
			node.parent = thread->nodes.data[at - 1];
		else if (sample->end == PM_CHAIN_STITCH_ROOTED)
			node.parent = PM_CHAIN_NODE_ROOT;
		if (id != PM_CHAIN_NODE_UNKNOWN &&
		    pm_chain_node_same_place(&stitches->nodes.data[id], &node) &&
		    stitches->nodes.data[id].left_with == node.left_with &&
		    stitches->nodes.data[id].parent == node.parent) {
			memcpy(stitches->nodes.data[id].evidence, node.evidence,
			       sizeof(node.evidence));
			stitches->nodes.data[id].return_address = node.return_address;
			continue;
		}
		thread->nodes.data[at] = pm_chain_nodes_add(stitches, &node);
		thread->nodes.len = at + 1;
		/* In a corrupt stack the node may already be in the new chain; a cycle
		 * must not be formed. */
		if (i > 0 && i == reached && thread->nodes.data[0] != unknown)
			pm_chain_nodes_set_parent(stitches, unknown,
						  thread->nodes.data[at]);
	}
	thread->nodes.len = at;
	return 0;
}

/* Whether the outermost known frame has stayed since the previous sample. */
static bool has_stayed(const struct pm_chain_stitches *stitches,
		       const struct pm_chain_stitch_thread *thread,
		       const struct pm_chain_stitch_sample *sample)
{
	struct pm_chain_node last = node_of(thread, sample, sample->len - 1);

	return sample->end == PM_CHAIN_STITCH_TRUNCATED && last.sp != 0 &&
	       find_last(stitches, thread->nodes.data, thread->nodes.len, &last, sample) <
		       thread->nodes.len;
}

/*
 * Returns the node of @frame, which a look found and whose caller is @parent. If there is
 * no such node, adds one whose caller no sample has confirmed.
 */
static uint32_t add_looked_node(struct pm_chain_stitches *stitches,
				const struct pm_chain_stitch_thread *thread,
				const struct pm_chain_stitch_frame *frame,
				uint32_t parent, uint64_t parent_until)
{
	struct pm_chain_node node = { .sp = frame->sp,
				      .address = frame->address,
				      .module = frame->module,
				      .return_address = frame->return_address,
				      .thread = thread->serial,
				      .parent = parent,
				      .parent_until = parent_until };
	uint32_t id = pm_chain_nodes_find(stitches, &node);

	memcpy(node.evidence, frame->saved, sizeof(node.evidence));
	if (id != PM_CHAIN_NODE_UNKNOWN && parent_until == 0 &&
	    stitches->nodes.data[id].parent == parent &&
	    stitches->nodes.data[id].return_address == node.return_address &&
	    (stitches->nodes.data[id].parent_until == 0 ||
	     stitches->nodes.data[id].parent_until == UINT64_MAX) &&
	    same_evidence(&stitches->nodes.data[id], &node))
		return id;
	return pm_chain_nodes_add(stitches, &node);
}

/* Adds the frames that the last look found. They may be wrong unless @parent_until is
 * UINT64_MAX. Returns the node of the innermost frame. Room was reserved. */
static uint32_t add_offer(struct pm_chain_stitches *stitches,
			  const struct pm_chain_stitch_thread *thread,
			  uint64_t parent_until)
{
	uint32_t parent =
		thread->offer_rooted ? PM_CHAIN_NODE_ROOT : PM_CHAIN_NODE_UNKNOWN;

	for (size_t i = thread->offer.len; i-- > 0;)
		parent = add_looked_node(stitches, thread, &thread->offer.data[i], parent,
					 parent_until);
	return parent;
}

/* Keeps the result of a look for samples that end in one of its frames, or in the frame
 * above which it started. Room was reserved. */
static void keep_unconfirmed_offer(struct pm_chain_stitches *stitches,
				   struct pm_chain_stitch_thread *thread)
{
	struct pm_chain_node node = stitches->nodes.data[thread->nodes.data[0]];

	node.parent = add_offer(stitches, thread, 0);
	node.parent_until = 0;
	if (node.sp != 0)
		pm_chain_nodes_add(stitches, &node);
	thread->unconfirmed_time = thread->offer_time;
}

/* Adds the frames that a look found to the thread's last chain. Leaves them for later if
 * @sample was taken before the look. If the thread has left the frame, or the chain would
 * be too long, keeps them as unconfirmed nodes outside the chain. */
static int take_offer(struct pm_chain_stitches *stitches,
		      struct pm_chain_stitch_thread *thread,
		      const struct pm_chain_stitch_sample *sample, size_t max)
{
	size_t len = thread->offer.len;
	uint32_t parent;
	bool stayed =
		len > 0 && thread->nodes.len > 0 && has_stayed(stitches, thread, sample);

	if (stayed && sample->time < thread->offer_time)
		return 0;
	if (stayed && sample->elsewhere)
		stayed = thread->offer.data[0].sp == sample->caller_sp;
	if (!stayed || len > max || thread->nodes.len > max - len) {
		if (len > 0 && thread->nodes.len > 0)
			keep_unconfirmed_offer(stitches, thread);
		thread->offer.len = 0;
		return 0;
	}
	parent = add_offer(stitches, thread, UINT64_MAX);
	thread->offer.len = 0;
	pm_chain_nodes_set_parent(stitches, thread->nodes.data[0], parent);
	return prepend_callers(stitches, thread, parent, max);
}

int pm_chain_stitches_offer(struct pm_chain_stitches *stitches, uint32_t pid,
			    uint32_t tid, const struct pm_chain_stitch_frame *frames,
			    size_t len, bool rooted, uint64_t time)
{
	uint32_t id = thread_find(stitches, pid, tid);
	struct pm_chain_stitch_thread *thread;

	if (id == PM_INDEX_NONE)
		return 0;
	thread = &stitches->threads.data[id];
	thread->offer.len = 0;
	thread->fruitless_time = len == 0 ? time : 0;
	if (len > 0 && pm_vec_reserve(&thread->offer, len) < 0)
		return -ENOMEM;
	if (len > 0)
		memcpy(thread->offer.data, frames, len * sizeof(*frames));
	thread->offer.len = len;
	thread->offer_time = time;
	thread->offer_rooted = rooted;
	return 0;
}

void pm_chain_stitches_seen(struct pm_chain_stitches *stitches, uint32_t pid,
			    uint32_t tid, size_t present, uint64_t time)
{
	uint32_t id = thread_find(stitches, pid, tid);
	struct pm_chain_stitch_thread *thread;

	if (id == PM_INDEX_NONE)
		return;
	thread = &stitches->threads.data[id];
	thread->seen_time = time;
	thread->unseen = 0;
	thread->rejoined = false;
	thread->doubt_time = 0;
	if (present == stitches->outer.len)
		thread->good_time = time;
	if (present < stitches->outer.len) {
		thread->doubt_time = time;
		thread->doubted = stitches->outer.data[present];
	}
}

/* Whether a look at the return addresses of stitched frames is due. A look says nothing
 * about samples that were taken before the previous look. */
static bool is_unseen(struct pm_chain_stitch_thread *thread, size_t len, uint64_t time)
{
	size_t samples = PM_MAX(UNSEEN_SAMPLES_MAX, len / UNSEEN_FRAMES_PER_SAMPLE);

	thread->unseen++;
	return time > thread->seen_time &&
	       (thread->seen_time == 0 || thread->rejoined || thread->unseen >= samples ||
		time - thread->seen_time >= UNSEEN_NS_MAX);
}

/*
 * Whether a look for callers above the thread's chain is due: they are unknown, and no
 * result of a look waits for its confirmation. Drops a waiting result that belongs to
 * another chain.
 */
static bool is_wanting(const struct pm_chain_stitches *stitches,
		       struct pm_chain_stitch_thread *thread, uint32_t outermost,
		       uint64_t time)
{
	if (thread->nodes.len == 0 || thread->nodes.data[0] != outermost) {
		thread->offer.len = 0;
		thread->fruitless_time = 0;
	}
	return thread->nodes.len > 0 && thread->offer.len == 0 &&
	       (thread->fruitless_time == 0 ||
		time > thread->fruitless_time + FRUITLESS_NS) &&
	       stitches->nodes.data[thread->nodes.data[0]].parent ==
		       PM_CHAIN_NODE_UNKNOWN;
}

/* ---- promises --------------------------------------------------------------------------- */

/* Returns the number of the promise, or 0 if memory runs out; the sample then gets no
 * callers later. */
static uint64_t give_promise(struct pm_chain_stitches *stitches,
			     const struct pm_chain_stitch_thread *thread,
			     const struct pm_chain_stitch_sample *sample,
			     const struct pm_chain_stitched *stitched)
{
	/* The index of the outermost of the sample's own frames. */
	size_t own = thread->nodes.len - sample->len;
	uint64_t number = stitches->promised + 1;

	if (!stitches->promises)
		stitches->promises =
			calloc(PM_CHAIN_STITCH_PROMISES_MAX, sizeof(*stitches->promises));
	if (!stitches->promises)
		return 0;
	stitches->promises[number % PM_CHAIN_STITCH_PROMISES_MAX] =
		(struct pm_chain_promise){ .node = thread->nodes.data[own],
					   .len = (uint32_t)sample->len,
					   .outer = (uint32_t)stitched->len,
					   .rooted = stitched->rooted };
	stitches->promised = number;
	return number;
}

bool pm_chain_stitches_settle(struct pm_chain_stitches *stitches, uint64_t promise,
			      uint64_t time, size_t max, struct pm_chain_stitched *out)
{
	const struct pm_chain_promise *given;
	const struct pm_chain_node *node;
	struct pm_chain_stitched stitched = { 0 };

	if (promise == 0 || promise > stitches->promised ||
	    promise + PM_CHAIN_STITCH_PROMISES_MAX <= stitches->promised)
		return false;
	given = &stitches->promises[promise % PM_CHAIN_STITCH_PROMISES_MAX];
	if (given->node == PM_CHAIN_NODE_UNKNOWN)
		return false;
	stitches->outer.len = 0;
	node = &stitches->nodes.data[given->node];
	while (node->parent < PM_CHAIN_NODE_ROOT && time <= node->parent_until &&
	       stitches->outer.len + given->len < max) {
		if (pm_vec_reserve(&stitches->outer, stitches->outer.len + 1) < 0)
			return false;
		node = &stitches->nodes.data[node->parent];
		push_outer(stitches, node);
	}
	stitched.frames = stitches->outer.data;
	stitched.len = stitches->outer.len;
	stitched.rooted =
		node->parent == PM_CHAIN_NODE_ROOT && time <= node->parent_until;
	stitched.limited = !stitched.rooted && stitches->outer.len + given->len >= max;
	if (stitched.len == given->outer && stitched.rooted == given->rooted)
		return false;
	*out = stitched;
	return true;
}

int pm_chain_stitches_add(struct pm_chain_stitches *stitches,
			  const struct pm_chain_stitch_sample *sample, size_t max,
			  struct pm_chain_stitched *out)
{
	struct pm_chain_stitched stitched = { 0 };
	struct pm_chain_stitch_thread *thread;
	size_t known_max = PM_CHAIN_KNOWN_TIMES * max, outer = 0;
	uint32_t outermost;
	int ret;

	stitches->outer.len = 0;
	if (sample->len == 0 || sample->len > max) {
		*out = stitched;
		return 0;
	}
	thread = thread_get(stitches, sample->pid, sample->tid);
	if (!thread)
		return -ENOMEM;
	/* This much room is needed because renew_nodes() may replace all of the thread's
	 * nodes. */
	ret = pm_chain_nodes_reserve(stitches, 2 + sample->len + thread->offer.len +
						       thread->nodes.len);
	if (ret == 0)
		ret = take_offer(stitches, thread, sample, known_max);
	if (thread->nodes.len > 0)
		outermost = thread->nodes.data[0];
	else
		outermost = PM_CHAIN_NODE_UNKNOWN;
	if (ret == 0 && sample->end == PM_CHAIN_STITCH_TRUNCATED) {
		struct pm_chain_node last = node_of(thread, sample, sample->len - 1);

		drop_doubted(stitches, thread, &last, sample);
		hide_outermost(stitches, thread, sample);
		ret = join_sample_callers(stitches, thread, sample, known_max, &outer);
		if (ret == 0 && outer > 0)
			ret = give_outer(stitches, thread, outer, max - sample->len,
					 &stitched);
	}
	if (ret == 0)
		ret = follow_whole_sample(stitches, thread, sample, outer);
	if (ret < 0)
		return ret;
	find_hidden(stitches, thread, sample->time);
	stitched.unseen =
		stitched.len > 0 && is_unseen(thread, stitched.len, sample->time);
	stitched.wanting = is_wanting(stitches, thread, outermost, sample->time) &&
			   sample->end == PM_CHAIN_STITCH_TRUNCATED && !stitched.limited;
	if (sample->end == PM_CHAIN_STITCH_TRUNCATED)
		stitched.promise = give_promise(stitches, thread, sample, &stitched);
	*out = stitched;
	return 0;
}
