/* SPDX-License-Identifier: MIT */
/* One step down the ladder of design.md §4. */
#include "unwind-internal.h"

#include <string.h>

/* Callee-saved by the psABI (fig. 3.4), which is what CFI means by saying nothing. */
#define CALLEE_SAVED (1u << 3 | 1u << 6 | 0xfu << 12)

const struct pm_unw_map *pm_unw_space_find(const struct pm_unw_space *space,
					   uint64_t address)
{
	size_t low = 0, high = space->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (space->maps[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || address >= space->maps[low - 1].end)
		return NULL;
	return &space->maps[low - 1];
}

/* ---- by CFI --------------------------------------------------------------------------- */

static bool apply_rule(const struct pm_unw_rule *rule, struct pm_unw_state *state,
		       enum pm_unw_stop *stop)
{
	struct pm_unw_regs *regs = &state->regs;
	uint64_t cfa, pc;

	if (!(regs->known >> rule->cfa_reg & 1)) {
		*stop = PM_UNW_STOP_NO_REGISTER;
		return false;
	}
	cfa = regs->value[rule->cfa_reg] + (uint64_t)(int64_t)rule->cfa_offset;
	if (!pm_unw_stack_u64(state->stack,
			      cfa + (uint64_t)(rule->slot[PM_UNW_SAVED_RA] * 8), &pc,
			      stop))
		return false;
	regs->known &= CALLEE_SAVED;
	for (unsigned int left = rule->saved & ((1u << PM_UNW_SAVED_RA) - 1); left > 0;
	     left &= left - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(left);
		uint8_t reg = pm_unw_saved_regs[i];
		enum pm_unw_stop lost;

		/* Only a register that is needed later makes a chain end. */
		if (pm_unw_stack_u64(state->stack, cfa + (uint64_t)(rule->slot[i] * 8),
				     &regs->value[reg], &lost))
			regs->known |= 1u << reg;
		else
			regs->known &= ~(1u << reg);
	}
	regs->value[PM_UNW_RSP] = cfa;
	regs->value[PM_UNW_RIP] = pc;
	regs->known |= 1u << PM_UNW_RSP | 1u << PM_UNW_RIP;
	state->interrupted = rule->signal;
	return true;
}

/* One register by the general form. False: it is not known in the caller. */
static bool apply_reg(const struct pm_unw_row *row, uint32_t reg,
		      const struct pm_unw_state *state, uint64_t cfa, uint64_t *ret,
		      enum pm_unw_stop *stop)
{
	const struct pm_unw_reg_rule *rule = &row->regs[reg];
	const struct pm_unw_regs *regs = &state->regs;
	struct pm_unw_expr_input input = { .expr = rule->expr,
					   .len = rule->expr_len,
					   .regs = regs,
					   .stack = state->stack,
					   .cfa = &cfa,
					   .bias = state->map->bias };
	uint32_t from = reg;

	*stop = PM_UNW_STOP_NO_REGISTER;
	switch ((enum pm_unw_rule_kind)rule->kind) {
	case PM_UNW_RULE_UNDEFINED:
		return false;
	case PM_UNW_RULE_OFFSET:
		return pm_unw_stack_u64(state->stack, cfa + (uint64_t)rule->value, ret,
					stop);
	case PM_UNW_RULE_VAL_OFFSET:
		*ret = cfa + (uint64_t)rule->value;
		return true;
	case PM_UNW_RULE_EXPRESSION:
		return pm_unw_expr_eval(&input, ret, stop) &&
		       pm_unw_stack_u64(state->stack, *ret, ret, stop);
	case PM_UNW_RULE_VAL_EXPRESSION:
		return pm_unw_expr_eval(&input, ret, stop);
	case PM_UNW_RULE_REGISTER:
		if (rule->value < 0 || rule->value >= PM_UNW_REGS)
			return false;
		from = (uint32_t)rule->value;
		break;
	case PM_UNW_RULE_UNSPECIFIED:
		if (reg == PM_UNW_RSP) {
			*ret = cfa;
			return true;
		}
		if (!(CALLEE_SAVED >> reg & 1) && reg != row->ra_reg)
			return false;
		break;
	case PM_UNW_RULE_SAME:
		break;
	}
	*ret = regs->value[from];
	return regs->known >> from & 1;
}

static bool apply_row(const struct pm_unw_row *row, struct pm_unw_state *state,
		      enum pm_unw_stop *stop)
{
	struct pm_unw_regs caller = { .known = 0 };
	struct pm_unw_expr_input input = { .expr = row->cfa_expr,
					   .len = row->cfa_expr_len,
					   .regs = &state->regs,
					   .stack = state->stack,
					   .bias = state->map->bias };
	enum pm_unw_stop ra_stop = PM_UNW_STOP_NO_REGISTER;
	uint64_t cfa;

	if (row->cfa_is_expr) {
		if (!pm_unw_expr_eval(&input, &cfa, stop))
			return false;
	} else if (state->regs.known >> row->cfa_reg & 1) {
		cfa = state->regs.value[row->cfa_reg] + (uint64_t)row->cfa_offset;
	} else {
		*stop = PM_UNW_STOP_NO_REGISTER;
		return false;
	}
	for (uint32_t reg = 0; reg < PM_UNW_REGS; reg++) {
		enum pm_unw_stop why;

		if (apply_reg(row, reg, state, cfa, &caller.value[reg], &why))
			caller.known |= 1u << reg;
		else if (reg == row->ra_reg)
			ra_stop = why;
	}
	if (!(caller.known >> row->ra_reg & 1)) {
		*stop = ra_stop;
		return false;
	}
	caller.value[PM_UNW_RIP] = caller.value[row->ra_reg];
	caller.known |= 1u << PM_UNW_RIP;
	state->regs = caller;
	state->interrupted = row->signal != 0;
	return true;
}

/* ---- without CFI ---------------------------------------------------------------------- */

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
	    !(regs->known >> PM_UNW_RSP & 1) ||
	    !pm_unw_stack_u64(state->stack, regs->value[PM_UNW_RSP], &pc, &ignored))
		return false;
	const struct pm_unw_map *to = pm_unw_space_find(state->space, pc - 1);

	if (!to || !to->module || !follows_call(state, pc))
		return false;
	regs->value[PM_UNW_RSP] += 8;
	regs->value[PM_UNW_RIP] = pc;
	regs->known &= CALLEE_SAVED | 1u << PM_UNW_RSP | 1u << PM_UNW_RIP;
	return true;
}

static bool step_fp(struct pm_unw_state *state, enum pm_unw_stop *stop)
{
	struct pm_unw_regs *regs = &state->regs;
	uint64_t fp = regs->value[PM_UNW_RBP];
	uint64_t caller_fp, pc;

	*stop = PM_UNW_STOP_NO_CFI;
	if (!(regs->known >> PM_UNW_RBP & 1) || !(regs->known >> PM_UNW_RSP & 1) ||
	    fp < regs->value[PM_UNW_RSP] || fp % 8 != 0 ||
	    fp - regs->value[PM_UNW_RSP] >= PM_UNW_STACK_SPAN_MAX)
		return false;
	if (!pm_unw_stack_u64(state->stack, fp, &caller_fp, stop) ||
	    !pm_unw_stack_u64(state->stack, fp + 8, &pc, stop))
		return false;
	if (pc != 0 && !follows_call(state, pc)) {
		*stop = PM_UNW_STOP_NO_CFI;
		return false;
	}
	regs->value[PM_UNW_RBP] = caller_fp;
	regs->value[PM_UNW_RSP] = fp + 16;
	regs->value[PM_UNW_RIP] = pc;
	regs->known = 1u << PM_UNW_RBP | 1u << PM_UNW_RSP | 1u << PM_UNW_RIP;
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
	static const uint8_t order[PM_UNW_REGS] = { 8, 9, 10, 11, 12, 13, 14, 15, 5,
						    4, 6, 3,  1,  0,  2,  7,  16 };
	uint64_t at = state->regs.value[PM_UNW_RSP] + 40;
	uint8_t bytes[sizeof(code)];
	struct pm_unw_regs caller = { .known = (1u << PM_UNW_REGS) - 1 };
	enum pm_unw_stop ignored;

	if (!state->map || !state->map->module || !(state->regs.known >> PM_UNW_RSP & 1))
		return false;
	/* The return address is its first byte, and the look-up is one before. */
	if (!pm_unw_module_read(state->map->module,
				state->regs.value[PM_UNW_RIP] - state->map->bias, bytes,
				sizeof(bytes)) ||
	    memcmp(bytes, code, sizeof(code)) != 0)
		return false;
	for (size_t i = 0; i < PM_UNW_REGS; i++)
		if (!pm_unw_stack_u64(state->stack, at + i * 8, &caller.value[order[i]],
				      &ignored))
			return false;
	state->regs = caller;
	state->interrupted = true;
	return true;
}

static bool step_without_cfi(struct pm_unw_state *state, enum pm_unw_how *how,
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

bool pm_unw_step(struct pm_unwinder *unwinder, struct pm_unw_state *state,
		 enum pm_unw_how *how, enum pm_unw_stop *stop)
{
	const struct pm_unw_map *map = state->map;
	struct pm_unw_lookup lookup;

	if (!map || !map->module)
		return step_without_cfi(state, how, stop);
	lookup = pm_unw_rule_find(unwinder, map->module, state->lookup - map->bias);
	*how = PM_UNW_HOW_CFI;
	switch (lookup.found) {
	case PM_UNW_FOUND_RULE:
		return apply_rule(&unwinder->rules.data[lookup.index], state, stop);
	case PM_UNW_FOUND_ROW:
		unwinder->stats.expressions++;
		return apply_row(&unwinder->rows.data[lookup.index], state, stop);
	case PM_UNW_FOUND_ROOT:
		*stop = PM_UNW_STOP_ROOT;
		return false;
	case PM_UNW_FOUND_BAD_CFI:
		*stop = PM_UNW_STOP_BAD_CFI;
		return false;
	case PM_UNW_FOUND_NO_CFI:
		break;
	}
	if (pm_unw_module_is_entry(map->module, state->lookup - map->bias)) {
		*stop = PM_UNW_STOP_ROOT;
		return false;
	}
	return step_without_cfi(state, how, stop);
}
