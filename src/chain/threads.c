/* SPDX-License-Identifier: MIT */
#include "pm/chain-threads.h"

#include <string.h>

#define SECOND_NS 1000000000ull

static bool equal_chain_thread(const void *table, uint32_t id, const void *key)
{
	const struct pm_chain_thread *row =
		&((const struct pm_chain_threads *)table)->list.data[id];
	const struct pm_chain_thread *wanted = key;

	return row->pid == wanted->pid && row->tid == wanted->tid;
}

void pm_chain_threads_release(struct pm_chain_threads *threads)
{
	pm_vec_release(&threads->list);
	pm_index_release(&threads->index);
}

size_t pm_chain_threads_bytes(const struct pm_chain_threads *threads)
{
	return threads->list.cap * sizeof(*threads->list.data) +
	       threads->index.cap * sizeof(*threads->index.slots);
}

/* Returns the row of the thread, or NULL if memory runs out. A thread that is not known
 * gets a new row, with the name "". */
static struct pm_chain_thread *get_chain_thread(struct pm_chain_threads *threads,
						uint32_t pid, uint32_t tid)
{
	struct pm_chain_thread key = { .pid = pid, .tid = tid };
	uint64_t hash = pm_hash_mix(pid, tid);
	uint32_t id =
		pm_index_find(&threads->index, hash, equal_chain_thread, threads, &key);

	if (id != PM_INDEX_NONE)
		return &threads->list.data[id];
	if (threads->list.len >= PM_CHAIN_THREADS_MAX) {
		pm_index_release(&threads->index);
		threads->list.len = 0;
	}
	if (pm_vec_push(&threads->list, key) < 0)
		return NULL;
	if (pm_index_add(&threads->index, hash, (uint32_t)threads->list.len - 1) < 0) {
		threads->list.len--;
		return NULL;
	}
	return &threads->list.data[threads->list.len - 1];
}

static uint64_t storable_time(struct pm_chain_threads *threads, uint64_t time)
{
	/* The file has no larger numbers (docs/format.md §2). */
	if (time <= INT64_MAX)
		return time;
	threads->clamped++;
	return INT64_MAX;
}

/* @is_new says that no line has been written for the thread. */
static int write_name(struct pm_chain_threads *threads, struct pm_file_writer *writer,
		      struct pm_chain_thread *row, const struct pm_chain_name *name,
		      uint64_t time, bool is_new)
{
	struct pm_file_thread line = { .pid = row->pid,
				       .tid = row->tid,
				       .comm = row->comm };
	uint32_t second = (uint32_t)(time / SECOND_NS);

	if (row->second != second) {
		row->second = second;
		row->lines = 0;
	}
	if (!is_new && row->lines >= PM_CHAIN_RENAMES_MAX) {
		threads->misnamed++;
		return 0;
	}
	row->lines++;
	memcpy(row->comm, name->comm, sizeof(row->comm));
	line.time = storable_time(threads, name->since_ns > 0 ? name->since_ns : time);
	return pm_file_write_thread(writer, &line);
}

static int name_chain_thread(struct pm_chain_threads *threads,
			     struct pm_file_writer *writer, uint32_t pid, uint32_t tid,
			     const struct pm_chain_name *name, uint64_t time)
{
	size_t len = threads->list.len;
	struct pm_chain_thread *row = get_chain_thread(threads, pid, tid);
	bool is_new = threads->list.len != len;

	if (!row)
		return -ENOMEM;
	if (!is_new && strcmp(row->comm, name->comm) == 0)
		return 0;
	return write_name(threads, writer, row, name, time, is_new);
}

int pm_chain_threads_name(struct pm_chain_threads *threads, struct pm_file_writer *writer,
			  uint32_t pid, uint32_t tid, const struct pm_chain_names *names,
			  uint64_t time)
{
	int ret = 0;

	if (names->leader.comm[0] != '\0')
		ret = name_chain_thread(threads, writer, pid, pid, &names->leader, time);
	/* Without a known thread, it may have been any thread of its process: the only
	 * known fact is that it was exiting and no longer in the kernel's tables. */
	if (names->known && ret == 0)
		ret = name_chain_thread(threads, writer, pid, tid, &names->thread, time);
	return ret;
}
