/* SPDX-License-Identifier: MIT */
#include "pm/chain-threads.h"

#include <string.h>

static bool equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_chain_thread *row =
		&((const struct pm_chain_threads *)table)->list.data[id];
	const struct pm_chain_thread *wanted = key;

	return row->pid == wanted->pid && row->tid == wanted->tid;
}

static uint32_t find(const struct pm_chain_threads *threads, uint32_t pid, uint32_t tid)
{
	struct pm_chain_thread key = { .pid = pid, .tid = tid };

	return pm_index_find(&threads->index, pm_hash_mix(pid, tid), equal, threads,
			     &key);
}

void pm_chain_threads_release(struct pm_chain_threads *threads)
{
	pm_vec_release(&threads->list);
	pm_index_release(&threads->index);
}

bool pm_chain_threads_known(const struct pm_chain_threads *threads, uint32_t pid,
			    uint32_t tid)
{
	return find(threads, pid, tid) != PM_INDEX_NONE;
}

int pm_chain_threads_name(struct pm_chain_threads *threads, struct pm_file_writer *writer,
			  uint32_t pid, uint32_t tid, const char *comm, uint64_t time)
{
	struct pm_file_thread line = {
		.pid = pid, .tid = tid, .comm = comm, .time = time
	};
	struct pm_chain_thread row = { .pid = pid, .tid = tid };
	uint32_t id = find(threads, pid, tid);
	int ret;

	snprintf(row.comm, sizeof(row.comm), "%s", comm);
	if (id == PM_INDEX_NONE) {
		ret = pm_vec_push(&threads->list, row);
		if (ret == 0) {
			ret = pm_index_add(&threads->index, pm_hash_mix(pid, tid),
					   (uint32_t)threads->list.len - 1);
			if (ret < 0)
				threads->list.len--;
		}
		if (ret < 0)
			return ret;
	} else if (strcmp(threads->list.data[id].comm, row.comm) == 0) {
		return 0;
	} else {
		threads->list.data[id] = row;
	}
	return pm_file_write_thread(writer, &line);
}
