/* SPDX-License-Identifier: MIT */
/*
 * Who is followed. Threads stop at forks, clones, exec and signals; a breakpoint is a SIGTRAP
 * that the program never sees. Who stands in a slot when a signal comes is put back to where
 * it would be without us.
 */
#include "engine-ptrace.h"

#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>

enum {
	PENDING_MAX = 8, /* signals of a thread that are looked at */
	AGAIN_MAX = 64, /* handlers of signals, one in the other */
};

/* ---- tables -------------------------------------------------------------------------- */

static bool equal_tid(const void *table, uint32_t id, const void *key)
{
	const struct pm_ptr *ptr = table;

	return ptr->threads.data[id].tid == *(const pid_t *)key;
}

static uint64_t hash(pid_t id)
{
	return pm_hash_mix((uint32_t)id, 0);
}

static uint32_t find_thread(const struct pm_ptr *ptr, pid_t tid)
{
	return pm_index_find(&ptr->threads_index, hash(tid), equal_tid, ptr, &tid);
}

static struct pm_ptr_process *process_of(struct pm_ptr *ptr, uint32_t row)
{
	return &ptr->processes.data[ptr->threads.data[row].process];
}

/* A process is found by any of its threads; there are few that have lost their leader. */
static uint32_t find_process(const struct pm_ptr *ptr, pid_t pid)
{
	uint32_t leader = find_thread(ptr, pid);

	if (leader != PM_INDEX_NONE)
		return ptr->threads.data[leader].process;
	for (uint32_t i = 0; i < ptr->processes.len; i++)
		if (ptr->processes.data[i].pid == pid)
			return i;
	return PM_INDEX_NONE;
}

/* A row that is free: that was given back, or a new one. PM_INDEX_NONE without memory. */
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

/* Takes over @image, also when it fails. */
static int add_process(struct pm_ptr *ptr, pid_t pid, struct pm_ptr_image *image,
		       bool counted, uint32_t *ret)
{
	uint32_t row = image ? free_process(ptr) : PM_INDEX_NONE;

	if (row == PM_INDEX_NONE) {
		pm_ptr_image_unref(image);
		return -ENOMEM;
	}
	ptr->processes.data[row] =
		(struct pm_ptr_process){ .pid = pid, .image = image, .counted = counted };
	*ret = row;
	return 0;
}

static int add_thread(struct pm_ptr *ptr, pid_t tid, uint32_t process, bool counted,
		      uint32_t *ret)
{
	uint32_t row = free_thread(ptr);

	if (row == PM_INDEX_NONE || pm_index_add(&ptr->threads_index, hash(tid), row) < 0)
		return -ENOMEM;
	ptr->threads.data[row] = (struct pm_ptr_thread){ .tid = tid,
							 .process = process,
							 .counted = counted };
	ptr->processes.data[process].threads++;
	if (counted && tid != ptr->command)
		pm_ptr_counts_open(&ptr->counts, &ptr->threads.data[row].counters, tid);
	*ret = row;
	return 0;
}

static void drop_thread(struct pm_ptr *ptr, uint32_t row)
{
	struct pm_ptr_thread *thread = &ptr->threads.data[row];
	struct pm_ptr_process *process = process_of(ptr, row);

	pm_ptr_counts_close(&ptr->counts, &thread->counters);
	pm_vec_release(&thread->again);
	pm_index_remove(&ptr->threads_index, hash(thread->tid), row);
	thread->tid = 0;
	ptr->free_threads.data[ptr->free_threads.len++] = row;
	if (--process->threads > 0)
		return;
	pm_ptr_image_unref(process->image);
	ptr->free_processes.data[ptr->free_processes.len++] = thread->process;
	*process = (struct pm_ptr_process){ 0 };
}

/* ---- mappings ------------------------------------------------------------------------ */

/* Plants what @tid, which stands still, shows of its process's mappings. */
static int update(struct pm_ptr *ptr, uint32_t row)
{
	struct pm_ptr_process *process = process_of(ptr, row);
	uint64_t before = process->image->unplanted;
	int ret = pm_ptr_image_update(process->image, &ptr->sites, ptr->procs,
				      process->pid, ptr->threads.data[row].tid);

	process->planted = true;
	if (process->image->unplanted > before)
		ptr->unplanted += process->image->unplanted - before;
	return ret == -ENOMEM ? ret : 0;
}

/* A filter may kill who makes a system call that its program never would. */
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

static void tell_name(struct pm_ptr *ptr, uint32_t row)
{
	pid_t pid = process_of(ptr, row)->pid, tid = ptr->threads.data[row].tid;
	PM_AUTO_FCLOSE FILE *file = NULL;
	char path[64], comm[32] = "";

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	file = fopen(path, "re");
	if (!file || !fgets(comm, sizeof(comm), file))
		return;
	comm[strcspn(comm, "\n")] = '\0';
	ptr->listener->named(ptr->user, pid, tid, comm);
}

#if defined(__x86_64__)

/* ---- registers ----------------------------------------------------------------------- */

static bool get_regs(pid_t tid, struct user_regs_struct *ret)
{
	return ptrace(PTRACE_GETREGS, tid, NULL, ret) == 0;
}

static void set_ip(pid_t tid, uint64_t ip)
{
	ptrace(PTRACE_POKEUSER, tid, offsetof(struct user_regs_struct, rip), ip);
}

static void set_sp(pid_t tid, uint64_t sp)
{
	ptrace(PTRACE_POKEUSER, tid, offsetof(struct user_regs_struct, rsp), sp);
}

/* The thread will come here once more. Without memory that is told twice. */
static void remember(struct pm_ptr_thread *thread, const struct user_regs_struct *regs)
{
	struct pm_ptr_regs again = { .user = *regs };

	if (thread->again.len < AGAIN_MAX)
		(void)!pm_vec_push(&thread->again, again);
}

/* The thread that was before the instruction in a slot is before that in the program. */
static void put_back(struct pm_ptr_thread *thread, const struct pm_ptr_break *planted,
		     const struct user_regs_struct *regs)
{
	uint64_t in = regs->rip - planted->slot;
	struct user_regs_struct before = *regs;

	if (planted->tail_at != 0 && in >= planted->tail_at) {
		/* Only slots that go on behind the place have such an end. */
		set_ip(thread->tid, planted->after);
		return;
	}
	set_ip(thread->tid, planted->address);
	if (planted->pushed_at != 0 && in >= planted->pushed_at) {
		before.rsp += sizeof(uint64_t);
		set_sp(thread->tid, before.rsp);
	}
	before.rip = planted->address;
	remember(thread, &before);
}

/* Before a signal is delivered. Who is before an exception, as a trap, is behind it. */
static void leave_slot(struct pm_ptr *ptr, uint32_t row)
{
	struct pm_ptr_thread *thread = &ptr->threads.data[row];
	const struct pm_ptr_image *image = process_of(ptr, row)->image;
	const struct pm_ptr_break *planted;
	struct user_regs_struct regs;

	if (image->rooms.len == 0 || !get_regs(thread->tid, &regs))
		return;
	planted = pm_ptr_image_in_slot(image, regs.rip);
	if (planted)
		put_back(thread, planted, &regs);
}

static bool is_same(const struct user_regs_struct *a, const struct user_regs_struct *b)
{
	return a->rip == b->rip && a->rsp == b->rsp && a->rax == b->rax &&
	       a->rbx == b->rbx && a->rcx == b->rcx && a->rdx == b->rdx &&
	       a->rsi == b->rsi && a->rdi == b->rdi && a->rbp == b->rbp &&
	       a->r8 == b->r8 && a->r9 == b->r9 && a->r10 == b->r10 && a->r11 == b->r11 &&
	       a->r12 == b->r12 && a->r13 == b->r13 && a->r14 == b->r14 &&
	       a->r15 == b->r15;
}

/*
 * As it was when its visit was told: it has come back from the handler of a signal. What is
 * still to come back is deeper in the stack; the others were left, by longjmp.
 */
static bool is_again(struct pm_ptr_thread *thread, const struct user_regs_struct *regs)
{
	while (thread->again.len > 0) {
		const struct user_regs_struct *then =
			&thread->again.data[thread->again.len - 1].user;

		if (regs->rsp < then->rsp)
			return false;
		thread->again.len--;
		if (is_same(then, regs))
			return true;
	}
	return false;
}

/* ---- visits -------------------------------------------------------------------------- */

static uint32_t look_at_callers(struct pm_ptr *ptr, const struct pm_visit *visit,
				const struct pm_place *place,
				const struct user_regs_struct *at)
{
	struct pm_ptr_look look = { .pid = visit->pid,
				    .tid = visit->tid,
				    .cfa = at->rsp + place->sp_offset + sizeof(uint64_t),
				    .depth = ptr->calls_from };

	/* An unwinder believes what the registers say. */
	set_ip(visit->tid, at->rip);
	return pm_ptr_callers_look(&ptr->callers, ptr->procs, &look);
}

/* @at: ip is the place's address. */
static int tell_visits(struct pm_ptr *ptr, uint32_t row, const struct pm_ptr_site *site,
		       const struct user_regs_struct *at, uint64_t now)
{
	struct pm_ptr_thread *thread = &ptr->threads.data[row];
	struct pm_visit visit = { .time = now - thread->stolen_ns,
				  .pid = process_of(ptr, row)->pid,
				  .tid = thread->tid,
				  .sp = at->rsp,
				  .counts = ptr->values.data,
				  .caller = UINT32_MAX };
	uint64_t cpu_ns = 0;
	int ret = 0;

	if (ptr->counts.clock >= 0)
		pm_trace_cpu_ns(ptr->trace, thread->tid, &cpu_ns);
	pm_ptr_counts_read(&ptr->counts, &thread->counters, cpu_ns, ptr->values.data,
			   &visit);
	if (ptr->by_thread && !thread->hit)
		tell_name(ptr, row);
	thread->hit = true;
	for (uint32_t i = 0; ret == 0 && i < site->places; i++) {
		const struct pm_place *place;

		visit.place = ptr->sites.order.data[site->first + i];
		place = &ptr->regions->places.data[visit.place];
		if (ptr->calls_from > 0 && place->kind == PM_PLACE_ENTRY &&
		    visit.caller == PM_INDEX_NONE)
			visit.caller = look_at_callers(ptr, &visit, place, at);
		if (pm_place_leaves(place, at->eflags))
			ret = ptr->listener->visit(ptr->user, &visit);
	}
	return ret;
}

/* 1: it was a breakpoint of ours; 0: a SIGTRAP of the program; negative: failed. */
static int take_trap(struct pm_ptr *ptr, uint32_t row, uint64_t now)
{
	struct pm_ptr_thread *thread = &ptr->threads.data[row];
	struct pm_ptr_process *process = process_of(ptr, row);
	const struct pm_ptr_break *planted;
	const struct pm_ptr_site *site;
	struct user_regs_struct regs;
	siginfo_t info;
	uint64_t slot;
	int ret = 0;

	if (!get_regs(thread->tid, &regs))
		return 1; /* it is being killed */
	planted = pm_ptr_image_find(process->image, regs.rip - 1);
	if (!planted || ptrace(PTRACE_GETSIGINFO, thread->tid, NULL, &info) != 0 ||
	    info.si_code != SI_KERNEL)
		return 0;
	regs.rip--;
	site = &ptr->sites.files.data[planted->file].sites.data[planted->site];
	slot = process->image->restored ? planted->address : planted->slot;
	if (thread->counted && !ptr->letting_go && !is_again(thread, &regs))
		ret = tell_visits(ptr, row, site, &regs, now);
	set_ip(thread->tid, slot);
	pm_ptr_cpu_follow(&ptr->cpu, process->pid, thread->tid);
	if (ret == 0 && site->linker && !ptr->letting_go)
		ret = update(ptr, row);
	return ret < 0 ? ret : 1;
}

/* A breakpoint that it ran into before it saw our wish to stop. */
static bool trap_is_pending(const struct pm_ptr *ptr, uint32_t row)
{
	const struct pm_ptr_thread *thread = &ptr->threads.data[row];
	struct __ptrace_peeksiginfo_args ask = { .nr = PENDING_MAX };
	siginfo_t infos[PENDING_MAX];
	long len = ptrace(PTRACE_PEEKSIGINFO, thread->tid, &ask, infos);

	for (long i = 0; i < len; i++)
		if (infos[i].si_signo == SIGTRAP && infos[i].si_code == SI_KERNEL)
			return true;
	return false;
}

#endif

/* ---- events -------------------------------------------------------------------------- */

static void warn_of_privileges(struct pm_ptr *ptr, pid_t pid)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	if (geteuid() != 0 && stat(path, &st) == 0 &&
	    (((st.st_mode & S_ISUID) && st.st_uid != geteuid()) ||
	     ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) &&
	      st.st_gid != getegid())))
		ptr->privileged++;
}

static int on_new(struct pm_ptr *ptr, const struct pm_trace_event *event)
{
	uint32_t process = find_process(ptr, event->pid), row;
	uint32_t maker = find_thread(ptr, event->parent_tid);
	uint32_t parent = find_process(ptr, event->parent_pid);
	bool made = process == PM_INDEX_NONE;
	bool counted = !ptr->no_inherit;
	int ret = 0;

	if (made && parent != PM_INDEX_NONE) {
		struct pm_ptr_process *from = &ptr->processes.data[parent];
		struct pm_ptr_image *image;

		if (event->by_vfork)
			from->image->refs++;
		image = event->by_vfork ? from->image : pm_ptr_image_copy(from->image);
		counted = counted && from->counted;
		ret = add_process(ptr, event->pid, image, counted, &process);
		if (ret == 0) {
			ptr->processes.data[process].planted = true;
			ptr->processes.data[process].attached =
				ptr->processes.data[parent].attached;
		}
	} else if (made) {
		counted = false;
		ret = add_process(ptr, event->pid, pm_ptr_image_new(), false, &process);
	} else {
		counted = counted && ptr->processes.data[process].counted;
	}
	if (ret == 0)
		ret = add_thread(ptr, event->tid, process, counted, &row);
	if (ret < 0 || !counted || event->pid != event->tid)
		return ret;
	if (maker != PM_INDEX_NONE)
		ptr->threads.data[row].stolen_ns = ptr->threads.data[maker].stolen_ns;
	return ptr->listener->fork(
		ptr->user, event->parent_tid ? event->parent_tid : event->parent_pid,
		event->pid, event->tid);
}

/* All other threads are gone, and the one that executes has their leader's number. */
static int become_leader(struct pm_ptr *ptr, const struct pm_trace_event *event)
{
	uint32_t process = find_process(ptr, event->pid), row;

	if (process == PM_INDEX_NONE)
		return -ESRCH;
	for (uint32_t i = 0; i < ptr->threads.len; i++) {
		pid_t tid = ptr->threads.data[i].tid;

		if (tid == 0 || ptr->threads.data[i].process != process)
			continue;
		ptr->listener->exit(ptr->user, tid);
		if (tid != event->former_tid && ptr->processes.data[process].threads > 1)
			drop_thread(ptr, i);
	}
	row = find_thread(ptr, event->former_tid);
	if (row == PM_INDEX_NONE || event->former_tid == event->tid)
		return 0;
	pm_index_remove(&ptr->threads_index, hash(event->former_tid), row);
	ptr->threads.data[row].tid = event->tid;
	return pm_index_add(&ptr->threads_index, hash(event->tid), row);
}

static int on_exec(struct pm_ptr *ptr, const struct pm_trace_event *event)
{
	int ret = become_leader(ptr, event);
	uint32_t row = find_thread(ptr, event->tid);
	struct pm_ptr_image *image = pm_ptr_image_new();
	struct pm_ptr_process *process;

	if (ret < 0 || row == PM_INDEX_NONE || !image) {
		pm_ptr_image_unref(image);
		return ret < 0 ? ret : image ? 0 : -ENOMEM;
	}
	process = process_of(ptr, row);
	pm_ptr_image_unref(process->image);
	process->image = image;
	ptr->threads.data[row].hit = false;
	pm_vec_clear(&ptr->threads.data[row].again);
	warn_of_privileges(ptr, event->pid);
	if (event->tid == ptr->command && !ptr->command_begun) {
		ptr->command_begun = true;
		pm_ptr_counts_open(&ptr->counts, &ptr->threads.data[row].counters,
				   event->tid);
	}
	if (!process->counted || ptr->letting_go) {
		/* Nothing of ours is in it. */
		image->restored = true;
		return 0;
	}
	image->may_map = !process->attached || !has_filter(event->pid);
	return update(ptr, row);
}

static int on_stop(struct pm_ptr *ptr, const struct pm_trace_event *event, uint64_t now)
{
	uint32_t row = find_thread(ptr, event->tid);
	int ret = 0;

	if (row == PM_INDEX_NONE)
		return 0;
	if (!process_of(ptr, row)->planted && process_of(ptr, row)->counted &&
	    !ptr->letting_go)
		ret = update(ptr, row);
	if (ret == 0 && event->signal == SIGTRAP)
		ret = take_trap(ptr, row, now);
	if (ret > 0)
		pm_trace_set_signal(ptr->trace, 0);
	else if (ret == 0 && event->signal != 0)
		leave_slot(ptr, row);
	return ret < 0 ? ret : 0;
}

static void on_exit_of(struct pm_ptr *ptr, const struct pm_trace_event *event)
{
	uint32_t row = find_thread(ptr, event->tid);

	if (row == PM_INDEX_NONE)
		return;
	ptr->listener->exit(ptr->user, event->tid);
	drop_thread(ptr, row);
}

/* The thread stands still for the last time. */
static void part(struct pm_ptr *ptr, const struct pm_trace_event *event)
{
	uint32_t row = find_thread(ptr, event->tid);

	if (row != PM_INDEX_NONE) {
		struct pm_ptr_image *image = process_of(ptr, row)->image;

		if (!image->restored)
			pm_ptr_image_restore(image, event->tid);
		if (event->signal != SIGTRAP && trap_is_pending(ptr, row))
			return; /* it stops once more, for that */
		leave_slot(ptr, row);
		ptr->listener->exit(ptr->user, event->tid);
		drop_thread(ptr, row);
	}
	pm_trace_let_go(ptr->trace);
}

int pm_ptr_event(struct pm_ptr *ptr, const struct pm_trace_event *event)
{
	uint64_t now = pm_now_ns();
	uint32_t row;
	int ret = 0;

	switch (event->what) {
	case PM_TRACE_NEW:
		ret = on_new(ptr, event);
		break;
	case PM_TRACE_EXEC:
		ret = on_exec(ptr, event);
		break;
	case PM_TRACE_STOPPED:
		ret = on_stop(ptr, event, now);
		break;
	case PM_TRACE_EXIT:
		on_exit_of(ptr, event);
		return 0;
	}
	row = find_thread(ptr, event->tid);
	if (ptr->letting_go || (row != PM_INDEX_NONE && !process_of(ptr, row)->counted &&
				event->what != PM_TRACE_STOPPED && !event->by_vfork))
		part(ptr, event);
	else if (row != PM_INDEX_NONE)
		ptr->threads.data[row].stolen_ns += pm_now_ns() - now;
	return ret;
}

void pm_ptr_let_go(struct pm_ptr *ptr)
{
	ptr->letting_go = true;
	pm_trace_interrupt(ptr->trace);
}

/* ---- life ---------------------------------------------------------------------------- */

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
			drop_thread(ptr, i);
	pm_ptr_cpu_release(&ptr->cpu);
	pm_ptr_callers_release(&ptr->callers);
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
		ret = add_process(ptr, pid, image, true, &process);
	else
		pm_ptr_image_unref(image);
	if (ret >= 0) {
		/* Before its exec the command is a copy of this process. */
		ptr->processes.data[process].planted = pid == ptr->command;
		ptr->processes.data[process].attached = pid != ptr->command;
	}
	for (pid_t tid = 0; ret >= 0 && (tid = pm_trace_next_tid(ptr->trace, tid)) != 0;)
		if (find_thread(ptr, tid) == PM_INDEX_NONE)
			ret = add_thread(ptr, tid, process, true, &row);
	return ret == -ENOMEM ? pm_error_set(err, ret, "out of memory") : ret;
}
