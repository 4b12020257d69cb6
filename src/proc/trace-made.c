/* SPDX-License-Identifier: MIT */
/*
 * Handles both sides of a fork. The kernel wakes the child before it stops the maker, the
 * thread that has created it (kernel_clone() in kernel/fork.c), and wait(2) returns their
 * stops in either order. Neither is resumed before both have stopped and the child has
 * been reported. The caller therefore sees the maker in its state at the fork, and knows
 * which thread created the child and how. If a maker is killed in between, its end is
 * reported after its children.
 */
#include "trace-internal.h"

#include <time.h>

/* The other thread may have been killed before it could stop. Its stop then never comes,
 * and the waiting thread must not be delayed noticeably. */
#define WAIT_MAX_NS UINT64_C(200000000)

uint64_t pm_trace_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void begin_wait(struct pm_trace *trace, struct pm_trace_thread *thread,
		       enum pm_trace_waits waits)
{
	thread->waits = waits;
	thread->waits_since_ns = pm_trace_now_ns();
	if (trace->waits_since_ns == 0)
		trace->waits_since_ns = thread->waits_since_ns;
}

void pm_trace_note_made(struct pm_trace *trace, uint32_t row, pid_t child, bool by_vfork)
{
	struct pm_trace_thread *maker = &trace->threads.data[row];
	uint32_t known = pm_trace_find_thread(trace, child);
	struct pm_trace_made made = {
		.tid = child,
		.parent_pid = trace->processes.data[maker->process].pid,
		.parent_tid = maker->tid,
		.by_vfork = by_vfork,
	};

	/* The child was already reported, or was killed before that. */
	if (known != PM_INDEX_NONE
		    ? trace->threads.data[known].waits != PM_TRACE_WAITS_FOR_MAKER
		    : child == 0 || !pm_trace_is_ours(child))
		return;
	/* If memory runs out, pm_trace_meet() uses /proc instead. */
	if (pm_vec_push(&trace->made, made) == 0 && !trace->detaching)
		begin_wait(trace, maker, PM_TRACE_WAITS_FOR_CHILD);
	if (known != PM_INDEX_NONE)
		trace->met = child;
}

struct pm_trace_made pm_trace_take_made(struct pm_trace *trace, pid_t child)
{
	for (size_t i = 0; i < trace->made.len; i++) {
		struct pm_trace_made made = trace->made.data[i];

		if (made.tid != child)
			continue;
		trace->made.data[i] = trace->made.data[--trace->made.len];
		return made;
	}
	return (struct pm_trace_made){ 0 };
}

/* @parent is the parent according to /proc, which is used if the maker is unknown. */
static void tell_new(struct pm_trace *trace, const struct pm_trace_made *made, pid_t pid,
		     pid_t tid, pid_t parent, struct pm_trace_event *out)
{
	out->what = PM_TRACE_NEW;
	if (tid != pid)
		out->parent_pid = pid;
	else if (made->parent_pid)
		out->parent_pid = made->parent_pid;
	else
		out->parent_pid = parent;
	out->parent_tid = made->parent_tid;
	out->by_vfork = made->by_vfork;
	trace->maker = made->parent_tid;
}

int pm_trace_meet(struct pm_trace *trace, pid_t tid, bool is_first_stop, uint32_t *row,
		  struct pm_trace_event *out)
{
	pid_t pid, parent;
	struct pm_trace_made made = pm_trace_take_made(trace, tid);
	int ret = pm_trace_read_parents(tid, &pid, &parent);

	if (ret == 0)
		ret = pm_trace_add_thread(trace, pid, tid, row);
	if (ret < 0)
		return ret;
	/* A new process waits until its creator is known; a new thread need not. */
	if (made.tid == 0 && is_first_stop && tid == pid && !trace->detaching &&
	    pm_trace_find_process(trace, parent) != PM_INDEX_NONE) {
		trace->threads.data[*row].parent = parent;
		begin_wait(trace, &trace->threads.data[*row], PM_TRACE_WAITS_FOR_MAKER);
	} else {
		tell_new(trace, &made, pid, tid, parent, out);
	}
	return 0;
}

/* Returns the thread that has waited longest, if that is too long; 0: none. */
static pid_t find_overdue_thread(struct pm_trace *trace, enum pm_trace_waits waits)
{
	uint64_t now, oldest = UINT64_MAX;

	if (trace->waits_since_ns == 0)
		return 0;
	now = pm_trace_now_ns();
	if (now - trace->waits_since_ns < WAIT_MAX_NS)
		return 0;
	for (size_t i = 0; i < trace->threads.len; i++) {
		const struct pm_trace_thread *thread = &trace->threads.data[i];

		if (thread->tid == 0 || thread->waits == PM_TRACE_WAITS_NOT)
			continue;
		if (thread->waits == waits && now - thread->waits_since_ns >= WAIT_MAX_NS)
			return thread->tid;
		if (thread->waits_since_ns < oldest)
			oldest = thread->waits_since_ns;
	}
	trace->waits_since_ns = oldest == UINT64_MAX ? 0 : oldest;
	return 0;
}

pid_t pm_trace_overdue_maker(struct pm_trace *trace)
{
	return find_overdue_thread(trace, PM_TRACE_WAITS_FOR_CHILD);
}

bool pm_trace_tell_met(struct pm_trace *trace, struct pm_trace_event *out)
{
	pid_t tid = trace->met ? trace->met
			       : find_overdue_thread(trace, PM_TRACE_WAITS_FOR_MAKER);
	uint32_t row = tid != 0 ? pm_trace_find_thread(trace, tid) : PM_INDEX_NONE;
	struct pm_trace_made made;

	trace->met = 0;
	if (row == PM_INDEX_NONE || trace->detaching)
		return false;
	made = pm_trace_take_made(trace, tid);
	trace->threads.data[row].waits = PM_TRACE_WAITS_NOT;
	trace->held = row;
	*out = (struct pm_trace_event){ .pid = tid, .tid = tid };
	tell_new(trace, &made, tid, tid, trace->threads.data[row].parent, out);
	return true;
}

/* ---- makers that were killed --------------------------------------------------------- */

/* Returns a thread that waits for a maker in process @pid, or 0 if there is none. */
static pid_t waiting_for(const struct pm_trace *trace, pid_t pid)
{
	for (size_t i = 0; i < trace->threads.len; i++) {
		const struct pm_trace_thread *thread = &trace->threads.data[i];

		if (thread->tid != 0 && thread->waits == PM_TRACE_WAITS_FOR_MAKER &&
		    thread->parent == pid)
			return thread->tid;
	}
	return 0;
}

static bool has_made(const struct pm_trace *trace, pid_t pid)
{
	for (size_t i = 0; i < trace->made.len; i++)
		if (trace->made.data[i].parent_pid == pid)
			return true;
	return false;
}

bool pm_trace_put_end_off(struct pm_trace *trace, const struct pm_trace_event *end)
{
	struct pm_trace_end late = { .event = *end };

	if (trace->detaching || pm_trace_find_process(trace, end->pid) != PM_INDEX_NONE ||
	    (!has_made(trace, end->pid) && waiting_for(trace, end->pid) == 0))
		return false;
	late.since_ns = pm_trace_now_ns();
	return pm_vec_push(&trace->ends, late) == 0;
}

bool pm_trace_tell_end(struct pm_trace *trace, struct pm_trace_event *out)
{
	for (size_t i = 0; i < trace->ends.len; i++) {
		const struct pm_trace_end *end = &trace->ends.data[i];

		/* The maker of such a thread has ended, so its stop will never come. */
		trace->met = waiting_for(trace, end->event.pid);
		if (pm_trace_tell_met(trace, out))
			return true;
		if (!trace->detaching && has_made(trace, end->event.pid) &&
		    pm_trace_now_ns() - end->since_ns < WAIT_MAX_NS)
			continue;
		*out = end->event;
		trace->ends.data[i] = trace->ends.data[--trace->ends.len];
		return true;
	}
	return false;
}
