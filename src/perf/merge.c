/* SPDX-License-Identifier: MIT */
#include "perf-internal.h"

/*
 * A k-way merge in place. The heap holds the rings that have a record in this round,
 * keyed by that record's time. Each record in a run of one ring costs two comparisons,
 * and hundreds of CPUs need at most eight levels.
 *
 * Two records of one ring may be in the wrong order: an NMI between the timestamp and the
 * reservation of space writes first. The merge keeps the ring's order, so keys never
 * decrease within a ring; the record keeps its true time.
 */

static void swap_merge_entries(struct pm_merge_entry *a, struct pm_merge_entry *b)
{
	struct pm_merge_entry saved = *a;

	*a = *b;
	*b = saved;
}

/* Equal times are ordered by CPU, so that the result does not depend on the heap's
 * history. */
static bool is_entry_earlier(const struct pm_merge_entry *a,
			     const struct pm_merge_entry *b)
{
	if (a->time != b->time)
		return a->time < b->time;
	return a->ring < b->ring;
}

static void merge_sift_down(struct pm_merge *merge, size_t at)
{
	struct pm_merge_entry *heap = merge->heap;

	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= merge->heap_len)
			return;
		if (child + 1 < merge->heap_len &&
		    is_entry_earlier(&heap[child + 1], &heap[child]))
			child++;
		if (!is_entry_earlier(&heap[child], &heap[at]))
			return;
		swap_merge_entries(&heap[at], &heap[child]);
		at = child;
	}
}

static void merge_remove_first(struct pm_merge *merge)
{
	merge->heap[0] = merge->heap[--merge->heap_len];
	merge_sift_down(merge, 0);
}

/*
 * Peeks at the next record of @ring. Returns true, with the sort key, if it belongs to
 * this round. A ring that cannot be read sorts first, so that the failure is reported at
 * once.
 */
static bool merge_peek_key(const struct pm_merge *merge, struct pm_merge_ring *ring,
			   uint64_t *out)
{
	uint64_t time;
	int ret;

	ring->next = NULL;
	if (ring->dead)
		return false;
	ret = pm_ring_peek(&ring->ring, &ring->next, NULL);
	if (ret == 0)
		return false;
	ring->next_error = ret;
	if (ret < 0) {
		*out = 0;
		return true;
	}
	/* A record without a time stays right after its predecessor. */
	if (pm_record_time(ring->next, &merge->layout, &time) && time > ring->order)
		ring->order = time;
	*out = ring->order;
	return ring->order <= merge->limit;
}

/*
 * Returns consumed space to the kernel: all of it, or only once it is a quarter of the
 * ring. Then the ring does not fill up in a long round, and not every record costs a
 * write to shared memory.
 */
static void merge_publish_ring(struct pm_merge *merge, struct pm_merge_ring *ring,
			       bool all)
{
	uint64_t room = ring->ring.tail - ring->published;

	if (ring->ring.backward || room == 0 || merge->held ||
	    (!all && room < ring->ring.data_bytes / 4))
		return;
	pm_ring_publish(&ring->ring);
	ring->published = ring->ring.tail;
}

static void merge_publish_rings(struct pm_merge *merge, bool all)
{
	for (size_t i = 0; i < merge->rings.len; i++)
		merge_publish_ring(merge, &merge->rings.data[i], all);
}

/* Consumes the record of the last call, which the caller used until now. */
static void merge_consume_given(struct pm_merge *merge)
{
	struct pm_merge_ring *ring = &merge->rings.data[merge->heap[0].ring];

	merge->given = false;
	pm_ring_consume(&ring->ring);
	merge_publish_ring(merge, ring, false);
}

static int merge_drop_failed_ring(struct pm_merge *merge, struct pm_merge_ring *ring,
				  struct pm_error *err)
{
	const struct perf_event_header *header;
	struct pm_error why;
	int ret = pm_ring_peek(&ring->ring, &header, &why);

	ring->dead = ret == -EBADMSG;
	merge_remove_first(merge);
	if (ret >= 0) /* memory was short; the next round continues */
		return pm_error_set(err, ring->next_error, "CPU %u: no memory",
				    ring->cpu);
	return pm_error_set(err, ret, "the ring of CPU %u is unreadable: %s", ring->cpu,
			    why.text);
}

int pm_merge_add(struct pm_merge *merge, struct pm_ring *ring, uint32_t cpu)
{
	struct pm_merge_entry *heap =
		realloc(merge->heap, (merge->rings.len + 1) * sizeof(*heap));
	int ret;

	if (!heap)
		return -ENOMEM;
	merge->heap = heap;
	ret = pm_vec_push(&merge->rings,
			  (struct pm_merge_ring){
				  .ring = *ring, .cpu = cpu, .published = ring->tail });
	if (ret == 0)
		*ring = (struct pm_ring){ 0 };
	return ret;
}

void pm_merge_remove(struct pm_merge *merge, uint32_t cpu)
{
	size_t at = 0;

	if (merge->given)
		merge_consume_given(merge);
	merge->heap_len = 0;
	while (at < merge->rings.len && merge->rings.data[at].cpu != cpu)
		at++;
	if (at == merge->rings.len)
		return;
	pm_ring_release(&merge->rings.data[at].ring);
	merge->rings.data[at] = merge->rings.data[--merge->rings.len];
}

void pm_merge_release(struct pm_merge *merge)
{
	for (size_t i = 0; i < merge->rings.len; i++)
		pm_ring_release(&merge->rings.data[i].ring);
	pm_vec_release(&merge->rings);
	free(merge->heap);
	*merge = (struct pm_merge){ 0 };
}

void pm_merge_begin(struct pm_merge *merge, uint64_t limit)
{
	merge->held = false;
	if (merge->given)
		merge_consume_given(merge);
	merge_publish_rings(merge, true);
	merge->heap_len = 0;
	merge->limit = limit;
	/* The order in which heads are read does not matter: see pm_merge_begin_now(). */
	for (size_t i = 0; i < merge->rings.len; i++) {
		uint64_t key;

		pm_ring_refresh(&merge->rings.data[i].ring);
		if (merge_peek_key(merge, &merge->rings.data[i], &key))
			merge->heap[merge->heap_len++] =
				(struct pm_merge_entry){ key, (uint32_t)i };
	}
	for (size_t i = merge->heap_len / 2; i-- > 0;)
		merge_sift_down(merge, i);
}

void pm_merge_begin_now(struct pm_merge *merge, bool final)
{
	uint64_t limit = UINT64_MAX;

	/*
	 * Read the clock before the heads. If a record on one CPU is a consequence of a
	 * record on another one (a sample in a mapping that another thread made), its
	 * timestamp is taken after that record was written. When the heads are read after
	 * `limit`, a consequence with a time up to `limit` therefore has its cause in
	 * front of the head that we read. If the heads were read first, the cause could
	 * be written after the head of its ring was read, and the consequence before the
	 * head of its own.
	 */
	if (!final)
		limit = pm_perf_now_ns();
	pm_merge_begin(merge, limit);
}

int pm_merge_next(struct pm_merge *merge, struct pm_record *out, struct pm_error *err)
{
	struct pm_merge_ring *ring;
	struct pm_error why; /* a kilobyte: only initialized on failure */
	int ret;

	if (merge->given) {
		struct pm_merge_entry *first = &merge->heap[0];

		merge_consume_given(merge);
		if (merge_peek_key(merge, &merge->rings.data[first->ring], &first->time))
			merge_sift_down(merge, 0);
		else
			merge_remove_first(merge);
	}
	if (merge->heap_len == 0) {
		merge_publish_rings(merge, true);
		return 0;
	}
	ring = &merge->rings.data[merge->heap[0].ring];
	if (!ring->next)
		return merge_drop_failed_ring(merge, ring, err);
	/* A record that cannot be decoded counts as given, too, so that the next call
	 * steps over it. */
	merge->given = true;
	ret = pm_record_decode(ring->next, &merge->layout, out, &why);
	if (ret < 0)
		return pm_error_set(err, ret, "a record of CPU %u is unreadable: %s",
				    ring->cpu, why.text);
	return 1;
}

void pm_merge_hold(struct pm_merge *merge, bool hold)
{
	merge->held = hold;
	merge_publish_rings(merge, merge->heap_len == 0);
}

int pm_merge_stop_backward(struct pm_merge *merge, bool stop, struct pm_error *err)
{
	int ret = 0;

	for (size_t i = 0; i < merge->rings.len; i++) {
		struct pm_merge_ring *ring = &merge->rings.data[i];
		struct pm_error why;
		int one = pm_ring_stop(&ring->ring, stop, &why);

		if (one < 0 && ret == 0)
			ret = pm_error_set(err, one,
					   "the ring of CPU %u is unreadable: %s",
					   ring->cpu, why.text);
	}
	return ret;
}
