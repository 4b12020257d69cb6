/* SPDX-License-Identifier: MIT */
/* Words of aarch64 that breakpoints stand for: what they do, carried out or in a slot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>

#include "src/count/engine-ptrace.h"

enum {
	LINK = 30,
	WORD = 4,
};
#define AT    UINT64_C(0x412340)
#define CARRY (UINT64_C(1) << 29)

/* Registers as before each of the words. */
static struct pm_ptr_arm64 before(void)
{
	struct pm_ptr_arm64 regs = { .sp = 0x7ff0, .pc = AT };

	for (size_t i = 0; i < PM_ARRAY_LEN(regs.x); i++)
		regs.x[i] = 0x1000 * (i + 1);
	return regs;
}

static void check_regs(uint32_t word, const struct pm_ptr_arm64 *from,
		       const struct pm_ptr_arm64 *to)
{
	struct pm_ptr_arm64 regs = *from;

	assert_true(pm_ptr_arm64_run(word, &regs));
	assert_int_equal(regs.pc, to->pc);
	assert_memory_equal(&regs, to, sizeof(regs));
}

/* That the word goes by @by bytes and does nothing else. */
static void check_by(uint32_t word, const struct pm_ptr_arm64 *from, int64_t by)
{
	struct pm_ptr_arm64 to = *from;

	to.pc += (uint64_t)by;
	check_regs(word, from, &to);
}

static void test_jumps(void **state)
{
	struct pm_ptr_arm64 from = before(), to = from;

	check_by(0x14000008, &from, 32); /* b .+32 */
	check_by(0x17ffffe0, &from, -128); /* b .-128 */
	to.pc += 64;
	to.x[LINK] = AT + WORD;
	check_regs(0x94000010, &from, &to); /* bl .+64 */
	to = from;
	to.pc = from.x[4];
	check_regs(0xd61f0080, &from, &to); /* br x4 */
	to.x[LINK] = AT + WORD;
	check_regs(0xd63f0080, &from, &to); /* blr x4 */
	to.pc = from.x[LINK];
	check_regs(0xd63f03c0, &from, &to); /* blr x30: to what that was */
	to = from;
	to.pc = from.x[LINK];
	check_regs(0xd65f03c0, &from, &to); /* ret */
	to.pc = from.x[5];
	check_regs(0xd65f00a0, &from, &to); /* ret x5 */
}

/* All sixteen conditions with all flags, by what the manual's table says of each. */
static bool condition(unsigned int number, bool n, bool z, bool c, bool v)
{
	const bool table[] = {
		z,    !z,      c,       !c,     n,      !n,           v,
		!v,   c && !z, !c || z, n == v, n != v, !z && n == v, z || n != v,
		true, true
	};

	return table[number];
}

static void test_conditions(void **state)
{
	for (uint32_t number = 0; number < 16; number++)
		for (unsigned int flags = 0; flags < 16; flags++) {
			bool n = flags & 8, z = flags & 4, c = flags & 2, v = flags & 1;
			struct pm_ptr_arm64 from = before();

			from.pstate = (uint64_t)flags << 28;
			/* b.cond .+16, .-16 */
			check_by(0x54000080 | number, &from,
				 condition(number, n, z, c, v) ? 16 : 4);
			check_by(0x54ffff80 | number, &from,
				 condition(number, n, z, c, v) ? -16 : 4);
		}
}

static void test_comparisons(void **state)
{
	struct pm_ptr_arm64 from = before();

	check_by(0xb40000c1, &from, 4); /* cbz x1, .+24 */
	check_by(0x35ffff41, &from, -24); /* cbnz w1, .-24 */
	from.x[1] = UINT64_C(1) << 32;
	check_by(0xb40000c1, &from, 4);
	check_by(0x340000c1, &from, 24); /* cbz w1, .+24: of 32 bits */
	check_by(0x35ffff41, &from, 4);
	from.x[1] = 0;
	check_by(0xb40000c1, &from, 24);
	check_by(0xb40000df, &from, 24); /* cbz xzr */
	check_by(0xb64000a2, &from, 20); /* tbz x2, #40, .+20 */
	check_by(0x371800a2, &from, 4); /* tbnz w2, #3, .+20 */
	from.x[2] = UINT64_C(1) << 40 | 8;
	check_by(0xb64000a2, &from, 4);
	check_by(0x371800a2, &from, 20);
}

static void check_address(uint32_t word, uint64_t address)
{
	struct pm_ptr_arm64 from = before(), to = from;

	to.pc += WORD;
	to.x[3] = address;
	check_regs(word, &from, &to);
}

static void test_addresses(void **state)
{
	struct pm_ptr_arm64 from = before();

	check_address(0x30000023, AT + 5); /* adr x3, .+5 */
	check_address(0x30ffffe3, AT - 3);
	check_address(0x90000003, AT & ~UINT64_C(0xfff)); /* adrp x3, . */
	check_address(0xb0000003, (AT & ~UINT64_C(0xfff)) + 0x1000);
	check_address(0xd0ffffe3, (AT & ~UINT64_C(0xfff)) - 0x2000);
	check_by(0x1000003f, &from, 4); /* adr xzr */
	check_by(0x5800015f, &from, 4); /* ldr xzr, .+40 */
	check_by(0xd8000140, &from, 4); /* prfm pldl1keep, .+40 */
}

/* Where it came from by a branch, it has gone on since. */
static void test_kind_of_branch_is_over(void **state)
{
	struct pm_ptr_arm64 from = before();

	from.pstate = CARRY | UINT64_C(2) << 10;
	assert_true(pm_ptr_arm64_run(0x14000008, &from));
	assert_int_equal(from.pstate, CARRY);
}

/* ---- slots ----------------------------------------------------------------------------- */

static bool second_stack;

static int make(uint32_t word, uint64_t slot, struct pm_ptr_code *ret)
{
	return pm_ptr_slot_make_arm64((const uint8_t *)&word, sizeof(word), AT, slot,
				      second_stack, ret);
}

static uint32_t word_of(const struct pm_ptr_code *code, size_t at)
{
	uint32_t word;

	memcpy(&word, code->bytes + at * sizeof(word), sizeof(word));
	return word;
}

static void test_slots(void **state)
{
	struct pm_ptr_arm64 from = before();
	struct pm_ptr_code code;

	/* stp x29, x30, [sp, -16]!, and b: 4092 bytes back, and as much forward. */
	assert_int_equal(make(0xa9bf7bfd, AT + 4096, &code), 0);
	assert_int_equal(code.len, 8);
	assert_int_equal(code.tail_at, 4);
	assert_int_equal(word_of(&code, 0), 0xa9bf7bfd);
	assert_int_equal(word_of(&code, 1), 0x17fffc00);
	assert_int_equal(make(0xa9bf7bfd, AT - 4096, &code), 0);
	assert_int_equal(word_of(&code, 1), 0x14000400);
	/* What is carried out needs none, wherever that would be. */
	assert_int_equal(make(0xd65f03c0, 0, &code), 0);
	assert_int_equal(code.len, 0);
	/* retaa: the processor knows, and never comes back. */
	assert_int_equal(make(0xd65f0bff, AT + 4096, &code), 0);
	assert_int_equal(code.len, 4);
	assert_int_equal(code.tail_at, 0);
	assert_false(pm_ptr_arm64_run(0xd65f0bff, &from));
	/* ldr x6, .+40: its address by parts, and then what is there. */
	assert_int_equal(make(0x58000146, AT + 4096, &code), 0);
	assert_int_equal(code.len, 24);
	assert_int_equal(code.tail_at, 20);
	assert_int_equal(word_of(&code, 0), 0xd2846d06); /* movz x6, #0x2368 */
	assert_int_equal(word_of(&code, 1), 0xf2a00826); /* movk x6, #0x41, lsl 16 */
	assert_int_equal(word_of(&code, 4), 0xf94000c6); /* ldr x6, [x6] */
}

static void test_slots_refuse(void **state)
{
	static const uint32_t words[] = {
		0xd4000001, /* svc */
		0xd4200000, /* brk */
		0xc8017c62, /* stxr w1, x2, [x3] */
		0x08017c62, /* stxrb */
		0xc8211062, /* stxp */
		0x9c000186, /* ldr q6, .+48 */
		0xd73f0864, /* blraa x3, x4 */
		0xd69f03e0, /* eret */
		0xd6bf03e0, /* drps */
		0x19010440, /* cpyfp */
		0x19c20420, /* setp */
	};
	static const uint32_t plain[] = {
		0xc85f7c62, /* ldxr */
		0xc8dffc62, /* ldar */
		0xc89ffc62, /* stlr */
		0xc8a17c62, /* cas */
		0x48207c82, /* casp */
		0xd503245f, /* bti c */
		0xd503233f, /* paciasp */
		0xdac10041, /* pacia x1, x2 */
		0xd53bd040, /* mrs x0, tpidr_el0 */
	};
	struct pm_ptr_code code = { .len = 77 };
	struct pm_ptr_arm64 from = before();
	const struct pm_ptr_arm64 same = from;
	const uint8_t three[] = { 0x1f, 0x20, 0x03 };

	for (size_t i = 0; i < PM_ARRAY_LEN(words); i++) {
		assert_int_equal(make(words[i], AT + 4096, &code), -EOPNOTSUPP);
		assert_false(pm_ptr_arm64_run(words[i], &from));
	}
	/* Out of reach; cut short. */
	assert_int_equal(make(0xa9bf7bfd, AT + (UINT64_C(1) << 27) + 8, &code),
			 -EOPNOTSUPP);
	assert_int_equal(pm_ptr_slot_make_arm64(three, 3, AT, AT + 8, false, &code),
			 -EOPNOTSUPP);
	assert_int_equal(code.len, 77);
	for (size_t i = 0; i < PM_ARRAY_LEN(plain); i++) {
		assert_int_equal(make(plain[i], AT + 4096, &code), 0);
		assert_int_equal(code.len, 8);
		assert_false(pm_ptr_arm64_run(plain[i], &from));
	}
	assert_memory_equal(&from, &same, sizeof(from));
	/* Any words. */
	for (uint32_t seed = 1, i = 0; i < 200000; i++) {
		seed = seed * 1664525 + 1013904223;
		make(seed ^ seed >> 15, AT + 4096, &code);
	}
}

/* Only the processor writes to a second stack of return addresses. */
static void test_second_stack(void **state)
{
	struct pm_ptr_code code = { .len = 77 };

	second_stack = true;
	assert_int_equal(make(0x94000010, AT + 4096, &code), -EOPNOTSUPP); /* bl */
	assert_int_equal(make(0xd63f0080, AT + 4096, &code), -EOPNOTSUPP); /* blr x4 */
	assert_int_equal(code.len, 77);
	assert_int_equal(make(0xd65f03c0, AT + 4096, &code), 0); /* ret */
	assert_int_equal(code.len, 4);
	assert_int_equal(code.tail_at, 0);
	assert_int_equal(word_of(&code, 0), 0xd65f03c0);
	assert_int_equal(make(0xd61f0080, AT + 4096, &code), 0); /* br x4 */
	assert_int_equal(code.len, 0);
	assert_int_equal(make(0x14000008, AT + 4096, &code), 0); /* b */
	assert_int_equal(code.len, 0);
	second_stack = false;
}

/* On this very processor: a place with a literal, and its slot in another page. */
static void test_slots_run(void **state)
{
#if defined(__aarch64__)
	const uint64_t literal = UINT64_C(0x8877665599443322);
	uint8_t *code = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static const struct {
		uint32_t word;
		uint64_t result;
	} cases[] = {
		{ 0x58000140, UINT64_C(0x8877665599443322) }, /* ldr x0, .+40 */
		{ 0x18000140, 0x99443322 }, /* ldr w0 */
		{ 0x98000140, UINT64_C(0xffffffff99443322) }, /* ldrsw x0 */
		{ 0x91000400, 8 }, /* add x0, x0, 1 */
	};
	const uint32_t back = 0xd65f03c0; /* ret */
	uint8_t *slot = code + 4096;

	assert_ptr_not_equal(code, MAP_FAILED);
	memcpy(code + 64 + WORD, &back, sizeof(back));
	memcpy(code + 64 + 40, &literal, sizeof(literal));
	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		uint64_t (*run)(uint64_t) = (uint64_t(*)(uint64_t))(uintptr_t)slot;
		struct pm_ptr_code made;

		assert_int_equal(pm_ptr_slot_make_arm64((const uint8_t *)&cases[i].word,
							WORD, (uintptr_t)code + 64,
							(uintptr_t)slot, false, &made),
				 0);
		memcpy(slot, made.bytes, made.len);
		__builtin___clear_cache((char *)slot, (char *)slot + made.len);
		assert_int_equal(run(7), cases[i].result);
	}
	munmap(code, 8192);
#else
	print_message("# SKIP: words of aarch64 do not run here\n");
	skip();
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jumps),
		cmocka_unit_test(test_conditions),
		cmocka_unit_test(test_comparisons),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_kind_of_branch_is_over),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_slots_refuse),
		cmocka_unit_test(test_second_stack),
		cmocka_unit_test(test_slots_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
