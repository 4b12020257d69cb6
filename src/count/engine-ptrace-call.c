/* SPDX-License-Identifier: MIT */
/*
 * A system call that another process makes for us. The instruction for it is found in the
 * vDSO, so that no code is changed that other threads may run; the thread takes one step over
 * it with all signals blocked. It may stand in a system call of its own, which the kernel
 * starts again once the registers are back: orig_rax -1 keeps it from doing so in between
 * (arch_do_signal_or_restart() in arch/x86/kernel/signal.c).
 */
#include "engine-ptrace.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

enum {
	KERNEL_SIGSET_BYTES = 8,
	VDSO_BYTES_MAX = 64 << 10,
	STOPS_MAX = 16, /* until the step is done */
};

#if defined(__x86_64__)

/* Where `syscall` stands in the vDSO, 0: nowhere. */
static uint64_t find_instruction(pid_t tid)
{
	char path[64];
	uint8_t *code = NULL;
	PM_AUTO_FCLOSE FILE *maps = NULL;
	char line[512];
	uint64_t start = 0, end = 0, found = 0;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)tid);
	maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long long from, to;

		if (strstr(line, "[vdso]") &&
		    sscanf(line, "%llx-%llx", &from, &to) == 2) {
			start = from;
			end = to;
		}
	}
	if (end <= start || end - start > VDSO_BYTES_MAX)
		return 0;
	code = malloc(end - start);
	len = code ? pm_trace_read(tid, start, code, end - start) : 0;
	for (size_t i = 0; found == 0 && i + 1 < len; i++)
		if (code[i] == 0x0f && code[i + 1] == 0x05)
			found = start + i;
	free(code);
	return found;
}

/*
 * Runs the one instruction that @regs lead to, and gives what they are then. Nothing but a kill
 * can come between, the stop that a wish of ours or a SIGSTOP asks for, and the end of an execve(2)
 * that the thread stood in: it counts as a step, and writes rax.
 */
static int step(pid_t tid, struct user_regs_struct *regs)
{
	const struct user_regs_struct from = *regs;

	for (int i = 0; i < STOPS_MAX; i++) {
		int status;
		pid_t got;

		if (ptrace(PTRACE_SINGLESTEP, tid, NULL, NULL) < 0)
			return -errno;
		do
			got = waitpid(tid, &status, __WALL);
		while (got < 0 && errno == EINTR);
		if (got < 0 || !WIFSTOPPED(status))
			return -ESRCH;
		if (status >> 8 != SIGTRAP)
			continue;
		if (ptrace(PTRACE_GETREGS, tid, NULL, regs) < 0)
			return -errno;
		if (regs->rip != from.rip)
			return 0;
		if (ptrace(PTRACE_SETREGS, tid, NULL, &from) < 0)
			return -errno;
	}
	return -EAGAIN;
}

static int call(pid_t tid, const struct user_regs_struct *saved, uint64_t address,
		uint64_t len)
{
	struct user_regs_struct regs = *saved;
	uint64_t instruction = find_instruction(tid);
	int ret;

	if (instruction == 0)
		return -ENOENT;
	regs.rip = instruction;
	regs.orig_rax = UINT64_MAX;
	regs.rax = SYS_mmap;
	regs.rdi = address;
	regs.rsi = len;
	regs.rdx = PROT_READ | PROT_EXEC;
	regs.r10 = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	regs.r8 = UINT64_MAX;
	regs.r9 = 0;
	if (ptrace(PTRACE_SETREGS, tid, NULL, &regs) < 0)
		return -errno;
	ret = step(tid, &regs);
	/* A kernel before 4.17 takes the address for a wish. */
	if (ret == 0 && regs.rax != address)
		ret = (int64_t)regs.rax < 0 ? (int)regs.rax : -EEXIST;
	if (ptrace(PTRACE_SETREGS, tid, NULL, saved) < 0)
		ret = -errno;
	return ret;
}

int pm_ptr_map(pid_t tid, uint64_t address, uint64_t len)
{
	struct user_regs_struct saved;
	/* A blocked SIGTRAP would be made to kill (force_sig_info_to_task()). */
	uint64_t mask, blocked = ~(UINT64_C(1) << (SIGTRAP - 1));
	void *size = (void *)(uintptr_t)KERNEL_SIGSET_BYTES;
	int ret;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &saved) < 0 ||
	    ptrace(PTRACE_GETSIGMASK, tid, size, &mask) < 0 ||
	    ptrace(PTRACE_SETSIGMASK, tid, size, &blocked) < 0)
		return -errno;
	ret = call(tid, &saved, address, len);
	if (ptrace(PTRACE_SETSIGMASK, tid, size, &mask) < 0 && ret == 0)
		ret = -errno;
	return ret;
}

#else

int pm_ptr_map(pid_t tid, uint64_t address, uint64_t len)
{
	return -EOPNOTSUPP;
}

#endif
