/* SPDX-License-Identifier: MIT */
/* Tables of the traced threads and processes, by id. */
#include "trace-internal.h"

static bool equal_traced_thread(const void *table, uint32_t id, const void *key)
{
	const struct pm_trace *trace = table;

	return trace->threads.data[id].tid == *(const pid_t *)key;
}

static bool equal_traced_process(const void *table, uint32_t id, const void *key)
{
	const struct pm_trace *trace = table;

	return trace->processes.data[id].pid == *(const pid_t *)key;
}

static uint64_t hash_trace_id(pid_t id)
{
	return pm_hash_mix((uint32_t)id, 0);
}

uint32_t pm_trace_find_thread(const struct pm_trace *trace, pid_t tid)
{
	return pm_index_find(&trace->threads_index, hash_trace_id(tid),
			     equal_traced_thread, trace, &tid);
}

uint32_t pm_trace_find_process(const struct pm_trace *trace, pid_t pid)
{
	return pm_index_find(&trace->processes_index, hash_trace_id(pid),
			     equal_traced_process, trace, &pid);
}

static int add_traced_process(struct pm_trace *trace, pid_t pid, uint32_t *out)
{
	uint32_t row;

	*out = pm_trace_find_process(trace, pid);
	if (*out != PM_INDEX_NONE)
		return 0;
	if (trace->free_processes.len == 0) {
		/* Reserve space for freeing the row later, because an error can be
		 * reported here. */
		row = (uint32_t)trace->processes.len;
		if (pm_vec_reserve(&trace->free_processes, (size_t)row + 1) < 0 ||
		    pm_vec_push(&trace->processes, (struct pm_trace_process){ 0 }) < 0)
			return -ENOMEM;
		trace->free_processes.data[trace->free_processes.len++] = row;
	}
	row = trace->free_processes.data[trace->free_processes.len - 1];
	if (pm_index_add(&trace->processes_index, hash_trace_id(pid), row) < 0)
		return -ENOMEM;
	trace->free_processes.len--;
	trace->processes.data[row] = (struct pm_trace_process){ .pid = pid };
	*out = row;
	return 0;
}

static void drop_process_if_empty(struct pm_trace *trace, uint32_t row)
{
	struct pm_trace_process *process = &trace->processes.data[row];

	if (process->threads > 0)
		return;
	pm_index_remove(&trace->processes_index, hash_trace_id(process->pid), row);
	process->pid = 0;
	trace->free_processes.data[trace->free_processes.len++] = row;
}

int pm_trace_add_thread(struct pm_trace *trace, pid_t pid, pid_t tid, uint32_t *out)
{
	uint32_t row, process;
	int ret = add_traced_process(trace, pid, &process);

	if (ret < 0)
		return ret;
	ret = -ENOMEM;
	if (trace->free_threads.len == 0) {
		row = (uint32_t)trace->threads.len;
		if (pm_vec_reserve(&trace->free_threads, (size_t)row + 1) < 0 ||
		    pm_vec_push(&trace->threads, (struct pm_trace_thread){ 0 }) < 0)
			goto failed;
		trace->free_threads.data[trace->free_threads.len++] = row;
	}
	row = trace->free_threads.data[trace->free_threads.len - 1];
	if (pm_index_add(&trace->threads_index, hash_trace_id(tid), row) < 0)
		goto failed;
	trace->free_threads.len--;
	trace->threads.data[row] = (struct pm_trace_thread){
		.tid = tid, .process = process, .schedstat_fd = -1, .stat_fd = -1
	};
	trace->processes.data[process].threads++;
	trace->len++;
	*out = row;
	return 0;
failed:
	drop_process_if_empty(trace, process);
	return ret;
}

void pm_trace_drop_thread(struct pm_trace *trace, uint32_t row)
{
	struct pm_trace_thread *thread = &trace->threads.data[row];

	pm_trace_close(trace, thread);
	pm_index_remove(&trace->threads_index, hash_trace_id(thread->tid), row);
	thread->tid = 0;
	trace->free_threads.data[trace->free_threads.len++] = row;
	trace->len--;
	trace->processes.data[thread->process].threads--;
	drop_process_if_empty(trace, thread->process);
	if (trace->held == row)
		trace->held = PM_INDEX_NONE;
}
