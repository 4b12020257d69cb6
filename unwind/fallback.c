/* SPDX-License-Identifier: MIT */
/* The steps of the ladder of design.md §4 below CFI. */
#include "unwind-internal.h"

#include <string.h>

/*
 * Whether a call instruction ends right before @address: `call rel32`, or an indirect call
 * (opcode FF /2) of any length. Memory without a file cannot be read: benefit of the doubt.
 */
static bool follows_call(const struct pm_unw_state *state, uint64_t address)
{
	enum {
		LONGEST = 7
	};
	const struct pm_unw_map *map = pm_unw_space_find(state->space, address - 1);
	uint8_t code[LONGEST];

	if (!map)
		return false;
	if (!map->module)
		return true;
	if (!pm_unw_module_read(map->module, address - map->bias - LONGEST, code,
				LONGEST))
		return false;
	if (code[LONGEST - 5] == 0xe8)
		return true;
	for (size_t len = 2; len <= LONGEST; len++) {
		uint8_t modrm = code[LONGEST - len + 1];
		uint8_t mod = modrm >> 6, rm = modrm & 7;
		size_t want = 2;

		if (code[LONGEST - len] != 0xff || (modrm >> 3 & 7) != 2)
			continue;
		if (mod != 3 && rm == 4) {
			if (len == 2)
				continue; /* a SIB byte has to follow */
			want++;
		}
		/* A base of 5 is none with mod 0: a table of absolute addresses. */
		if (mod == 1)
			want += 1;
		else if (mod == 2 || (mod == 0 && rm == 5) ||
			 (mod == 0 && rm == 4 && (code[LONGEST - len + 2] & 7) == 5))
			want += 4;
		if (len == want)
			return true;
	}
	return false;
}

/* The return address may still be on top: a function that has not pushed anything. */
static bool step_leaf(struct pm_unw_state *state)
{
	struct pm_unw_regs *regs = &state->regs;
	enum pm_unw_stop ignored;
	uint64_t pc;

	/* In generated code the top of the stack is mostly something else, and it cannot be
	 * looked at to find out. */
	if (!state->first || (state->map && !state->map->module) ||
	    !(regs->known >> PM_UNW_X86_64_RSP & 1) ||
	    !pm_unw_stack_u64(state->stack, regs->value[PM_UNW_X86_64_RSP], &pc,
			      &ignored))
		return false;
	const struct pm_unw_map *to = pm_unw_space_find(state->space, pc - 1);

	if (!to || !to->module || !follows_call(state, pc))
		return false;
	regs->value[PM_UNW_X86_64_RSP] += 8;
	regs->value[PM_UNW_X86_64_RIP] = pc;
	regs->known &= state->arch->callee_saved | 1u << PM_UNW_X86_64_RSP |
		       1u << PM_UNW_X86_64_RIP;
	return true;
}

static bool step_fp(struct pm_unw_state *state, enum pm_unw_stop *stop)
{
	struct pm_unw_regs *regs = &state->regs;
	uint64_t fp = regs->value[PM_UNW_X86_64_RBP];
	uint64_t caller_fp, pc;

	*stop = PM_UNW_STOP_NO_CFI;
	if (!(regs->known >> PM_UNW_X86_64_RBP & 1) ||
	    !(regs->known >> PM_UNW_X86_64_RSP & 1) ||
	    fp < regs->value[PM_UNW_X86_64_RSP] || fp % 8 != 0 ||
	    fp - regs->value[PM_UNW_X86_64_RSP] >= PM_UNW_STACK_SPAN_MAX)
		return false;
	if (!pm_unw_stack_u64(state->stack, fp, &caller_fp, stop) ||
	    !pm_unw_stack_u64(state->stack, fp + 8, &pc, stop))
		return false;
	if (pc != 0 && !follows_call(state, pc)) {
		*stop = PM_UNW_STOP_NO_CFI;
		return false;
	}
	regs->value[PM_UNW_X86_64_RBP] = caller_fp;
	regs->value[PM_UNW_X86_64_RSP] = fp + 16;
	regs->value[PM_UNW_X86_64_RIP] = pc;
	regs->known = 1u << PM_UNW_X86_64_RBP | 1u << PM_UNW_X86_64_RSP |
		      1u << PM_UNW_X86_64_RIP;
	return true;
}

/*
 * Signal trampolines without CFI, as musl's __restore_rt: `mov $15,%rax; syscall`. The stack
 * pointer is at the ucontext_t of the kernel's struct rt_sigframe (arch/x86 sigframe.h), whose
 * sigcontext begins at 40 with r8…r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip.
 */
static bool step_trampoline(struct pm_unw_state *state)
{
	static const uint8_t code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t order[PM_UNW_X86_64_REGS] = { 8,  9,  10, 11, 12, 13,
							   14, 15, 5,  4,  6,  3,
							   1,  0,  2,  7,  16 };
	uint64_t at = state->regs.value[PM_UNW_X86_64_RSP] + 40;
	uint8_t bytes[sizeof(code)];
	struct pm_unw_regs caller = { .known = (1u << PM_UNW_X86_64_REGS) - 1,
				      .arch = PM_UNW_X86_64 };
	enum pm_unw_stop ignored;

	if (!state->map || !state->map->module ||
	    !(state->regs.known >> PM_UNW_X86_64_RSP & 1))
		return false;
	/* The return address is its first byte, and the look-up is one before. */
	if (!pm_unw_module_read(state->map->module,
				state->regs.value[PM_UNW_X86_64_RIP] - state->map->bias,
				bytes, sizeof(bytes)) ||
	    memcmp(bytes, code, sizeof(code)) != 0)
		return false;
	for (size_t i = 0; i < PM_UNW_X86_64_REGS; i++)
		if (!pm_unw_stack_u64(state->stack, at + i * 8, &caller.value[order[i]],
				      &ignored))
			return false;
	state->regs = caller;
	state->interrupted = true;
	return true;
}

bool pm_unw_step_without_cfi(struct pm_unw_state *state, enum pm_unw_how *how,
			     enum pm_unw_stop *stop)
{
	state->interrupted = false;
	*how = PM_UNW_HOW_TRAMPOLINE;
	if (step_trampoline(state))
		return true;
	*how = PM_UNW_HOW_LEAF;
	if (step_leaf(state))
		return true;
	*how = PM_UNW_HOW_FP;
	return step_fp(state, stop);
}
