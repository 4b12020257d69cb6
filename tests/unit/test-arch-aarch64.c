/* SPDX-License-Identifier: MIT */
/*
 * aarch64 over CFI, code and stacks made by hand, for there is no machine at hand: each chain
 * is known before.
 */
#include "arch-world.h"

enum {
	NEGATE_RA_STATE = 0x2d,
	NEGATE_RA_STATE_WITH_PC = 0x2c,
	X29 = 29,
	LR = 30,
	SP = 31,
};

/* A saved frame record at the bottom of a frame of 32 bytes, and x19. */
#define A64_FRAME                                                                  \
	DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 32, DW_CFA_offset | X29, 4, \
		DW_CFA_offset | LR, 3, DW_CFA_offset | 19, 2

static void test_aarch64_rules(void **state)
{
	struct world *world = make(PM_UNW_AARCH64);

	(void)state;
	FDE(world, 0, 0x40);
	FDE(world, 0x100, 0x40, A64_FRAME);
	FDE(world, 0x200, 0x40, DW_CFA_def_cfa, 19, 16, DW_CFA_offset | LR, 1);
	begin_at(world, 0x10);
	set(world, LR, at(world, 0x120));
	set(world, 19, 1);
	poke(world, 8, at(world, 0x210));
	poke(world, 16, on_stack(world, 0x40)); /* x19 */
	poke(world, 0x48, at(world, IN_ROOT));
	ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { 0x10, 0, IP }, { 0x120, 0, CFI },
		     { 0x210, 32, CFI }, { IN_ROOT, 0x50, CFI });
	/* In the prologue, before anything is saved. */
	begin_at(world, 0x100);
	set(world, LR, at(world, IN_ROOT));
	ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { 0x100, 0, IP }, { IN_ROOT, 0, CFI });
	/* In an epilogue of which CFI says nothing but where the CFA is. */
	FDE(world, 0x300, 0x40, A64_FRAME, DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset,
	    0);
	world_build(world, PM_UNW_AARCH64);
	begin_at(world, 0x308);
	ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { 0x308, 0, IP }, { IN_ROOT, 0, CFI });
	world_free(world);
}

/* A caller has overwritten x30 by its call: what "same value" says is not so there. */
static void test_aarch64_link_register_is_lost(void **state)
{
	struct world *world = make(PM_UNW_AARCH64);

	(void)state;
	FDE(world, 0, 0x40);
	FDE(world, 0x100, 0x40, DW_CFA_def_cfa_offset, 32);
	FDE(world, 0x200, 0x40, A64_FRAME, DW_CFA_expression, 20, 2, DW_OP_breg31, 0);
	begin_at(world, 0x10);
	set(world, LR, at(world, 0x120));
	ASSERT_CHAIN(world, PM_UNW_STOP_NO_REGISTER, { 0x10, 0, IP }, { 0x120, 0, CFI });
	/* The same behind a row that is no rule, which restores x30. */
	begin_at(world, 0x220);
	poke(world, 8, at(world, 0x120));
	ASSERT_CHAIN(world, PM_UNW_STOP_NO_REGISTER, { 0x220, 0, IP },
		     { 0x120, 32, CFI });
	/* And a leaf that says to be its own caller. */
	begin_at(world, 0x10);
	set(world, LR, at(world, 0x10));
	ASSERT_CHAIN(world, PM_UNW_STOP_NO_PROGRESS, { 0x10, 0, IP });
	world_free(world);
}

static bool is_signed(struct world *world, uint64_t svma)
{
	struct pm_unw_fde fde;
	struct pm_unw_row row;

	assert_int_equal(pm_unw_fde_find(world->map.module, CODE + svma, &fde), 0);
	assert_int_equal(pm_unw_cfi_row(&fde, CODE + svma, &row), 0);
	assert_true(row.ra_signed <= 1);
	return row.ra_signed;
}

static void test_aarch64_sign_state(void **state)
{
	struct world *world = make(PM_UNW_AARCH64);
	struct pm_unw_fde fde;
	struct pm_unw_row row;

	(void)state;
	FDE(world, 0, 0x40, DW_CFA_advance_loc | 1, NEGATE_RA_STATE,
	    DW_CFA_advance_loc | 1, DW_CFA_remember_state, NEGATE_RA_STATE,
	    DW_CFA_advance_loc | 1, DW_CFA_restore_state, DW_CFA_advance_loc | 1,
	    NEGATE_RA_STATE_WITH_PC);
	world_cie(world, "zRB", LR,
		  (const uint8_t[]){ DW_CFA_def_cfa, SP, 0, NEGATE_RA_STATE }, 4);
	FDE(world, 0x100, 0x40, DW_CFA_advance_loc | 1, NEGATE_RA_STATE);
	world_build(world, PM_UNW_AARCH64);
	assert_false(is_signed(world, 0));
	assert_true(is_signed(world, 4));
	assert_false(is_signed(world, 8));
	assert_true(is_signed(world, 12));
	assert_false(is_signed(world, 16));
	assert_true(is_signed(world, 0x100));
	assert_false(is_signed(world, 0x104));
	world_free(world);

	/* SPARC's DW_CFA_GNU_window_save has the same number, and is not of ours either. */
	world = make(PM_UNW_X86_64);
	FDE(world, 0, 0x40, NEGATE_RA_STATE);
	world_build(world, PM_UNW_X86_64);
	assert_int_equal(pm_unw_fde_find(world->map.module, CODE, &fde), 0);
	assert_int_equal(pm_unw_cfi_row(&fde, CODE, &row), -EBADMSG);
	world_free(world);
}

static void test_aarch64_pac(void **state)
{
	const uint64_t code = 0xb57a000000000000; /* above 48 bits, but for bit 55 */
	struct world *world = make(PM_UNW_AARCH64);

	(void)state;
	FDE(world, 0, 0x40, DW_CFA_advance_loc | 1, NEGATE_RA_STATE);
	FDE(world, 0x100, 0x40, NEGATE_RA_STATE, A64_FRAME);
	FDE(world, 0x200, 0x40, A64_FRAME);
	begin_at(world, 0x10);
	set(world, LR, at(world, 0x120) ^ code);
	poke(world, 8, at(world, 0x210) ^ code);
	poke(world, 32 + 8, at(world, IN_ROOT));
	ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { 0x10, 0, IP }, { 0x120, 0, CFI },
		     { 0x210, 32, CFI }, { IN_ROOT, 64, CFI });
	/* Signed, though CFI does not know: then only behind a call. */
	poke(world, 32 + 8, at(world, IN_ROOT) ^ code);
	ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { 0x10, 0, IP }, { 0x120, 0, CFI },
		     { 0x210, 32, CFI }, { IN_ROOT, 64, CFI });
	poke(world, 32 + 8, at(world, IN_ROOT + 4) ^ code);
	ASSERT_CHAIN(world, PM_UNW_STOP_NO_MODULE, { 0x10, 0, IP }, { 0x120, 0, CFI },
		     { 0x210, 32, CFI });
	world_free(world);
}

static void test_aarch64_pac_mask(void **state)
{
	struct pm_unw_map map = { .start = 0x7f12340000, .end = 0x7f12350000 };
	struct pm_unw_space space = { .maps = &map, .len = 1 };

	(void)state;
	/* 39 bits of address: what is mapped last tells. */
	assert_int_equal(pm_unw_strip_pac(&space, 0xff7faaff12345678), 0x7f12345678);
	assert_int_equal(pm_unw_strip_pac(&space, 0x7f12345678), 0x7f12345678);
	/* A program far down does not make all above it a signature. */
	map = (struct pm_unw_map){ .start = 0x400000, .end = 0x401000 };
	assert_int_equal(pm_unw_strip_pac(&space, 0xffff000f12345678), 0xf12345678);
	/* 52 bits, and the end of the address space itself. */
	map = (struct pm_unw_map){ .start = 0xf000000000000, .end = 0x10000000000000 };
	assert_int_equal(pm_unw_strip_pac(&space, 0xff7faaff12345678), 0xfaaff12345678);
	/* The kernel's word goes before that. */
	space.pac_mask = 0x7f000000000000;
	assert_int_equal(pm_unw_strip_pac(&space, 0xff7faaff12345678),
			 0xff00aaff12345678);
	space = (struct pm_unw_space){ 0 };
	assert_int_equal(pm_unw_strip_pac(&space, 0x12345678), 0x12345678);
}

static void test_aarch64_frame_pointer(void **state)
{
	struct world *world = make(PM_UNW_AARCH64);

	(void)state;
	insn(world, 0x400, 0xa9be7bfd); /* stp x29, x30, [sp, #-32]! */
	insn(world, 0x404, 0x910003fd); /* mov x29, sp */
	call_before(world, 0x120);
	call_before(world, 0x220);
	/* Both know their CFA from sp alone, which a step by frame pointer does not. */
	FDE(world, 0x100, 0x40, A64_FRAME);
	FDE(world, 0x200, 0x40, DW_CFA_def_cfa, X29, 48, DW_CFA_offset | LR, 1);
	begin_at(world, 0x410);
	set(world, X29, on_stack(world, 0));
	set(world, LR, at(world, 0x220)); /* left over */
	poke(world, 0, on_stack(world, 0x40));
	poke(world, 8, at(world, 0x120) | (uint64_t)0x42 << 48);
	poke(world, 0x40, on_stack(world, 0x80));
	poke(world, 0x48, at(world, 0x220));
	poke(world, 0xa8, at(world, IN_ROOT));
	ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { 0x410, 0, IP },
		     { 0x120, (uint64_t)SP_UNKNOWN, FP },
		     { 0x220, (uint64_t)SP_UNKNOWN, FP }, { IN_ROOT, 0xb0, CFI });
	/* Neither frame pointers nor CFAs fall; not even to where an address of 0 stands. */
	poke(world, 0x40, on_stack(world, 0x10));
	ASSERT_CHAIN(world, PM_UNW_STOP_NO_PROGRESS, { 0x410, 0, IP },
		     { 0x120, (uint64_t)SP_UNKNOWN, FP },
		     { 0x220, (uint64_t)SP_UNKNOWN, FP });
	poke(world, 0, on_stack(world, 8));
	ASSERT_CHAIN(world, PM_UNW_STOP_NO_REGISTER, { 0x410, 0, IP },
		     { 0x120, (uint64_t)SP_UNKNOWN, FP });
	world_free(world);
}

/* Each form of a call, and what is none, before a return address found by frame pointer. */
static void test_aarch64_calls(void **state)
{
	static const struct {
		uint32_t code;
		bool is_call;
	} codes[] = {
		{ 0x94000010, true }, /* bl */
		{ 0x97ffffff, true },  { 0xd63f0200, true }, /* blr x16 */
		{ 0xd63f0a1f, true }, /* blraaz x16 */
		{ 0xd63f0e1f, true }, /* blrabz x16 */
		{ 0xd73f0a11, true }, /* blraa x16, x17 */
		{ 0xd73f0e11, true }, /* blrab x16, x17 */
		{ 0x14000010, false }, /* b */
		{ 0xd61f0200, false }, /* br x16 */
		{ 0xd65f03c0, false }, /* ret */
		{ 0xd71f0a11, false }, /* braa x16, x17 */
		{ 0xd503201f, false }, /* nop */
	};

	(void)state;
	for (size_t i = 0; i < PM_ARRAY_LEN(codes); i++) {
		struct world *world = make(PM_UNW_AARCH64);

		insn(world, 0x400, 0x910003fd); /* mov x29, sp */
		insn(world, IN_ROOT - 4, codes[i].code);
		begin_at(world, 0x410);
		set(world, X29, on_stack(world, 0));
		poke(world, 8, at(world, IN_ROOT));
		walk(world);
		assert_int_equal(world->len, codes[i].is_call ? 2 : 1);
		assert_int_equal(world->stop, codes[i].is_call ? PM_UNW_STOP_ROOT
							       : PM_UNW_STOP_NO_CFI);
		world_free(world);
	}
}

/*
 * Without CFI: whether x30 is the return address is told by the code, here one instruction and
 * a second one, before which the pc stands. SP_UNKNOWN: it is, but the stack pointer has moved.
 */
enum link {
	LIVE,
	PUSHED,
	PAIRED, /* by 16 bytes */
	SAVED,
};

static void check_aarch64_link(uint32_t before, uint32_t next, enum link link)
{
	const uint64_t signature = (uint64_t)0x77 << 48;
	const uint64_t sp[] = { [PUSHED] = (uint64_t)SP_UNKNOWN, [PAIRED] = 16 };
	struct world *world = make(PM_UNW_AARCH64);

	insn(world, 0x400, before);
	insn(world, 0x404, next);
	begin_at(world, 0x404);
	set(world, LR, at(world, IN_ROOT) | signature);
	set(world, X29, 0);
	if (link == SAVED)
		ASSERT_CHAIN(world, PM_UNW_STOP_NO_CFI, { 0x404, 0, IP });
	else
		ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { 0x404, 0, IP },
			     { IN_ROOT, sp[link], LEAF });
	world_free(world);
}

static void test_aarch64_leaf(void **state)
{
	const uint32_t nop = 0xd503201f;

	(void)state;
	check_aarch64_link(0xd503245f, nop, LIVE); /* bti c */
	check_aarch64_link(0xd503233f, nop, LIVE); /* paciasp */
	check_aarch64_link(0xd65f03c0, nop, LIVE); /* the ret of what is before */
	check_aarch64_link(0xa8c27bfd, nop, LIVE); /* ldp x29, x30, [sp], #32 */
	check_aarch64_link(0xf84107fe, nop, LIVE); /* ldr x30, [sp], #16 */
	check_aarch64_link(0xa9be7bfd, nop, PUSHED); /* stp x29, x30, [sp, #-32]! */
	check_aarch64_link(0xa9017bfd, nop, PUSHED); /* stp x29, x30, [sp, #16] */
	check_aarch64_link(0xf81f0ffe, nop, PUSHED); /* str x30, [sp, #-16]! */
	check_aarch64_link(0xd10083ff, nop, PUSHED); /* sub sp, sp, #32 */
	check_aarch64_link(0xcb2c63ff, nop, PUSHED); /* sub sp, sp, x12 */
	check_aarch64_link(0xa9407bfd, nop, PUSHED); /* ldp x29, x30, [sp] */
	check_aarch64_link(0xf9400bfe, nop, PUSHED); /* ldr x30, [sp, #16] */
	check_aarch64_link(0xa9bf7bf0, nop, PAIRED); /* stp x16, x30, [sp, #-16]! */
	check_aarch64_link(0xd61f0220, nop, LIVE); /* br x17 */
	check_aarch64_link(0x910003fd, nop, SAVED); /* mov x29, sp */
	check_aarch64_link(0x910043fd, nop, SAVED); /* add x29, sp, #16 */
	check_aarch64_link(0x94000000, nop, SAVED); /* bl */
	/* A function may follow a call that does not return. */
	check_aarch64_link(0x94000000, 0xd503233f, LIVE); /* paciasp */
	check_aarch64_link(0x94000000, 0xa9be7bfd, LIVE);
	check_aarch64_link(0x94000000, 0xd10083ff, LIVE);
	check_aarch64_link(0x94000000, 0xa9bf7bf0, LIVE);
}

enum {
	RESOLVER = 0x300,
	RESOLVER_CALLS = 0x348, /* where the call returns to */
	RESOLVER_POPS = 0x370, /* the pair */
	RESOLVER_JUMPS = 0x374,
	RESOLVER_BYTES = 0x78,
};

/* Of glibc 2.36, as Debian's is: advances count in instructions, places in words from the CFA. */
static void add_resolver(struct world *world, uint32_t first)
{
	FDE(world, RESOLVER, RESOLVER_BYTES, DW_CFA_advance_loc | 1,
	    DW_CFA_offset_extended_sf, LR, 0x7f, DW_CFA_advance_loc | 1,
	    DW_CFA_def_cfa_offset, 0xd0, 0x01, DW_CFA_offset | 8, 26, DW_CFA_offset | 9,
	    25, DW_CFA_advance_loc | 1, DW_CFA_offset | 6, 24, DW_CFA_offset | 7, 23,
	    DW_CFA_advance_loc | 1, DW_CFA_offset | 4, 22, DW_CFA_offset | 5, 21,
	    DW_CFA_advance_loc | 1, DW_CFA_offset | 2, 20, DW_CFA_offset | 3, 19,
	    DW_CFA_advance_loc | 1, DW_CFA_offset | 0, 18, DW_CFA_offset | 1, 17,
	    DW_CFA_advance_loc | 1, DW_CFA_offset_extended, 64, 16,
	    DW_CFA_offset_extended, 65, 14, DW_CFA_advance_loc | 1,
	    DW_CFA_offset_extended, 64, 12, DW_CFA_offset_extended, 65, 10,
	    DW_CFA_advance_loc | 1, DW_CFA_offset_extended, 64, 8, DW_CFA_offset_extended,
	    65, 6, DW_CFA_advance_loc | 1, DW_CFA_offset_extended, 64, 4,
	    DW_CFA_offset_extended, 65, 2, DW_CFA_advance_loc | 18, DW_CFA_def_cfa_offset,
	    0, DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset_sf, 2);
	insn(world, RESOLVER, first);
	insn(world, RESOLVER + 4, 0xa9b327e8); /* stp x8, x9, [sp, #-208]! */
}

/*
 * A function whose frame is counted from sp, and has 64 bytes, calls by the PLT for the first
 * time: at each instruction of the resolver, which has pushed @pushed by then, on top of the pair.
 */
static void check_resolver(struct world *world, uint64_t svma, uint64_t pushed)
{
	const uint64_t pair = svma == RESOLVER_JUMPS ? 0 : 16;

	begin_at(world, svma);
	set(world, LR,
	    at(world,
	       svma >= RESOLVER_CALLS && svma <= RESOLVER_POPS ? RESOLVER_CALLS : 0x120));
	if (pair > 0) {
		poke(world, pushed, at(world, 0x700)); /* x16 */
		poke(world, pushed + 8, at(world, 0x120));
	}
	poke(world, pushed + pair + 40, at(world, IN_ROOT));
	ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { svma, 0, IP },
		     { 0x120, pushed + pair, CFI }, { IN_ROOT, pushed + pair + 64, CFI });
	memset(world->stack, 0, sizeof(world->stack));
}

static void test_aarch64_resolver(void **state)
{
	static const uint32_t firsts[] = { 0xd503201f, 0xd503245f }; /* nop, bti c */

	(void)state;
	for (size_t i = 0; i < PM_ARRAY_LEN(firsts); i++) {
		struct world *world = make(PM_UNW_AARCH64);

		FDE(world, 0x100, 0x40, DW_CFA_def_cfa_offset, 64, DW_CFA_offset | LR, 3);
		add_resolver(world, firsts[i]);
		check_resolver(world, RESOLVER, 0);
		check_resolver(world, RESOLVER + 4, 0);
		for (uint64_t svma = RESOLVER + 8; svma < RESOLVER_POPS; svma += 4)
			check_resolver(world, svma, 208);
		check_resolver(world, RESOLVER_POPS, 0);
		check_resolver(world, RESOLVER_JUMPS, 0);
		world_free(world);
	}
}

/* And in what it calls, by the lookup address before the return address. */
static void test_aarch64_resolver_as_caller(void **state)
{
	struct world *world = make(PM_UNW_AARCH64);

	(void)state;
	FDE(world, 0, 0x40, A64_FRAME);
	FDE(world, 0x100, 0x40, DW_CFA_def_cfa_offset, 64, DW_CFA_offset | LR, 3);
	add_resolver(world, 0xd503201f);
	begin_at(world, 0x10);
	poke(world, 8, at(world, RESOLVER_CALLS));
	poke(world, 32 + 208 + 8, at(world, 0x120));
	poke(world, 32 + 208 + 16 + 40, at(world, IN_ROOT));
	ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { 0x10, 0, IP },
		     { RESOLVER_CALLS, 32, CFI }, { 0x120, 32 + 208 + 16, CFI },
		     { IN_ROOT, 32 + 208 + 16 + 64, CFI });
	world_free(world);
}

/* What is not quite like it is taken at its word: a CFA from elsewhere, another place. */
static void test_aarch64_no_resolver(void **state)
{
	struct world *world = make(PM_UNW_AARCH64);

	(void)state;
	FDE(world, 0x100, 0x40, DW_CFA_def_cfa, 19, 0, DW_CFA_offset_extended_sf, LR,
	    0x7f); /* as longjmp has it */
	FDE(world, 0x200, 0x40, DW_CFA_def_cfa_offset, 32, DW_CFA_offset_extended_sf, LR,
	    0x7e);
	FDE(world, 0x400, 0x40, DW_CFA_advance_loc | 1, DW_CFA_offset_extended_sf, LR,
	    0x7f);
	insn(world, 0x400,
	     0xa9bf7bf0); /* stp x16, x30, [sp, #-16]!: it has pushed it itself */
	world_cie(world, "zRS", LR, (const uint8_t[]){ DW_CFA_def_cfa, SP, 16 }, 3);
	FDE(world, 0x500, 0x40, DW_CFA_offset_extended_sf, LR, 0x7f);
	set(world, 19, on_stack(world, 32));
	poke(world, 32 + 8, at(world, IN_ROOT));
	begin_at(world, 0x110);
	ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { 0x110, 0, IP }, { IN_ROOT, 32, CFI });
	poke(world, 32 + 16, at(world, IN_ROOT));
	begin_at(world, 0x210);
	ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { 0x210, 0, IP }, { IN_ROOT, 32, CFI });
	begin_at(world, 0x400);
	set(world, LR, at(world, IN_ROOT));
	ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { 0x400, 0, IP }, { IN_ROOT, 0, CFI });
	begin_at(world, 0x510);
	poke(world, 16 + 8, at(world, IN_ROOT));
	ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { 0x510, 0, IP }, { IN_ROOT, 16, CFI });
	world_free(world);
}

/* A PLT as lld and binutils make them has no CFI. */
static void test_aarch64_plt(void **state)
{
	static const uint32_t plt[] = {
		0xa9bf7bf0, 0x90000010, 0xf9400211, 0x91000210, 0xd61f0220,
		0xd503201f, 0xd503201f, 0xd503201f, /* stp, adrp, ldr, add, br; nops */
		0x90000010, 0xf9400211, 0x91000210, 0xd61f0220, /* an entry */
		0x90000010, 0xf9400211, 0x91000210, 0xd61f0220,
	};
	struct world *world = make(PM_UNW_AARCH64);

	(void)state;
	FDE(world, 0x100, 0x40, DW_CFA_def_cfa_offset, 64, DW_CFA_offset | LR, 3);
	call_before(world, 0x120);
	insn(world, 0x7fc, 0x94000010); /* what is before it ends with bl */
	for (size_t i = 0; i < PM_ARRAY_LEN(plt); i++)
		insn(world, 0x800 + i * 4, plt[i]);
	set(world, LR, at(world, 0x120));
	for (size_t i = 0; i < PM_ARRAY_LEN(plt); i++) {
		uint64_t sp = i > 0 && i < 5 ? 16 : 0;

		if (i >= 5 && i < 8)
			continue;
		begin_at(world, 0x800 + i * 4);
		memset(world->stack, 0, sizeof(world->stack));
		poke(world, sp + 40, at(world, IN_ROOT));
		ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { 0x800 + i * 4, 0, IP },
			     { 0x120, sp, LEAF }, { IN_ROOT, sp + 64, CFI });
	}
	world_free(world);
}

enum {
	A64_REGS = 128 + 176 + 8, /* from sp: siginfo, ucontext, fault_address */
};

/* Interrupted in a leaf, at its first instruction. */
static struct world *make_aarch64_signal(void)
{
	struct world *world = make(PM_UNW_AARCH64);

	FDE(world, 0, 0x40); /* the handler */
	FDE(world, 0x300, 0x40); /* what was interrupted */
	insn(world, 0x4fc, 0xd503201f); /* nop */
	insn(world, 0x500, 0xd2801168); /* mov x8, #139 */
	insn(world, 0x504, 0xd4000001); /* svc #0 */
	begin_at(world, 0x10);
	set(world, 8, 139);
	set(world, LR, at(world, 0x500));
	set(world, X29, on_stack(world, 0x600));
	for (uint64_t i = 0; i < 31; i++)
		poke(world, A64_REGS + i * 8, i);
	poke(world, A64_REGS + LR * 8, at(world, IN_ROOT));
	poke(world, A64_REGS + 31 * 8, on_stack(world, 0x700));
	poke(world, A64_REGS + 32 * 8, at(world, 0x300));
	/* The frame record that the kernel makes for those who know nothing else. */
	poke(world, 0x600, 0);
	poke(world, 0x608, at(world, IN_ROOT));
	return world;
}

static void test_aarch64_signal(void **state)
{
	struct world *world = make_aarch64_signal();

	(void)state;
	ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { 0x10, 0, IP }, { 0x500, 0, CFI },
		     { 0x300, 0x700, TRAMPOLINE }, { IN_ROOT, 0x700, CFI });
	/* Before and in the system call. */
	for (uint64_t pc = 0x504; pc <= 0x508; pc += 4) {
		begin_at(world, pc);
		ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { pc, 0, IP },
			     { 0x300, 0x700, TRAMPOLINE }, { IN_ROOT, 0x700, CFI });
	}
	world_free(world);

	/* The vDSO of older kernels has CFI that leads past what was interrupted. */
	world = make_aarch64_signal();
	world_cie(world, "zRS", LR, (const uint8_t[]){ DW_CFA_def_cfa, X29, 0 }, 3);
	FDE(world, 0x4fc, 0x0c, DW_CFA_offset | X29, 0, DW_CFA_offset_extended_sf, LR,
	    0x7f);
	ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { 0x10, 0, IP }, { 0x500, 0, CFI },
		     { 0x300, 0x700, TRAMPOLINE }, { IN_ROOT, 0x700, CFI });
	/* Other code with such CFI is taken at its word. */
	insn(world, 0x504, 0xd4000021);
	world_build(world, PM_UNW_AARCH64);
	ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { 0x10, 0, IP }, { 0x500, 0, CFI },
		     { IN_ROOT, 0x600, CFI });
	world_free(world);
}

/* AADWARF64 §4.1: a signal frame may have the pc for its return address column. */
static void test_aarch64_pc_column(void **state)
{
	struct world *world = make_aarch64_signal();

	(void)state;
	insn(world, 0x504, 0xd4000021);
	world_cie(world, "zRS", 32,
		  (const uint8_t[]){ DW_CFA_def_cfa_expression, 5, DW_OP_breg31, 0xb0,
				     0x04, DW_OP_deref, DW_OP_nop },
		  7);
	FDE(world, 0x4fc, 0x0c, DW_CFA_expression, 32, 3, DW_OP_breg31, 0xb8, 0x04,
	    DW_CFA_expression, LR, 3, DW_OP_breg31, 0xa8, 0x04);
	ASSERT_CHAIN(world, PM_UNW_STOP_ROOT, { 0x10, 0, IP }, { 0x500, 0, CFI },
		     { 0x300, 0x700, CFI }, { IN_ROOT, 0x700, CFI });
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_aarch64_rules),
		cmocka_unit_test(test_aarch64_link_register_is_lost),
		cmocka_unit_test(test_aarch64_sign_state),
		cmocka_unit_test(test_aarch64_pac),
		cmocka_unit_test(test_aarch64_pac_mask),
		cmocka_unit_test(test_aarch64_frame_pointer),
		cmocka_unit_test(test_aarch64_calls),
		cmocka_unit_test(test_aarch64_leaf),
		cmocka_unit_test(test_aarch64_resolver),
		cmocka_unit_test(test_aarch64_resolver_as_caller),
		cmocka_unit_test(test_aarch64_no_resolver),
		cmocka_unit_test(test_aarch64_plt),
		cmocka_unit_test(test_aarch64_signal),
		cmocka_unit_test(test_aarch64_pc_column),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
