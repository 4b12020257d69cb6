/* SPDX-License-Identifier: MIT */
#include "perf-internal.h"

#define NONE4  PM_NO_REG, PM_NO_REG, PM_NO_REG, PM_NO_REG
#define NONE8  NONE4, NONE4
#define NONE32 NONE8, NONE8, NONE8, NONE8

/*
 * perf: ax bx cx dx si di bp sp ip flags cs ss ds es fs gs r8-r15 (asm/perf_regs.h).
 * DWARF: psABI x86-64 figure 3.36, psABI i386 table 2.14.
 */
const struct pm_regs_arch pm_regs_x86 = {
	.mask = 0xff01ff, /* ax to ip, r8 to r15 */
	.sp = 7,
	.flags = 9,
	.dwarf_64 = { 0,  3,         2,         1,         4,     5,     6,     7,
		      16, PM_NO_REG, PM_NO_REG, PM_NO_REG, NONE4, 8,     9,     10,
		      11, 12,        13,        14,        15,    NONE8, NONE32 },
	.dwarf_32 = { 0, 3, 1, 2, 6, 7, 5, 4, 8, PM_NO_REG, PM_NO_REG, PM_NO_REG, NONE4,
		      NONE8, NONE8, NONE32 },
};

/* perf: x0-x29 lr sp pc. DWARF: AADWARF64 §4.1, AADWARF32 §3.1; a 32-bit task's sp and lr
 * are x13 and x14 (Arm ARM D1.20.1). */
const struct pm_regs_arch pm_regs_aarch64 = {
	.mask = ((uint64_t)1 << 33) - 1,
	.sp = 31,
	.flags = PM_NO_REG,
	.dwarf_64 = { 0,  1,         2,         3,         4,     5,     6,     7,
		      8,  9,         10,        11,        12,    13,    14,    15,
		      16, 17,        18,        19,        20,    21,    22,    23,
		      24, 25,        26,        27,        28,    29,    30,    31,
		      32, PM_NO_REG, PM_NO_REG, PM_NO_REG, NONE4, NONE8, NONE8, NONE8 },
	.dwarf_32 = { 0,         1,         2,     3,     4,    5,         6,
		      7,         8,         9,     10,    11,   12,        13,
		      14,        PM_NO_REG, NONE8, NONE8, 15,   PM_NO_REG, PM_NO_REG,
		      PM_NO_REG, NONE4,     NONE8, NONE8, NONE8 },
};

const struct pm_regs_arch *pm_regs_native(void)
{
#if defined(__x86_64__)
	return &pm_regs_x86;
#elif defined(__aarch64__)
	return &pm_regs_aarch64;
#else
	return NULL;
#endif
}

void pm_regs_convert(const struct pm_regs_arch *arch, enum pm_regs_abi abi, uint64_t mask,
		     const uint64_t *values, struct pm_user_regs *out)
{
	const uint8_t *dwarf = abi == PM_REGS_32 ? arch->dwarf_32 : arch->dwarf_64;
	uint64_t width = abi == PM_REGS_32 ? UINT32_MAX : UINT64_MAX;
	uint64_t known = 0;

	out->abi = abi;
	if (abi == PM_REGS_NONE)
		mask = 0;
	for (; mask; mask &= mask - 1) {
		uint8_t perf = (uint8_t)__builtin_ctzll(mask), number = dwarf[perf];
		uint64_t value = *values++;

		if (number == PM_NO_REG) {
			if (perf == arch->flags)
				out->flags = value;
			continue;
		}
		out->value[number] = value & width;
		known |= (uint64_t)1 << number;
	}
	/* Other values stay as they were: clearing them would cost more than everything
	 * above. */
	out->known = known;
}
