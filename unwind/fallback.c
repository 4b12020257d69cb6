/* SPDX-License-Identifier: MIT */
/* The steps of the ladder below CFI: signal trampolines, leaf functions, the code up to
 * the `ret`, frame pointers, and outermost frames. */
#include "unwind-internal.h"

#include <string.h>

/* ---- code ----------------------------------------------------------------------------- */

/* Reads bytes of the code at avma @address; false if there is no file to read from. */
static bool read_code_at(const struct pm_unw_map *map, uint64_t address, void *out,
			 size_t len)
{
	return map && map->module &&
	       pm_unw_module_read(map->module, address - map->bias, out, len);
}

bool pm_unw_read_code(const struct pm_unw_space *space, uint64_t address, void *out,
		      size_t len)
{
	const struct pm_unw_map *map = pm_unw_space_find(space, address);

	if (map && !map->module)
		return space->read_code &&
		       space->read_code(space->read_code_user, address, out, len);
	return read_code_at(map, address, out, len);
}

enum {
	X86_CALL_BYTES_MAX = 7,
};

/*
 * `call rel32`, or an indirect call (opcode FF /2) of any length; the same in 32-bit
 * code. Only the last @have bytes of @code are valid.
 */
static bool x86_ends_with_call(const uint8_t code[X86_CALL_BYTES_MAX], size_t have)
{
	enum {
		LONGEST = X86_CALL_BYTES_MAX
	};

	if (have >= 5 && code[LONGEST - 5] == 0xe8)
		return true;
	for (size_t len = 2; len <= have; len++) {
		uint8_t modrm = code[LONGEST - len + 1];
		uint8_t mod = modrm >> 6, rm = modrm & 7;
		size_t want = 2;

		if (code[LONGEST - len] != 0xff || (modrm >> 3 & 7) != 2)
			continue;
		if (mod != 3 && rm == 4) {
			if (len == 2)
				continue; /* a SIB byte must follow */
			want++;
		}
		/* With mod 0, a base of 5 means no base: a table of absolute
		 * addresses. */
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

static bool does_x86_call_precede(const struct pm_unw_map *map, uint64_t end)
{
	uint8_t code[X86_CALL_BYTES_MAX];
	size_t have = sizeof(code);

	/* At the start of a segment, fewer bytes may be readable than the longest call
	 * has. */
	while (!read_code_at(map, end - have, code + sizeof(code) - have, have))
		if (--have < 2)
			return false;
	return x86_ends_with_call(code, have);
}

/* Arm ARM C6.2: bl; blr; blraaz and blrabz; blraa and blrab. */
static bool a64_is_call(uint32_t code)
{
	return (code & 0xfc000000) == 0x94000000 || (code & 0xfffffc1f) == 0xd63f0000 ||
	       (code & 0xfffff81f) == 0xd63f081f || (code & 0xfffff800) == 0xd73f0800;
}

static bool does_a64_call_precede(const struct pm_unw_map *map, uint64_t address)
{
	uint32_t code;

	return address % 4 == 0 && read_code_at(map, address - 4, &code, 4) &&
	       a64_is_call(code);
}

/* @map is the mapping of @address - 1. */
static bool does_call_precede(enum pm_unw_arch arch, const struct pm_unw_map *map,
			      uint64_t address)
{
	/* Memory without a file cannot be read; assume a call. */
	if (!map || !map->module)
		return map;
	if (arch == PM_UNW_AARCH64)
		return does_a64_call_precede(map, address);
	return does_x86_call_precede(map, address);
}

bool pm_unw_ends_with_call(struct pm_unw_module *module, uint64_t svma)
{
	const struct pm_unw_map map = { .module = module };

	return does_call_precede(module->arch, &map, svma + 1);
}

bool pm_unw_follows_call(const struct pm_unw_state *state, uint64_t address)
{
	return does_call_precede(state->regs.arch,
				 pm_unw_space_find(state->space, address - 1), address);
}

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
	if (a64_is_call(code) || (code & 0xff8003ff) == 0x910003fd)
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

	if (read_code_at(state->map, pc, &code, 4) && does_a64_function_start(code))
		return A64_LINK_LIVE;
	for (uint64_t i = 1; i <= INSTRUCTIONS_MAX; i++)
		if (!read_code_at(state->map, pc - i * 4, &code, 4) ||
		    a64_link_after(code, &link))
			break;
	return link;
}

/* ---- signal trampolines ---------------------------------------------------------------- */

enum {
	NO_REG = 0xff,
};

/* The registers in the kernel's sigcontext, as DWARF numbers in the order of its
 * words. */
static const uint8_t x86_64_context[] = { 8, 9, 10, 11, 12, 13, 14, 15, 5,
					  4, 6, 3,  1,  0,  2,  7,  16 };
static const uint8_t i386_context[] = { 7, 6, 5, 4, 3, 2, 1, 0, NO_REG, NO_REG, 8 };
static const uint8_t aarch64_context[] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
					   11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
					   22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32 };

/*
 * A handler returns to the first byte of `code`, with the stack pointer at the data that
 * the kernel has pushed below its arguments. `at` is the distance from there to the first
 * register of the sigcontext (sigframe.h and sigcontext.h of arch/x86;
 * arch/arm64/kernel/signal.c):
 *   rt_sigframe of x86-64: after the first 40 bytes of the ucontext
 *   sigframe_ia32: after `sig` and the segment registers
 *   rt_sigframe_ia32: after three arguments, 128 bytes of siginfo, the first 20 bytes of
 *     the ucontext, and the segment registers
 *   rt_sigframe of arm64: after 128 bytes of siginfo, 176 of the ucontext, and
 *     fault_address
 */
static const struct trampoline {
	enum pm_unw_arch arch;
	uint8_t popped; /* by the first instruction */
	uint16_t at;
	uint8_t words;
	uint8_t code_len;
	const uint8_t *context;
	uint8_t code[12];
} trampolines[] = {
	/* mov $15, %rax; syscall: musl's and glibc's __restore_rt */
	{ PM_UNW_X86_64,
	  0,
	  40,
	  PM_ARRAY_LEN(x86_64_context),
	  9,
	  x86_64_context,
	  { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 } },
	/* pop %eax; mov $119, %eax; int $0x80: __kernel_sigreturn */
	{ PM_UNW_I386,
	  4,
	  4 + 16,
	  PM_ARRAY_LEN(i386_context),
	  8,
	  i386_context,
	  { 0x58, 0xb8, 0x77, 0, 0, 0, 0xcd, 0x80 } },
	/* mov $173, %eax; int $0x80: __kernel_rt_sigreturn */
	{ PM_UNW_I386,
	  0,
	  12 + 128 + 20 + 16,
	  PM_ARRAY_LEN(i386_context),
	  7,
	  i386_context,
	  { 0xb8, 0xad, 0, 0, 0, 0xcd, 0x80 } },
	/* mov x8, #139; svc #0: __kernel_rt_sigreturn */
	{ PM_UNW_AARCH64,
	  0,
	  128 + 176 + 8,
	  PM_ARRAY_LEN(aarch64_context),
	  8,
	  aarch64_context,
	  { 0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4 } },
};

/* Whether a signal handler returns to the code at @address. */
static bool is_trampoline_at(enum pm_unw_arch arch, const struct pm_unw_map *map,
			     uint64_t address)
{
	uint8_t code[sizeof(trampolines[0].code)];

	for (size_t i = 0; i < PM_ARRAY_LEN(trampolines); i++)
		if (trampolines[i].arch == arch &&
		    read_code_at(map, address, code, trampolines[i].code_len) &&
		    memcmp(code, trampolines[i].code, trampolines[i].code_len) == 0)
			return true;
	return false;
}

bool pm_unw_is_return(struct pm_unwinder *unwinder, enum pm_unw_arch arch,
		      const struct pm_unw_space *space, const struct pm_unw_map *map,
		      uint64_t address)
{
	struct pm_unw_cache_slot *slot = NULL;
	bool ret;

	/* Uses the slot of the byte before, where the frame's rule is looked up. */
	if (pm_unw_map_has_cfi(map, arch) && address < map->end)
		slot = pm_unw_rule_slot(unwinder, map->module, address - 1 - map->bias,
					true);
	if (slot && slot->returns != PM_UNW_RETURNS_UNKNOWN)
		return slot->returns == PM_UNW_RETURNS_YES;
	pm_unw_take_work(unwinder->work_left, PM_UNW_COST_READ);
	ret = does_call_precede(arch, map, address) ||
	      is_trampoline_at(arch, pm_unw_space_find(space, address), address);
	if (slot)
		slot->returns = ret ? PM_UNW_RETURNS_YES : PM_UNW_RETURNS_NO;
	return ret;
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
	uint8_t code[X86_CALL_BYTES_MAX];

	if (map && !map->module &&
	    pm_unw_read_code(state->space, address - sizeof(code), code, sizeof(code)))
		return x86_ends_with_call(code, sizeof(code));
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

static bool read_trampoline_context(const struct trampoline *trampoline,
				    const struct pm_unw_state *state, uint64_t at,
				    struct pm_unw_regs *out)
{
	const struct pm_unw_arch_info *arch = state->arch;
	enum pm_unw_stop ignored;

	out->known = 0;
	for (size_t i = 0; i < trampoline->words; i++) {
		uint8_t reg = trampoline->context[i];

		if (reg == NO_REG)
			continue;
		if (!pm_unw_stack_word(arch, state->stack, at + i * arch->word_bytes,
				       &out->value[reg], &ignored))
			return false;
		out->known |= (uint64_t)1 << reg;
	}
	return true;
}

/* Whether the trampoline is around the pc, which is @offset bytes into it. */
static bool is_trampoline_around_pc(const struct trampoline *trampoline,
				    const struct pm_unw_state *state, uint64_t offset)
{
	uint8_t code[sizeof(trampoline->code)];

	return read_code_at(state->map, state->regs.value[state->arch->pc] - offset, code,
			    trampoline->code_len) &&
	       memcmp(code, trampoline->code, trampoline->code_len) == 0;
}

/*
 * Whether the thread can be in the system call that ends at the pc. `syscall` leaves its
 * address in rcx; on i386 the kernel has put -ENOSYS into eax; on aarch64 x8 keeps the
 * number. Without this check, the first instruction of a function that follows without
 * padding would match, as musl's __sigsetjmp does.
 */
static bool is_pc_in_call(const struct pm_unw_state *state)
{
	static const uint8_t regs[PM_UNW_ARCH_COUNT] = { [PM_UNW_X86_64] = 2, /* rcx */
							 [PM_UNW_I386] = 0, /* eax */
							 [PM_UNW_AARCH64] = 8 };
	const uint64_t expected[PM_UNW_ARCH_COUNT] = {
		[PM_UNW_X86_64] = state->regs.value[state->arch->pc],
		[PM_UNW_I386] = (uint32_t)-ENOSYS,
		[PM_UNW_AARCH64] = 139,
	};
	uint8_t reg = regs[state->regs.arch];

	return (state->regs.known >> reg & 1) &&
	       state->regs.value[reg] == expected[state->regs.arch];
}

/*
 * A handler returns to the first byte. A thread can be interrupted at each later byte. In
 * the system call the pc is after the last byte, which CFI does not cover, because
 * execution never gets there.
 */
static bool step_by_trampoline(const struct trampoline *trampoline,
			       struct pm_unw_state *state)
{
	struct pm_unw_regs caller = { .arch = state->regs.arch };
	uint64_t at = state->regs.value[state->arch->sp] + trampoline->at;

	for (uint64_t offset = 0; offset <= (state->first ? trampoline->code_len : 0);
	     offset++) {
		if (!is_trampoline_around_pc(trampoline, state, offset) ||
		    (offset == trampoline->code_len && !is_pc_in_call(state)))
			continue;
		if (!read_trampoline_context(trampoline, state,
					     at - (offset > 0 ? trampoline->popped : 0),
					     &caller))
			return false;
		state->regs = caller;
		state->interrupted = true;
		return true;
	}
	return false;
}

bool pm_unw_step_trampoline(struct pm_unw_state *state)
{
	if (!(state->regs.known >> state->arch->sp & 1))
		return false;
	for (size_t i = 0; i < PM_ARRAY_LEN(trampolines); i++)
		if (trampolines[i].arch == state->regs.arch &&
		    step_by_trampoline(&trampolines[i], state))
			return true;
	return false;
}

bool pm_unw_is_near_trampoline(struct pm_unw_module *module, uint64_t svma)
{
	uint8_t code[sizeof(trampolines[0].code)];

	for (size_t i = 0; i < PM_ARRAY_LEN(trampolines); i++) {
		const struct trampoline *known = &trampolines[i];

		/* The lookup address of a handler's caller is the byte before the
		 * trampoline. */
		for (uint64_t at = 0; at <= known->code_len + 1u; at++)
			if (known->arch == module->arch &&
			    pm_unw_module_read(module, svma + 1 - at, code,
					       known->code_len) &&
			    memcmp(code, known->code, known->code_len) == 0)
				return true;
	}
	return false;
}

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
