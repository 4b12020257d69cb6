/* SPDX-License-Identifier: MIT */
/* One step to the caller: by CFI, or else by one of several methods in order of
 * reliability. */
#include "unwind-parts.h"

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

		/* A missing word ends the chain only if a later step needs this
		 * register. */
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
 * If gcc realigns a stack, its CFI locates saved registers relative to rbp. It still does
 * after the pops of an epilogue, where rbp is already the caller's. The rules then name
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

/* Applies the general rule of one register. Returns false if the register is unknown in
 * the caller. */
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
 * Whether the return address would be the pc itself, because it has no rule and there is
 * no link register. Such a row would yield the same frame again for as long as the stack
 * has room.
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

/* Moves state->regs to the caller as @row says. Returns false and sets @stop if it
 * cannot. */
static bool step_by_row(const struct pm_unw_row *row, struct pm_unw_state *state,
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
	/* The registers may be unknown only because there was no work left. */
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
		/* The call has overwritten the link register with the return address. The
		 * caller had to save its previous value. */
		caller.known &= ~((uint64_t)1 << state->arch->ra);
	}
	caller.value[state->arch->pc] = pc;
	caller.known |= (uint64_t)1 << state->arch->pc;
	state->regs = caller;
	state->interrupted = row->signal != 0;
	return true;
}

/* ---- below CFI ------------------------------------------------------------------------- */

/* Leaf functions, the code up to the `ret`, frame pointers, and outermost frames. */

/* The state of x30, as far as the code around the pc shows it. */
enum a64_link {
	A64_LINK_LIVE, /* it is the return address, and sp has not been moved */
	A64_LINK_PUSHED, /* it is the return address, but sp has been moved */
	A64_LINK_PAIRED, /* it is the return address; the first entry of a PLT has pushed
	                  * 16 bytes */
	A64_LINK_SAVED, /* there is a frame record, or another call has overwritten x30 */
};

/* Finds the state of x30 after instruction @code. Returns false if @code does not show
 * it. */
static bool a64_link_after(uint32_t code, enum a64_link *out)
{
	if (pm_unw_a64_is_call(code) || (code & 0xff8003ff) == 0x910003fd)
		*out = A64_LINK_SAVED; /* add x29, sp, #n */
	else if (code == 0xa9bf7bf0) /* stp x16, x30, [sp, #-16]! */
		*out = A64_LINK_PAIRED;
	else if ((code & 0xffc07fff) == 0xa9807bfd || /* stp x29, x30, [sp, #n]! */
		 (code & 0xffc07fff) == 0xa9007bfd || /* stp x29, x30, [sp, #n] */
		 (code & 0xffe00fff) == 0xf8000ffe || /* str x30, [sp, #n]! */
		 (code & 0xff8003ff) == 0xd10003ff || /* sub sp, sp, #n */
		 (code & 0xffe0ffff) == 0xcb2063ff || /* sub sp, sp, xN */
		 (code & 0xffc07fff) == 0xa9407bfd || /* ldp x29, x30, [sp, #n] */
		 (code & 0xffc003ff) == 0xf94003fe) /* ldr x30, [sp, #n] */
		*out = A64_LINK_PUSHED;
	else if ((code & 0xffc07fff) == 0xa8c07bfd || /* ldp x29, x30, [sp], #n */
		 (code & 0xffe00fff) == 0xf84007fe || /* ldr x30, [sp], #n */
		 code == 0xd65f03c0 || code == 0xd65f0bff || code == 0xd65f0fff ||
		 code == 0xd503233f || code == 0xd503237f || code == 0xd503245f ||
		 code == 0xd61f0220)
		*out = A64_LINK_LIVE; /* ret, retaa, retab, paciasp, pacibsp, bti c, br x17 */
	else
		return false;
	return true;
}

/* Whether a function starts with this instruction. If it is the next one to run, there is
 * no frame yet. */
static bool does_a64_function_start(uint32_t code)
{
	return code == 0xd503233f || code == 0xd503237f || code == 0xd503245f ||
	       code == 0xa9bf7bf0 || (code & 0xffc07fff) == 0xa9807bfd ||
	       (code & 0xff8003ff) == 0xd10003ff;
}

static enum a64_link find_a64_link_state(const struct pm_unw_state *state)
{
	enum {
		INSTRUCTIONS_MAX = 64 /* searched backward for one that shows it */
	};
	uint64_t pc = state->regs.value[state->arch->pc];
	enum a64_link link = A64_LINK_LIVE;
	uint32_t code;

	if (pm_unw_map_read_code(state->map, pc, &code, 4) &&
	    does_a64_function_start(code))
		return A64_LINK_LIVE;
	for (uint64_t i = 1; i <= INSTRUCTIONS_MAX; i++)
		if (!pm_unw_map_read_code(state->map, pc - i * 4, &code, 4) ||
		    a64_link_after(code, &link))
			break;
	return link;
}

static bool is_address_after_call(const struct pm_unw_state *state, uint64_t address)
{
	return pm_unw_is_return(state->unwinder, state->regs.arch, state->space,
				pm_unw_space_find(state->space, address - 1), address);
}

/*
 * Whether @address can be the return address of the interrupted code, which has not saved
 * it. For generated code, a mapped address is enough; but if the code can be read, a call
 * must precede it.
 */
static bool is_return_of_leaf(const struct pm_unw_state *state, uint64_t address)
{
	const struct pm_unw_map *map = pm_unw_space_find(state->space, address - 1);
	uint8_t code[PM_UNW_X86_CALL_BYTES_MAX];

	if (map && !map->module &&
	    pm_unw_read_code(state->space, address - sizeof(code), code, sizeof(code)))
		return pm_unw_x86_ends_with_call(code, sizeof(code));
	return is_address_after_call(state, address);
}

static bool step_by_exit_row(struct pm_unw_state *state, const struct pm_unw_row *row)
{
	struct pm_unw_state caller = *state;
	enum pm_unw_stop ignored;

	if (!step_by_row(row, &caller, &ignored) ||
	    caller.regs.value[state->arch->sp] <= state->regs.value[state->arch->sp] ||
	    !is_return_of_leaf(state, caller.regs.value[state->arch->pc]))
		return false;
	state->regs = caller.regs;
	return true;
}

/*
 * Leaves a function that has not saved its return address (yet): that is on top of the
 * stack or in the link register.
 */
static bool step_leaf_function(struct pm_unw_state *state)
{
	const struct pm_unw_arch_info *arch = state->arch;
	struct pm_unw_regs *regs = &state->regs;
	uint64_t sp = regs->value[arch->sp], pc;
	enum a64_link link = A64_LINK_LIVE;
	const struct pm_unw_map *to;
	enum pm_unw_stop ignored;
	struct pm_unw_row row;

	if (!state->first || !(regs->known >> arch->sp & 1))
		return false;
	if (regs->arch == PM_UNW_X86_64 && state->map) {
		switch (pm_unw_exit_find(state, &row)) {
		case PM_UNW_EXIT_BY_ROW:
			return step_by_exit_row(state, &row);
		case PM_UNW_EXIT_BY_FP:
		case PM_UNW_EXIT_ELSEWHERE:
			return false;
		case PM_UNW_EXIT_UNKNOWN:
			break;
		}
	}
	/* In generated code, the top of the stack usually is not the return address. */
	if (state->map && !state->map->module)
		return false;
	if (arch->ra_is_link) {
		link = find_a64_link_state(state);
		if (!(regs->known >> arch->ra & 1) || link == A64_LINK_SAVED)
			return false;
		pc = pm_unw_strip_pac(state->space, regs->value[arch->ra]);
	} else {
		if (!pm_unw_stack_word(arch, state->stack, sp, &pc, &ignored))
			return false;
		sp = (sp + arch->word_bytes) & arch->address_mask;
	}
	to = pm_unw_space_find(state->space, pc - 1);
	if (!to || !to->module || !is_address_after_call(state, pc))
		return false;
	if (link == A64_LINK_PAIRED)
		regs->value[arch->sp] = sp + PM_UNW_PAIR_BYTES;
	else
		regs->value[arch->sp] = sp;
	regs->value[arch->pc] = pc;
	regs->known &= arch->callee_saved;
	regs->known |= (uint64_t)1 << arch->pc;
	if (link != A64_LINK_PUSHED)
		regs->known |= (uint64_t)1 << arch->sp;
	return true;
}

/*
 * The same for a caller. Only for code of a file: generated code has frame pointers, and
 * its calls need not return to the code after them.
 */
static bool step_by_exit_code(struct pm_unw_state *state)
{
	struct pm_unw_row row;

	return state->regs.arch == PM_UNW_X86_64 &&
	       state->lookup + 1 == state->regs.value[state->arch->pc] &&
	       pm_unw_map_has_cfi(state->map, state->regs.arch) &&
	       (state->regs.known >> state->arch->sp & 1) &&
	       pm_unw_exit_find(state, &row) == PM_UNW_EXIT_BY_ROW &&
	       step_by_exit_row(state, &row);
}

/* Whether the callers are on another stack than the one that the stack pointer points
 * at. */
static bool is_caller_on_other_stack(const struct pm_unw_state *state)
{
	struct pm_unw_row row;

	return state->regs.arch == PM_UNW_X86_64 &&
	       pm_unw_map_has_cfi(state->map, state->regs.arch) &&
	       pm_unw_exit_find(state, &row) == PM_UNW_EXIT_ELSEWHERE;
}

/* Uses the pair of words at the frame pointer: the caller's frame pointer and the return
 * address. */
static bool step_frame_pointer(struct pm_unw_state *state, enum pm_unw_stop *stop)
{
	const struct pm_unw_arch_info *arch = state->arch;
	struct pm_unw_regs *regs = &state->regs;
	uint64_t fp = regs->value[arch->fp], sp = regs->value[arch->sp];
	uint64_t caller_fp, pc;

	*stop = PM_UNW_STOP_NO_CFI;
	if (!(regs->known >> arch->fp & 1) ||
	    !(regs->known >> arch->sp & 1 || (arch->ra_is_link && !state->first)) ||
	    fp < sp || fp % arch->word_bytes != 0 || fp - sp >= PM_UNW_STACK_SPAN_MAX)
		return false;
	if (!pm_unw_stack_word(arch, state->stack, fp, &caller_fp, stop) ||
	    !pm_unw_stack_word(arch, state->stack, fp + arch->word_bytes, &pc, stop))
		return false;
	if (arch->ra_is_link)
		pc = pm_unw_strip_pac(state->space, pc);
	/* Zeros end a chain of frame pointers. But if the register holds something else,
	 * it may point to any zeros. For generated code, no other method is better than
	 * the frame pointer. */
	if (pc == 0 ? caller_fp != 0 || !state->map ||
			      (state->map->module && state->how != PM_UNW_HOW_FP)
		    : !is_address_after_call(state, pc)) {
		*stop = PM_UNW_STOP_NO_CFI;
		return false;
	}
	regs->value[arch->fp] = caller_fp;
	regs->value[arch->sp] = fp + 2 * arch->word_bytes;
	regs->value[arch->pc] = pc;
	regs->known = (uint64_t)1 << arch->fp | (uint64_t)1 << arch->pc;
	/* On aarch64 the pair is at the bottom of its frame. The caller's stack pointer
	 * is somewhere above; this value is a lower bound for the checks of progress. */
	if (!arch->ra_is_link)
		regs->known |= (uint64_t)1 << arch->sp;
	return true;
}

/* ---- the ladder ----------------------------------------------------------------------- */

/* The steps that pm_unw_step_without_cfi() tries after pm_unw_step_trampoline(), for an
 * address that is in no trampoline. */
static bool step_off_trampoline(struct pm_unw_state *state, enum pm_unw_how *how,
				enum pm_unw_stop *stop)
{
	uint64_t fp;

	pm_unw_take_work(state->work_left, PM_UNW_COST_STEP);
	state->interrupted = false;
	*how = PM_UNW_HOW_LEAF;
	if (step_leaf_function(state))
		return true;
	/* Check this only after the leaf step: the entry point of i386's vDSO is
	 * __kernel_vsyscall, and functions that _start calls may follow it
	 * immediately. */
	if (state->map && state->map->module &&
	    pm_unw_module_is_entry(state->map->module,
				   state->lookup - state->map->bias)) {
		*stop = PM_UNW_STOP_ROOT;
		return false;
	}
	fp = state->regs.value[state->arch->fp];
	if (step_by_exit_code(state)) {
		bool is_pair = state->regs.value[state->arch->sp] ==
			       fp + 2 * state->arch->word_bytes;

		*how = is_pair ? PM_UNW_HOW_FP : PM_UNW_HOW_CODE;
		return true;
	}
	if (is_caller_on_other_stack(state)) {
		*stop = PM_UNW_STOP_OTHER_STACK;
		return false;
	}
	*how = PM_UNW_HOW_FP;
	if (step_frame_pointer(state, stop))
		return true;
	*how = PM_UNW_HOW_START;
	return pm_unw_step_to_start(state, stop);
}

bool pm_unw_step_without_cfi(struct pm_unw_state *state, enum pm_unw_how *how,
			     enum pm_unw_stop *stop)
{
	*how = PM_UNW_HOW_TRAMPOLINE;
	return pm_unw_step_trampoline(state) || step_off_trampoline(state, how, stop);
}

/* ---- the step -------------------------------------------------------------------------- */

/*
 * Steps by a rule whose CFA register is unknown: hand-written code may use a register
 * that calls may change, which compilers never do across a call. OpenSSL's AES uses r11,
 * which its subroutines preserve although the ABI does not require it. The register's
 * value in the inner frame is as good as a frame pointer if the return address that it
 * leads to follows a call.
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

/* Applies the rule or row that @lookup has found. */
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
	 * function: the frame that it describes holds that function's x30, and not its
	 * pc. */
	if (state->arch->ra_is_link && (is_row ? row->signal : rule->signal) &&
	    pm_unw_step_trampoline(state)) {
		*how = PM_UNW_HOW_TRAMPOLINE;
		return true;
	}
	unwinder->stats.expressions += is_row;
	if (!is_row && (rule->saved & PM_UNW_RULE_GO))
		*how = PM_UNW_HOW_GO;
	if (is_row ? step_by_row(row, state, stop) : step_by_rule(rule, state, stop))
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
		return step_off_trampoline(state, how, stop);
	return pm_unw_step_without_cfi(state, how, stop);
}
