/* SPDX-License-Identifier: MIT */
/*
 * A thread's counters are separate on each CPU. The total of a thread is the sum of the
 * last values reported on each of them.
 */
#include "hits-state.h"

#include <string.h>

static bool has_hits_thread_tid(const void *table, uint32_t row, const void *key)
{
	const struct pm_hits_threads *threads = table;

	return threads->rows.data[row].tid == *(const pid_t *)key;
}

static uint64_t hash_hits_tid(pid_t tid)
{
	return pm_hash_mix((uint64_t)tid, 0);
}

static int hits_threads_take_row(struct pm_hits_threads *threads, uint32_t *out)
{
	if (threads->unused.len > 0) {
		*out = threads->unused.data[--threads->unused.len];
		return 0;
	}
	/* Reserve the row's entry in `unused` now, so that pm_hits_thread_forget() cannot
	 * fail. */
	if (pm_vec_reserve(&threads->unused, threads->rows.len + 1) < 0 ||
	    pm_vec_push(&threads->rows, (struct pm_hits_thread){ 0 }) < 0)
		return -ENOMEM;
	*out = (uint32_t)threads->rows.len - 1;
	return 0;
}

struct pm_hits_thread *pm_hits_thread(struct pm_hits_threads *threads, pid_t tid)
{
	uint32_t row = pm_index_find(&threads->by_tid, hash_hits_tid(tid),
				     has_hits_thread_tid, threads, &tid);

	if (row != PM_INDEX_NONE)
		return &threads->rows.data[row];
	if (hits_threads_take_row(threads, &row) < 0)
		return NULL;
	if (pm_index_add(&threads->by_tid, hash_hits_tid(tid), row) < 0) {
		threads->unused.data[threads->unused.len++] = row;
		return NULL;
	}
	threads->rows.data[row] = (struct pm_hits_thread){ .tid = tid };
	return &threads->rows.data[row];
}

void pm_hits_thread_forget(struct pm_hits_threads *threads, pid_t tid)
{
	uint32_t row = pm_index_find(&threads->by_tid, hash_hits_tid(tid),
				     has_hits_thread_tid, threads, &tid);

	if (row == PM_INDEX_NONE)
		return;
	pm_index_remove(&threads->by_tid, hash_hits_tid(tid), row);
	pm_vec_release(&threads->rows.data[row].seen);
	threads->rows.data[row] = (struct pm_hits_thread){ 0 };
	threads->unused.data[threads->unused.len++] = row;
}

/* Makes the entry of @group in `seen` the current one. */
static int hits_thread_move_to_group(struct pm_hits_thread *thread, uint32_t group,
				     size_t len)
{
	uint32_t to = 0;

	while (to < thread->seen.len && thread->seen.data[to].group != group)
		to++;
	if (to == thread->seen.len &&
	    pm_vec_push(&thread->seen, (struct pm_hits_seen){ .group = group }) < 0)
		return -ENOMEM;
	if (to == thread->current)
		return 0;
	for (size_t i = 0; i < len; i++)
		thread->counts[i] += thread->seen.data[thread->current].counts[i] -
				     thread->seen.data[to].counts[i];
	thread->running_ns += thread->seen.data[thread->current].running_ns -
			      thread->seen.data[to].running_ns;
	thread->current = to;
	return 0;
}

int pm_hits_thread_seen(struct pm_hits_thread *thread, uint32_t group,
			const uint64_t *counts, size_t len, uint64_t running_ns)
{
	struct pm_hits_seen *seen;

	if (thread->current >= thread->seen.len ||
	    thread->seen.data[thread->current].group != group)
		if (hits_thread_move_to_group(thread, group, len) < 0)
			return -ENOMEM;
	seen = &thread->seen.data[thread->current];
	memcpy(seen->counts, counts, len * sizeof(*counts));
	seen->running_ns = running_ns;
	return 0;
}

void pm_hits_threads_release(struct pm_hits_threads *threads)
{
	for (size_t i = 0; i < threads->rows.len; i++)
		pm_vec_release(&threads->rows.data[i].seen);
	pm_vec_release(&threads->rows);
	pm_vec_release(&threads->unused);
	pm_index_release(&threads->by_tid);
}
