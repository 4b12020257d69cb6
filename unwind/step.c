/* SPDX-License-Identifier: MIT */
/* One step to the caller by CFI. */
#include "unwind-internal.h"

#include <string.h>

/*
 * Removes the authentication code if CFI says that there is one. Assembly often omits
 * that; the code is therefore also removed if the address without its upper bits follows
 * a call. Any other address is not a return address.
 */
static uint64_t strip_pac(const struct pm_unw_state *state, uint64_t pc, bool is_signed)
{
	uint64_t stripped = pm_unw_strip_pac(state->space, pc);

	if (stripped == pc || is_signed || pm_unw_follows_call(state, stripped))
		return stripped;
	return pc;
}

/* ---- by CFI --------------------------------------------------------------------------- */

static uint64_t address_of_slot(const struct pm_unw_rule *rule, unsigned int slot,
				uint64_t cfa, const struct pm_unw_arch_info *arch)
{
	return cfa + (uint64_t)(rule->slot[slot] * arch->word_bytes);
}

static bool step_by_rule(const struct pm_unw_rule *rule, struct pm_unw_state *state,
			 enum pm_unw_stop *stop)
{
	const struct pm_unw_arch_info *arch = state->arch;
	struct pm_unw_regs *regs = &state->regs;
	unsigned int ra = arch->saved_len - 1u;
	uint64_t cfa, pc;

	if (!(regs->known >> rule->cfa_reg & 1)) {
		*stop = PM_UNW_STOP_NO_REGISTER;
		return false;
	}
	cfa = (regs->value[rule->cfa_reg] + (uint64_t)(int64_t)rule->cfa_offset) &
	      arch->address_mask;
	if (rule->saved >> ra & 1) {
		if (!pm_unw_stack_word(arch, state->stack,
				       address_of_slot(rule, ra, cfa, arch), &pc, stop))
			return false;
	} else if (regs->known >> arch->ra & 1) {
		pc = regs->value[arch->ra];
	} else {
		*stop = PM_UNW_STOP_NO_REGISTER;
		return false;
	}
	if (arch->ra_is_link)
		pc = strip_pac(state, pc, rule->saved & PM_UNW_RULE_RA_SIGNED);
	regs->known &= arch->callee_saved;
	for (unsigned int left = rule->saved & ((1u << ra) - 1); left > 0;
	     left &= left - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(left);
		uint8_t reg = arch->saved[i];
		enum pm_unw_stop lost;

		/* The chain ends only if a later step needs this register. */
		if (pm_unw_stack_word(arch, state->stack,
				      address_of_slot(rule, i, cfa, arch),
				      &regs->value[reg], &lost))
			regs->known |= (uint64_t)1 << reg;
		else
			regs->known &= ~((uint64_t)1 << reg);
	}
	regs->value[arch->sp] = cfa;
	regs->value[arch->pc] = pc;
	regs->known |= (uint64_t)1 << arch->sp | (uint64_t)1 << arch->pc;
	state->interrupted = rule->signal;
	return true;
}

/*
 * If gcc realigns a stack, its CFI locates saved registers relative to rbp. It keeps
 * doing so after the pops of an epilogue, where rbp is the caller's. The rules then name
 * places outside of this frame or below its stack pointer, and the register itself holds
 * the right value. After a call nothing can have been popped. Signal frames may name
 * places on any stack.
 */
static bool is_reg_popped(const struct pm_unw_row *row, uint32_t reg,
			  const struct pm_unw_state *state, uint64_t cfa, uint64_t place)
{
	const struct pm_unw_arch_info *arch = state->arch;
	uint64_t sp = state->regs.value[arch->sp];

	return state->lookup == state->regs.value[arch->pc] && !row->signal &&
	       (arch->callee_saved >> reg & 1) && (state->regs.known >> arch->sp & 1) &&
	       cfa > sp && place - sp >= cfa - sp;
}

/* Applies the general rule of one register. False: it is not known in the caller. */
static bool step_reg_by_row(const struct pm_unw_row *row, uint32_t reg,
			    const struct pm_unw_state *state, uint64_t cfa, uint64_t *out,
			    enum pm_unw_stop *stop)
{
	const struct pm_unw_reg_rule *rule = &row->regs[reg];
	const struct pm_unw_regs *regs = &state->regs;
	struct pm_unw_expr_input input = { .expr = rule->expr,
					   .len = rule->expr_len,
					   .regs = regs,
					   .stack = state->stack,
					   .cfa = &cfa,
					   .bias = state->map->bias,
					   .work_left = state->work_left };
	uint32_t from = reg;

	*stop = PM_UNW_STOP_NO_REGISTER;
	switch ((enum pm_unw_rule_kind)rule->kind) {
	case PM_UNW_RULE_UNDEFINED:
		return false;
	case PM_UNW_RULE_OFFSET:
		return pm_unw_stack_word(state->arch, state->stack,
					 cfa + (uint64_t)rule->value, out, stop);
	case PM_UNW_RULE_VAL_OFFSET:
		*out = (cfa + (uint64_t)rule->value) & state->arch->address_mask;
		return true;
	case PM_UNW_RULE_EXPRESSION:
		if (!pm_unw_expr_eval(&input, out, stop))
			return false;
		if (is_reg_popped(row, reg, state, cfa, *out))
			break;
		return pm_unw_stack_word(state->arch, state->stack, *out, out, stop);
	case PM_UNW_RULE_VAL_EXPRESSION:
		return pm_unw_expr_eval(&input, out, stop);
	case PM_UNW_RULE_REGISTER:
		if (rule->value < 0 || rule->value >= state->arch->regs)
			return false;
		from = (uint32_t)rule->value;
		break;
	case PM_UNW_RULE_UNSPECIFIED:
		if (reg == state->arch->sp) {
			*out = cfa;
			return true;
		}
		if (!(state->arch->callee_saved >> reg & 1) && reg != row->ra_reg)
			return false;
		break;
	case PM_UNW_RULE_SAME:
		break;
	}
	*out = regs->value[from];
	return regs->known >> from & 1;
}

/*
 * Whether the return address would be the pc itself: it has no rule, and there is no link
 * register. Such a row would yield this place again for as long as the stack has room.
 */
static bool does_row_return_here(const struct pm_unw_row *row,
				 const struct pm_unw_arch_info *arch)
{
	const struct pm_unw_reg_rule *rule = &row->regs[row->ra_reg];

	if (rule->kind == PM_UNW_RULE_REGISTER)
		return rule->value == arch->pc;
	return (rule->kind == PM_UNW_RULE_UNSPECIFIED ||
		rule->kind == PM_UNW_RULE_SAME) &&
	       row->ra_reg == arch->pc;
}

static bool find_cfa_of_row(const struct pm_unw_row *row,
			    const struct pm_unw_state *state, uint64_t *out,
			    enum pm_unw_stop *stop)
{
	struct pm_unw_expr_input input = { .expr = row->cfa_expr,
					   .len = row->cfa_expr_len,
					   .regs = &state->regs,
					   .stack = state->stack,
					   .bias = state->map->bias,
					   .work_left = state->work_left };

	if (row->cfa_is_expr)
		return pm_unw_expr_eval(&input, out, stop);
	*stop = PM_UNW_STOP_NO_REGISTER;
	*out = (state->regs.value[row->cfa_reg] + (uint64_t)row->cfa_offset) &
	       state->arch->address_mask;
	return state->regs.known >> row->cfa_reg & 1;
}

bool pm_unw_apply_row(const struct pm_unw_row *row, struct pm_unw_state *state,
		      enum pm_unw_stop *stop)
{
	struct pm_unw_regs caller = { .arch = state->regs.arch };
	enum pm_unw_stop ra_stop = PM_UNW_STOP_NO_REGISTER;
	uint64_t cfa, pc;

	pm_unw_take_work(state->work_left, PM_UNW_COST_ROW);
	*stop = PM_UNW_STOP_BAD_CFI;
	if (does_row_return_here(row, state->arch) ||
	    !find_cfa_of_row(row, state, &cfa, stop))
		return false;
	for (uint32_t reg = 0; reg < state->arch->regs; reg++) {
		enum pm_unw_stop why;

		if (step_reg_by_row(row, reg, state, cfa, &caller.value[reg], &why))
			caller.known |= (uint64_t)1 << reg;
		else if (reg == row->ra_reg)
			ra_stop = why;
	}
	/* The registers may be unknown only because the work ran out. */
	if (state->work_left && *state->work_left == 0) {
		*stop = PM_UNW_STOP_WORK_LIMIT;
		return false;
	}
	if (!(caller.known >> row->ra_reg & 1)) {
		*stop = ra_stop;
		return false;
	}
	pc = caller.value[row->ra_reg];
	if (state->arch->ra_is_link && !row->signal) {
		pc = strip_pac(state, pc, row->ra_signed);
		/* The call has overwritten it with the return address. Its own caller had
		 * to save the value from before. */
		caller.known &= ~((uint64_t)1 << state->arch->ra);
	}
	caller.value[state->arch->pc] = pc;
	caller.known |= (uint64_t)1 << state->arch->pc;
	state->regs = caller;
	state->interrupted = row->signal != 0;
	return true;
}

/*
 * Hand-written code may compute its CFA from a register that calls may change, which
 * compilers never do across a call. OpenSSL's AES uses r11, which its subroutines keep
 * without saying so. The register's value in the inner frame is as good as a frame
 * pointer if the return address that it leads to follows a call.
 */
static bool assume_regs_kept(const struct pm_unw_rule *rule, struct pm_unw_state *state)
{
	const struct pm_unw_arch_info *arch = state->arch;
	struct pm_unw_regs *regs = &state->regs;
	uint64_t sp = regs->value[arch->sp], cfa, pc;
	unsigned int ra = arch->saved_len - 1u;
	enum pm_unw_stop ignored;

	if (arch->ra_is_link || state->lookup == regs->value[arch->pc] ||
	    !(regs->known >> arch->sp & 1) || (regs->known >> rule->cfa_reg & 1) ||
	    (arch->callee_saved >> rule->cfa_reg & 1) || !(rule->saved >> ra & 1))
		return false;
	cfa = (regs->value[rule->cfa_reg] + (uint64_t)(int64_t)rule->cfa_offset) &
	      arch->address_mask;
	if (cfa <= sp || cfa - sp >= PM_UNW_STACK_SPAN_MAX ||
	    !pm_unw_stack_word(arch, state->stack, address_of_slot(rule, ra, cfa, arch),
			       &pc, &ignored) ||
	    !pm_unw_follows_call(state, pc))
		return false;
	regs->known |= (uint64_t)1 << rule->cfa_reg;
	return true;
}

/* Applies rules.data[index] or rows.data[index], whichever @lookup has found. */
static bool step_by_lookup(struct pm_unwinder *unwinder, struct pm_unw_lookup lookup,
			   struct pm_unw_state *state, enum pm_unw_how *how,
			   enum pm_unw_stop *stop)
{
	bool is_row = lookup.found == PM_UNW_FOUND_ROW;
	const struct pm_unw_rule *rule =
		is_row ? NULL : &unwinder->rules.data[lookup.index];
	const struct pm_unw_row *row = is_row ? &unwinder->rows.data[lookup.index] : NULL;
	enum pm_unw_stop why;

	/* Before Linux 5.8, the CFI of arm64's vDSO led to the caller of the interrupted
	 * function: the frame that it describes holds its x30, and not its pc. */
	if (state->arch->ra_is_link && (is_row ? row->signal : rule->signal) &&
	    pm_unw_step_trampoline(state)) {
		*how = PM_UNW_HOW_TRAMPOLINE;
		return true;
	}
	unwinder->stats.expressions += is_row;
	if (!is_row && (rule->saved & PM_UNW_RULE_GO))
		*how = PM_UNW_HOW_GO;
	if (is_row ? pm_unw_apply_row(row, state, stop) : step_by_rule(rule, state, stop))
		return true;
	if (*how == PM_UNW_HOW_GO && rule->cfa_reg == state->arch->fp) {
		*stop = PM_UNW_STOP_OTHER_STACK;
		return false;
	}
	if (*stop == PM_UNW_STOP_NO_REGISTER && !is_row &&
	    assume_regs_kept(rule, state)) {
		*how = PM_UNW_HOW_FP;
		return step_by_rule(rule, state, stop);
	}
	/* On aarch64, the stack pointer is unknown after a step by frame pointer. */
	if (*stop != PM_UNW_STOP_NO_REGISTER || !state->arch->ra_is_link)
		return false;
	if (pm_unw_step_without_cfi(state, how, &why))
		return true;
	if (why != PM_UNW_STOP_NO_CFI)
		*stop = why;
	return false;
}

bool pm_unw_step(struct pm_unwinder *unwinder, struct pm_unw_state *state,
		 enum pm_unw_how *how, enum pm_unw_stop *stop)
{
	const struct pm_unw_map *map = state->map;

	if (!pm_unw_map_has_cfi(map, state->regs.arch))
		return pm_unw_step_without_cfi(state, how, stop);
	return pm_unw_step_by(
		unwinder,
		pm_unw_rule_find(unwinder, map->module, state->lookup - map->bias), state,
		how, stop);
}

bool pm_unw_step_by(struct pm_unwinder *unwinder, struct pm_unw_lookup found,
		    struct pm_unw_state *state, enum pm_unw_how *how,
		    enum pm_unw_stop *stop)
{
	pm_unw_take_work(state->work_left, PM_UNW_COST_STEP);
	*how = PM_UNW_HOW_CFI;
	if ((found.found == PM_UNW_FOUND_NO_CFI || found.is_last) &&
	    pm_unw_is_uncalled(state)) {
		state->uncalled = true;
		*stop = PM_UNW_STOP_ROOT;
		return false;
	}
	switch (found.found) {
	case PM_UNW_FOUND_RULE:
	case PM_UNW_FOUND_ROW:
		return step_by_lookup(unwinder, found, state, how, stop);
	case PM_UNW_FOUND_ROOT:
		*stop = PM_UNW_STOP_ROOT;
		return false;
	case PM_UNW_FOUND_OTHER_STACK:
		*stop = PM_UNW_STOP_OTHER_STACK;
		return false;
	case PM_UNW_FOUND_BAD_CFI:
		*stop = PM_UNW_STOP_BAD_CFI;
		return false;
	case PM_UNW_FOUND_TOO_LARGE:
		*stop = PM_UNW_STOP_TABLE_TOO_LARGE;
		return false;
	case PM_UNW_FOUND_PENDING:
		*stop = PM_UNW_STOP_TABLE_PENDING;
		return false;
	case PM_UNW_FOUND_NO_CFI:
		break;
	}
	if (found.index & PM_UNW_OFF_TRAMPOLINE)
		return pm_unw_step_off_trampoline(state, how, stop);
	return pm_unw_step_without_cfi(state, how, stop);
}
