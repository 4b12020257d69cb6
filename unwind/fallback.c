/* SPDX-License-Identifier: MIT */
/* The steps of the ladder below CFI: signal trampolines, leaf functions, the code up to
 * the `ret`, frame pointers, and outermost frames. */
#include "unwind-internal.h"

#include <string.h>

/* What the code around the pc shows about x30. */
enum a64_link {
	A64_LINK_LIVE, /* it is the return address, and nothing has been pushed */
	A64_LINK_PUSHED, /* the same, but the stack pointer has moved */
	A64_LINK_PAIRED, /* the same; the first entry of a PLT has pushed 16 bytes */
	A64_LINK_SAVED, /* there is a frame record, or another call has overwritten it */
};

/* @code was executed last. False: it does not show the state of x30. */
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

/* Whether a function starts with this instruction. If it is the next to run, no frame
 * exists yet. */
static bool does_a64_function_start(uint32_t code)
{
	return code == 0xd503233f || code == 0xd503237f || code == 0xd503245f ||
	       code == 0xa9bf7bf0 || (code & 0xffc07fff) == 0xa9807bfd ||
	       (code & 0xff8003ff) == 0xd10003ff;
}

static enum a64_link find_a64_link_state(const struct pm_unw_state *state)
{
	enum {
		INSTRUCTIONS_MAX = 64 /* back to the last that shows it */
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

/* ---- steps ---------------------------------------------------------------------------- */

/*
 * The same for an address that the interrupted code uses as its return address. For
 * generated code, a mapped address is enough; but if the code can be read, a call must be
 * there.
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

	if (!pm_unw_apply_row(row, &caller, &ignored) ||
	    caller.regs.value[state->arch->sp] <= state->regs.value[state->arch->sp] ||
	    !is_return_of_leaf(state, caller.regs.value[state->arch->pc]))
		return false;
	state->regs = caller.regs;
	return true;
}

/*
 * The interrupted function has not saved its return address, or not yet: it is on top of
 * the stack or in the link register.
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
	/* In generated code, the top of the stack is usually something else. */
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

/* Whether the callers are on another stack than the one that the stack pointer points at. */
static bool is_caller_on_other_stack(const struct pm_unw_state *state)
{
	struct pm_unw_row row;

	return state->regs.arch == PM_UNW_X86_64 &&
	       pm_unw_map_has_cfi(state->map, state->regs.arch) &&
	       pm_unw_exit_find(state, &row) == PM_UNW_EXIT_ELSEWHERE;
}

/* A pair of words at the frame pointer: the caller's frame pointer, the return address. */
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
	 * it may point to any zeros. Generated code has nothing better than the frame
	 * pointer. */
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
	 * is somewhere above; this value is a lower bound, which the guards use. */
	if (!arch->ra_is_link)
		regs->known |= (uint64_t)1 << arch->sp;
	return true;
}

/* ---- the ladder ----------------------------------------------------------------------- */

bool pm_unw_step_without_cfi(struct pm_unw_state *state, enum pm_unw_how *how,
			     enum pm_unw_stop *stop)
{
	*how = PM_UNW_HOW_TRAMPOLINE;
	return pm_unw_step_trampoline(state) ||
	       pm_unw_step_off_trampoline(state, how, stop);
}

bool pm_unw_step_off_trampoline(struct pm_unw_state *state, enum pm_unw_how *how,
				enum pm_unw_stop *stop)
{
	uint64_t fp;

	pm_unw_take_work(state->work_left, PM_UNW_COST_STEP);
	state->interrupted = false;
	*how = PM_UNW_HOW_LEAF;
	if (step_leaf_function(state))
		return true;
	/* Checked only after the leaf step: the vDSO of i386 has __kernel_vsyscall as its
	 * entry point, and functions that _start calls may be right behind it. */
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
