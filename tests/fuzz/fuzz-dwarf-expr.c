/* SPDX-License-Identifier: MIT */
/* Bytes are an expression, evaluated as a CFA and as a register rule. */
#include "unwind/unwind-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t words[8] = { 1, 0x7008, 0x7010, ~0ull, 0, 0x8000, 7, 8 };
	struct pm_unw_regs regs = { .known = (1u << PM_UNW_X86_64_REGS) - 1 };
	struct pm_unw_stack stack = { 0x7000, (const uint8_t *)words, sizeof(words) };
	struct pm_unw_expr_input input = {
		.expr = data, .len = size, .regs = &regs, .stack = &stack, .bias = 0x1000
	};
	uint64_t cfa = 0x7020, ret;
	enum pm_unw_stop stop;

	for (size_t i = 0; i < PM_UNW_X86_64_REGS; i++)
		regs.value[i] = 0x7000 + i * 4;
	pm_unw_expr_eval(&input, &ret, &stop);
	input.cfa = &cfa;
	pm_unw_expr_eval(&input, &ret, &stop);
	return 0;
}
