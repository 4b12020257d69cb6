/* SPDX-License-Identifier: MIT */
/* Machine-dependent code of the engine, except for instructions in slots. */
#include "engine-ptrace.h"

#include <elf.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#if defined(__x86_64__)

const uint8_t pm_ptr_trap[] = { 0xcc }; /* int3 */
const uint64_t pm_ptr_near_bytes = UINT64_C(1)
				   << 30; /* well within the reach of 32 bits */
const uint8_t pm_ptr_syscall[] = { 0x0f, 0x05 };
const size_t pm_ptr_syscall_len = sizeof(pm_ptr_syscall);

int pm_ptr_slot_make(const uint8_t *bytes, uint8_t len, uint64_t address, uint64_t slot,
		     struct pm_ptr_code *out)
{
	return pm_ptr_slot_make_x86(bytes, len, address, slot, out);
}

int pm_ptr_regs_get(pid_t tid, struct pm_ptr_regs *out)
{
	struct user_regs_struct user;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &user) != 0)
		return -ESRCH;
	*out = (struct pm_ptr_regs){
		.ip = user.rip, .sp = user.rsp, .flags = user.eflags, .user = user
	};
	return 0;
}

int pm_ptr_regs_set(pid_t tid, const struct pm_ptr_regs *regs)
{
	if (ptrace(PTRACE_SETREGS, tid, NULL, &regs->user) == 0)
		return 0;
	return -errno;
}

/* Writing one word takes less time than all registers. */
void pm_ptr_regs_move(pid_t tid, const struct pm_ptr_regs *regs, uint64_t ip, uint64_t sp)
{
	ptrace(PTRACE_POKEUSER, tid, offsetof(struct user_regs_struct, rip), ip);
	if (sp != regs->user.rsp)
		ptrace(PTRACE_POKEUSER, tid, offsetof(struct user_regs_struct, rsp), sp);
}

bool pm_ptr_regs_same(const struct pm_ptr_regs *a, const struct pm_ptr_regs *b)
{
	const struct user_regs_struct *x = &a->user, *y = &b->user;

	return x->rax == y->rax && x->rbx == y->rbx && x->rcx == y->rcx &&
	       x->rdx == y->rdx && x->rsi == y->rsi && x->rdi == y->rdi &&
	       x->rbp == y->rbp && x->r8 == y->r8 && x->r9 == y->r9 && x->r10 == y->r10 &&
	       x->r11 == y->r11 && x->r12 == y->r12 && x->r13 == y->r13 &&
	       x->r14 == y->r14 && x->r15 == y->r15;
}

uint64_t pm_ptr_regs_trapped_at(const struct pm_ptr_regs *regs)
{
	return regs->ip - PM_PTR_TRAP_BYTES;
}

uint64_t pm_ptr_regs_asked(const struct pm_ptr_regs *regs, const struct pm_place *place)
{
	return regs->flags;
}

bool pm_ptr_is_trap(const siginfo_t *info)
{
	return info->si_code == SI_KERNEL;
}

void pm_ptr_regs_run(pid_t tid, const struct pm_ptr_regs *regs, const uint8_t *bytes)
{
}

bool pm_ptr_regs_return(pid_t tid, const struct pm_ptr_regs *regs, uint64_t sp_offset,
			uint64_t *out)
{
	return pm_trace_read(tid, regs->sp + sp_offset, out, sizeof(*out)) ==
	       sizeof(*out);
}

/* With orig_rax -1 the kernel restarts no system call (arch_do_signal_or_restart() in
 * arch/x86/kernel/signal.c). */
void pm_ptr_regs_call(struct pm_ptr_regs *regs, uint64_t instruction, long number,
		      const uint64_t arguments[6])
{
	regs->ip = regs->user.rip = instruction;
	regs->user.orig_rax = UINT64_MAX;
	regs->user.rax = (uint64_t)number;
	regs->user.rdi = arguments[0];
	regs->user.rsi = arguments[1];
	regs->user.rdx = arguments[2];
	regs->user.r10 = arguments[3];
	regs->user.r8 = arguments[4];
	regs->user.r9 = arguments[5];
}

int64_t pm_ptr_regs_called(const struct pm_ptr_regs *regs)
{
	return (int64_t)regs->user.rax;
}

#elif defined(__aarch64__)

enum {
	CALL_NUMBER = 8, /* x8 */
	LINK = 30,
};

#define HWCAP_OF_GCS (UINT64_C(1) << 32) /* not in Debian 12's headers */

const uint8_t pm_ptr_trap[] = { 0x00, 0x00, 0x20, 0xd4 }; /* brk #0 */
const uint64_t pm_ptr_near_bytes = UINT64_C(1) << 26; /* half of a jump's reach */
const uint8_t pm_ptr_syscall[] = { 0x01, 0x00, 0x00, 0xd4 };
const size_t pm_ptr_syscall_len = sizeof(pm_ptr_syscall);

int pm_ptr_slot_make(const uint8_t *bytes, uint8_t len, uint64_t address, uint64_t slot,
		     struct pm_ptr_code *out)
{
	/* A program may start to use it after its breakpoints have been planted. */
	bool second_stack = getauxval(AT_HWCAP) & HWCAP_OF_GCS;

	return pm_ptr_slot_make_arm64(bytes, len, address, slot, second_stack, out);
}

int pm_ptr_regs_get(pid_t tid, struct pm_ptr_regs *out)
{
	struct pm_ptr_arm64 user;
	struct iovec iov = { &user, sizeof(user) };

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov) != 0)
		return -ESRCH;
	if (iov.iov_len != sizeof(user))
		return -EOPNOTSUPP; /* a 32-bit program */
	*out = (struct pm_ptr_regs){
		.ip = user.pc, .sp = user.sp, .flags = user.pstate, .user = user
	};
	return 0;
}

static int set_user(pid_t tid, const struct pm_ptr_arm64 *user)
{
	struct pm_ptr_arm64 copy = *user;
	struct iovec iov = { &copy, sizeof(copy) };

	if (ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &iov) == 0)
		return 0;
	return -errno;
}

/* Sets the syscall number to -1, as do_signal() in arch/arm64/kernel/signal.c, which may
 * still be to come, checks it. */
int pm_ptr_regs_set(pid_t tid, const struct pm_ptr_regs *regs)
{
	int none = -1;
	struct iovec iov = { &none, sizeof(none) };
	int ret = set_user(tid, &regs->user);

	if (ret == 0 && ptrace(PTRACE_SETREGSET, tid, NT_ARM_SYSTEM_CALL, &iov) != 0)
		ret = -errno;
	return ret;
}

void pm_ptr_regs_move(pid_t tid, const struct pm_ptr_regs *regs, uint64_t ip, uint64_t sp)
{
	struct pm_ptr_arm64 user = regs->user;

	user.pc = ip;
	user.sp = sp;
	if (user.pc != regs->user.pc || user.sp != regs->user.sp)
		set_user(tid, &user);
}

bool pm_ptr_regs_same(const struct pm_ptr_regs *a, const struct pm_ptr_regs *b)
{
	return memcmp(a->user.x, b->user.x, sizeof(a->user.x)) == 0;
}

uint64_t pm_ptr_regs_trapped_at(const struct pm_ptr_regs *regs)
{
	return regs->ip;
}

uint64_t pm_ptr_regs_asked(const struct pm_ptr_regs *regs, const struct pm_place *place)
{
	if (!pm_place_asks_register(place))
		return regs->flags;
	if (place->condition_register < PM_ARRAY_LEN(regs->user.x))
		return regs->user.x[place->condition_register];
	return 0;
}

bool pm_ptr_is_trap(const siginfo_t *info)
{
	return info->si_code == TRAP_BRKPT;
}

void pm_ptr_regs_run(pid_t tid, const struct pm_ptr_regs *regs, const uint8_t *bytes)
{
	struct pm_ptr_arm64 user = regs->user;
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	if (pm_ptr_arm64_run(word, &user))
		set_user(tid, &user);
}

/* The link register may already have an authentication code; the kernel returns the
 * mask. */
bool pm_ptr_regs_return(pid_t tid, const struct pm_ptr_regs *regs, uint64_t sp_offset,
			uint64_t *out)
{
	struct {
		uint64_t data, code;
	} mask = { 0 };
	struct iovec iov = { &mask, sizeof(mask) };

	if (ptrace(PTRACE_GETREGSET, tid, NT_ARM_PAC_MASK, &iov) != 0)
		mask.code = 0; /* the processor has no pointer authentication */
	*out = regs->user.x[LINK] & ~mask.code;
	return true;
}

void pm_ptr_regs_call(struct pm_ptr_regs *regs, uint64_t instruction, long number,
		      const uint64_t arguments[6])
{
	regs->ip = regs->user.pc = instruction;
	regs->user.x[CALL_NUMBER] = (uint64_t)number;
	for (size_t i = 0; i < 6; i++)
		regs->user.x[i] = arguments[i];
}

int64_t pm_ptr_regs_called(const struct pm_ptr_regs *regs)
{
	return (int64_t)regs->user.x[0];
}

#else

const uint8_t pm_ptr_trap[PM_PTR_TRAP_BYTES] = { 0 };
const uint64_t pm_ptr_near_bytes = 0;
const uint8_t pm_ptr_syscall[] = { 0 };
const size_t pm_ptr_syscall_len = 0;

int pm_ptr_slot_make(const uint8_t *bytes, uint8_t len, uint64_t address, uint64_t slot,
		     struct pm_ptr_code *out)
{
	return -EOPNOTSUPP;
}

int pm_ptr_regs_get(pid_t tid, struct pm_ptr_regs *out)
{
	return -EOPNOTSUPP;
}

int pm_ptr_regs_set(pid_t tid, const struct pm_ptr_regs *regs)
{
	return -EOPNOTSUPP;
}

void pm_ptr_regs_move(pid_t tid, const struct pm_ptr_regs *regs, uint64_t ip, uint64_t sp)
{
}

bool pm_ptr_regs_same(const struct pm_ptr_regs *a, const struct pm_ptr_regs *b)
{
	return false;
}

uint64_t pm_ptr_regs_trapped_at(const struct pm_ptr_regs *regs)
{
	return regs->ip;
}

uint64_t pm_ptr_regs_asked(const struct pm_ptr_regs *regs, const struct pm_place *place)
{
	return regs->flags;
}

bool pm_ptr_is_trap(const siginfo_t *info)
{
	return false;
}

void pm_ptr_regs_run(pid_t tid, const struct pm_ptr_regs *regs, const uint8_t *bytes)
{
}

bool pm_ptr_regs_return(pid_t tid, const struct pm_ptr_regs *regs, uint64_t sp_offset,
			uint64_t *out)
{
	return false;
}

void pm_ptr_regs_call(struct pm_ptr_regs *regs, uint64_t instruction, long number,
		      const uint64_t arguments[6])
{
}

int64_t pm_ptr_regs_called(const struct pm_ptr_regs *regs)
{
	return -EOPNOTSUPP;
}

#endif
