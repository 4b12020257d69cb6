/* SPDX-License-Identifier: MIT */
/*
 * The same comparison as test-unwind-batch on CFI that is made for it: with steps of every
 * kind after each other, with addresses that cannot be cached, and so much of it that the
 * tables start over while chains are under way.
 */
#include "tests/unit/unwind-ways.h"

#include <dwarf.h>

struct bytes {
	PM_VEC(uint8_t) vec;
};

static void put(struct bytes *to, const void *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		assert_int_equal(pm_vec_push(&to->vec, ((const uint8_t *)data)[i]), 0);
}

static void put_entry(struct bytes *to, const uint8_t *body, size_t len)
{
	uint32_t padded = (uint32_t)((len + 7) & ~(size_t)7);

	put(to, &padded, 4);
	put(to, body, len);
	put(to, (const uint8_t[8]){ 0 }, padded - len);
}

enum {
	FUNCTION_BYTES = 16,
	/* Two thirds have rows, and the table holds ROWS of them before it starts over. */
	ROWS = 1 << 14,
	FUNCTIONS = 2 * ROWS,
	CODE = 0x10000, /* svma of the first */
};

/*
 * A .debug_frame of FUNCTIONS functions: CFA = rsp + 8, and of two in three the caller's rbx
 * is CFA + n, which takes a row of its own; of each fifth rbp is below the return address.
 */
static struct pm_unw_module *make_module(void)
{
	static const uint8_t cie[] = { 0xff,
				       0xff,
				       0xff,
				       0xff, /* id */
				       3, /* version */
				       0, /* no augmentation */
				       1,
				       0x78,
				       16, /* 1, -8, rip */
				       DW_CFA_def_cfa,
				       7,
				       8,
				       DW_CFA_offset | 16,
				       1 };
	struct pm_unw_part_load load = { CODE, 0, FUNCTIONS * FUNCTION_BYTES, true };
	struct pm_unw_parts parts = { .loads = &load, .loads_len = 1 };
	struct pm_unw_module *module = NULL;
	struct bytes bytes = { 0 };

	put_entry(&bytes, cie, sizeof(cie));
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		uint64_t range[2] = { CODE + (uint64_t)i * FUNCTION_BYTES,
				      FUNCTION_BYTES };
		uint8_t body[4 + sizeof(range) + 8] = { 0 };
		uint8_t *program = body + 4 + sizeof(range);

		memcpy(body + 4, range, sizeof(range));
		if (i % 3 != 0) {
			program[0] = DW_CFA_val_offset;
			program[1] = 3;
			program[2] = (uint8_t)(i & 0x7f) | 0x80;
			program[3] = (uint8_t)(i >> 7 & 0x7f) | 0x80;
			program[4] = (uint8_t)(i >> 14);
		} else if (i % 5 == 0) {
			program[0] = DW_CFA_def_cfa_offset;
			program[1] = 24;
			program[2] = DW_CFA_offset | 6;
			program[3] = 2;
		}
		put_entry(&bytes, body, sizeof(body));
	}
	parts.debug_frame = (struct pm_unw_part){ 0, bytes.vec.data, bytes.vec.len };
	assert_int_equal(pm_unw_module_from_parts(&module, &parts, NULL), 0);
	pm_vec_release(&bytes.vec);
	return module;
}

/* Chains through all functions in changing order; each word of a stack returns to one. */
static void test_tables_start_over(void **state)
{
	struct pm_unw_module *module = make_module();
	struct pm_unw_map map = { .start = CODE,
				  .end = CODE + FUNCTIONS * FUNCTION_BYTES,
				  .module = module };
	struct pm_unw_space space = { .maps = &map, .len = 1 };
	struct pm_unwinder *unwinder = pm_unwinder_new(), *plain = pm_unwinder_new();
	struct sample samples[PM_UNW_BATCH_MAX];
	uint64_t seed = 1;
	size_t frames = 0;

	(void)state;
	for (size_t round = 0; round < 2; round++) {
		for (size_t i = 0; i < PM_UNW_BATCH_MAX; i++) {
			uint64_t start = 0x7000000000 + i * 8, to;

			for (size_t at = 0; at < STACK_MAX; at += 8) {
				to = CODE + 8 +
				     next_random(&seed) % FUNCTIONS * FUNCTION_BYTES;
				memcpy(stacks[i] + at, &to, 8);
			}
			samples[i] = (struct sample){
				.regs = { .known = (1u << PM_UNW_X86_64_REGS) - 1 },
				.stack = { start, stacks[i], STACK_MAX - i * 256 }
			};
			samples[i].regs.value[PM_UNW_X86_64_RSP] = start;
			samples[i].regs.value[PM_UNW_X86_64_RIP] = to;
		}
		frames += check(unwinder, plain, &space, samples, PM_UNW_BATCH_MAX);
	}
	/* Some 4,000 frames a chain: the limit and ends of the copy. */
	assert_true(frames > PM_UNW_BATCH_MAX * (size_t)2000);
	/* More rows were met than are there. */
	assert_true(unwinder->stats.cache_misses > FUNCTIONS);
	assert_true(unwinder->rows.len < ROWS);
	pm_unwinder_free(unwinder);
	pm_unwinder_free(plain);
	pm_unw_module_free(module);
}

/* ---- every kind of step ----------------------------------------------------------------- */

enum {
	KINDS = 11,
	MIXED_FUNCTIONS = 16 * KINDS,
	MIXED_BYTES = MIXED_FUNCTIONS * FUNCTION_BYTES,
	MIXED_STACK = 2048,
	MIXED_ROUNDS = 300,
	NEAR = 0x10000, /* avma */
	FAR = 0x20000,
	GENERATED = 0x30000, /* memory without a file */
};

/* What a function does to rsp, rbx (3), rbp (6), r12 and its return address (16). */
static const uint8_t kinds[KINDS][10] = {
	{ DW_CFA_def_cfa_offset, 8 },
	{ DW_CFA_def_cfa_offset, 24, DW_CFA_offset | 3, 2 },
	{ DW_CFA_def_cfa_offset, 32, DW_CFA_offset | 6, 2, DW_CFA_offset | 3, 3 },
	{ DW_CFA_def_cfa, 6, 16, DW_CFA_offset | 6, 2 },
	{ DW_CFA_def_cfa, 3, 16 },
	{ DW_CFA_val_offset, 3, 0x7e, DW_CFA_offset | 12, 4 },
	{ DW_CFA_def_cfa, 12, 16, DW_CFA_offset | 6, 2 },
	{ DW_CFA_def_cfa_offset, 40, DW_CFA_offset | 12, 4, DW_CFA_offset | 6, 3 },
	{ DW_CFA_def_cfa, 10, 16 },
	/* As vfork() does. */
	{ DW_CFA_def_cfa_offset, 0, DW_CFA_register, 16, 12 },
	/* In the red zone, which is not copied. */
	{ DW_CFA_def_cfa_offset, 8, DW_CFA_offset | 6, 2 },
};

/*
 * Function n is of kind n + @shift. Each ninth has interrupted its caller, and each fourteenth
 * has no CFI. In five of six every place follows a call. Keys count from @low.
 */
static struct pm_unw_module *make_mixed(uint64_t code, uint64_t low, uint32_t shift)
{
	static const uint8_t cies[2][24] = {
		{ 0xff, 0xff, 0xff, 0xff, 3, 0, 1, 0x78, 16, DW_CFA_def_cfa, 7, 8,
		  DW_CFA_offset | 16, 1 },
		{ 0xff, 0xff, 0xff, 0xff, 3, 'z', 'S', 0, 1, 0x78, 16, 0, DW_CFA_def_cfa,
		  7, 8, DW_CFA_offset | 16, 1 },
	};
	struct pm_unw_part_load loads[] = { { code, 0, MIXED_BYTES, true },
					    { low, MIXED_BYTES, 1, false } };
	uint8_t calls[MIXED_BYTES];
	struct pm_unw_part piece = { code, calls, sizeof(calls) };
	struct pm_unw_parts parts = {
		.loads = loads, .loads_len = 2, .code = &piece, .code_len = 1
	};
	struct pm_unw_module *module = NULL;
	struct bytes bytes = { 0 };

	memset(calls, 0xe8, sizeof(calls));
	for (uint32_t i = 5; i < MIXED_FUNCTIONS; i += 6)
		memset(calls + (size_t)i * FUNCTION_BYTES, 0x90, FUNCTION_BYTES);
	put_entry(&bytes, cies[0], sizeof(cies[0]));
	put_entry(&bytes, cies[1], sizeof(cies[1]));
	for (uint32_t i = 0; i < MIXED_FUNCTIONS; i++) {
		uint64_t range[2] = { code + (uint64_t)i * FUNCTION_BYTES,
				      FUNCTION_BYTES };
		bool signal = i % 9 == 8;
		uint32_t cie = signal ? sizeof(cies[0]) + 4 : 0;
		uint8_t body[4 + sizeof(range) + 1 + sizeof(kinds[0])] = { 0 };

		if (i % 14 == 13)
			continue;
		memcpy(body, &cie, 4);
		memcpy(body + 4, range, sizeof(range));
		/* That of 'z' has a length of augmentation data, 0, in front. */
		memcpy(body + 4 + sizeof(range) + signal, kinds[(i + shift) % KINDS],
		       sizeof(kinds[0]));
		put_entry(&bytes, body, sizeof(body));
	}
	parts.debug_frame = (struct pm_unw_part){ 0, bytes.vec.data, bytes.vec.len };
	assert_int_equal(pm_unw_module_from_parts(&module, &parts, NULL), 0);
	pm_vec_release(&bytes.vec);
	return module;
}

static uint64_t mixed_code(uint64_t *seed)
{
	return (next_random(seed) % 4 == 0 ? FAR : NEAR) +
	       next_random(seed) % MIXED_BYTES;
}

/* A word for a place of the stack: mostly a return address, or a place further up. */
static uint64_t mixed_word(uint64_t place, uint64_t *seed)
{
	uint64_t kind = next_random(seed) % 64;

	if (kind == 0)
		return 0;
	if (kind < 4)
		return GENERATED + next_random(seed) % MIXED_BYTES;
	if (kind < 24)
		return place + next_random(seed) % 24 * 8;
	return mixed_code(seed);
}

static struct sample mixed_sample(uint8_t *stack, uint64_t *seed)
{
	uint64_t start = 0x7ffe00000000;
	struct sample ret = { .regs.known = (1u << PM_UNW_X86_64_REGS) - 1,
			      .stack = { start, stack, MIXED_STACK } };

	for (size_t at = 0; at < MIXED_STACK; at += 8) {
		uint64_t word = mixed_word(start + at, seed);

		memcpy(stack + at, &word, 8);
	}
	for (size_t reg = 0; reg < PM_UNW_X86_64_REGS; reg++)
		ret.regs.value[reg] = mixed_word(start, seed);
	if (next_random(seed) % 4 == 0)
		ret.regs.known &= ~((uint64_t)1 << next_random(seed) % 16);
	ret.regs.value[PM_UNW_X86_64_RSP] = start;
	ret.regs.value[PM_UNW_X86_64_RIP] = mixed_code(seed);
	return ret;
}

/*
 * Two modules. Of the second the cache's keys would be the first one's, if they were made of
 * addresses that are too far from @far_low for keys.
 */
static void check_mixed(uint64_t far_code, uint64_t far_low, uint64_t near_code)
{
	struct pm_unw_module *far = make_mixed(far_code, far_low, 0);
	struct pm_unw_module *near = make_mixed(near_code, near_code, 4);
	struct pm_unw_map maps[] = {
		{ NEAR, NEAR + MIXED_BYTES, NEAR - near_code, near, 0 },
		{ FAR, FAR + MIXED_BYTES, FAR - far_code, far, 0 },
		{ GENERATED, GENERATED + MIXED_BYTES, 0, NULL, 0 },
	};
	struct pm_unw_space space = { .maps = maps, .len = PM_ARRAY_LEN(maps) };
	struct pm_unwinder *unwinder = pm_unwinder_new(), *plain = pm_unwinder_new();
	struct sample samples[PM_UNW_BATCH_MAX];
	uint64_t seed = 7;
	size_t frames = 0;

	assert_int_equal(near->id, far->id + 1);
	for (size_t round = 0; round < MIXED_ROUNDS; round++) {
		for (size_t i = 0; i < PM_UNW_BATCH_MAX; i++)
			samples[i] = mixed_sample(stacks[i], &seed);
		frames += check(unwinder, plain, &space, samples, PM_UNW_BATCH_MAX);
	}
	assert_true(frames > MIXED_ROUNDS * PM_UNW_BATCH_MAX * (size_t)3);
	/* A frame's rule is looked for once, however its registers are found later. */
	assert_true(unwinder->stats.cache_hits + unwinder->stats.cache_misses <=
		    unwinder->stats.frames);
	pm_unwinder_free(unwinder);
	pm_unwinder_free(plain);
	pm_unw_module_free(far);
	pm_unw_module_free(near);
}

static void test_mixed(void **state)
{
	uint64_t limit = (uint64_t)1 << PM_UNW_KEY_SVMA_BITS;

	(void)state;
	check_mixed(0x5000, 0x5000, 0x9000);
	check_mixed(limit + 0x5000, 0, 0x5000);
	/* Its second half is beyond what keys can hold. */
	check_mixed(limit - MIXED_BYTES / 2, 0, 0);
	/* As generated code has it. */
	check_mixed(0x7f1234560000, 0x7f1234560000, 0x7f1234560000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables_start_over),
		cmocka_unit_test(test_mixed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
