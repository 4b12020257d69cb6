/* SPDX-License-Identifier: MIT */
#include "unwind-parts.h"

#include <elf.h>

const struct pm_unw_arch_info pm_unw_arch_infos[PM_UNW_ARCH_COUNT] = {
	/* psABI x86-64, fig. 3.4 and 3.36. */
	[PM_UNW_X86_64] = {
		.regs = PM_UNW_X86_64_REGS,
		.sp = PM_UNW_X86_64_RSP,
		.pc = PM_UNW_X86_64_RIP,
		.fp = PM_UNW_X86_64_RBP,
		.ra = PM_UNW_X86_64_RIP,
		.word_bytes = 8,
		.saved_len = 7,
		.saved = { 3, 6, 12, 13, 14, 15, PM_UNW_X86_64_RIP },
		.callee_saved = 1u << 3 | 1u << 6 | 0xfu << 12,
		.address_mask = UINT64_MAX,
		.elf_machine = EM_X86_64,
		.elf_class = ELFCLASS64,
	},
	/* psABI i386, tables 2.3 and 2.14. */
	[PM_UNW_I386] = {
		.regs = 9,
		.sp = 4,
		.pc = 8,
		.fp = 5,
		.ra = 8,
		.word_bytes = 4,
		.saved_len = 5,
		.saved = { 3, 5, 6, 7, 8 },
		.callee_saved = 1u << 3 | 1u << 5 | 1u << 6 | 1u << 7,
		.address_mask = UINT32_MAX,
		.elf_machine = EM_386,
		.elf_class = ELFCLASS32,
	},
	/* AADWARF64 §4.1, AAPCS64 §6.1.1. */
	[PM_UNW_AARCH64] = {
		.regs = 33,
		.sp = 31,
		.pc = 32,
		.fp = 29,
		.ra = 30,
		.word_bytes = 8,
		.ra_is_link = true,
		.saved_len = 12,
		.saved = { 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30 },
		.callee_saved = 0x7ffu << 19,
		.address_mask = UINT64_MAX,
		.elf_machine = EM_AARCH64,
		.elf_class = ELFCLASS64,
	},
};

uint64_t pm_unw_strip_pac(const struct pm_unw_space *space, uint64_t address)
{
	enum {
		VA_BITS_MIN = 36 /* the smallest that Linux can be configured for */
	};
	uint64_t last, mask = space->pac_mask;

	if (mask == 0 && space->len > 0) {
		last = (space->maps[space->len - 1].end - 1) |
		       (((uint64_t)1 << VA_BITS_MIN) - 1);
		mask = ~(UINT64_MAX >> __builtin_clzll(last));
	}
	return address & ~mask;
}

uint64_t pm_unw_regs_sp(const struct pm_unw_regs *regs)
{
	uint8_t sp = pm_unw_arch_infos[regs->arch].sp;

	if (regs->known >> sp & 1)
		return regs->value[sp];
	return 0;
}
