/* SPDX-License-Identifier: MIT */
/*
 * Bytes are an ELF image of any architecture whose last 512 bytes double as a stack. It is
 * mapped at its own addresses and unwound from places in its segments and at its FDEs, and
 * once as what a task of another architecture has mapped.
 */
#include "unwind/unwind-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	STACK = 0x7ff00000, /* where a 32-bit task could have it, too */
	STACK_LEN = 512,
	PLACES = 24,
	SPACE = 1 << 28,
};

static void unwind_as(struct pm_unwinder *unwinder, const struct pm_unw_space *space,
		      const struct pm_unw_stack *stack, enum pm_unw_arch arch,
		      uint64_t pc)
{
	const struct pm_unw_arch_info *info = &pm_unw_arch_infos[arch];
	struct pm_unw_frame frames[PM_UNW_FRAMES_MAX];
	struct pm_unw_regs regs = { .known = ((uint64_t)1 << info->regs) - 1,
				    .arch = arch };
	enum pm_unw_stop stop;

	for (size_t i = 0; i < info->regs; i++)
		regs.value[i] = stack->start + i * 16;
	if (info->ra_is_link)
		regs.value[info->ra] = pc + 32;
	regs.value[info->sp] = stack->start;
	regs.value[info->pc] = pc;
	pm_unwind(unwinder, space, &regs, stack, frames, &stop);
}

static void unwind_at(struct pm_unwinder *unwinder, const struct pm_unw_space *space,
		      const struct pm_unw_stack *stack, uint64_t pc)
{
	unwind_as(unwinder, space, stack, space->maps->module->arch, pc);
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

		for (unsigned int i = 0; i < PM_UNW_ARCH_COUNT; i++)
			unwind_as(unwinder, &space, &stack, (enum pm_unw_arch)i,
				  module->entry);
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
