/* SPDX-License-Identifier: MIT */
/*
 * Makes another process execute a system call for us. The syscall instruction is found in
 * the vDSO, so that no code is changed that other threads may be running. The thread
 * makes one step over it with all signals blocked. It may have been stopped in a system
 * call of its own; the kernel restarts that call once the registers are restored.
 */
#include "engine-ptrace.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum {
	KERNEL_SIGSET_BYTES = 8,
	VDSO_BYTES_MAX = 64 << 10,
	STOPS_MAX = 16, /* before the step is done */
};

/* The address of the instruction in the vDSO; 0: not found. */
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
	if (code)
		len = pm_trace_read(tid, start, code, end - start);
	else
		len = 0;
	for (size_t i = 0; found == 0 && i + pm_ptr_syscall_len <= len; i++)
		if (memcmp(code + i, pm_ptr_syscall, pm_ptr_syscall_len) == 0)
			found = start + i;
	free(code);
	return found;
}

/* Resumes the thread with @request until the stop that the request causes. */
static int go_to_stop(pid_t tid, int request)
{
	for (int i = 0; i < STOPS_MAX; i++) {
		int status;
		pid_t got;

		if (ptrace((enum __ptrace_request)request, tid, NULL, NULL) < 0)
			return -errno;
		do
			got = waitpid(tid, &status, __WALL);
		while (got < 0 && errno == EINTR);
		if (got < 0 || !WIFSTOPPED(status))
			return -ESRCH;
		if (status >> 8 == SIGTRAP)
			return 0;
	}
	return -EAGAIN;
}

#if defined(__aarch64__)
/*
 * An interrupted wait with a timeout is continued by another system call
 * (restart_syscall(2)), whose number the kernel sets only when the thread resumes from
 * where it is (do_signal() in arch/arm64/kernel/signal.c). The thread therefore resumes
 * up to the entry of that call. The call is made only after @saved has been restored.
 */
static int go_to_call(pid_t tid, struct pm_ptr_regs *saved)
{
	enum {
		KEPT_BY_KERNEL = 7, /* x7: has another meaning at such a stop */
	};
	struct pm_ptr_regs regs;
	uint8_t bytes[PM_PTR_INSN_MAX];
	int ret;

	if (pm_trace_read(tid, saved->ip, bytes, pm_ptr_syscall_len) !=
		    pm_ptr_syscall_len ||
	    memcmp(bytes, pm_ptr_syscall, pm_ptr_syscall_len) != 0)
		return 0;
	ret = go_to_stop(tid, PTRACE_SYSCALL);
	if (ret == 0)
		ret = pm_ptr_regs_get(tid, &regs);
	if (ret == 0 && regs.ip != saved->ip + pm_ptr_syscall_len)
		ret = -EAGAIN;
	if (ret < 0)
		return ret;
	regs.ip = regs.user.pc = saved->ip;
	regs.user.x[KEPT_BY_KERNEL] = saved->user.x[KEPT_BY_KERNEL];
	*saved = regs;
	return pm_ptr_regs_set(tid, saved);
}
#else
static int go_to_call(pid_t tid, struct pm_ptr_regs *saved)
{
	return 0;
}
#endif

/*
 * Executes the one instruction that @regs point to, and returns the registers after it.
 * Apart from a kill, only these can intervene: the stop of a request of ours or of a
 * SIGSTOP, and the end of an execve(2) that the thread was in, which counts as a step and
 * writes the result register.
 */
static int step_instruction(pid_t tid, struct pm_ptr_regs *regs)
{
	const struct pm_ptr_regs from = *regs;
	int ret = 0;

	for (int i = 0; ret == 0 && i < STOPS_MAX; i++) {
		ret = go_to_stop(tid, PTRACE_SINGLESTEP);
		if (ret == 0)
			ret = pm_ptr_regs_get(tid, regs);
		if (ret == 0 && regs->ip != from.ip)
			return 0;
		if (ret == 0)
			ret = pm_ptr_regs_set(tid, &from);
	}
	if (ret < 0)
		return ret;
	return -EAGAIN;
}

static int call_mmap_in_thread(pid_t tid, const struct pm_ptr_regs *saved,
			       uint64_t address, uint64_t len)
{
	const uint64_t arguments[] = {
		address,
		len,
		PROT_READ | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
		UINT64_MAX,
		0,
	};
	struct pm_ptr_regs regs = *saved;
	uint64_t instruction = find_instruction(tid);
	int64_t called;
	int ret, back;

	if (instruction == 0)
		return -ENOENT;
	pm_ptr_regs_call(&regs, instruction, SYS_mmap, arguments);
	ret = pm_ptr_regs_set(tid, &regs);
	if (ret == 0)
		ret = step_instruction(tid, &regs);
	called = pm_ptr_regs_called(&regs);
	/* A kernel before 4.17 treats the address as a hint. */
	if (ret == 0 && (uint64_t)called != address) {
		if (called < 0)
			ret = (int)called;
		else
			ret = -EEXIST;
	}
	back = pm_ptr_regs_set(tid, saved);
	if (back < 0)
		return back;
	return ret;
}

int pm_ptr_map(pid_t tid, uint64_t address, uint64_t len)
{
	struct pm_ptr_regs saved;
	/* An exception with SIGTRAP blocked would kill the process
	 * (force_sig_info_to_task()). */
	uint64_t mask, blocked = ~(UINT64_C(1) << (SIGTRAP - 1));
	void *size = (void *)(uintptr_t)KERNEL_SIGSET_BYTES;
	int ret = pm_ptr_regs_get(tid, &saved);

	if (ret < 0)
		return ret;
	if (ptrace(PTRACE_GETSIGMASK, tid, size, &mask) < 0 ||
	    ptrace(PTRACE_SETSIGMASK, tid, size, &blocked) < 0)
		return -errno;
	ret = go_to_call(tid, &saved);
	if (ret == 0)
		ret = call_mmap_in_thread(tid, &saved, address, len);
	if (ptrace(PTRACE_SETSIGMASK, tid, size, &mask) < 0 && ret == 0)
		ret = -errno;
	return ret;
}
