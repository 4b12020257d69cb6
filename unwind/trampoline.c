/* SPDX-License-Identifier: MIT */
/* Signal trampolines, recognized by their bytes: the code to which a handler returns. */
#include "unwind-parts.h"

#include <string.h>

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

bool pm_unw_is_trampoline(enum pm_unw_arch arch, const struct pm_unw_map *map,
			  uint64_t address)
{
	uint8_t code[sizeof(trampolines[0].code)];

	for (size_t i = 0; i < PM_ARRAY_LEN(trampolines); i++)
		if (trampolines[i].arch == arch &&
		    pm_unw_map_read_code(map, address, code, trampolines[i].code_len) &&
		    memcmp(code, trampolines[i].code, trampolines[i].code_len) == 0)
			return true;
	return false;
}

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

/* Whether the trampoline is around the pc, which is @offset bytes after its start. */
static bool is_trampoline_around_pc(const struct trampoline *trampoline,
				    const struct pm_unw_state *state, uint64_t offset)
{
	uint8_t code[sizeof(trampoline->code)];

	return pm_unw_map_read_code(state->map,
				    state->regs.value[state->arch->pc] - offset, code,
				    trampoline->code_len) &&
	       memcmp(code, trampoline->code, trampoline->code_len) == 0;
}

/*
 * Whether the thread can be in the system call that ends at the pc. `syscall` leaves the
 * address after it in rcx; on i386 the kernel has put -ENOSYS into eax; on aarch64 x8
 * keeps the number of the call. Without this check, the first instruction of a function
 * that follows without padding would match, as musl's __sigsetjmp does.
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
 * the system call the pc is after the last byte; CFI does not cover that address, because
 * no code runs there.
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

		/* For the caller of a handler, the lookup address is the byte before the
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
