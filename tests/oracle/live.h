/* SPDX-License-Identifier: MIT */
/* For tests that look at ptrace-stopped threads: the contents that a sample would
 * have. */
#pragma once

#include "pm/unwind.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

enum {
	LIVE_PAGE_BYTES = 4096,
	LIVE_STACK_PAGES = 256,
	LIVE_STACK_BYTES = LIVE_STACK_PAGES * LIVE_PAGE_BYTES,
#if defined(__aarch64__)
	LIVE_SP = 31, /* the stack pointer's DWARF number */
#else
	LIVE_SP = PM_UNW_X86_64_RSP,
#endif
};

static inline bool live_regs(pid_t tid, struct pm_unw_regs *ret)
{
	struct user_regs_struct user;
	struct iovec iov = { &user, sizeof(user) };

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov) != 0)
		return false;
#if defined(__aarch64__)
	/* AADWARF64 §4.1: x0 to x30, sp, pc; the order in memory is the same. */
	*ret = (struct pm_unw_regs){ .arch = PM_UNW_AARCH64,
				     .known = (UINT64_C(1) << PM_UNW_REGS_MAX) - 1 };
	for (size_t i = 0; i < LIVE_SP; i++)
		ret->value[i] = user.regs[i];
	ret->value[LIVE_SP] = user.sp;
	ret->value[LIVE_SP + 1] = user.pc;
#else
	/* psABI x86-64 figure 3.36 */
	*ret = (struct pm_unw_regs){
		.value = { user.rax, user.rdx, user.rcx, user.rbx, user.rsi, user.rdi,
			   user.rbp, user.rsp, user.r8, user.r9, user.r10, user.r11,
			   user.r12, user.r13, user.r14, user.r15, user.rip },
		.known = (1U << PM_UNW_X86_64_REGS) - 1,
	};
#endif
	return true;
}

static inline void live_code(pid_t pid, uint64_t pc, uint8_t *ret, size_t len)
{
	struct iovec local = { ret, len };
	struct iovec remote = { (void *)pc, len };

	/* There may be fewer bytes at the end of a mapping: the missing ones stay
	 * unchanged. */
	while (remote.iov_len > 0 && process_vm_readv(pid, &local, 1, &remote, 1, 0) <= 0)
		remote.iov_len--;
}

/* Copies upward from @sp, at most LIVE_STACK_BYTES; 0 if nothing is mapped there. */
static inline size_t live_stack(pid_t pid, uint64_t sp, uint8_t *ret)
{
	struct iovec local = { ret, LIVE_STACK_BYTES };
	struct iovec remote[LIVE_STACK_PAGES];
	uint64_t at = sp;
	ssize_t got;

	/* One part for each page: process_vm_readv(2) ends at the first missing part. */
	for (size_t i = 0; i < LIVE_STACK_PAGES; i++) {
		uint64_t next = (at + LIVE_PAGE_BYTES) & ~(uint64_t)(LIVE_PAGE_BYTES - 1);

		remote[i] = (struct iovec){ (void *)at, next - at };
		at = next;
	}
	got = process_vm_readv(pid, &local, 1, remote, LIVE_STACK_PAGES, 0);
	return got > 0 ? (size_t)got : 0;
}
