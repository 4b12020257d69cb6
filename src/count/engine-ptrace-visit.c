/* SPDX-License-Identifier: MIT */
/* Handles a thread at a breakpoint: reports its visits, and lets it continue. */
#include "engine-ptrace.h"

#include <string.h>
#include <sys/ptrace.h>

enum {
	PENDING_MAX = 8, /* signals of a thread that are examined */
	AGAIN_MAX = 64, /* nested signal handlers */
};

static void report_thread_comm(struct pm_ptr *ptr, uint32_t row)
{
	pid_t pid = pm_ptr_process_of(ptr, row)->pid, tid = ptr->threads.data[row].tid;
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

/* The thread will come here once more. Without memory, the visit is reported twice. */
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
		/* Only slots that continue behind the place have a tail. */
		pm_ptr_regs_move(thread->tid, regs, planted->after, regs->sp);
		return;
	}
	if (planted->pushed_at != 0 && in >= planted->pushed_at)
		before.sp += sizeof(uint64_t);
	before.ip = planted->address;
	pm_ptr_regs_move(thread->tid, regs, before.ip, before.sp);
	remember_visit(thread, &before);
}

/* Called before a signal is delivered. After an exception of the trap kind, ip is past
 * the instruction. */
void pm_ptr_leave_slot(struct pm_ptr *ptr, uint32_t row)
{
	struct pm_ptr_thread *thread = &ptr->threads.data[row];
	const struct pm_ptr_image *image = pm_ptr_process_of(ptr, row)->image;
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
 * signal handler. Entries still to come back are deeper in the stack; others were left by
 * longjmp(3).
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

/* ---- visits -------------------------------------------------------------------------- */

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
				  .pid = pm_ptr_process_of(ptr, row)->pid,
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

/* The breakpoint that caused the SIGTRAP; NULL: it has another cause. */
static const struct pm_ptr_break *find_trap(const struct pm_ptr_image *image, pid_t tid,
					    const struct pm_ptr_regs *regs)
{
	uint64_t address = pm_ptr_regs_trapped_at(regs);
	const struct pm_ptr_break *planted = pm_ptr_image_find(image, address);
	siginfo_t info;

	/* An ip behind the breakpoint is in the middle of the instruction, unless that is
	 * as short as the breakpoint: then the signal may also have been sent by another
	 * process. */
	if (planted && planted->after - address == PM_PTR_TRAP_BYTES &&
	    (ptrace(PTRACE_GETSIGINFO, tid, NULL, &info) != 0 || !pm_ptr_is_trap(&info)))
		return NULL;
	return planted;
}

int pm_ptr_take_trap(struct pm_ptr *ptr, uint32_t row, uint64_t now)
{
	struct pm_ptr_thread *thread = &ptr->threads.data[row];
	struct pm_ptr_process *process = pm_ptr_process_of(ptr, row);
	const struct pm_ptr_break *planted;
	const struct pm_ptr_site *site;
	struct pm_ptr_regs regs;
	int ret = pm_ptr_regs_get(thread->tid, &regs);

	if (ret < 0) {
		if (ret == -EOPNOTSUPP)
			return PM_PTR_TRAP_FOREIGN;
		return PM_PTR_TRAP_OURS;
	}
	planted = find_trap(process->image, thread->tid, &regs);
	if (!planted)
		return PM_PTR_TRAP_FOREIGN;
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
		return PM_PTR_TRAP_LINKER;
	return PM_PTR_TRAP_OURS;
}

bool pm_ptr_trap_is_pending(const struct pm_ptr *ptr, uint32_t row)
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
	uint32_t row = pm_ptr_find_thread(ptr, hit->tid);

	/* A hit of the program before its exec. */
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
