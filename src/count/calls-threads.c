/* SPDX-License-Identifier: MIT */
#include "calls-internal.h"

#include <string.h>

static bool call_thread_equal(const void *table, uint32_t row, const void *key)
{
	const struct pm_calls *calls = table;

	return calls->threads.data[row].tid == *(const pid_t *)key;
}

static uint64_t call_thread_hash(pid_t tid)
{
	return pm_hash_mix((uint64_t)tid, 0);
}

static bool region_equal(const void *table, uint32_t row, const void *key)
{
	const struct pm_calls_thread *thread = table;

	return thread->cells.data[row].region == *(const uint32_t *)key;
}

struct pm_calls_thread *pm_calls_find_thread(struct pm_calls *calls, pid_t tid)
{
	uint32_t row = pm_index_find(&calls->by_tid, call_thread_hash(tid),
				     call_thread_equal, calls, &tid);

	if (row == PM_INDEX_NONE)
		return NULL;
	return &calls->threads.data[row];
}

static int claim_thread_row(struct pm_calls *calls, uint32_t *out)
{
	if (calls->threads_unused.len > 0) {
		*out = calls->threads_unused.data[--calls->threads_unused.len];
		return 0;
	}
	/* Reserves room to return the row, so that removing a thread cannot fail. */
	if (pm_vec_reserve(&calls->threads_unused, calls->threads.len + 1) < 0 ||
	    pm_vec_push(&calls->threads, (struct pm_calls_thread){ 0 }) < 0)
		return -ENOMEM;
	*out = (uint32_t)calls->threads.len - 1;
	return 0;
}

struct pm_calls_thread *pm_calls_thread(struct pm_calls *calls, pid_t pid, pid_t tid)
{
	struct pm_calls_thread *thread = pm_calls_find_thread(calls, tid);
	PM_AUTO_FREE uint64_t *last = NULL;
	uint32_t row;

	if (thread)
		return thread;
	last = calloc(calls->columns, sizeof(*last));
	if (!last || claim_thread_row(calls, &row) < 0)
		return NULL;
	if (pm_index_add(&calls->by_tid, call_thread_hash(tid), row) < 0) {
		calls->threads_unused.data[calls->threads_unused.len++] = row;
		return NULL;
	}
	thread = &calls->threads.data[row];
	*thread = (struct pm_calls_thread){ .pid = pid,
					    .tid = tid,
					    .last = PM_TAKE_PTR(last) };
	return thread;
}

uint32_t pm_calls_cell(struct pm_calls *calls, struct pm_calls_thread *thread,
		       uint32_t region)
{
	uint64_t key = pm_hash_mix(region, 1);
	uint32_t row =
		pm_index_find(&thread->by_region, key, region_equal, thread, &region);
	size_t words = thread->covered.len + calls->columns;

	if (row != PM_INDEX_NONE)
		return row;
	row = (uint32_t)thread->cells.len;
	if (pm_vec_reserve(&thread->covered, words) < 0 ||
	    pm_vec_push(&thread->cells, (struct pm_calls_cell){ .region = region }) < 0)
		return UINT32_MAX;
	if (pm_index_add(&thread->by_region, key, row) < 0) {
		thread->cells.len--;
		return UINT32_MAX;
	}
	memset(&thread->covered.data[thread->covered.len], 0,
	       calls->columns * sizeof(uint64_t));
	thread->covered.len = words;
	return row;
}

static int keep_sums_of_thread(struct pm_calls *calls,
			       const struct pm_calls_thread *thread, size_t at)
{
	const struct pm_calls_cell *cell = &thread->cells.data[at];
	struct pm_calls_done done = { cell->region, thread->pid, thread->tid, "",
				      cell->calls };
	size_t words = calls->done_words.len + calls->columns;

	memcpy(done.comm, thread->comm, sizeof(done.comm));
	if (pm_vec_reserve(&calls->done_words, words) < 0 ||
	    pm_vec_push(&calls->done, done) < 0)
		return -ENOMEM;
	memcpy(&calls->done_words.data[calls->done_words.len],
	       &thread->covered.data[at * calls->columns],
	       calls->columns * sizeof(uint64_t));
	calls->done_words.len = words;
	return 0;
}

int pm_calls_thread_fold(struct pm_calls *calls, struct pm_calls_thread *thread)
{
	uint32_t row = (uint32_t)(thread - calls->threads.data);
	int ret = 0;

	for (size_t i = 0; i < thread->cells.len; i++) {
		uint64_t *total = &calls->totals[(size_t)thread->cells.data[i].region *
						 calls->columns];

		for (size_t k = 0; k < calls->columns; k++)
			total[k] += thread->covered.data[i * calls->columns + k];
		if (ret == 0 && calls->options.by_thread)
			ret = keep_sums_of_thread(calls, thread, i);
	}
	pm_index_remove(&calls->by_tid, call_thread_hash(thread->tid), row);
	pm_calls_thread_release(thread);
	calls->threads_unused.data[calls->threads_unused.len++] = row;
	return ret;
}

void pm_calls_thread_release(struct pm_calls_thread *thread)
{
	free(thread->last);
	pm_vec_release(&thread->live);
	pm_index_release(&thread->dead);
	pm_vec_release(&thread->dead_list);
	pm_vec_release(&thread->dead_unused);
	pm_vec_release(&thread->cells);
	pm_vec_release(&thread->covered);
	pm_index_release(&thread->by_region);
	*thread = (struct pm_calls_thread){ 0 };
}
