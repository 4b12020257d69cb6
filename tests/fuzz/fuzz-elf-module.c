/* SPDX-License-Identifier: MIT */
/*
 * Bytes are an ELF file of any of our architectures, whose last 512 bytes double as a stack.
 * It is opened as the recorder does, serves as its own debug file, is asked for FDEs, rows
 * and biases, and is unwound through from its own addresses.
 */
#include "pm/proc.h"
#include "unwind/unwind-parts.h"

#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	STACK = 0x7ff00000,
	STACK_LEN = 512,
	PLACES = 16,
	SPACE = 1 << 28,
};

/* pm_unw_open_debug_fn */
static int open_debug(void *user)
{
	return dup(*(int *)user);
}

static void unwind_at(struct pm_unwinder *unwinder, struct pm_unw_module *module,
		      const struct pm_unw_stack *stack, uint64_t pc)
{
	const struct pm_unw_arch_info *arch = &pm_unw_arch_infos[module->arch];
	struct pm_unw_map map = { .start = 0, .end = SPACE, .module = module };
	struct pm_unw_space space = { .maps = &map, .len = 1 };
	struct pm_unw_frame frames[PM_UNW_FRAMES_MAX];
	struct pm_unw_regs regs = { .arch = module->arch };
	enum pm_unw_stop stop;

	for (size_t i = 0; i < arch->regs; i++) {
		regs.value[i] = stack->start + i * arch->word_bytes;
		regs.known |= (uint64_t)1 << i;
	}
	regs.value[arch->sp] = stack->start;
	regs.value[arch->pc] = pc;
	pm_unwind(unwinder, &space, &regs, stack, frames, &stop);
}

/* What is there, looked at in every way. */
static void look_at(struct pm_unw_module *module, uint64_t svma)
{
	struct pm_unw_fde fde;
	struct pm_unw_row row;
	uint8_t code[16];
	uint64_t bias;

	pm_unw_module_read(module, svma, code, sizeof(code));
	pm_unw_module_bias(module, 0x10000, svma & ~(uint64_t)4095, &bias);
	if (pm_unw_fde_find(module, svma, &fde) != 0)
		return;
	if (svma < fde.start || svma >= fde.end)
		__builtin_trap();
	pm_unw_cfi_row(&fde, svma, &row);
	pm_unw_cfi_row(&fde, fde.end - 1, &row);
}

static void use(struct pm_unw_module *module, const struct pm_unw_stack *stack)
{
	static struct pm_unwinder *unwinder; /* one for all, as in a recording */
	const struct pm_unw_fde_table *tables[] = { &module->eh_scanned,
						    &module->debug_scanned };

	if (!unwinder && !(unwinder = pm_unwinder_new()))
		return;
	for (uint64_t i = 0; i < PLACES; i++) {
		look_at(module, module->entry + i * 4);
		unwind_at(unwinder, module, stack, module->entry + i * 4);
	}
	for (size_t i = 0; i < module->loads.len && i < PLACES; i++) {
		look_at(module, module->loads.data[i].vaddr);
		unwind_at(unwinder, module, stack, module->loads.data[i].vaddr + 16);
	}
	/* The scans, too, where a header would keep them away. */
	module->hdr_table = 0;
	look_at(module, 0);
	for (size_t t = 0; t < PM_ARRAY_LEN(tables); t++)
		for (size_t i = 0; i < tables[t]->places.len && i < PLACES; i++) {
			look_at(module, tables[t]->places.data[i].start);
			unwind_at(unwinder, module, stack,
				  tables[t]->places.data[i].start + i);
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct pm_debug_search nowhere = { .dir = "/nonexistent" };
	struct pm_unw_stack stack = { .start = STACK, .len = STACK_LEN };
	PM_AUTO_CLOSE int fd = -1;
	struct pm_unw_module *module;
	int found;

	if (size < STACK_LEN)
		return 0;
	fd = memfd_create("elf", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	found = pm_debug_find(fd, &nowhere);
	pm_cleanup_close(&found);
	stack.data = data + size - STACK_LEN;
	if (pm_unw_module_open(&module, fd, NULL) != 0)
		return 0;
	pm_unw_module_on_gap(module, open_debug, &fd);
	use(module, &stack);
	/* A file that is cut short while it is in use. */
	if (ftruncate(fd, (off_t)(size / 2)) == 0)
		use(module, &stack);
	pm_unw_module_free(module);
	return 0;
}
