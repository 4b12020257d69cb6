/* SPDX-License-Identifier: MIT */
/*
 * i386, and what compilers for x86-64 do seldom, over CFI, code and stacks made by hand: each
 * chain is known before.
 */
#include "arch-world.h"

enum {
	/* i386 */
	EAX = 0,
	EBX = 3,
	ESP = 4,
	EBP = 5,
	ESI = 6,
	EDI = 7,
	EIP = 8,
	/* x86-64 */
	RBX = 3,
	RDI = 5,
	RSP = 7,
	R12 = 12,
	RIP = 16,
};

/* ---- x86-64 ---------------------------------------------------------------------------- */

static void test_x86_64_rules(void **state)
{
	struct world *world = make(PM_UNW_X86_64);

	(void)state;
	/* vfork of glibc: the return address is in rdi. */
	FDE(world, 0, 0x20, DW_CFA_register, RIP, RDI, DW_CFA_def_cfa_offset, 0);
	/* rsp given as a value, and what is pushed for a call already counted. */
	FDE(world, 0x100, 0x20, DW_CFA_def_cfa_offset, 32, DW_CFA_val_offset, RSP, 1,
	    DW_CFA_GNU_args_size, 16, DW_CFA_offset | RBX, 2);
	/* gcc's frame of a function that aligns its stack (DRAP). */
	FDE(world, 0x200, 0x20, DW_CFA_def_cfa_expression, 3, DW_OP_breg3, 0x78,
	    DW_OP_deref, DW_CFA_same_value, R12);
	FDE(world, 0x300, 0x20, DW_CFA_def_cfa, R12, 16);
	begin_at(world, 8);
	set(world, RDI, at(world, 0x110));
	set(world, R12, on_stack(world, 0x80));
	poke(world, 24, at(world, 0x210));
	poke(world, 16, on_stack(world, 0x48)); /* rbx */
	poke(world, 0x40, on_stack(world, 0x60)); /* at rbx - 8 */
	poke(world, 0x58, at(world, 0x310));
	poke(world, 0x88, at(world, IN_ROOT));
	ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { 8, 0, IP }, { 0x110, 0, CFI },
		     { 0x210, 24, CFI }, { 0x310, 0x60, CFI }, { IN_ROOT, 0x90, CFI });
	world_free(world);
}

static void test_x86_64_lost_register(void **state)
{
	struct world *world = make(PM_UNW_X86_64);

	(void)state;
	FDE(world, 0, 0x20, DW_CFA_undefined, RBX);
	FDE(world, 0x100, 0x20, DW_CFA_def_cfa, RBX, 16);
	begin_at(world, 8);
	set(world, RBX, on_stack(world, 0x40));
	poke(world, 0, at(world, 0x110));
	poke(world, 0x48, at(world, IN_ROOT));
	ASSERT_CHAIN(world, PM_UNW_STOP_NO_REGISTER, { 8, 0, IP }, { 0x110, 8, CFI });
	world_free(world);
}

/* An emulator's process has mappings of code that is not its own. */
static void test_other_machine(void **state)
{
	static const enum pm_unw_arch others[] = { PM_UNW_I386, PM_UNW_AARCH64 };

	(void)state;
	for (size_t i = 0; i < PM_ARRAY_LEN(others); i++) {
		struct world *world = make(PM_UNW_X86_64);

		FDE(world, 0, 0x20, DW_CFA_def_cfa, RSP, 8);
		begin_at(world, 8);
		poke(world, 0, at(world, IN_ROOT - 1));
		world_build(world, others[i]);
		ASSERT_CHAIN(world, PM_UNW_STOP_NO_CFI, { 8, 0, IP });
		world_free(world);
	}
}

/* ---- i386 ------------------------------------------------------------------------------ */

static void test_i386_rules(void **state)
{
	struct world *world = make(PM_UNW_I386);

	(void)state;
	FDE(world, 0, 0x20, DW_CFA_def_cfa, EBP, 8, DW_CFA_offset | EBP, 2,
	    DW_CFA_offset | EBX, 3, DW_CFA_offset | ESI, 4, DW_CFA_offset | EDI, 5);
	FDE(world, 0x100, 0x20, DW_CFA_def_cfa, EBX, 8);
	FDE(world, 0x200, 0x20, DW_CFA_def_cfa, ESI, 8);
	FDE(world, 0x300, 0x20, DW_CFA_def_cfa, EDI, 8);
	/* main with an aligned stack: its CFA is in memory. */
	FDE(world, 0x400, 0x20, DW_CFA_def_cfa_expression, 3, DW_OP_breg5, 0x7c,
	    DW_OP_deref);
	begin_at(world, 8);
	set(world, EBP, on_stack(world, 0x20));
	poke(world, 0x14, on_stack(world, 0x50)); /* edi */
	poke(world, 0x18, on_stack(world, 0x40)); /* esi */
	poke(world, 0x1c, on_stack(world, 0x30)); /* ebx */
	poke(world, 0x20, on_stack(world, 0x60)); /* ebp */
	poke(world, 0x24, at(world, 0x110));
	poke(world, 0x34, at(world, 0x210));
	poke(world, 0x44, at(world, 0x310));
	poke(world, 0x54, at(world, 0x410));
	poke(world, 0x5c, on_stack(world, 0x70));
	poke(world, 0x6c, at(world, IN_ROOT));
	ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { 8, 0, IP }, { 0x110, 0x28, CFI },
		     { 0x210, 0x38, CFI }, { 0x310, 0x48, CFI }, { 0x410, 0x58, CFI },
		     { IN_ROOT, 0x70, CFI });
	world_free(world);
}

/* A LEB128 of five bytes. */
#define LEB5(x)                                                                 \
	0x80 | ((x)&0x7f), 0x80 | ((x) >> 7 & 0x7f), 0x80 | ((x) >> 14 & 0x7f), \
		0x80 | ((x) >> 21 & 0x7f), (x) >> 28 & 0x7f

/* Addresses have 32 bits, whatever the sums that lead to them. */
static void test_i386_wraps(void **state)
{
	struct world *world = make(PM_UNW_I386);

	(void)state;
	/* 0x10 - 0x4ffff0: a rule. */
	FDE(world, 0, 0x20, DW_CFA_def_cfa_sf, EBP, LEB5(0x4ffff0 / 4),
	    DW_CFA_offset | EBP, 2);
	/* 0xfffffff0 + 0xffb00050: too far for a rule. */
	FDE(world, 0x100, 0x20, DW_CFA_def_cfa, EBP, LEB5(0xffb00050));
	FDE(world, 0x200, 0x20, DW_CFA_def_cfa_expression, 8, DW_OP_breg5, 0,
	    DW_OP_const4u, 0x70, 0, 0xb0, 0xff, DW_OP_plus, DW_CFA_val_expression, EBX, 5,
	    DW_OP_breg5, 0, DW_OP_const1u, 31, DW_OP_shra);
	/* What came of shifting the sign of 32 bits: 0xffffffff. */
	FDE(world, 0x300, 0x20, DW_CFA_def_cfa, EBX, LEB5(0xffb00081));
	begin_at(world, 8);
	set(world, EBP, 0x10);
	poke(world, 0x18, 0xfffffff0);
	poke(world, 0x1c, at(world, 0x110));
	poke(world, 0x3c, at(world, 0x210));
	poke(world, 0x5c, at(world, 0x310));
	poke(world, 0x7c, at(world, IN_ROOT));
	ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { 8, 0, IP }, { 0x110, 0x20, CFI },
		     { 0x210, 0x40, CFI }, { 0x310, 0x60, CFI }, { IN_ROOT, 0x80, CFI });
	world_free(world);
}

/* The PLT of i386, before and after its push. */
static void test_i386_plt(void **state)
{
	(void)state;
	for (uint64_t pc = 0x14; pc <= 0x1b; pc += 7) {
		struct world *world = make(PM_UNW_I386);

		FDE(world, 0, 0x40, DW_CFA_def_cfa_expression, 11, DW_OP_breg4, 4,
		    DW_OP_breg8, 0, DW_OP_lit15, DW_OP_and, DW_OP_lit11, DW_OP_ge,
		    DW_OP_lit2, DW_OP_shl, DW_OP_plus);
		begin_at(world, pc);
		poke(world, pc == 0x14 ? 0 : 4, at(world, IN_ROOT));
		ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { pc, 0, IP },
			     { IN_ROOT, pc == 0x14 ? 4 : 8, CFI });
		world_free(world);
	}
}

static void test_i386_without_cfi(void **state)
{
	struct world *world = make(PM_UNW_I386);

	(void)state;
	call_before(world, 0x220);
	CODE_AT(world, 0x318, 0x65, 0xff, 0x15, 0x10, 0, 0, 0); /* call *%gs:0x10 */
	begin_at(world, 0x108);
	set(world, EBP, on_stack(world, 0x10));
	poke(world, 0, at(world, 0x220)); /* on top: a leaf */
	poke(world, 0x10, on_stack(world, 0x20));
	poke(world, 0x14, at(world, 0x31f));
	poke(world, 0x20, 0);
	poke(world, 0x24, at(world, IN_ROOT));
	ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { 0x108, 0, IP }, { 0x220, 4, LEAF },
		     { 0x31f, 0x18, FP }, { IN_ROOT, 0x28, FP });
	/* A frame pointer that is no multiple of 4, and an address behind no call. */
	set(world, EBP, on_stack(world, 0x12));
	ASSERT_CHAIN(world, PM_UNW_STOP_NO_CFI, { 0x108, 0, IP }, { 0x220, 4, LEAF });
	set(world, EBP, on_stack(world, 0x10));
	poke(world, 0x14, at(world, 0x31d));
	ASSERT_CHAIN(world, PM_UNW_STOP_NO_CFI, { 0x108, 0, IP }, { 0x220, 4, LEAF });
	world_free(world);
}

/* sigcontext of i386: gs fs es ds edi esi ebp esp ebx edx ecx eax trapno err eip. */
static void put_i386_context(struct world *world, uint64_t offset, uint64_t pc,
			     uint64_t sp)
{
	poke(world, offset + 16 + 0, on_stack(world, 0x400)); /* edi */
	poke(world, offset + 16 + 12, on_stack(world, sp));
	poke(world, offset + 16 + 40, at(world, pc));
}

static void check_i386_trampoline(uint64_t pc, uint64_t context)
{
	struct world *world = make(PM_UNW_I386);

	CODE_AT(world, 0x100, 0x58, 0xb8, 0x77, 0, 0, 0, 0xcd, 0x80); /* sigreturn */
	CODE_AT(world, 0x200, 0xb8, 0xad, 0, 0, 0, 0xcd, 0x80); /* rt_sigreturn */
	/* What was interrupted, at its first instruction: pc - 1 would not be in it. */
	FDE(world, 0x300, 0x20, DW_CFA_def_cfa, EDI, 8);
	FDE(world, 0x2f0, 0x10, DW_CFA_def_cfa_offset, 64);
	begin_at(world, pc);
	set(world, EAX, (uint32_t)-ENOSYS);
	put_i386_context(world, context, 0x300, 0x3f0);
	poke(world, 0x404, at(world, IN_ROOT));
	ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { pc, 0, IP }, { 0x300, 0x3f0, TRAMPOLINE },
		     { IN_ROOT, 0x408, CFI });
	assert_int_equal(world->frames[1].lookup, at(world, 0x300));
	/* Behind the code, but not in its system call: what follows it. */
	set(world, EAX, 1);
	walk(world);
	assert_int_equal(world->len, pc == 0x108 || pc == 0x207 ? 1 : 3);
	world_free(world);
}

static void test_i386_signals(void **state)
{
	(void)state;
	check_i386_trampoline(0x100, 4);
	check_i386_trampoline(0x101, 0); /* sig was popped */
	check_i386_trampoline(0x106, 0);
	check_i386_trampoline(0x108, 0); /* in the system call */
	check_i386_trampoline(0x200, 12 + 128 + 20);
	check_i386_trampoline(0x205, 12 + 128 + 20);
	check_i386_trampoline(0x207, 12 + 128 + 20);
}

/* A handler without CFI returns to the trampoline, which no call stands before. */
static void test_i386_handler_without_cfi(void **state)
{
	struct world *world = make(PM_UNW_I386);

	(void)state;
	CODE_AT(world, 0x100, 0xb8, 0xad, 0, 0, 0, 0xcd, 0x80);
	FDE(world, 0x300, 0x20, DW_CFA_def_cfa, EDI, 8);
	begin_at(world, 0x200);
	poke(world, 0x00, at(world, 0x100));
	put_i386_context(world, 4 + 12 + 128 + 20, 0x300, 0x3f0);
	poke(world, 0x404, at(world, IN_ROOT));
	ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { 0x200, 0, IP }, { 0x100, 4, LEAF },
		     { 0x300, 0x3f0, TRAMPOLINE }, { IN_ROOT, 0x408, CFI });
	/* With a frame. */
	begin_at(world, 0x200);
	set(world, EBP, on_stack(world, 8));
	poke(world, 0x00, 0);
	poke(world, 0x0c, at(world, 0x100));
	put_i386_context(world, 0x10 + 12 + 128 + 20, 0x300, 0x3f0);
	ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { 0x200, 0, IP }, { 0x100, 0x10, FP },
		     { 0x300, 0x3f0, TRAMPOLINE }, { IN_ROOT, 0x408, CFI });
	world_free(world);
}

/* Pointers of an FDE without pc-relative encoding, and the address size of CIE version 4. */
static void check_i386_cie(uint8_t version, uint8_t address_size, int expected)
{
	struct world *world = make(PM_UNW_I386);
	struct bytes *to = &world->eh_frame;
	size_t begin, cie = to->vec.len;
	struct pm_unw_fde fde;

	begin = begin_entry(to, false);
	put_u32(to, 0);
	put_u8(to, version);
	put_u8(to, 0);
	if (version == 4) {
		put_u8(to, address_size);
		put_u8(to, 0);
	}
	put(to, "\x01\x7c\x08", 3);
	put(to, (uint8_t[]){ DW_CFA_def_cfa, ESP, 4 }, 3);
	end_entry(to, begin, false);
	begin = begin_entry(to, false);
	put_u32(to, begin - cie);
	put_u32(to, CODE + 0x100);
	put_u32(to, 0x40);
	put_u8(to, DW_CFA_set_loc);
	put_u32(to, CODE + 0x120);
	put(to, (uint8_t[]){ DW_CFA_def_cfa_offset, 24 }, 2);
	end_entry(to, begin, false);
	world_build(world, PM_UNW_I386);
	assert_int_equal(pm_unw_fde_find(world->map.module, CODE + 0x110, &fde),
			 expected);
	if (expected == 0) {
		struct pm_unw_row row;

		assert_int_equal(fde.start, CODE + 0x100);
		assert_int_equal(fde.end, CODE + 0x140);
		assert_int_equal(pm_unw_cfi_row(&fde, CODE + 0x11f, &row), 0);
		assert_int_equal(row.cfa_offset, 4);
		assert_int_equal(pm_unw_cfi_row(&fde, CODE + 0x120, &row), 0);
		assert_int_equal(row.cfa_offset, 24);
	}
	world_free(world);
}

static void test_i386_pointers(void **state)
{
	(void)state;
	check_i386_cie(1, 0, 0);
	check_i386_cie(4, 4, 0);
	check_i386_cie(4, 8, -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86_64_rules),
		cmocka_unit_test(test_x86_64_lost_register),
		cmocka_unit_test(test_other_machine),
		cmocka_unit_test(test_i386_rules),
		cmocka_unit_test(test_i386_wraps),
		cmocka_unit_test(test_i386_plt),
		cmocka_unit_test(test_i386_without_cfi),
		cmocka_unit_test(test_i386_signals),
		cmocka_unit_test(test_i386_handler_without_cfi),
		cmocka_unit_test(test_i386_pointers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
