/* SPDX-License-Identifier: MIT */
/*
 * Bytes are an ELF image whose last 512 bytes double as a stack. It is mapped at its own
 * addresses and unwound from places in its segments and at its FDEs.
 */
#include "unwind/unwind-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	STACK = 0x7ff000000000,
	STACK_LEN = 512,
	PLACES = 24,
	SPACE = 1 << 28,
};

static void unwind_at(struct pm_unwinder *unwinder, const struct pm_unw_space *space,
		      const struct pm_unw_stack *stack, uint64_t pc)
{
	struct pm_unw_frame frames[PM_UNW_FRAMES_MAX];
	struct pm_unw_regs regs = { .known = (1u << PM_UNW_X86_64_REGS) - 1 };
	enum pm_unw_stop stop;

	for (size_t i = 0; i < PM_UNW_X86_64_REGS; i++)
		regs.value[i] = stack->start + i * 16;
	regs.value[PM_UNW_X86_64_RSP] = stack->start;
	regs.value[PM_UNW_X86_64_RIP] = pc;
	pm_unwind(unwinder, space, &regs, stack, frames, &stop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pm_unw_module *module;
	struct pm_unw_stack stack = { .start = STACK };
	struct pm_unwinder *unwinder;

	if (size < STACK_LEN || pm_unw_module_from_memory(&module, data, size, NULL) != 0)
		return 0;
	unwinder = pm_unwinder_new();
	stack.data = data + size - STACK_LEN;
	stack.len = STACK_LEN;
	if (unwinder) {
		struct pm_unw_map map = { .start = 0, .end = SPACE, .module = module };
		struct pm_unw_space space = { .maps = &map, .len = 1 };
		struct pm_unw_fde fde;

		for (uint64_t i = 0; i < PLACES; i++)
			unwind_at(unwinder, &space, &stack, module->entry + i * 4);
		for (size_t i = 0; i < module->loads.len && i < PLACES; i++)
			unwind_at(unwinder, &space, &stack,
				  module->loads.data[i].vaddr + 16);
		/* The scan, too, where a header would keep it away; places as it found them. */
		module->hdr_table = 0;
		pm_unw_fde_find(module, 0, &fde);
		for (size_t i = 0; i < module->eh_scanned.places.len && i < PLACES; i++)
			unwind_at(unwinder, &space, &stack,
				  module->eh_scanned.places.data[i].start + i);
		for (size_t i = 0; i < module->debug_scanned.places.len && i < PLACES;
		     i++)
			unwind_at(unwinder, &space, &stack,
				  module->debug_scanned.places.data[i].start);
	}
	pm_unwinder_free(unwinder);
	pm_unw_module_free(module);
	return 0;
}
