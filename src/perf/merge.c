/* SPDX-License-Identifier: MIT */
#include "perf-internal.h"

#include <time.h>

/*
 * A k-way merge in place. The heap holds the rings that have a record for this round, keyed
 * by that record's time, so that a run of records of one ring costs two comparisons each,
 * and hundreds of CPUs no more than eight levels.
 *
 * Two records of one ring may stand in the wrong order: an NMI that hits between the time
 * stamp and the reservation of room writes first. The ring's order is what can be had, so
 * keys never fall within a ring; the record keeps its true time.
 */

static void swap_entries(struct pm_merge_entry *a, struct pm_merge_entry *b)
{
	struct pm_merge_entry saved = *a;

	*a = *b;
	*b = saved;
}

/* Equal times go by CPU, so that the result does not depend on the heap's history. */
static bool earlier(const struct pm_merge_entry *a, const struct pm_merge_entry *b)
{
	return a->time != b->time ? a->time < b->time : a->ring < b->ring;
}

static void sift_down(struct pm_merge *merge, size_t at)
{
	struct pm_merge_entry *heap = merge->heap;

	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= merge->heap_len)
			return;
		if (child + 1 < merge->heap_len &&
		    earlier(&heap[child + 1], &heap[child]))
			child++;
		if (!earlier(&heap[child], &heap[at]))
			return;
		swap_entries(&heap[at], &heap[child]);
		at = child;
	}
}

static void remove_first(struct pm_merge *merge)
{
	merge->heap[0] = merge->heap[--merge->heap_len];
	sift_down(merge, 0);
}

/*
 * Peeks at the next record of @ring; true when it belongs to this round, with its key. A
 * ring that cannot be read comes first of all, so that the failure is told at once.
 */
static bool peek_key(const struct pm_merge *merge, struct pm_merge_ring *ring,
		     uint64_t *ret)
{
	uint64_t time;
	int r;

	ring->next = NULL;
	if (ring->dead)
		return false;
	r = pm_ring_peek(&ring->ring, &ring->next, NULL);
	if (r == 0)
		return false;
	ring->next_error = r;
	if (r < 0) {
		*ret = 0;
		return true;
	}
	/* A record without a time keeps its place behind its predecessor. */
	if (pm_record_time(ring->next, &merge->layout, &time) && time > ring->order)
		ring->order = time;
	*ret = ring->order;
	return ring->order <= merge->limit;
}

/*
 * Gives what was consumed back to the kernel, at once or by quarters: so that a long round
 * does not make a full ring, and not each record is news for another CPU.
 */
static void publish(struct pm_merge *merge, struct pm_merge_ring *ring, bool all)
{
	uint64_t room = ring->ring.tail - ring->published;

	if (ring->ring.backward || room == 0 || merge->held ||
	    (!all && room < ring->ring.data_bytes / 4))
		return;
	pm_ring_publish(&ring->ring);
	ring->published = ring->ring.tail;
}

static void publish_rings(struct pm_merge *merge, bool all)
{
	for (size_t i = 0; i < merge->rings.len; i++)
		publish(merge, &merge->rings.data[i], all);
}

/* Consumes what the last call gave: only now, because until now the caller used it. */
static void consume_given(struct pm_merge *merge)
{
	struct pm_merge_ring *ring = &merge->rings.data[merge->heap[0].ring];

	merge->given = false;
	pm_ring_consume(&ring->ring);
	publish(merge, ring, false);
}

static int ring_failed(struct pm_merge *merge, struct pm_merge_ring *ring,
		       struct pm_error *err)
{
	const struct perf_event_header *header;
	struct pm_error why;
	int r = pm_ring_peek(&ring->ring, &header, &why);

	ring->dead = r == -EBADMSG;
	remove_first(merge);
	if (r >= 0) /* memory was short a moment ago; the next round goes on */
		return pm_error_set(err, ring->next_error, "CPU %u: no memory",
				    ring->cpu);
	return pm_error_set(err, r, "the ring of CPU %u is unreadable: %s", ring->cpu,
			    why.text);
}

int pm_merge_add(struct pm_merge *merge, struct pm_ring *ring, uint32_t cpu)
{
	struct pm_merge_entry *heap =
		realloc(merge->heap, (merge->rings.len + 1) * sizeof(*heap));
	int r;

	if (!heap)
		return -ENOMEM;
	merge->heap = heap;
	r = pm_vec_push(&merge->rings, (struct pm_merge_ring){ .ring = *ring,
							       .cpu = cpu,
							       .published = ring->tail });
	if (r == 0)
		*ring = (struct pm_ring){ 0 };
	return r;
}

void pm_merge_remove(struct pm_merge *merge, uint32_t cpu)
{
	size_t at = 0;

	if (merge->given)
		consume_given(merge);
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
		consume_given(merge);
	publish_rings(merge, true);
	merge->heap_len = 0;
	merge->limit = limit;
	/* All heads before any record: a record on one ring that was caused by one on
	 * another must not be seen without it. */
	for (size_t i = 0; i < merge->rings.len; i++)
		pm_ring_refresh(&merge->rings.data[i].ring);
	for (size_t i = 0; i < merge->rings.len; i++) {
		uint64_t key;

		if (peek_key(merge, &merge->rings.data[i], &key))
			merge->heap[merge->heap_len++] =
				(struct pm_merge_entry){ key, (uint32_t)i };
	}
	for (size_t i = merge->heap_len / 2; i-- > 0;)
		sift_down(merge, i);
}

void pm_merge_begin_now(struct pm_merge *merge, bool final)
{
	uint64_t limit = UINT64_MAX;

	/*
	 * The clock before the heads. A record on one CPU that is a consequence of a record
	 * on another one (a sample in a mapping that another thread made) is stamped after
	 * that one was written. So when the heads are read after `limit`, a consequence
	 * with a time up to `limit` has its cause in front of the head that we read. With
	 * the heads first, the cause could lie behind the one, the consequence in front of
	 * the other.
	 */
	if (!final) {
		struct timespec now;

		clock_gettime(CLOCK_MONOTONIC, &now);
		limit = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	}
	pm_merge_begin(merge, limit);
}

int pm_merge_next(struct pm_merge *merge, struct pm_record *ret, struct pm_error *err)
{
	struct pm_merge_ring *ring;
	struct pm_error why; /* a kilobyte: written on failure only */
	int r;

	if (merge->given) {
		struct pm_merge_entry *first = &merge->heap[0];

		consume_given(merge);
		if (peek_key(merge, &merge->rings.data[first->ring], &first->time))
			sift_down(merge, 0);
		else
			remove_first(merge);
	}
	if (merge->heap_len == 0) {
		publish_rings(merge, true);
		return 0;
	}
	ring = &merge->rings.data[merge->heap[0].ring];
	if (!ring->next)
		return ring_failed(merge, ring, err);
	/* Also a record that cannot be decoded has been given: the next call steps over. */
	merge->given = true;
	r = pm_record_decode(ring->next, &merge->layout, ret, &why);
	if (r < 0)
		return pm_error_set(err, r, "a record of CPU %u is unreadable: %s",
				    ring->cpu, why.text);
	return 1;
}

void pm_merge_hold(struct pm_merge *merge, bool hold)
{
	merge->held = hold;
	publish_rings(merge, merge->heap_len == 0);
}

int pm_merge_stop_backward(struct pm_merge *merge, bool stop, struct pm_error *err)
{
	int r = 0;

	for (size_t i = 0; i < merge->rings.len; i++) {
		struct pm_merge_ring *ring = &merge->rings.data[i];
		struct pm_error why;
		int one = pm_ring_stop(&ring->ring, stop, &why);

		if (one < 0 && r == 0)
			r = pm_error_set(err, one, "the ring of CPU %u is unreadable: %s",
					 ring->cpu, why.text);
	}
	return r;
}
