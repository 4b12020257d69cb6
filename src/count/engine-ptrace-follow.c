/* SPDX-License-Identifier: MIT */
/*
 * Follows processes and threads. Threads stop at fork, clone, exec and signals; a
 * breakpoint is a SIGTRAP that the program never sees. A thread that is in a slot when it
 * receives a signal is moved to where it would be without us.
 */
#include "engine-ptrace.h"
#include "tell.h"

#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>

/* ---- tables -------------------------------------------------------------------------- */

static bool equal_tid(const void *table, uint32_t id, const void *key)
{
	const struct pm_ptr *ptr = table;

	return ptr->threads.data[id].tid == *(const pid_t *)key;
}

static uint64_t ptr_thread_hash(pid_t id)
{
	return pm_hash_mix((uint32_t)id, 0);
}

/* PM_INDEX_NONE: unknown */
static uint32_t ptr_find_thread(const struct pm_ptr *ptr, pid_t tid)
{
	return pm_index_find(&ptr->threads_index, ptr_thread_hash(tid), equal_tid, ptr,
			     &tid);
}

/* PM_INDEX_NONE: unknown */
static struct pm_ptr_process *ptr_process_of(struct pm_ptr *ptr, uint32_t row)
{
	return &ptr->processes.data[ptr->threads.data[row].process];
}

/* A process is found by its leader or, in the rare case that the leader has ended, by a
 * search. */
static uint32_t ptr_find_process(const struct pm_ptr *ptr, pid_t pid)
{
	uint32_t leader = ptr_find_thread(ptr, pid);

	if (leader != PM_INDEX_NONE)
		return ptr->threads.data[leader].process;
	for (uint32_t i = 0; i < ptr->processes.len; i++)
		if (ptr->processes.data[i].pid == pid)
			return i;
	return PM_INDEX_NONE;
}

/* Returns the index of a row that was given back, or of a new one; PM_INDEX_NONE if out
 * of memory. */
static uint32_t free_process(struct pm_ptr *ptr)
{
	uint32_t row = (uint32_t)ptr->processes.len;

	if (ptr->free_processes.len > 0)
		return ptr->free_processes.data[--ptr->free_processes.len];
	if (pm_vec_reserve(&ptr->free_processes, (size_t)row + 1) < 0 ||
	    pm_vec_push(&ptr->processes, (struct pm_ptr_process){ 0 }) < 0)
		return PM_INDEX_NONE;
	return row;
}

static uint32_t free_thread(struct pm_ptr *ptr)
{
	uint32_t row = (uint32_t)ptr->threads.len;

	if (ptr->free_threads.len > 0)
		return ptr->free_threads.data[--ptr->free_threads.len];
	if (pm_vec_reserve(&ptr->free_threads, (size_t)row + 1) < 0 ||
	    pm_vec_push(&ptr->threads, (struct pm_ptr_thread){ 0 }) < 0)
		return PM_INDEX_NONE;
	return row;
}

/* Takes ownership of @image, also on failure. */
static int ptr_add_process(struct pm_ptr *ptr, pid_t pid, struct pm_ptr_image *image,
			   bool counted, uint32_t *out)
{
	uint32_t row = PM_INDEX_NONE;

	if (image)
		row = free_process(ptr);
	if (row == PM_INDEX_NONE) {
		pm_ptr_image_unref(image);
		return -ENOMEM;
	}
	ptr->processes.data[row] =
		(struct pm_ptr_process){ .pid = pid, .image = image, .counted = counted };
	*out = row;
	return 0;
}

static void follow_by_hits(struct pm_ptr *ptr, struct pm_ptr_thread *thread)
{
	thread->by_hits = true;
	if (pm_hits_follow(ptr->hw.hits, thread->tid, &ptr->counts.why) < 0)
		ptr->counts.threads_missed++;
}

static int ptr_add_thread(struct pm_ptr *ptr, pid_t tid, uint32_t process, bool counted,
			  uint32_t *out)
{
	uint32_t row = free_thread(ptr);

	if (row == PM_INDEX_NONE ||
	    pm_index_add(&ptr->threads_index, ptr_thread_hash(tid), row) < 0)
		return -ENOMEM;
	ptr->threads.data[row] = (struct pm_ptr_thread){ .tid = tid,
							 .process = process,
							 .counted = counted };
	ptr->processes.data[process].threads++;
	if (counted && ptr->processes.data[process].by_hits)
		follow_by_hits(ptr, &ptr->threads.data[row]);
	else if (counted && tid != ptr->command)
		pm_ptr_counts_open(&ptr->counts, &ptr->threads.data[row].counters, tid);
	*out = row;
	return 0;
}

static void ptr_drop_thread(struct pm_ptr *ptr, uint32_t row)
{
	struct pm_ptr_thread *thread = &ptr->threads.data[row];
	struct pm_ptr_process *process = ptr_process_of(ptr, row);

	pm_ptr_counts_close(&ptr->counts, &thread->counters);
	pm_vec_release(&thread->again);
	pm_index_remove(&ptr->threads_index, ptr_thread_hash(thread->tid), row);
	thread->tid = 0;
	ptr->free_threads.data[ptr->free_threads.len++] = row;
	if (--process->threads > 0)
		return;
	pm_ptr_image_unref(process->image);
	ptr->free_processes.data[ptr->free_processes.len++] = thread->process;
	*process = (struct pm_ptr_process){ 0 };
}

/* ---- visits ---------------------------------------------------------------------------- */

/* Handles a thread at a breakpoint: reports its visits, and lets it continue. */

enum {
	PENDING_MAX = 8, /* signals of a thread that are examined */
	AGAIN_MAX = 64, /* nested signal handlers */
};

enum ptr_trap {
	PTR_TRAP_FOREIGN, /* a SIGTRAP that is the program's own */
	PTR_TRAP_OURS,
	PTR_TRAP_LINKER, /* like OURS, but mappings may have changed */
};

static void report_thread_comm(struct pm_ptr *ptr, uint32_t row)
{
	pid_t pid = ptr_process_of(ptr, row)->pid, tid = ptr->threads.data[row].tid;
	PM_AUTO_FCLOSE FILE *file = NULL;
	char path[64], comm[32] = "";

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	file = fopen(path, "re");
	if (!file || !fgets(comm, sizeof(comm), file))
		return;
	comm[strcspn(comm, "\n")] = '\0';
	ptr->listener->named(ptr->user, pid, tid, comm);
}

/* ---- registers ----------------------------------------------------------------------- */

/* Remembers the visit, because the thread will come here once more. Without memory, the
 * visit is reported twice. */
static void remember_visit(struct pm_ptr_thread *thread, const struct pm_ptr_regs *regs)
{
	if (thread->again.len < AGAIN_MAX)
		(void)!pm_vec_push(&thread->again, *regs);
}

/* Moves a thread from before the instruction in a slot to before the one in the
 * program. */
static void put_back(struct pm_ptr_thread *thread, const struct pm_ptr_break *planted,
		     const struct pm_ptr_regs *regs)
{
	uint64_t in = regs->ip - planted->slot;
	struct pm_ptr_regs before = *regs;

	if (planted->tail_at != 0 && in >= planted->tail_at) {
		/* Only slots that continue after the place have a tail. */
		pm_ptr_regs_move(thread->tid, regs, planted->after, regs->sp);
		return;
	}
	if (planted->pushed_at != 0 && in >= planted->pushed_at)
		before.sp += sizeof(uint64_t);
	before.ip = planted->address;
	pm_ptr_regs_move(thread->tid, regs, before.ip, before.sp);
	remember_visit(thread, &before);
}

/* Moves the thread out of a slot before a signal is delivered. After an exception of the
 * trap kind, ip is past the instruction. */
static void ptr_leave_slot(struct pm_ptr *ptr, uint32_t row)
{
	struct pm_ptr_thread *thread = &ptr->threads.data[row];
	const struct pm_ptr_image *image = ptr_process_of(ptr, row)->image;
	const struct pm_ptr_break *planted;
	struct pm_ptr_regs regs;

	if (image->rooms.len == 0 || pm_ptr_regs_get(thread->tid, &regs) < 0)
		return;
	planted = pm_ptr_image_in_slot(image, regs.ip);
	if (planted)
		put_back(thread, planted, &regs);
}

/*
 * Whether the thread is as it was when its visit was reported: it has returned from a
 * signal handler. Entries of `again` that are still to return are deeper in the stack;
 * others were left by longjmp(3).
 */
static bool is_again(struct pm_ptr_thread *thread, const struct pm_ptr_regs *regs)
{
	while (thread->again.len > 0) {
		const struct pm_ptr_regs *then =
			&thread->again.data[thread->again.len - 1];

		if (regs->sp < then->sp)
			return false;
		thread->again.len--;
		if (then->ip == regs->ip && then->sp == regs->sp &&
		    pm_ptr_regs_same(then, regs))
			return true;
	}
	return false;
}

/* ---- reporting visits ---------------------------------------------------------------- */

static uint32_t read_callers(struct pm_ptr *ptr, const struct pm_visit *visit,
			     const struct pm_place *place, const struct pm_ptr_regs *at)
{
	struct pm_ptr_look look = { .pid = visit->pid,
				    .tid = visit->tid,
				    .regs = at,
				    .sp_offset = place->sp_offset,
				    .depth = ptr->calls_from };

	/* The unwinder uses the thread's registers. */
	pm_ptr_regs_move(visit->tid, at, at->ip, at->sp);
	if (ptr->calls_from > 1 && pm_trace_len(ptr->trace) > 1)
		ptr->kept_waiting = true;
	return pm_ptr_callers_look(&ptr->callers, ptr->procs, &look);
}

/* @at: its ip is the address of the place. */
static int report_visits(struct pm_ptr *ptr, uint32_t row, const struct pm_ptr_site *site,
			 const struct pm_ptr_regs *at, uint64_t now)
{
	struct pm_ptr_thread *thread = &ptr->threads.data[row];
	struct pm_visit visit = { .time = now - thread->stolen_ns,
				  .pid = ptr_process_of(ptr, row)->pid,
				  .tid = thread->tid,
				  .sp = at->sp,
				  .counts = ptr->values.data,
				  .caller = UINT32_MAX };
	uint64_t cpu_ns = 0;
	int ret = 0;

	if (ptr->counts.clock >= 0)
		pm_trace_cpu_ns(ptr->trace, thread->tid, &cpu_ns);
	pm_ptr_counts_read(&ptr->counts, &thread->counters, cpu_ns, ptr->values.data,
			   &visit);
	if (ptr->by_thread && !thread->hit)
		report_thread_comm(ptr, row);
	thread->hit = true;
	for (uint32_t i = 0; ret == 0 && i < site->places; i++) {
		const struct pm_place *place;

		visit.place = ptr->sites.order.data[site->first + i];
		place = &ptr->regions->places.data[visit.place];
		if (ptr->calls_from > 0 && place->kind == PM_PLACE_ENTRY &&
		    visit.caller == PM_INDEX_NONE)
			visit.caller = read_callers(ptr, &visit, place, at);
		if (pm_place_leaves(place, pm_ptr_regs_asked(at, place)))
			ret = ptr->listener->visit(ptr->user, &visit);
	}
	return ret;
}

/*
 * To deliver a SIGTRAP to a thread that blocks it, the kernel unblocks the signal and
 * resets its handler (force_sig_info_to_task()); a tracer can see neither. But a thread
 * that blocks the signals of all other faults had blocked this one, too, and it is
 * blocked again.
 */
static void block_again(struct pm_ptr *ptr, pid_t tid)
{
	static const uint64_t faults =
		UINT64_C(1) << (SIGILL - 1) | UINT64_C(1) << (SIGBUS - 1) |
		UINT64_C(1) << (SIGFPE - 1) | UINT64_C(1) << (SIGSEGV - 1) |
		UINT64_C(1) << (SIGSYS - 1);
	uint64_t mask;
	void *size = (void *)(uintptr_t)sizeof(mask);

	if (ptrace(PTRACE_GETSIGMASK, tid, size, &mask) < 0 || (mask & faults) != faults)
		return;
	mask |= UINT64_C(1) << (SIGTRAP - 1);
	ptrace(PTRACE_SETSIGMASK, tid, size, &mask);
	ptr->blocked = true;
}

/* Moves the thread to where it continues, past the instruction if that is carried out
 * here. */
static void send_on(const struct pm_ptr_thread *thread, const struct pm_ptr_image *image,
		    const struct pm_ptr_break *planted, const struct pm_ptr_regs *regs,
		    const uint8_t *bytes)
{
	if (image->restored)
		pm_ptr_regs_move(thread->tid, regs, planted->address, regs->sp);
	else if (planted->slot != 0)
		pm_ptr_regs_move(thread->tid, regs, planted->slot, regs->sp);
	else
		pm_ptr_regs_run(thread->tid, regs, bytes);
}

/* Returns the breakpoint that caused the SIGTRAP, or NULL if it has another cause. */
static const struct pm_ptr_break *find_trap(const struct pm_ptr_image *image, pid_t tid,
					    const struct pm_ptr_regs *regs)
{
	uint64_t address = pm_ptr_regs_trapped_at(regs);
	const struct pm_ptr_break *planted = pm_ptr_image_find(image, address);
	siginfo_t info;

	/* An ip just past the breakpoint is in the middle of the instruction, unless the
	 * instruction is as short as the breakpoint: then the signal may also have been
	 * sent by another process. */
	if (planted && planted->after - address == PM_PTR_TRAP_BYTES &&
	    (ptrace(PTRACE_GETSIGINFO, tid, NULL, &info) != 0 || !pm_ptr_is_trap(&info)))
		return NULL;
	return planted;
}

/* Handles a pending SIGTRAP of a thread: reports the visits of the thread, and moves it
 * to the slot. Returns an enum ptr_trap, or a negative error. */
static int ptr_take_trap(struct pm_ptr *ptr, uint32_t row, uint64_t now)
{
	struct pm_ptr_thread *thread = &ptr->threads.data[row];
	struct pm_ptr_process *process = ptr_process_of(ptr, row);
	const struct pm_ptr_break *planted;
	const struct pm_ptr_site *site;
	struct pm_ptr_regs regs;
	int ret = pm_ptr_regs_get(thread->tid, &regs);

	if (ret < 0) {
		if (ret == -EOPNOTSUPP)
			return PTR_TRAP_FOREIGN;
		return PTR_TRAP_OURS;
	}
	planted = find_trap(process->image, thread->tid, &regs);
	if (!planted)
		return PTR_TRAP_FOREIGN;
	regs.ip = planted->address;
	site = &ptr->sites.files.data[planted->file].sites.data[planted->site];
	if (thread->counted && !ptr->letting_go && !is_again(thread, &regs))
		ret = report_visits(ptr, row, site, &regs, now);
	send_on(thread, process->image, planted, &regs, site->bytes);
	block_again(ptr, thread->tid);
	pm_ptr_cpu_follow(&ptr->cpu, process->pid, thread->tid);
	/* Several threads would only wait for each other. */
	if (pm_trace_len(ptr->trace) == 1)
		pm_ptr_cpu_hold(&ptr->cpu, thread->tid);
	if (ret < 0)
		return ret;
	if (site->linker && !ptr->letting_go)
		return PTR_TRAP_LINKER;
	return PTR_TRAP_OURS;
}

/* Whether the thread ran into a breakpoint before it noticed our request to stop. */
static bool ptr_trap_is_pending(const struct pm_ptr *ptr, uint32_t row)
{
	const struct pm_ptr_thread *thread = &ptr->threads.data[row];
	struct __ptrace_peeksiginfo_args ask = { .nr = PENDING_MAX };
	siginfo_t infos[PENDING_MAX];
	long len = ptrace(PTRACE_PEEKSIGINFO, thread->tid, &ask, infos);

	for (long i = 0; i < len; i++)
		if (infos[i].si_signo == SIGTRAP && pm_ptr_is_trap(&infos[i]))
			return true;
	return false;
}

/* ---- hits ---------------------------------------------------------------------------- */

static int report_hit_as_visit(void *user, const struct pm_hit *hit, uint32_t place)
{
	struct pm_ptr *ptr = user;
	struct pm_visit visit = { .time = hit->time,
				  .pid = hit->pid,
				  .tid = hit->tid,
				  .place = place,
				  .sp = hit->sp,
				  .counts = hit->counts,
				  .enabled_ns = hit->enabled_ns,
				  .running_ns = hit->running_ns,
				  .caller = UINT32_MAX };
	uint32_t row = ptr_find_thread(ptr, hit->tid);

	/* The hit is from the program before its exec. */
	if (row == PM_INDEX_NONE || !ptr->threads.data[row].by_hits ||
	    !pm_place_leaves(&ptr->regions->places.data[place], hit->flags))
		return 0;
	if (ptr->by_thread && !ptr->threads.data[row].hit)
		report_thread_comm(ptr, row);
	ptr->threads.data[row].hit = true;
	return ptr->listener->visit(ptr->user, &visit);
}

int pm_ptr_drain(struct pm_ptr *ptr, bool final, struct pm_error *err)
{
	return pm_ptr_hw_drain(&ptr->hw, final, report_hit_as_visit, ptr, err);
}

/* ---- mappings ------------------------------------------------------------------------ */

/* Plants breakpoints in the mappings of the process of @row, a stopped thread. */
static int ptr_update_breakpoints(struct pm_ptr *ptr, uint32_t row)
{
	struct pm_ptr_process *process = ptr_process_of(ptr, row);
	uint64_t before = process->image->unplanted;
	int ret = pm_ptr_image_update(process->image, &ptr->sites, ptr->procs,
				      process->pid, ptr->threads.data[row].tid);

	process->planted = true;
	if (process->image->unplanted > before)
		ptr->unplanted += process->image->unplanted - before;
	if (ret == -ENOMEM)
		return ret;
	return 0;
}

/* Starts watching the process of the thread, which is stopped. */
static int ptr_watch_process(struct pm_ptr *ptr, uint32_t row)
{
	struct pm_ptr_thread *thread = &ptr->threads.data[row];
	struct pm_ptr_process *process = ptr_process_of(ptr, row);
	int ret = 0;

	if (ptr->hw_wanted && process->threads == 1)
		ret = pm_ptr_hw_start(&ptr->hw, &ptr->sites, ptr->regions, ptr->procs,
				      ptr->counts.specs.data, ptr->counts.specs.len,
				      process->pid);
	ptr->hw_wanted = false;
	if (ret < 0)
		return ret;
	process->by_hits = thread->by_hits = ret == 1;
	if (ret == 1) {
		pm_ptr_counts_close(&ptr->counts, &thread->counters);
		process->planted = true;
		return 0;
	}
	if (!thread->counters.counters)
		pm_ptr_counts_open(&ptr->counts, &thread->counters, thread->tid);
	return ptr_update_breakpoints(ptr, row);
}

/* A seccomp filter may kill a process for a system call that its program never makes. */
static bool has_filter(pid_t pid)
{
	PM_AUTO_FCLOSE FILE *file = NULL;
	char path[64], line[256];
	int mode = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Seccomp: %d", &mode) == 1)
			return mode != 0;
	return !file;
}

/* ---- events -------------------------------------------------------------------------- */

static int ptr_handle_new_thread(struct pm_ptr *ptr, const struct pm_trace_event *event)
{
	uint32_t process = ptr_find_process(ptr, event->pid), row;
	uint32_t maker = ptr_find_thread(ptr, event->parent_tid);
	uint32_t parent = ptr_find_process(ptr, event->parent_pid);
	bool made = process == PM_INDEX_NONE;
	bool counted = !ptr->no_inherit;
	pid_t parent_tid;
	int ret = 0;

	if (made && parent != PM_INDEX_NONE) {
		struct pm_ptr_process *from = &ptr->processes.data[parent];
		struct pm_ptr_image *image;

		if (event->by_vfork)
			from->image->refs++;
		if (event->by_vfork)
			image = from->image;
		else
			image = pm_ptr_image_copy(from->image);
		counted = counted && from->counted;
		ret = ptr_add_process(ptr, event->pid, image, counted, &process);
		if (ret == 0) {
			ptr->processes.data[process].planted =
				ptr->processes.data[parent].planted;
			ptr->processes.data[process].attached =
				ptr->processes.data[parent].attached;
			ptr->processes.data[process].by_hits =
				ptr->processes.data[parent].by_hits;
		}
	} else if (made) {
		counted = false;
		ptr->strangers++;
		ret = pm_ptr_image_heal(&ptr->sites, ptr->procs, event->pid);
		if (ret == 0)
			ret = ptr_add_process(ptr, event->pid, pm_ptr_image_new(), false,
					      &process);
	} else {
		counted = counted && ptr->processes.data[process].counted;
	}
	if (ret == 0)
		ret = ptr_add_thread(ptr, event->tid, process, counted, &row);
	if (ret < 0 || !counted || event->pid != event->tid)
		return ret;
	if (maker != PM_INDEX_NONE)
		ptr->threads.data[row].stolen_ns = ptr->threads.data[maker].stolen_ns;
	/* We attached to its parent, which has not stopped yet. */
	if (!ptr->processes.data[process].planted && !ptr->letting_go)
		ret = ptr_watch_process(ptr, row);
	if (ret < 0)
		return ret;
	parent_tid = event->parent_tid;
	if (parent_tid == 0)
		parent_tid = event->parent_pid;
	return ptr->listener->fork(ptr->user, parent_tid, event->pid, event->tid);
}

/* All other threads are gone, and the thread that executes has taken the leader's tid. */
static int become_leader(struct pm_ptr *ptr, const struct pm_trace_event *event)
{
	uint32_t process = ptr_find_process(ptr, event->pid), row;

	if (process == PM_INDEX_NONE)
		return -ESRCH;
	for (uint32_t i = 0; i < ptr->threads.len; i++) {
		pid_t tid = ptr->threads.data[i].tid;

		if (tid == 0 || ptr->threads.data[i].process != process)
			continue;
		ptr->listener->exit(ptr->user, tid);
		if (tid != event->former_tid && ptr->processes.data[process].threads > 1)
			ptr_drop_thread(ptr, i);
	}
	row = ptr_find_thread(ptr, event->former_tid);
	if (row == PM_INDEX_NONE || event->former_tid == event->tid)
		return 0;
	pm_index_remove(&ptr->threads_index, ptr_thread_hash(event->former_tid), row);
	ptr->threads.data[row].tid = event->tid;
	return pm_index_add(&ptr->threads_index, ptr_thread_hash(event->tid), row);
}

static int ptr_handle_exec(struct pm_ptr *ptr, const struct pm_trace_event *event)
{
	int ret = become_leader(ptr, event);
	uint32_t row = ptr_find_thread(ptr, event->tid);
	struct pm_ptr_image *image = pm_ptr_image_new();
	struct pm_ptr_process *process;

	if (ret < 0 || row == PM_INDEX_NONE || !image) {
		pm_ptr_image_unref(image);
		if (ret < 0)
			return ret;
		if (!image)
			return -ENOMEM;
		return 0;
	}
	process = ptr_process_of(ptr, row);
	pm_ptr_image_unref(process->image);
	process->image = image;
	ptr->threads.data[row].hit = false;
	pm_vec_clear(&ptr->threads.data[row].again);
	ptr->privileged += pm_tell_is_privileged(event->pid);
	/* Its counters of the hits continue, but the breakpoints have become
	 * meaningless. */
	if (process->by_hits)
		ptr->threads.data[row].counters.elsewhere = true;
	if (!process->counted || ptr->letting_go) {
		/* Nothing of ours is in it. */
		image->restored = true;
		return 0;
	}
	image->may_map = !process->attached || !has_filter(event->pid);
	return ptr_watch_process(ptr, row);
}

static int ptr_handle_stop(struct pm_ptr *ptr, const struct pm_trace_event *event,
			   uint64_t now)
{
	uint32_t row = ptr_find_thread(ptr, event->tid);
	int ret = 0;

	if (row == PM_INDEX_NONE)
		return 0;
	if (!ptr_process_of(ptr, row)->planted && ptr_process_of(ptr, row)->counted &&
	    !ptr->letting_go)
		ret = ptr_watch_process(ptr, row);
	if (ret == 0 && event->signal == SIGTRAP)
		ret = ptr_take_trap(ptr, row, now);
	if (ret > 0)
		pm_trace_set_signal(ptr->trace, 0);
	if (ret == PTR_TRAP_LINKER)
		ret = ptr_update_breakpoints(ptr, row);
	else if (ret == 0 && event->signal != 0)
		ptr_leave_slot(ptr, row);
	if (ret < 0)
		return ret;
	return 0;
}

static void ptr_handle_exit(struct pm_ptr *ptr, const struct pm_trace_event *event)
{
	uint32_t row = ptr_find_thread(ptr, event->tid);

	if (row == PM_INDEX_NONE)
		return;
	ptr->listener->exit(ptr->user, event->tid);
	ptr_drop_thread(ptr, row);
}

/* Releases the thread, which is stopped for the last time. */
static void ptr_detach_thread(struct pm_ptr *ptr, const struct pm_trace_event *event)
{
	uint32_t row = ptr_find_thread(ptr, event->tid);

	if (row != PM_INDEX_NONE) {
		struct pm_ptr_image *image = ptr_process_of(ptr, row)->image;

		if (!image->restored)
			pm_ptr_image_restore(image, event->tid);
		if (event->signal != SIGTRAP && ptr_trap_is_pending(ptr, row))
			return; /* it will stop once more, for that */
		ptr_leave_slot(ptr, row);
		ptr->listener->exit(ptr->user, event->tid);
		ptr_drop_thread(ptr, row);
	}
	pm_trace_let_go(ptr->trace);
}

int pm_ptr_event(struct pm_ptr *ptr, const struct pm_trace_event *event)
{
	uint64_t now = pm_now_ns();
	uint32_t row;
	/* Hits before the event are reported before it. */
	int ret = pm_ptr_drain(ptr, false, NULL);

	if (ret < 0)
		return ret;
	switch (event->what) {
	case PM_TRACE_NEW:
		ret = ptr_handle_new_thread(ptr, event);
		break;
	case PM_TRACE_EXEC:
		ret = ptr_handle_exec(ptr, event);
		break;
	case PM_TRACE_STOPPED:
		ret = ptr_handle_stop(ptr, event, now);
		break;
	case PM_TRACE_EXIT:
		ptr_handle_exit(ptr, event);
		return 0;
	}
	row = ptr_find_thread(ptr, event->tid);
	if (ptr->letting_go ||
	    (row != PM_INDEX_NONE && !ptr_process_of(ptr, row)->counted &&
	     event->what != PM_TRACE_STOPPED && !event->by_vfork))
		ptr_detach_thread(ptr, event);
	else if (row != PM_INDEX_NONE)
		ptr->threads.data[row].stolen_ns += pm_now_ns() - now;
	return ret;
}

void pm_ptr_go_on(struct pm_ptr *ptr)
{
	if (ptr->cpu.held == 0)
		return;
	pm_trace_go_on(ptr->trace);
	pm_ptr_cpu_let(&ptr->cpu);
}

void pm_ptr_let_go(struct pm_ptr *ptr)
{
	ptr->letting_go = true;
	pm_trace_interrupt(ptr->trace);
}

/* ---- creation and destruction -------------------------------------------------------- */

int pm_ptr_init(struct pm_ptr *ptr, const struct pm_regions *regions,
		const struct pm_event_spec *specs, size_t specs_len, struct pm_error *err)
{
	int ret;

	*ptr = (struct pm_ptr){ .regions = regions };
	ret = pm_ptr_sites_init(&ptr->sites, regions, err);
	if (ret < 0)
		return ret;
	ptr->trace = pm_trace_new();
	ptr->procs = pm_procs_new(NULL);
	if (!ptr->trace || !ptr->procs ||
	    pm_vec_reserve(&ptr->values, specs_len + 1) < 0 ||
	    pm_ptr_counts_init(&ptr->counts, specs, specs_len) < 0) {
		pm_ptr_release(ptr);
		return pm_error_set(err, -ENOMEM, "out of memory");
	}
	pm_trace_watch_signals(ptr->trace);
	return 0;
}

void pm_ptr_release(struct pm_ptr *ptr)
{
	for (uint32_t i = 0; i < ptr->threads.len; i++)
		if (ptr->threads.data[i].tid != 0)
			ptr_drop_thread(ptr, i);
	pm_ptr_cpu_release(&ptr->cpu);
	pm_ptr_callers_release(&ptr->callers);
	pm_ptr_hw_release(&ptr->hw);
	pm_vec_release(&ptr->threads);
	pm_vec_release(&ptr->processes);
	pm_vec_release(&ptr->free_threads);
	pm_vec_release(&ptr->free_processes);
	pm_vec_release(&ptr->values);
	pm_index_release(&ptr->threads_index);
	pm_ptr_counts_release(&ptr->counts);
	pm_ptr_sites_release(&ptr->sites);
	pm_procs_free(ptr->procs);
	pm_trace_free(ptr->trace);
	*ptr = (struct pm_ptr){ 0 };
}

int pm_ptr_attach(struct pm_ptr *ptr, pid_t pid, struct pm_error *err)
{
	struct pm_ptr_image *image = pm_ptr_image_new();
	uint32_t process, row;
	int ret = pm_trace_seize(ptr->trace, pid, true, err);

	if (image)
		image->may_map = !has_filter(pid);
	if (ret >= 0)
		ret = ptr_add_process(ptr, pid, image, true, &process);
	else
		pm_ptr_image_unref(image);
	if (ret >= 0) {
		/* Until its exec, the command is a copy of this process. */
		ptr->processes.data[process].planted = pid == ptr->command;
		ptr->processes.data[process].attached = pid != ptr->command;
	}
	for (pid_t tid = 0; ret >= 0 && (tid = pm_trace_next_tid(ptr->trace, tid)) != 0;)
		if (ptr_find_thread(ptr, tid) == PM_INDEX_NONE)
			ret = ptr_add_thread(ptr, tid, process, true, &row);
	if (ret == -ENOMEM)
		return pm_error_set(err, ret, "out of memory");
	return ret;
}
