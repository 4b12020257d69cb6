/* SPDX-License-Identifier: MIT */
#include "tracees.h"

#include <string.h>

static bool equal_tracee(const void *table, uint32_t id, const void *key)
{
	const struct pm_rec_tracees *tracees = table;

	return tracees->rows.data[id].tid == *(const pid_t *)key;
}

static uint64_t hash_tracee_tid(pid_t tid)
{
	return pm_hash_mix((uint32_t)tid, 0);
}

static uint32_t find_tracee_row(const struct pm_rec_tracees *tracees, pid_t tid)
{
	return pm_index_find(&tracees->index, hash_tracee_tid(tid), equal_tracee, tracees,
			     &tid);
}

void pm_rec_tracees_release(struct pm_rec_tracees *tracees)
{
	pm_vec_release(&tracees->rows);
	pm_vec_release(&tracees->free_rows);
	pm_index_release(&tracees->index);
}

struct pm_rec_tracee *pm_rec_tracees_get(struct pm_rec_tracees *tracees, pid_t pid,
					 pid_t tid)
{
	uint32_t row = find_tracee_row(tracees, tid);

	if (row != PM_INDEX_NONE)
		return &tracees->rows.data[row];
	if (tracees->free_rows.len == 0) {
		/* Reserve space for freeing the row here, so that freeing cannot fail. */
		row = (uint32_t)tracees->rows.len;
		if (pm_vec_reserve(&tracees->free_rows, (size_t)row + 1) < 0 ||
		    pm_vec_push(&tracees->rows, (struct pm_rec_tracee){ 0 }) < 0)
			return NULL;
		tracees->free_rows.data[tracees->free_rows.len++] = row;
	}
	row = tracees->free_rows.data[tracees->free_rows.len - 1];
	if (pm_index_add(&tracees->index, hash_tracee_tid(tid), row) < 0)
		return NULL;
	tracees->free_rows.len--;
	tracees->rows.data[row] = (struct pm_rec_tracee){ .pid = pid, .tid = tid };
	return &tracees->rows.data[row];
}

static void drop_row(struct pm_rec_tracees *tracees, uint32_t row)
{
	pm_index_remove(&tracees->index, hash_tracee_tid(tracees->rows.data[row].tid),
			row);
	tracees->rows.data[row].tid = 0;
	tracees->free_rows.data[tracees->free_rows.len++] = row;
}

void pm_rec_tracees_drop(struct pm_rec_tracees *tracees, pid_t tid)
{
	uint32_t row = find_tracee_row(tracees, tid);

	if (row != PM_INDEX_NONE)
		drop_row(tracees, row);
}

void pm_rec_tracees_exec(struct pm_rec_tracees *tracees, pid_t pid, pid_t former)
{
	uint32_t leader = find_tracee_row(tracees, pid),
		 thread = find_tracee_row(tracees, former);

	/* CPU time belongs to the thread, whose id has changed to that of the leader. */
	if (leader != PM_INDEX_NONE && thread != leader) {
		if (thread == PM_INDEX_NONE)
			tracees->rows.data[leader].sampled_ns = 0;
		else
			tracees->rows.data[leader].sampled_ns =
				tracees->rows.data[thread].sampled_ns;
	}
	for (uint32_t i = 0; i < tracees->rows.len; i++) {
		struct pm_rec_tracee *row = &tracees->rows.data[i];

		if (row->tid != 0 && row->pid == pid && row->tid != pid)
			drop_row(tracees, i);
		else if (row->tid == pid)
			row->maps_known = false;
	}
}

int pm_rec_maps_hash(pid_t tid, uint64_t *out)
{
	PM_AUTO_FCLOSE FILE *file = NULL;
	PM_AUTO_FREE char *line = NULL;
	uint64_t sum = 0;
	bool any = false;
	size_t cap = 0;
	char path[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)tid);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while ((len = getline(&line, &cap, file)) > 0) {
		/* "START-END rwxp …" */
		const char *prot = memchr(line, ' ', (size_t)len);

		any = true;
		if (prot && line + len - prot > 4 && prot[3] == 'x')
			sum = pm_hash_mix(sum, pm_hash_bytes(line, (size_t)len));
	}
	if (ferror(file))
		return -EIO;
	if (!any)
		return -ESRCH;
	*out = sum;
	return 0;
}
