/* SPDX-License-Identifier: MIT */
#include "timer-signal.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>

enum {
	PAGE_BYTES_MIN = 4096,
	PIECES = PM_SELF_STACK_BYTES / PAGE_BYTES_MIN + 1,
};

struct pm_self_slot pm_self_slots[PM_SELF_SLOTS_MAX];

/* The program's own action for SIGPROF. Handlers read it; it is written only while our
 * handler is not installed. */
static struct sigaction of_program;
static atomic_bool installed;
static pid_t owner; /* the process that the slots belong to */

/* ---- inside the handler: nothing here may wait, allocate or touch foreign memory ----------- */

#if defined(__x86_64__)

/* psABI x86-64, figure 3.36: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8-r15, rip. */
static void copy_regs(uint64_t *out, const ucontext_t *context)
{
	static const uint8_t numbers[] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI,
					   REG_RDI, REG_RBP, REG_RSP, REG_R8,  REG_R9,
					   REG_R10, REG_R11, REG_R12, REG_R13, REG_R14,
					   REG_R15, REG_RIP };

	for (size_t i = 0; i < PM_ARRAY_LEN(numbers); i++)
		out[i] = (uint64_t)context->uc_mcontext.gregs[numbers[i]];
}

static uint64_t context_stack_pointer(const ucontext_t *context)
{
	return (uint64_t)context->uc_mcontext.gregs[REG_RSP];
}

#elif defined(__aarch64__)

/* AADWARF64 §4.1: x0-x30, sp, pc. */
static void copy_regs(uint64_t *out, const ucontext_t *context)
{
	memcpy(out, context->uc_mcontext.regs, sizeof(context->uc_mcontext.regs));
	out[31] = context->uc_mcontext.sp;
	out[32] = context->uc_mcontext.pc;
}

static uint64_t context_stack_pointer(const ucontext_t *context)
{
	return context->uc_mcontext.sp;
}

#else
#error "registers of this architecture are not known"
#endif

/*
 * Copies the stack by a system call, which fails where a plain read would crash the
 * program: the end of the stack is unknown, and the stack pointer may be invalid. The
 * copy has one piece for each page, because a piece is copied completely or not at all
 * (process_vm_readv(2)).
 */
static uint32_t copy_stack(uint8_t *out, pid_t tid, uint64_t sp)
{
	struct iovec to = { .iov_base = out, .iov_len = PM_SELF_STACK_BYTES };
	struct iovec from[PIECES];
	uint64_t address = sp, end = sp + PM_SELF_STACK_BYTES;
	unsigned long len = 0;
	long got;

	if (end < sp)
		return 0;
	while (address < end) {
		uint64_t next = (address / PAGE_BYTES_MIN + 1) * PAGE_BYTES_MIN;

		if (next > end)
			next = end;
		from[len].iov_base = (void *)(uintptr_t)address; /* NOLINT */
		from[len++].iov_len = next - address;
		address = next;
	}
	got = syscall(SYS_process_vm_readv, tid, &to, 1ul, from, len, 0ul);
	if (got > 0)
		return (uint32_t)got;
	return 0;
}

static void write_entry(struct pm_self_slot *slot, uint32_t ticks,
			const ucontext_t *context)
{
	unsigned int head = atomic_load_explicit(&slot->head, memory_order_relaxed);
	struct pm_self_entry *entry = &slot->entries[head % PM_SELF_ENTRIES];
	struct timespec now = { 0 };
	int cpu;

	if (head - atomic_load_explicit(&slot->tail, memory_order_acquire) >=
	    PM_SELF_ENTRIES) {
		slot->lost++;
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	cpu = sched_getcpu();
	entry->time = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	entry->ticks = ticks;
	if (cpu < 0)
		entry->cpu = UINT32_MAX;
	else
		entry->cpu = (uint32_t)cpu;
	copy_regs(entry->regs, context);
	entry->stack_len = 0;
	if (slot->stacks) {
		entry->stack_len = copy_stack(entry->stack, slot->tid,
					      context_stack_pointer(context));
		slot->unread += entry->stack_len == 0;
	}
	atomic_store_explicit(&slot->head, head + 1, memory_order_release);
}

/* Returns the slot that the signal was sent for, or NULL if the signal is not ours. */
static struct pm_self_slot *slot_of_signal(const siginfo_t *info)
{
	uintptr_t value = (uintptr_t)info->si_value.sival_ptr;
	uintptr_t offset = value - (uintptr_t)pm_self_slots;

	if (info->si_code != SI_TIMER || offset >= sizeof(pm_self_slots) ||
	    offset % sizeof(pm_self_slots[0]) != 0)
		return NULL;
	return &pm_self_slots[offset / sizeof(pm_self_slots[0])];
}

static void slot_take_sample(struct pm_self_slot *slot, const siginfo_t *info,
			     const ucontext_t *context)
{
	uint32_t ticks = 1;

	if (info->si_overrun > 0)
		ticks = (uint32_t)info->si_overrun + 1;
	if (atomic_exchange(&slot->busy, true)) {
		slot->samples++;
		slot->ticks += ticks;
		slot->lost++;
		return;
	}
	/* If the ids differ, the signal comes from a timer that was deleted. */
	if (atomic_load(&slot->timer) == info->si_timerid) {
		slot->samples++;
		slot->ticks += ticks;
		write_entry(slot, ticks, context);
	}
	atomic_store(&slot->busy, false);
}

/* Passes a signal to the program's handler: it comes from the program's own timers
 * (setitimer(2)) or from kill(2). */
static void pass_on(int number, siginfo_t *info, void *context)
{
	const struct sigaction by_default = { .sa_handler = SIG_DFL };

	if (of_program.sa_flags & SA_SIGINFO) {
		of_program.sa_sigaction(number, info, context);
	} else if (of_program.sa_handler == SIG_DFL) {
		/* The signal is delivered when this handler has returned. */
		sigaction(number, &by_default, NULL);
		raise(number);
	} else if (of_program.sa_handler != SIG_IGN) {
		of_program.sa_handler(number);
	}
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	int saved = errno;
	struct pm_self_slot *slot = slot_of_signal(info);

	if (slot)
		slot_take_sample(slot, info, context);
	else
		pass_on(number, info, context);
	errno = saved;
}

/* ---- installing and removing --------------------------------------------------------------- */

bool pm_self_signal_is_ours(void)
{
	struct sigaction now;

	return sigaction(SIGPROF, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
	       now.sa_sigaction == on_signal;
}

/* Resets the slots in a new process: no timer is inherited, and the other threads do not
 * exist. */
static void own_slots(void)
{
	for (size_t i = 0; i < PM_SELF_SLOTS_MAX && pm_self_slots[i].entries; i++) {
		atomic_store(&pm_self_slots[i].timer, PM_SELF_NO_TIMER);
		atomic_store(&pm_self_slots[i].busy, false);
		pm_self_slots[i].tid = 0;
	}
	owner = getpid();
}

static void signal_in_child(void)
{
	if (!atomic_exchange(&installed, false))
		return;
	if (pm_self_signal_is_ours())
		sigaction(SIGPROF, &of_program, NULL);
	own_slots();
}

int pm_self_signal_install(void)
{
	static bool forks_watched;
	struct sigaction ours = {
		.sa_sigaction = on_signal,
		/* Use the program's alternate signal stack if there is one, since its
		 * normal stack may be too small. The copied stack is always the
		 * interrupted one. */
		.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK
	};
	int ret = 0;

	/* All signals are blocked: a handler of the program that leaves by longjmp(3)
	 * must not leave ours, too. */
	sigfillset(&ours.sa_mask);
	/* libc runs no fork handlers for clone(2). */
	if (owner != getpid())
		own_slots();
	if (!forks_watched) {
		ret = -pthread_atfork(NULL, NULL, signal_in_child);
		forks_watched = ret == 0;
	}
	/* Our handler may be installed already, if the program saved and restored it. */
	if (ret == 0 && !pm_self_signal_is_ours() &&
	    sigaction(SIGPROF, NULL, &of_program) < 0)
		ret = -errno;
	if (ret == 0 && sigaction(SIGPROF, &ours, NULL) < 0)
		ret = -errno;
	atomic_store(&installed, ret == 0);
	return ret;
}

void pm_self_signal_remove(void)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction before;

	if (!atomic_exchange(&installed, false) || !pm_self_signal_is_ours())
		return;
	/*
	 * Pending signals, blocked or not, would be delivered to the program's own action
	 * for SIGPROF, which usually ends the program. Ignoring SIGPROF removes them from
	 * the queues of all threads (POSIX, sigaction()).
	 */
	sigaction(SIGPROF, &ignore, NULL);
	sigaction(SIGPROF, &of_program, &before);
	if (before.sa_flags & SA_SIGINFO || before.sa_handler != SIG_IGN)
		sigaction(SIGPROF, &before, NULL);
}
