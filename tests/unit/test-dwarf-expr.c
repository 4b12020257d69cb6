/* SPDX-License-Identifier: MIT */
/* DWARF expressions (DWARF 5 §2.5) with known results, known failures and bounded work. */
#include "unwind/unwind-parts.h"

#include <dwarf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum {
	STACK_START = 0x7000,
};

static const uint64_t words[4] = { 0x1122334455667788, 0x7010, 3, 4 };

static bool eval(const uint8_t *expr, size_t len, const uint64_t *cfa, uint64_t *ret,
		 enum pm_unw_stop *stop)
{
	struct pm_unw_regs regs = { .known = 1u << 7 | 1u << 6 | 1u << 16 };
	struct pm_unw_stack stack = { STACK_START, (const uint8_t *)words,
				      sizeof(words) };
	struct pm_unw_expr_input input = { .expr = expr,
					   .len = len,
					   .regs = &regs,
					   .stack = &stack,
					   .cfa = cfa,
					   .bias = 0x100 };

	regs.value[6] = STACK_START + 8;
	regs.value[7] = STACK_START;
	regs.value[16] = 0x100b;
	return pm_unw_expr_eval(&input, ret, stop);
}

#define GIVES(value, ...)                                                     \
	({                                                                    \
		const uint8_t expr_[] = { __VA_ARGS__ };                      \
		enum pm_unw_stop stop_;                                       \
		uint64_t ret_ = 0;                                            \
		assert_true(eval(expr_, sizeof(expr_), NULL, &ret_, &stop_)); \
		assert_int_equal(ret_, (uint64_t)(value));                    \
	})
#define STOPS(why, ...)                                                        \
	({                                                                     \
		const uint8_t expr_[] = { __VA_ARGS__ };                       \
		enum pm_unw_stop stop_ = PM_UNW_STOP_ROOT;                     \
		uint64_t ret_ = 77;                                            \
		assert_false(eval(expr_, sizeof(expr_), NULL, &ret_, &stop_)); \
		assert_int_equal(stop_, why);                                  \
		assert_int_equal(ret_, 77);                                    \
	})

static void test_constants(void **state)
{
	(void)state;
	GIVES(31, DW_OP_lit31);
	GIVES(0xfe, DW_OP_const1u, 0xfe);
	GIVES(-2, DW_OP_const1s, 0xfe);
	GIVES(0x8001, DW_OP_const2u, 0x01, 0x80);
	GIVES(-32767, DW_OP_const2s, 0x01, 0x80);
	GIVES(0x80000001, DW_OP_const4u, 1, 0, 0, 0x80);
	GIVES((int32_t)0x80000001, DW_OP_const4s, 1, 0, 0, 0x80);
	GIVES(0x0807060504030201, DW_OP_const8u, 1, 2, 3, 4, 5, 6, 7, 8);
	GIVES(300, DW_OP_constu, 0xac, 0x02);
	GIVES(-3, DW_OP_consts, 0x7d);
	GIVES(0x104, DW_OP_addr, 4, 0, 0, 0, 0, 0, 0, 0);
}

static void test_arithmetic(void **state)
{
	(void)state;
	GIVES(5, DW_OP_lit2, DW_OP_lit3, DW_OP_plus);
	GIVES(-1, DW_OP_lit2, DW_OP_lit3, DW_OP_minus);
	GIVES(6, DW_OP_lit2, DW_OP_lit3, DW_OP_mul);
	GIVES(-3, DW_OP_const1s, 0xf9, DW_OP_lit2, DW_OP_div);
	GIVES(INT64_MIN, DW_OP_const8s, 0, 0, 0, 0, 0, 0, 0, 0x80, DW_OP_const1s, 0xff,
	      DW_OP_div);
	GIVES(1, DW_OP_lit7, DW_OP_lit3, DW_OP_mod);
	GIVES(2, DW_OP_const1s, 0xfe, DW_OP_abs);
	GIVES(-2, DW_OP_lit2, DW_OP_neg);
	GIVES(~2ull, DW_OP_lit2, DW_OP_not);
	GIVES(2, DW_OP_lit6, DW_OP_lit3, DW_OP_and);
	GIVES(7, DW_OP_lit6, DW_OP_lit3, DW_OP_or);
	GIVES(5, DW_OP_lit6, DW_OP_lit3, DW_OP_xor);
	GIVES(24, DW_OP_lit3, DW_OP_lit3, DW_OP_shl);
	GIVES(0, DW_OP_lit3, DW_OP_const1u, 64, DW_OP_shl);
	GIVES(1, DW_OP_const1s, 0xff, DW_OP_const1u, 63, DW_OP_shr);
	GIVES(-1, DW_OP_const1s, 0xfe, DW_OP_const1u, 200, DW_OP_shra);
	GIVES(13, DW_OP_lit3, DW_OP_plus_uconst, 10);
	GIVES(1, DW_OP_const1s, 0xff, DW_OP_lit1, DW_OP_lt);
	GIVES(0, DW_OP_const1s, 0xff, DW_OP_lit1, DW_OP_ge);
	GIVES(1, DW_OP_lit1, DW_OP_lit1, DW_OP_le);
	GIVES(0, DW_OP_lit1, DW_OP_lit1, DW_OP_gt);
	GIVES(1, DW_OP_lit1, DW_OP_lit1, DW_OP_eq);
	GIVES(0, DW_OP_lit1, DW_OP_lit1, DW_OP_ne);
}

static void test_stack_and_flow(void **state)
{
	(void)state;
	GIVES(4, DW_OP_lit2, DW_OP_dup, DW_OP_plus);
	GIVES(2, DW_OP_lit2, DW_OP_lit3, DW_OP_drop);
	GIVES(2, DW_OP_lit2, DW_OP_lit3, DW_OP_over);
	GIVES(1, DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_pick, 2);
	GIVES(1, DW_OP_lit2, DW_OP_lit3, DW_OP_swap, DW_OP_minus);
	/* rot: 1 2 3 (top) becomes 3 1 2 (top). */
	GIVES(2, DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_rot);
	GIVES(1, DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_rot, DW_OP_drop);
	GIVES(3, DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_rot, DW_OP_drop, DW_OP_drop);
	GIVES(1, DW_OP_lit1, DW_OP_skip, 1, 0, DW_OP_lit9);
	GIVES(9, DW_OP_lit1, DW_OP_lit0, DW_OP_bra, 1, 0, DW_OP_lit9);
	GIVES(1, DW_OP_lit1, DW_OP_lit5, DW_OP_bra, 1, 0, DW_OP_lit9);
	GIVES(1, DW_OP_lit1, DW_OP_nop);
}

static void test_registers_and_memory(void **state)
{
	uint64_t cfa = STACK_START + 16, ret;
	enum pm_unw_stop stop;

	(void)state;
	GIVES(STACK_START + 8, DW_OP_breg0 + 7, 8);
	GIVES(STACK_START - 8, DW_OP_bregx, 7, 0x78);
	GIVES(words[0], DW_OP_breg0 + 7, 0, DW_OP_deref);
	GIVES(3, DW_OP_breg0 + 6, 0, DW_OP_deref, DW_OP_deref);
	GIVES(0x7788, DW_OP_breg0 + 7, 0, DW_OP_deref_size, 2);
	/* The expression of every x86-64 PLT, in both halves of an entry. */
	GIVES(STACK_START + 16, DW_OP_breg0 + 7, 8, DW_OP_breg16, 0, DW_OP_lit15,
	      DW_OP_and, DW_OP_lit11, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus);
	assert_true(
		eval((const uint8_t[]){ DW_OP_lit8, DW_OP_minus }, 2, &cfa, &ret, &stop));
	assert_int_equal(ret, STACK_START + 8);
	assert_true(eval((const uint8_t[]){ DW_OP_drop, DW_OP_call_frame_cfa }, 2, &cfa,
			 &ret, &stop));
	assert_int_equal(ret, cfa);
}

static void test_failures(void **state)
{
	uint8_t deep[100];
	uint64_t ret;
	enum pm_unw_stop stop;

	(void)state;
	STOPS(PM_UNW_STOP_BAD_CFI, DW_OP_plus);
	STOPS(PM_UNW_STOP_BAD_CFI, DW_OP_lit1, DW_OP_drop);
	STOPS(PM_UNW_STOP_BAD_CFI, DW_OP_const4u, 1, 2);
	STOPS(PM_UNW_STOP_BAD_CFI, DW_OP_lit1, DW_OP_lit0, DW_OP_div);
	STOPS(PM_UNW_STOP_BAD_CFI, DW_OP_lit1, DW_OP_lit0, DW_OP_mod);
	STOPS(PM_UNW_STOP_BAD_CFI, DW_OP_lit1, DW_OP_skip, 0xfc, 0xff); /* endless */
	STOPS(PM_UNW_STOP_BAD_CFI, DW_OP_lit1, DW_OP_skip, 0xff, 0x7f);
	STOPS(PM_UNW_STOP_BAD_CFI, DW_OP_lit1, DW_OP_skip, 0x00, 0x80);
	STOPS(PM_UNW_STOP_BAD_CFI, DW_OP_call_frame_cfa);
	STOPS(PM_UNW_STOP_BAD_CFI, DW_OP_breg0 + 31, 0);
	STOPS(PM_UNW_STOP_BAD_CFI, DW_OP_lit1, DW_OP_pick, 1);
	STOPS(PM_UNW_STOP_BAD_CFI, 0xff);
	STOPS(PM_UNW_STOP_NO_REGISTER, DW_OP_breg0 + 3, 0);
	STOPS(PM_UNW_STOP_TRUNCATED, DW_OP_breg0 + 7, 32, DW_OP_deref);
	STOPS(PM_UNW_STOP_TRUNCATED, DW_OP_breg0 + 7, 25, DW_OP_deref);
	STOPS(PM_UNW_STOP_BAD_MEMORY, DW_OP_breg0 + 7, 0x7f, DW_OP_deref);
	STOPS(PM_UNW_STOP_BAD_CFI, DW_OP_breg0 + 7, 0, DW_OP_deref_size, 9);
	memset(deep, DW_OP_lit1, sizeof(deep));
	assert_false(eval(deep, sizeof(deep), NULL, &ret, &stop));
	assert_int_equal(stop, PM_UNW_STOP_BAD_CFI);
	assert_false(eval(deep, 0, NULL, &ret, &stop));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_constants),
		cmocka_unit_test(test_arithmetic),
		cmocka_unit_test(test_stack_and_flow),
		cmocka_unit_test(test_registers_and_memory),
		cmocka_unit_test(test_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
