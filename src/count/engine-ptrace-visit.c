/* SPDX-License-Identifier: MIT */
/* What a thread that stands at a breakpoint tells, and how it goes on. */
#include "engine-ptrace.h"

#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>

enum {
	PENDING_MAX = 8, /* signals of a thread that are looked at */
	AGAIN_MAX = 64, /* handlers of signals, one in the other */
};

static void tell_name(struct pm_ptr *ptr, uint32_t row)
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
void pm_ptr_leave_slot(struct pm_ptr *ptr, uint32_t row)
{
	struct pm_ptr_thread *thread = &ptr->threads.data[row];
	const struct pm_ptr_image *image = pm_ptr_process_of(ptr, row)->image;
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
				  .pid = pm_ptr_process_of(ptr, row)->pid,
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

/*
 * To get a SIGTRAP to a thread that blocks it, the kernel unblocks it, and forgets what the
 * program does on it (force_sig_info_to_task()); neither can be seen from here. But who blocks
 * the signals of all other faults has blocked this one, too: let it stay so.
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

int pm_ptr_take_trap(struct pm_ptr *ptr, uint32_t row, uint64_t now)
{
	struct pm_ptr_thread *thread = &ptr->threads.data[row];
	struct pm_ptr_process *process = pm_ptr_process_of(ptr, row);
	const struct pm_ptr_break *planted;
	const struct pm_ptr_site *site;
	struct user_regs_struct regs;
	siginfo_t info;
	uint64_t slot;
	int ret = 0;

	if (!get_regs(thread->tid, &regs))
		return 1; /* it is being killed */
	planted = pm_ptr_image_find(process->image, regs.rip - 1);
	if (!planted)
		return 0;
	/* One behind the place is in the middle of its instruction, unless that is of one
	 * byte: then a SIGTRAP may be somebody's who sent it. */
	if (planted->after == regs.rip &&
	    (ptrace(PTRACE_GETSIGINFO, thread->tid, NULL, &info) != 0 ||
	     info.si_code != SI_KERNEL))
		return 0;
	regs.rip--;
	site = &ptr->sites.files.data[planted->file].sites.data[planted->site];
	slot = process->image->restored ? planted->address : planted->slot;
	if (thread->counted && !ptr->letting_go && !is_again(thread, &regs))
		ret = tell_visits(ptr, row, site, &regs, now);
	set_ip(thread->tid, slot);
	block_again(ptr, thread->tid);
	pm_ptr_cpu_follow(&ptr->cpu, process->pid, thread->tid);
	/* Several would only wait for each other. */
	if (pm_trace_len(ptr->trace) == 1)
		pm_ptr_cpu_hold(&ptr->cpu, thread->tid);
	if (ret < 0)
		return ret;
	return site->linker && !ptr->letting_go ? PM_PTR_TRAP_LINKER : PM_PTR_TRAP_OURS;
}

/* A breakpoint that it ran into before it saw our wish to stop. */
bool pm_ptr_trap_is_pending(const struct pm_ptr *ptr, uint32_t row)
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

#else

int pm_ptr_take_trap(struct pm_ptr *ptr, uint32_t row, uint64_t now)
{
	return 0;
}

void pm_ptr_leave_slot(struct pm_ptr *ptr, uint32_t row)
{
}

bool pm_ptr_trap_is_pending(const struct pm_ptr *ptr, uint32_t row)
{
	return false;
}

#endif

/* ---- hits ---------------------------------------------------------------------------- */

static int see_hit(void *user, const struct pm_hit *hit, uint32_t place)
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

	/* Of another program that it has become. */
	if (row == PM_INDEX_NONE || !ptr->threads.data[row].by_hits ||
	    !pm_place_leaves(&ptr->regions->places.data[place], hit->flags))
		return 0;
	if (ptr->by_thread && !ptr->threads.data[row].hit)
		tell_name(ptr, row);
	ptr->threads.data[row].hit = true;
	return ptr->listener->visit(ptr->user, &visit);
}

int pm_ptr_drain(struct pm_ptr *ptr, bool final, struct pm_error *err)
{
	return pm_ptr_hw_drain(&ptr->hw, final, see_hit, ptr, err);
}
