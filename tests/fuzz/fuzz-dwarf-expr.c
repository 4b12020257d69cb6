/* SPDX-License-Identifier: MIT */
/* Bytes are an expression, evaluated as a CFA and as a register rule of each architecture. */
#include "unwind/unwind-parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void evaluate(const uint8_t *data, size_t size, enum pm_unw_arch arch)
{
	static const uint64_t words[8] = { 1, 0x7008, 0x7010, ~0ull, 0, 0x8000, 7, 8 };
	const struct pm_unw_arch_info *info = &pm_unw_arch_infos[arch];
	struct pm_unw_regs regs = { .known = ((uint64_t)1 << info->regs) - 1,
				    .arch = arch };
	struct pm_unw_stack stack = { 0x7000, (const uint8_t *)words, sizeof(words) };
	struct pm_unw_expr_input input = {
		.expr = data, .len = size, .regs = &regs, .stack = &stack, .bias = 0x1000
	};
	uint64_t cfa = 0x7020, ret;
	enum pm_unw_stop stop;

	for (size_t i = 0; i < info->regs; i++)
		regs.value[i] = 0x7000 + i * 4;
	if (pm_unw_expr_eval(&input, &ret, &stop) && ret > info->address_mask)
		abort();
	input.cfa = &cfa;
	if (pm_unw_expr_eval(&input, &ret, &stop) && ret > info->address_mask)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (unsigned int i = 0; i < PM_UNW_ARCH_COUNT; i++)
		evaluate(data, size, (enum pm_unw_arch)i);
	return 0;
}
