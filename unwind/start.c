/* SPDX-License-Identifier: MIT */
/*
 * Finds the outermost frame if no CFI marks it. Recognized are the code at the entry
 * point of a file, the code that calls a thread's function, and return addresses that no
 * call has pushed.
 */
#include "unwind-parts.h"

#include <string.h>

/* ---- returns ------------------------------------------------------------------------------ */

bool pm_unw_is_return(struct pm_unwinder *unwinder, enum pm_unw_arch arch,
		      const struct pm_unw_space *space, const struct pm_unw_map *map,
		      uint64_t address)
{
	struct pm_unw_cache_slot *slot = NULL;
	bool ret;

	/* Use the slot of the previous byte, where the frame's rule is looked up. */
	if (pm_unw_map_has_cfi(map, arch) && address < map->end)
		slot = pm_unw_rule_slot(unwinder, map->module, address - 1 - map->bias,
					true);
	if (slot && slot->returns != PM_UNW_RETURNS_UNKNOWN)
		return slot->returns == PM_UNW_RETURNS_YES;
	pm_unw_take_work(unwinder->work_left, PM_UNW_COST_READ);
	ret = pm_unw_call_precedes(arch, map, address) ||
	      pm_unw_is_trampoline(arch, pm_unw_space_find(space, address), address);
	if (slot)
		slot->returns = ret ? PM_UNW_RETURNS_YES : PM_UNW_RETURNS_NO;
	return ret;
}

/* ---- the entry point ---------------------------------------------------------------------- */

enum {
	ENTRY_BYTES = 64, /* an entry point is a few moves and one or two calls */
	/* In musl 1.2, the return address is 4 words above sp in `start`, and 6 in
	 * libc_start_main_stage2. */
	SCAN_WORDS_MAX = 16,
};

/*
 * Whether the entry point's code continues after its call, which ends at code[@at]. In
 * glibc's ld.so, _dl_start_user keeps the result of _dl_start() and then calls
 * constructors (RTLD_START in sysdeps/ARCH/dl-machine.h).
 */
static bool does_code_keep_result(enum pm_unw_arch arch, const uint8_t code[ENTRY_BYTES],
				  size_t at)
{
	static const struct {
		uint8_t len, code[4];
	} keeps[PM_UNW_ARCH_COUNT] = {
		[PM_UNW_X86_64] = { 3, { 0x49, 0x89, 0xc4 } }, /* mov %rax, %r12 */
		[PM_UNW_I386] = { 2, { 0x89, 0xc7 } }, /* mov %eax, %edi */
		[PM_UNW_AARCH64] = { 4, { 0xf5, 0x03, 0x00, 0xaa } }, /* mov x21, x0 */
	};

	return at + keeps[arch].len <= ENTRY_BYTES &&
	       memcmp(code + at, keeps[arch].code, keeps[arch].len) == 0;
}

/* Returns the length of the code at the entry point, up to its last call or its jump to
 * C. */
static size_t find_entry_code_len(struct pm_unw_module *module)
{
	uint8_t code[ENTRY_BYTES];

	if (!pm_unw_module_read(module, module->entry, code, sizeof(code)))
		return ENTRY_BYTES;
	for (size_t i = 0; i + 6 <= sizeof(code); i++) {
		size_t end = 0;

		if (module->arch == PM_UNW_AARCH64) {
			/* b or bl (A64, C6.2.26 and C6.2.34) */
			if (i % 4 == 3 && (code[i] & 0x7c) == 0x14)
				end = i + 1;
		} else if (code[i] == 0xff && code[i + 1] == 0x15) {
			/* call *disp32(%rip) */
			end = i + 6;
		} else if ((code[i] == 0xe8 || code[i] == 0xe9) &&
			   (code[i + 4] == 0 || code[i + 4] == 0xff)) {
			/* call rel32 or jmp rel32, if the target is near: bytes of
			 * operands rarely look like that */
			end = i + 5;
		}
		if (end > 0 && !does_code_keep_result(module->arch, code, end))
			return end;
	}
	return ENTRY_BYTES;
}

bool pm_unw_module_is_entry(struct pm_unw_module *module, uint64_t svma)
{
	struct pm_unw_fde ignored;

	/* The cheap check comes first: this runs at each frame without CFI. */
	if (module->entry == 0 || svma - module->entry >= ENTRY_BYTES)
		return false;
	/* If the entry point has CFI, that CFI marks the root, and the code after it is
	 * another function. */
	return svma - module->entry < find_entry_code_len(module) &&
	       pm_unw_fde_find(module, module->entry, &ignored) == -ENOENT;
}

/* ---- threads ------------------------------------------------------------------------------ */

/* The code that a thread's function returns to: it calls exit(2), which does not
 * return. */
static const struct thread_exit {
	enum pm_unw_arch arch;
	uint8_t len, code[8];
} thread_exits[] = {
	/* mov %eax, %edi; xor %eax, %eax; mov $60, %al; syscall: src/thread/x86_64/clone.s of
	 * musl, which has no CFI */
	{ PM_UNW_X86_64, 8, { 0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05 } },
	/* mov x8, #93; svc #0: src/thread/aarch64/clone.s of musl */
	{ PM_UNW_AARCH64, 8, { 0xa8, 0x0b, 0x80, 0xd2, 0x01, 0, 0, 0xd4 } },
};

static bool is_thread_exit(const struct pm_unw_map *map, uint64_t address)
{
	uint8_t code[sizeof(thread_exits[0].code)];

	for (size_t i = 0; i < PM_ARRAY_LEN(thread_exits); i++)
		if (thread_exits[i].arch == map->module->arch &&
		    pm_unw_module_read(map->module, address - map->bias, code,
				       thread_exits[i].len) &&
		    memcmp(code, thread_exits[i].code, thread_exits[i].len) == 0)
			return true;
	return false;
}

/* Whether only the outermost frame can continue at @address, which follows a call in
 * @map. */
static bool is_start_address(const struct pm_unw_map *map, uint64_t address)
{
	return pm_unw_module_is_entry(map->module, address - 1 - map->bias) ||
	       is_thread_exit(map, address);
}

/* ---- steps -------------------------------------------------------------------------------- */

bool pm_unw_is_end_mark(uint64_t pc)
{
	/* No code returns to 0, the psABI's mark of the first frame. The others are not
	 * addresses of user space either: the mark of minicoro, and that of LuaJIT Coco,
	 * from which minicoro is derived. */
	return pc == 0 || pc == 0xdeaddeaddeaddead || pc == 0xdeadc0c0deadc0c0;
}

/*
 * Whether @frame is in glibc's __start_context, to which a coroutine of makecontext(3)
 * returns, and whose CFI does not mark it as outermost
 * (sysdeps/unix/sysv/linux/x86_64/__start_context.S).
 */
static bool is_start_context(const struct pm_unw_frame *frame)
{
	/* mov %rbx, %rsp; mov (%rsp), %rdi; test %rdi, %rdi */
	static const uint8_t begin[] = { 0x48, 0x89, 0xdc, 0x48, 0x8b,
					 0x3c, 0x24, 0x48, 0x85, 0xff };
	const struct pm_unw_map *map = frame->map;
	uint8_t code[sizeof(begin)];
	struct pm_unw_fde fde;

	return pm_unw_map_has_cfi(map, PM_UNW_X86_64) &&
	       pm_unw_fde_find(map->module, frame->lookup - map->bias, &fde) == 0 &&
	       pm_unw_module_read(map->module, fde.start, code, sizeof(code)) &&
	       memcmp(code, begin, sizeof(begin)) == 0;
}

enum pm_unw_stop pm_unw_stop_outside(const struct pm_unw_frame *frame, uint64_t pc)
{
	if (pm_unw_is_end_mark(pc) || is_start_context(frame))
		return PM_UNW_STOP_ROOT;
	return PM_UNW_STOP_NO_MODULE;
}

bool pm_unw_is_uncalled(const struct pm_unw_state *state)
{
	uint64_t pc = state->regs.value[state->arch->pc];
	uint8_t code;

	/* Earlier steps have checked whether a call precedes. Code that cannot be read is
	 * assumed to have one. */
	return state->how == PM_UNW_HOW_CFI && state->lookup + 1 == pc &&
	       pm_unw_map_has_cfi(state->map, state->regs.arch) && pc < state->map->end &&
	       pm_unw_module_read(state->map->module, pc - state->map->bias, &code, 1) &&
	       !pm_unw_is_return(state->unwinder, state->regs.arch, state->space,
				 state->map, pc);
}

/*
 * The return address is somewhere above the stack pointer and follows a call. If the
 * first such word can only belong to the outermost frame, no other word can be the return
 * address. Returns 1 in that case, with @state->regs of the outermost frame; 0 if not;
 * -ENODATA if the copied bytes do not show it.
 */
static int scan_for_start(struct pm_unw_state *state)
{
	const struct pm_unw_arch_info *arch = state->arch;
	struct pm_unw_regs *regs = &state->regs;
	uint64_t sp = regs->value[arch->sp];

	if (!(regs->known >> arch->sp & 1) || sp % arch->word_bytes != 0)
		return -ENODATA;
	for (size_t i = 0; i < SCAN_WORDS_MAX; i++, sp += arch->word_bytes) {
		const struct pm_unw_map *map;
		enum pm_unw_stop ignored;
		uint64_t word;

		if (!pm_unw_stack_word(arch, state->stack, sp, &word, &ignored))
			return -ENODATA;
		if (arch->ra_is_link)
			word = pm_unw_strip_pac(state->space, word);
		map = pm_unw_space_find(state->space, word - 1);
		if (!map || !pm_unw_is_return(state->unwinder, regs->arch, state->space,
					      map, word))
			continue;
		if (!pm_unw_map_has_cfi(map, regs->arch) || !is_start_address(map, word))
			return 0;
		regs->value[arch->pc] = word;
		regs->value[arch->sp] = sp + arch->word_bytes;
		regs->known = (uint64_t)1 << arch->pc;
		if (!arch->ra_is_link)
			regs->known |= (uint64_t)1 << arch->sp;
		return 1;
	}
	return 0;
}

bool pm_unw_step_to_start(struct pm_unw_state *state, enum pm_unw_stop *stop)
{
	const struct pm_unw_arch_info *arch = state->arch;
	const struct pm_unw_map *map = state->map;
	struct pm_unw_cache_slot *slot;
	int ret;

	/* psABI 3.4.1, AAPCS64 6.2.3: a frame pointer of 0 ends the chain. If the frame
	 * was not found by a frame pointer, the register may hold anything. */
	if (state->how == PM_UNW_HOW_FP && (state->regs.known >> arch->fp & 1) &&
	    state->regs.value[arch->fp] == 0) {
		*stop = PM_UNW_STOP_ROOT;
		return false;
	}
	if (!pm_unw_map_has_cfi(map, state->regs.arch))
		return false;
	slot = pm_unw_rule_slot(state->unwinder, map->module, state->lookup - map->bias,
				false);
	if (slot && slot->no_start)
		return false;
	if (state->lookup + 1 == state->regs.value[arch->pc] &&
	    is_thread_exit(map, state->regs.value[arch->pc])) {
		*stop = PM_UNW_STOP_ROOT;
		return false;
	}
	ret = scan_for_start(state);
	if (ret != 0)
		return ret > 0;
	/* Code that is called from the start of threads is rarely called from elsewhere.
	 * Look up the slot again, because the scan may have created others. */
	slot = pm_unw_rule_slot(state->unwinder, map->module, state->lookup - map->bias,
				false);
	if (slot)
		slot->no_start = true;
	return false;
}
