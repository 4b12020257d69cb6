/* SPDX-License-Identifier: MIT */
/* The flow of control in words of aarch64, whose meaning is known, on whatever processor this
 * runs; and in words that are nothing. */
#include "src/count/flow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <elf.h>
#include <string.h>

#include <cmocka.h>

#define BASE  0x10000
#define TABLE 0x11123 /* of bytes */

#define BTI_C   0xd503245f
#define PACIASP 0xd503233f
#define AUTIASP 0xd50323bf
#define NOP     0xd503201f
#define RET     0xd65f03c0
#define BL      0x94040000 /* far away */
#define B       0x14040000
#define BRK     0xd4200020
#define CBZ     0xb4080000 /* x0, far away */
/* stp x29, x30, [sp, #-48]!; ldp x29, x30, [sp], #48 */
#define PUSH 0xa9bd7bfd
#define POP  0xa8c37bfd

struct memory {
	const uint32_t *code;
	size_t len;
	uint8_t table[16];
};

static bool read_memory(void *user, uint64_t address, void *ret, size_t len)
{
	const struct memory *memory = user;
	bool of_table = address >= TABLE;
	const uint8_t *from = of_table ? memory->table : (const uint8_t *)memory->code;
	uint64_t base = of_table ? TABLE : BASE;
	size_t have = of_table ? sizeof(memory->table) : memory->len;

	if (address < base || address - base > have || len > have - (address - base))
		return false;
	memcpy(ret, from + (address - base), len);
	return true;
}

struct read {
	struct memory memory;
	struct pm_flow flow;
	pm_places places;
	struct pm_flow_doubts doubts;
};

static void read_words(struct read *read, const uint32_t *code, size_t len)
{
	struct pm_flow_source source = { .machine = EM_AARCH64,
					 .is_64 = true,
					 .read = read_memory,
					 .user = &read->memory };
	struct pm_probe_piece whole = { BASE, BASE + len };

	read->memory.code = code;
	read->memory.len = len;
	assert_int_equal(pm_flow_open(&read->flow, &source, &whole, NULL, 0, true), 0);
	assert_int_equal(
		pm_flow_function_places(&read->flow, &read->places, &read->doubts), 0);
}

static void read_release(struct read *read)
{
	pm_vec_release(&read->places);
	pm_flow_close(&read->flow);
}

static void print_place(struct pm_str *str, const struct pm_place *place)
{
	static const char *const kinds[] = { "entry", "exit", "in", "out" };

	pm_str_printf(str, "%s%s %u sp ", str->len > 0 ? ", " : "", kinds[place->kind],
		      (unsigned int)(place->address - BASE) / 4);
	if (place->sp_known)
		pm_str_printf(str, "%u", place->sp_offset);
	else
		pm_str_puts(str, "?");
	pm_str_puts(str, place->cheap ? " cheap" : "");
	pm_str_puts(str, place->again ? " again" : "");
	if (place->condition)
		pm_str_printf(str, " if %u", place->condition);
	if (pm_place_asks_register(place))
		pm_str_printf(str, " of x%u&%llx", place->condition_register,
			      (unsigned long long)place->condition_bits);
}

/* One piece for each place: "entry 1 sp 0 cheap again if 5 of x0&ff", by numbers of words. */
static void assert_places(const uint32_t *code, size_t len, const char *expected)
{
	struct read read = { 0 };
	struct pm_str str = { 0 };

	read_words(&read, code, len);
	for (size_t i = 0; i < read.places.len; i++)
		print_place(&str, &read.places.data[i]);
	if (read.doubts.indirect > 0)
		pm_str_puts(&str, ", unsure");
	if (read.doubts.atomic > 0)
		pm_str_printf(&str, ", %zu atomic", read.doubts.atomic);
	if (read.doubts.bad_bytes > 0)
		pm_str_printf(&str, ", %zu bad", read.doubts.bad_bytes);
	assert_string_equal(str.data ? str.data : "", expected);
	pm_str_release(&str);
	read_release(&read);
}

#define PLACES(expected, ...)                                    \
	do {                                                     \
		static const uint32_t code_[] = { __VA_ARGS__ }; \
		assert_places(code_, sizeof(code_), expected);   \
	} while (0)

static void stacks_are_followed(void **state)
{
	/* sub sp, sp, #32; mov w8, w0; stp x29, x30, [sp, #16]; add x29, sp, #16; …; ldp x29,
	 * x30, [sp, #16]; add sp, sp, #32 */
	PLACES("entry 0 sp 0, exit 8 sp 0 cheap", BTI_C, 0xd10083ff, 0x2a0003e8,
	       0xa9017bfd, 0x910043fd, BL, 0xa9417bfd, 0x910083ff, B);
	/* mov x29, sp; sub sp, sp, x0: as much as it likes; …; mov sp, x29 */
	PLACES("entry 0 sp 0, exit 8 sp 0 cheap", PACIASP, PUSH, 0x910003fd, 0xcb2063ff,
	       BL, 0x910003bf, POP, AUTIASP, B);
	/* The same without the last: nobody knows. */
	PLACES("entry 0 sp 0, exit 5 sp ? cheap", PUSH, 0x910003fd, 0xcb2063ff, BL, POP,
	       B);
	/* mov x12, #4112; sub sp, sp, x12; str x30, [sp, #-16]!; …; ldr x30, [sp], #16; mov
	 * x12, #4112; add sp, sp, x12 */
	PLACES("entry 0 sp 0, exit 7 sp 0 cheap", 0xd282020c, 0xcb2c63ff, 0xf81f0ffe, BL,
	       0xf84107fe, 0xd282020c, 0x8b2c63ff, B);
	/* stp d8, d9, [sp, #-64]!; ldp d8, d9, [sp], #64; br x3 */
	PLACES("entry 0 sp 0, exit 2 sp 0 cheap", 0x6dbc27e8, 0x6cc427e8, 0xd61f0060);
	/* addvl sp, sp, #-2; st1 { v0.16b }, [sp], #16; and sp, x9, #-32 */
	PLACES("entry 0 sp 0, exit 1 sp ? cheap", 0x043f57df, B);
	PLACES("entry 0 sp 0, exit 1 sp ? cheap", 0x4c9f73e0, B);
	PLACES("entry 0 sp 0, exit 1 sp ? cheap", 0x927be93f, B);
	/* stg sp, [sp], #16 */
	PLACES("entry 0 sp 0, exit 2 sp 0 cheap", 0xd10043ff, 0xd92017ff, B);
}

/* Where a cbz leads far away in the middle. */
static void depths_are_known(void **state)
{
	PLACES("entry 0 sp 0, exit 1 sp 48 cheap if 31 of x0&ffffffffffffffff", PUSH, CBZ,
	       BRK);
	/* stp w0, w1, [sp, #-8]!; stp q0, q1, [sp, #-32]! */
	PLACES("entry 0 sp 0, exit 1 sp 8 cheap if 31 of x0&ffffffffffffffff", 0x29bf07e0,
	       CBZ, BRK);
	PLACES("entry 0 sp 0, exit 1 sp 32 cheap if 31 of x0&ffffffffffffffff",
	       0xadbf07e0, CBZ, BRK);
	/* mov x12, #4112; sub sp, sp, x12 */
	PLACES("entry 0 sp 0, exit 2 sp 4112 cheap if 31 of x0&ffffffffffffffff",
	       0xd282020c, 0xcb2c63ff, CBZ, BRK);
	/* add x29, sp, #16; sub sp, sp, x0; sub sp, x29, #32 */
	PLACES("entry 0 sp 0, exit 4 sp 64 cheap if 31 of x0&ffffffffffffffff", PUSH,
	       0x910043fd, 0xcb2063ff, 0xd10083bf, CBZ, BRK);
}

/* umov w29, v0.s[0]; fmov x29, d0; mrs x29, tpidr_el0; ldpsw x0, x29, [x1, #8]; mov x29, #7;
 * swpal w0, w29, [x2] */
static void writes_of_the_frame_pointer_are_seen(void **state)
{
	static const uint32_t writes[] = { 0x0e043c1d, 0x9e66001d, 0xd53bd05d,
					   0x69417420, 0xd28000fd, 0xb8e0805d };
	/* scvtf d0, x29; ccmp x29, #3, #13, eq; str x29, [x1]; add x0, x29, #1 */
	static const uint32_t reads[] = { 0x9e6203a0, 0xfa430bad, 0xf900003d,
					  0x910007a0 };

	for (size_t i = 0; i < PM_ARRAY_LEN(writes) + PM_ARRAY_LEN(reads); i++) {
		bool is_write = i < PM_ARRAY_LEN(writes);
		const uint32_t code[] = {
			PUSH,
			0x910003fd,
			is_write ? writes[i] : reads[i - PM_ARRAY_LEN(writes)],
			0x910003bf,
			POP,
			B
		};

		assert_places(code, sizeof(code),
			      is_write ? "entry 0 sp 0, exit 5 sp ? cheap"
				       : "entry 0 sp 0, exit 5 sp 0 cheap");
	}
}

static void entries_are_moved(void **state)
{
	/* mov w8, w0; adrp x0 */
	PLACES("entry 2 sp 0 cheap, exit 3 sp 0 cheap", BTI_C, 0x2a0003e8, 0x90000000,
	       RET);
	/* ldr x1, [x0], which may fault */
	PLACES("entry 0 sp 0, exit 2 sp 0 cheap", 0xf9400001, 0x90000000, RET);
	/* sub w0, w0, #1; cbnz to it */
	PLACES("entry 1 sp 0 cheap again, exit 2 sp 0 cheap", 0x51000400, 0x35ffffe0,
	       RET);
	PLACES("entry 0 sp 0 cheap, exit 0 sp 0 cheap", B);
	/* ldr w1, the literal behind; mov w8, w0; mov w9, w0: what is probed reads elsewhere. */
	PLACES("entry 1 sp 0, exit 3 sp 0 cheap", 0x18000081, 0x2a0003e8, 0x2a0003e9, RET,
	       0x12345678);
	/* yield, which may take its time */
	PLACES("entry 0 sp 0, exit 1 sp 0 cheap", 0xd503203f, RET);
}

static void jumps_out_are_exits(void **state)
{
	/* adrp x0; cbz x0; tbnz w1, #3; tbz x1, #40; cmp w0, #1; b.lt; cbnz w3; b.al */
	PLACES("entry 0 sp 0 cheap, "
	       "exit 1 sp 0 cheap if 31 of x0&ffffffffffffffff, "
	       "exit 2 sp 0 cheap if 32 of x1&8, "
	       "exit 3 sp 0 cheap if 31 of x1&10000000000, "
	       "exit 5 sp 0 cheap if 28, "
	       "exit 6 sp 0 cheap if 32 of x3&ffffffff, "
	       "exit 7 sp 0 cheap",
	       0x90000000, 0xb4080000, 0x371a0001, 0xb6420001, 0x7100041f, 0x5408000b,
	       0x35080003, 0x5408000e);
	/* ldr x1, [x0, #24]; br x1, or braa x1, x2 */
	PLACES("entry 0 sp 0, exit 1 sp 0 cheap", 0xf9400c01, 0xd61f0020);
	PLACES("entry 0 sp 0, exit 1 sp 0", 0xf9400c01, 0xd71f0822);
	/* retaa; brk #1; udf #0; nop */
	PLACES("entry 0 sp 0, exit 0 sp 0", 0xd65f0bff, 0xd4200020, 0, NOP);
	/* A jump by a register, where the stack is not given back. */
	PLACES("entry 0 sp 0", PUSH, 0xd61f0060);
	/* mov w0, #1; and on into what lies behind */
	PLACES("entry 0 sp 0, exit 1 sp 0", 0x52800020);
}

/* A probe in the middle would have it begin again for ever. */
static void atomic_sequences_are_left_alone(void **state)
{
	/* ldxr w1, [x0]; add w1, w1, #1; stxr w2, w1, [x0]; cbnz back; ret */
	static const uint32_t loop[] = { 0x885f7c01, 0x11000421, 0x88027c01, 0x35ffffa2,
					 RET };
	struct pm_probe_piece range = { BASE + 4, BASE + 8 };
	struct read read = { 0 };

	PLACES("exit 4 sp 0 cheap, 1 atomic", 0x885f7c01, 0x11000421, 0x88027c01,
	       0x35ffffa2, RET);
	/* casal x3, x4, [x5]; stlr w0, [x1] are alone */
	PLACES("entry 0 sp 0, exit 2 sp 0 cheap", 0xc8e3fca4, 0x889ffc20, RET);
	read_words(&read, loop, sizeof(loop));
	pm_vec_clear(&read.places);
	read.doubts.atomic = 0;
	assert_int_equal(
		pm_flow_range_places(&read.flow, &range, 1, &read.places, &read.doubts),
		0);
	assert_int_equal(read.places.len, 0);
	assert_int_equal(read.doubts.atomic, 2);
	read_release(&read);
}

/* ldr x0, and ldr q0, of what lies behind the ret, and looks like more of them. */
static void literals_are_no_code(void **state)
{
	PLACES("entry 2 sp 0 cheap, exit 2 sp 0 cheap", 0x58000060, 0x9c000080, RET, RET,
	       RET, RET, RET, RET, RET);
}

/* Targets of the only indirect jump, by numbers of words. */
static void assert_targets(const uint32_t *code, size_t len, const uint8_t *table,
			   const char *expected)
{
	struct read read = { 0 };
	struct pm_str str = { 0 };

	memcpy(read.memory.table, table, sizeof(read.memory.table));
	read_words(&read, code, len);
	assert_int_equal(read.flow.indirect.len, 1);
	assert_int_equal(read.flow.indirect.data[0].kind, PM_FLOW_TABLE);
	for (size_t i = 0; i < read.flow.indirect.data[0].targets.len; i++)
		pm_str_printf(&str, " %u",
			      (unsigned int)(read.flow.indirect.data[0].targets.data[i] -
					     BASE) /
				      4);
	assert_string_equal(str.data ? str.data : "", expected);
	pm_str_release(&str);
	read_release(&read);
}

static void tables_are_read(void **state)
{
	/* cmp w0, #2; b.hi; adrp x1; add x1, x1, #0x123; ldrb w1, [x1, w0, uxtw]; adr x2, 8;
	 * add x1, x2, w1, sxtb #2; br x1; and two ends */
	uint32_t gcc[] = { 0x7100081f, 0x54000128, 0xb0000001, 0x91048c21,
			   0x38604821, 0x10000062, 0x8b218841, 0xd61f0020,
			   0x52800020, RET,        0x52800040, RET };
	/* cmp w0, #2; b.hi; mov w8, w0; adrp x9; add x9, x9, #0x123; adr x10, 9; ldrh w11, [x9,
	 * x8, lsl #1]; add x10, x10, x11, lsl #2; br x10 */
	static const uint32_t clang[] = { 0x7100081f, 0x54000128, 0x2a0003e8, 0xb0000009,
					  0x91048d29, 0x1000008a, 0x7868792b, 0x8b0b094a,
					  0xd61f0140, RET,        RET };
	/* ldrsw x11, [x9, x8, lsl #2]; add x10, x9, x11; from the table itself */
	static const uint32_t far[] = { 0xb0000009, 0x91048d29, 0xb8a8792b, 0x8b0b012a,
					0xd61f0140, RET,        RET };
	static const uint8_t bytes[16] = { 0, 0xfe, 2, 1, 1, 1 };
	static const uint8_t halves[16] = { 0, 0, 1, 0, 0, 0, 1, 0 };
	uint32_t words[4] = { BASE + 24 - TABLE, BASE + 20 - TABLE, BASE - TABLE, 0 };

	assert_targets(gcc, sizeof(gcc), bytes, " 8 6 10");
	/* Without the comparison nobody knows how many there are. */
	gcc[0] = NOP;
	assert_targets(gcc, sizeof(gcc), bytes, "");
	assert_targets(clang, sizeof(clang), halves, " 9 10 9");
	assert_targets(far, sizeof(far), (const uint8_t *)words, " 6 5 0");
}

static void conditions_hold(void **state)
{
	static const struct {
		struct pm_place place;
		uint64_t yes, no;
	} rows[] = {
		{ { .condition = PM_PLACE_IF_NZCV + 0 },
		  0x40000000,
		  0xb0000000 }, /* eq */
		{ { .condition = PM_PLACE_IF_NZCV + 1 }, 0, 0x40000000 }, /* ne */
		{ { .condition = PM_PLACE_IF_NZCV + 2 }, 0x20000000, 0 }, /* hs */
		{ { .condition = PM_PLACE_IF_NZCV + 4 }, 0x80000000, 0 }, /* mi */
		{ { .condition = PM_PLACE_IF_NZCV + 6 }, 0x10000000, 0 }, /* vs */
		{ { .condition = PM_PLACE_IF_NZCV + 8 },
		  0x20000000,
		  0x60000000 }, /* hi */
		{ { .condition = PM_PLACE_IF_NZCV + 9 },
		  0x60000000,
		  0x20000000 }, /* ls */
		{ { .condition = PM_PLACE_IF_NZCV + 10 },
		  0x90000000,
		  0x80000000 }, /* ge */
		{ { .condition = PM_PLACE_IF_NZCV + 11 }, 0x10000000, 0 }, /* lt */
		{ { .condition = PM_PLACE_IF_NZCV + 12 },
		  0x90000000,
		  0xd0000000 }, /* gt */
		{ { .condition = PM_PLACE_IF_NZCV + 13 }, 0x40000000, 0 }, /* le */
		{ { .condition = PM_PLACE_IF_NO_BITS, .condition_bits = UINT32_MAX },
		  UINT64_C(1) << 32,
		  1 },
		{ { .condition = PM_PLACE_IF_BITS, .condition_bits = 8 }, 12, 4 },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(rows); i++) {
		assert_true(pm_place_leaves(&rows[i].place, rows[i].yes));
		assert_false(pm_place_leaves(&rows[i].place, rows[i].no));
	}
}

static void any_words_are_read(void **state)
{
	uint32_t code[64];
	uint64_t seed = 88172645463325252;

	for (int round = 0; round < 2000; round++) {
		struct read read = { 0 };
		size_t len = sizeof(code) - (size_t)round % 4;

		for (size_t i = 0; i < PM_ARRAY_LEN(code); i++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			code[i] = (uint32_t)seed;
		}
		read_words(&read, code, len);
		assert_int_equal(read.flow.insns.len, len / 4);
		for (size_t i = 0; i < read.flow.insns.len; i++)
			assert_int_equal(read.flow.insns.data[i].address, BASE + 4 * i);
		read_release(&read);
	}
}

static void crooked_addresses_are_no_code(void **state)
{
	static const uint8_t bytes[8] = {
		0xc0, 0x03, 0x5f, 0xd6, 0xc0, 0x03, 0x5f, 0xd6
	};
	struct memory memory = { .code = (const uint32_t *)(const void *)bytes,
				 .len = sizeof(bytes) };
	struct pm_flow_source source = {
		.machine = EM_AARCH64, .is_64 = true, .read = read_memory, .user = &memory
	};
	struct pm_probe_piece whole = { BASE + 1, BASE + 7 };
	struct pm_flow flow;

	assert_int_equal(pm_flow_open(&flow, &source, &whole, NULL, 0, true), 0);
	assert_int_equal(flow.bad_bytes, 6);
	pm_flow_close(&flow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_are_followed),
		cmocka_unit_test(depths_are_known),
		cmocka_unit_test(writes_of_the_frame_pointer_are_seen),
		cmocka_unit_test(entries_are_moved),
		cmocka_unit_test(jumps_out_are_exits),
		cmocka_unit_test(atomic_sequences_are_left_alone),
		cmocka_unit_test(literals_are_no_code),
		cmocka_unit_test(tables_are_read),
		cmocka_unit_test(conditions_hold),
		cmocka_unit_test(any_words_are_read),
		cmocka_unit_test(crooked_addresses_are_no_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
