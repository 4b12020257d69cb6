/* SPDX-License-Identifier: MIT */
/*
 * Rows of threads that have ended. When a thread ends, its events add their counts to the
 * events that they were inherited from, and with attr.inherit_stat report them before
 * (sync_child_event() of kernel/events/core.c). The threads that were opened keep the
 * rest.
 *
 * The kernel writes all last counts of a thread on the CPU where the thread ends, even
 * into rings of other CPUs. If two threads end at once, one may overwrite all or part of
 * the other's records. A thread therefore only gets a row if all of its descriptors have
 * reported it, each with the same time. Otherwise it counts as lost and remains in the
 * row of the thread that was opened.
 *
 * Since Linux 5.13 the kernel detaches the context of an ending thread before it checks
 * whose it was, and reports no counts at all, until c418d8b4d7a4 ("perf/core: Fix missing
 * read event generation on task exit") of 6.19, which stable kernels also have. The EXIT
 * records are written nevertheless.
 */
#include "counters-state.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <time.h>

enum {
	RING_PAGES = 64,
	RING_PAGES_MIN = 4,
};

/* ---- rings ----------------------------------------------------------------------------- */

/* Opens a dummy event of our own task, since that outlives the target's tasks. */
static int counters_open_anchor(struct pm_counters *counters, int cpu)
{
	struct pm_record_layout layout = pm_attr_counter_layout(false);
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_DUMMY,
					.sample_type = layout.sample_type,
					.read_format = layout.read_format,
					.disabled = 1,
					.exclude_kernel = 1,
					.exclude_hv = 1,
					.sample_id_all = 1,
					.use_clockid = 1,
					.clockid = CLOCK_MONOTONIC,
					.watermark = 1 };
	int fd;

	attr.wakeup_watermark = RING_PAGES_MIN * (uint32_t)sysconf(_SC_PAGESIZE) / 4;
	fd = pm_sys_perf_event_open(&attr, 0, cpu, -1, 0);
	if (fd < 0)
		return -errno;
	if (pm_vec_push(&counters->anchors, fd) < 0) {
		close(fd);
		return -ENOMEM;
	}
	return fd;
}

static int counters_map_ring(struct pm_counters *counters, int fd, int cpu)
{
	struct pm_ring ring PM_CLEANUP(pm_ring_release) = { 0 };
	size_t pages = RING_PAGES;
	int ret;

	do
		ret = pm_ring_map(&ring, fd, pages, NULL);
	while (ret == -EPERM && (pages /= 2) >= RING_PAGES_MIN);
	if (ret < 0)
		return ret;
	return pm_merge_add(&counters->merge, &ring, (uint32_t)cpu);
}

/* Returns the anchor of an earlier place on the same CPU, or -1. */
static int find_earlier_anchor(const struct pm_counters *counters, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (counters->places.data[i].cpu == counters->places.data[at].cpu)
			return counters->places.data[i].anchor;
	return -1;
}

int pm_counters_map_rings(struct pm_counters *counters, struct pm_error *err)
{
	int ret = 0;

	counters->merge.layout = pm_attr_counter_layout(false);
	counters->merge.layout.ids = &counters->ids;
	for (size_t i = 0; i < counters->places.len && ret >= 0; i++) {
		struct pm_counter_place *place = &counters->places.data[i];

		place->anchor = find_earlier_anchor(counters, i);
		if (place->anchor >= 0)
			continue;
		ret = counters_open_anchor(counters, place->cpu);
		if (ret >= 0)
			ret = counters_map_ring(counters, place->anchor = ret,
						place->cpu);
	}
	if (ret < 0)
		pm_counters_close_all(counters);
	if (ret < 0)
		return ret;
	return 0;
}

/* ---- names ----------------------------------------------------------------------------- */

/* /proc/TID/comm also exists for threads. */
static bool read_comm_of_thread(pid_t tid, char out[16])
{
	char path[64];
	int fd PM_AUTO_CLOSE = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		n = -1;
	else
		n = read(fd, out, 15);
	if (n <= 0)
		return false;
	out[n] = '\0';
	out[strcspn(out, "\n")] = '\0';
	return true;
}

/* Returns `Tgid:` of /proc/TID/status, or @tid if that cannot be read. */
static pid_t process_of_thread(pid_t tid)
{
	char path[64], text[1024];
	int fd PM_AUTO_CLOSE = -1;
	const char *at;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		n = -1;
	else
		n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return tid;
	text[n] = '\0';
	at = strstr(text, "\nTgid:");
	if (!at)
		return tid;
	return (pid_t)atoi(at + strlen("\nTgid:"));
}

static bool has_counter_task_tid(const void *table, uint32_t id, const void *key)
{
	const struct pm_counters *counters = table;

	return counters->tasks.data[id].tid == *(const pid_t *)key;
}

static uint64_t hash_counter_task_tid(pid_t tid)
{
	return pm_hash_bytes(&tid, sizeof(tid));
}

static struct pm_counter_task *counters_find_task(struct pm_counters *counters, pid_t tid)
{
	uint32_t id = pm_index_find(&counters->task_index, hash_counter_task_tid(tid),
				    has_counter_task_tid, counters, &tid);

	if (id == PM_INDEX_NONE)
		return NULL;
	return &counters->tasks.data[id];
}

/* Adds a task. It replaces an older one with the same id, since ids are reused. */
static int counters_add_task(struct pm_counters *counters,
			     const struct pm_counter_task *task)
{
	struct pm_counter_task *older = counters_find_task(counters, task->tid);
	uint32_t id = (uint32_t)counters->tasks.len;

	if (older) {
		*older = *task;
		return 0;
	}
	if (pm_vec_push(&counters->tasks, *task) < 0)
		return -ENOMEM;
	return pm_index_add(&counters->task_index, hash_counter_task_tid(task->tid), id);
}

int pm_counters_name_rows(struct pm_counters *counters)
{
	for (uint32_t i = 0; i < counters->own_rows; i++) {
		struct pm_counters_row *row = &counters->rows.data[i];
		struct pm_counter_task task = { .tid = row->tid };

		row->pid = task.pid = process_of_thread(row->tid);
		if (read_comm_of_thread(row->tid, row->comm))
			memcpy(task.comm, row->comm, sizeof(task.comm));
		if (counters_add_task(counters, &task) < 0)
			return -ENOMEM;
	}
	return 0;
}

void pm_counters_refresh_names(struct pm_counters *counters)
{
	if (counters->tell_ended)
		return;
	for (size_t i = 0; i < counters->own_rows; i++)
		(void)read_comm_of_thread(counters->rows.data[i].tid,
					  counters->rows.data[i].comm);
}

/* ---- records --------------------------------------------------------------------------- */

static int counters_handle_fork(struct pm_counters *counters,
				const struct pm_record *record)
{
	const struct pm_counter_task *parent =
		counters_find_task(counters, (pid_t)record->fork.parent_tid);
	struct pm_counter_task task = { .pid = (pid_t)record->pid,
					.tid = (pid_t)record->tid };

	if (parent)
		memcpy(task.comm, parent->comm, sizeof(task.comm));
	return counters_add_task(counters, &task);
}

static int counters_handle_comm(struct pm_counters *counters,
				const struct pm_record *record)
{
	struct pm_counter_task *task = counters_find_task(counters, (pid_t)record->tid);

	if (!task)
		return 0;
	snprintf(task->comm, sizeof(task->comm), "%s", record->comm.name);
	for (size_t i = 0; i < counters->own_rows; i++)
		if (counters->rows.data[i].tid == task->tid)
			memcpy(counters->rows.data[i].comm, task->comm,
			       sizeof(task->comm));
	return 0;
}

static void counters_handle_exit(struct pm_counters *counters,
				 const struct pm_record *record)
{
	/* A task that was opened keeps its counts in its own row. */
	for (size_t i = 0; i < counters->own_rows; i++)
		if (counters->rows.data[i].tid == (pid_t)record->tid)
			return;
	counters->ends++;
}

int pm_counters_expect(struct pm_counters *counters)
{
	for (size_t i = 0; i < counters->own_rows; i++)
		if (pm_vec_push(&counters->expected, (struct pm_counter_expected){ 0 }) <
		    0)
			return -ENOMEM;
	for (size_t i = 0; i < counters->fds.len; i++) {
		const struct pm_counter_fd *entry = &counters->fds.data[i];
		uint32_t row = counters->places.data[entry->place].row;

		if (entry->told) {
			counters->expected.data[row].len++;
			counters->expected.data[row].sum += i;
		}
	}
	return 0;
}

/* Returns the entry that the record belongs to, or NULL if out of memory. */
static struct pm_counter_ended *counters_find_pending(struct pm_counters *counters,
						      const struct pm_record *record,
						      uint32_t top)
{
	size_t events = counters->events.len, before = counters->ended_reads.len;
	struct pm_counter_ended new = { .pid = (pid_t)record->pid,
					.tid = (pid_t)record->tid,
					.top = top,
					.enabled_ns = record->read.enabled_ns,
					.reads = before };

	for (size_t i = counters->pending.len; i-- > 0;) {
		struct pm_counter_ended *pending = &counters->pending.data[i];

		if (pending->tid == new.tid && pending->pid == new.pid &&
		    pending->top == top && pending->enabled_ns == new.enabled_ns)
			return pending;
	}
	if (pm_vec_reserve(&counters->ended_reads, before + events) < 0 ||
	    pm_vec_push(&counters->pending, new) < 0)
		return NULL;
	memset(counters->ended_reads.data + before, 0,
	       events * sizeof(*counters->ended_reads.data));
	counters->ended_reads.len += events;
	return &counters->pending.data[counters->pending.len - 1];
}

/* All descriptors have reported the thread, so it gets a row. */
static int counters_add_row_of_ended(struct pm_counters *counters,
				     struct pm_counter_ended *pending)
{
	struct pm_counters_row row = { .pid = pending->pid,
				       .tid = pending->tid,
				       .cpu = -1 };
	const struct pm_counter_task *task = counters_find_task(counters, pending->tid);

	if (task)
		memcpy(row.comm, task->comm, sizeof(row.comm));
	if (pm_vec_reserve(&counters->rows, counters->rows.len + 1) < 0 ||
	    pm_vec_push(&counters->ended, *pending) < 0)
		return -ENOMEM;
	counters->rows.data[counters->rows.len++] = row;
	*pending = counters->pending.data[--counters->pending.len];
	return 0;
}

/* @record->event is the index of a descriptor. */
static int counters_handle_read(struct pm_counters *counters,
				const struct pm_record *record)
{
	const struct pm_counter_fd *entry = &counters->fds.data[record->event];
	struct pm_count_read read = { record->read.value, record->read.enabled_ns,
				      record->read.running_ns };
	uint32_t top = counters->places.data[entry->place].row;
	struct pm_counter_ended *pending = counters_find_pending(counters, record, top);
	const struct pm_counter_expected *expected = &counters->expected.data[top];

	if (!pending)
		return -ENOMEM;
	counters->told = true;
	pending->seen++;
	pending->sum += record->event;
	if (entry->event == PM_REFERENCE)
		pending->on_ns = pm_count_add(pending->on_ns, read.running_ns);
	else if (entry->event >= 0)
		pm_count_read_add(&counters->ended_reads
					   .data[pending->reads + (size_t)entry->event],
				  &read);
	if (pending->seen == expected->len && pending->sum == expected->sum)
		return counters_add_row_of_ended(counters, pending);
	return 0;
}

static int counters_handle_record(struct pm_counters *counters,
				  const struct pm_record *record)
{
	switch (record->type) {
	case PERF_RECORD_FORK:
		return counters_handle_fork(counters, record);
	case PERF_RECORD_COMM:
		return counters_handle_comm(counters, record);
	case PERF_RECORD_EXIT:
		counters_handle_exit(counters, record);
		return 0;
	case PERF_RECORD_READ:
		if (counters->fds.len > 0)
			return counters_handle_read(counters, record);
		return 0;
	case PERF_RECORD_LOST:
		counters->lost_rows += record->lost;
		return 0;
	default:
		return 0;
	}
}

void pm_counters_drain(struct pm_counters *counters)
{
	struct pm_record record;
	int ret;

	if (counters->anchors.len == 0)
		return;
	pm_merge_begin(&counters->merge, UINT64_MAX);
	while ((ret = pm_merge_next(&counters->merge, &record, NULL)) != 0)
		if (ret < 0 || counters_handle_record(counters, &record) < 0)
			counters->lost_rows++;
}
