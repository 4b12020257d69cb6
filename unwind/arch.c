/* SPDX-License-Identifier: MIT */
#include "unwind-internal.h"

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
		.elf_machine = EM_X86_64,
		.elf_class = ELFCLASS64,
	},
};
