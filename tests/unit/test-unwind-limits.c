/* SPDX-License-Identifier: MIT */
/*
 * CFI that is made to lead nowhere or to take long, and what the cache keeps of it and of code
 * that is generated or has no CFI. All in all three ways to unwind.
 */
#include "tests/unit/cfi-bytes.h"
#include "tests/unit/unwind-ways.h"

#include <fcntl.h>

enum {
	CODE = 0x1000, /* svma */
	CODE_BYTES = 1 << 24,
	BIAS = 0x400000,
	STACK = 0x7fff0000,
};

struct world {
	struct bytes cfi; /* .debug_frame */
	struct pm_unw_part code;
	struct pm_unw_module *module;
	struct pm_unw_map map;
	struct pm_unw_space space;
	struct pm_unwinder *unwinder, *plain;
};

/* CFA = rsp + 8; the return address below it only if @with_ra. */
static void put_cie(struct bytes *to, bool with_ra)
{
	size_t begin = begin_entry(to, false);

	put_u32(to, 0xffffffff);
	put(to, (uint8_t[]){ 3, 0, 1, 0x78, 16, DW_CFA_def_cfa, 7, 8 }, 8);
	if (with_ra)
		put(to, (uint8_t[]){ DW_CFA_offset | 16, 1 }, 2);
	end_entry(to, begin, false);
}

static size_t begin_fde(struct bytes *to, uint64_t svma, uint64_t len)
{
	size_t begin = begin_entry(to, false);

	put_u32(to, 0);
	put_u64(to, svma);
	put_u64(to, len);
	return begin;
}

/* Of world->cfi and world->code, the code at @svma. */
static void make_world(struct world *world, uint64_t svma)
{
	struct pm_unw_part_load load = { svma, 0, CODE_BYTES, true };
	struct pm_unw_parts parts = { .loads = &load,
				      .loads_len = 1,
				      .debug_frame = { 0, world->cfi.vec.data,
						       world->cfi.vec.len },
				      .code = &world->code,
				      .code_len = world->code.len > 0 };

	assert_int_equal(pm_unw_module_from_parts(&world->module, &parts, NULL), 0);
	world->map = (struct pm_unw_map){ .start = CODE + BIAS,
					  .end = CODE + BIAS + CODE_BYTES,
					  .bias = CODE + BIAS - svma,
					  .module = world->module };
	world->space = (struct pm_unw_space){ .maps = &world->map, .len = 1 };
	world->unwinder = pm_unwinder_new();
	world->plain = pm_unwinder_new();
	assert_non_null(world->unwinder);
	assert_non_null(world->plain);
}

static void release_world(struct world *world)
{
	pm_unwinder_free(world->unwinder);
	pm_unwinder_free(world->plain);
	pm_unw_module_free(world->module);
	pm_vec_release(&world->cfi.vec);
}

/* Of a stack that is all return addresses, @step bytes from each other. */
static struct sample make_sample(uint64_t pc, uint64_t step, size_t len)
{
	struct sample ret = { .regs.known = (1u << PM_UNW_X86_64_REGS) - 1,
			      .stack = { STACK, stacks[0], len } };

	for (size_t i = 0; i < len / 8; i++)
		memcpy(stacks[0] + i * 8, &(uint64_t){ pc + (i + 1) * step }, 8);
	ret.regs.value[PM_UNW_X86_64_RSP] = STACK;
	ret.regs.value[PM_UNW_X86_64_RIP] = pc;
	return ret;
}

/* The frames, which are left in `expected`, and why there are no more. */
static size_t chain(struct world *world, const struct sample *sample,
		    enum pm_unw_stop *stop)
{
	check(world->unwinder, world->plain, &world->space, sample, 1);
	return pm_unwind(world->unwinder, &world->space, &sample->regs, &sample->stack,
			 expected, stop);
}

/* Without a rule the return address would be the pc as it is, for as long as the CFA rises. */
static void test_no_return_address(void **state)
{
	static const uint8_t rules[][3] = {
		{ DW_CFA_nop },
		{ DW_CFA_same_value, 16 },
		{ DW_CFA_register, 16, 16 },
	};
	enum pm_unw_stop stop;

	(void)state;
	for (size_t i = 0; i < PM_ARRAY_LEN(rules); i++) {
		struct sample sample = make_sample(CODE + BIAS + 8, 0, 64);
		struct world world = { 0 };
		size_t begin;

		put_cie(&world.cfi, false);
		begin = begin_fde(&world.cfi, CODE, 64);
		put(&world.cfi, rules[i], sizeof(rules[i]));
		end_entry(&world.cfi, begin, false);
		make_world(&world, CODE);
		assert_int_equal(chain(&world, &sample, &stop), 1);
		assert_int_equal(stop, PM_UNW_STOP_BAD_CFI);
		release_world(&world);
	}
}

/* A function of all code whose program is nearly as long as it may be. */
static void test_long_programs(void **state)
{
	enum {
		PROGRAM_BYTES = 32000,
	};
	const size_t frames = PM_UNW_WORK_MAX / (PROGRAM_BYTES * PM_UNW_COST_INSTRUCTION);
	struct sample sample = make_sample(CODE + BIAS + 8, 16, STACK_MAX);
	struct world world = { 0 };
	enum pm_unw_stop stop;
	size_t begin, len, again;
	uint64_t last;

	(void)state;
	put_cie(&world.cfi, true);
	begin = begin_fde(&world.cfi, CODE, CODE_BYTES);
	for (size_t i = 0; i < PROGRAM_BYTES; i++)
		put_u8(&world.cfi, DW_CFA_nop);
	end_entry(&world.cfi, begin, false);
	make_world(&world, CODE);
	len = pm_unw_walk(world.plain, &world.space, &sample.regs, &sample.stack,
			  expected, &stop);
	assert_int_equal(stop, PM_UNW_STOP_WORK_LIMIT);
	assert_in_range(len, frames - 1, frames + 1);
	assert_int_equal(world.plain->overworked, 1);
	assert_int_equal(pm_unwind(world.unwinder, &world.space, &sample.regs,
				   &sample.stack, single, &stop),
			 len);
	assert_int_equal(stop, PM_UNW_STOP_WORK_LIMIT);
	/* Nothing is kept of where it ended: the next chain gets further. */
	last = expected[len - 1].pc;
	sample.regs.value[PM_UNW_X86_64_RIP] = last - 1;
	assert_true(pm_unwind(world.unwinder, &world.space, &sample.regs, &sample.stack,
			      single, &stop) > 1);
	sample.regs.value[PM_UNW_X86_64_RIP] = CODE + BIAS + 8;
	again = pm_unw_walk(world.plain, &world.space, &sample.regs, &sample.stack,
			    expected, &stop);
	assert_true(again > len);
	assert_true(again < PM_UNW_FRAMES_MAX);
	release_world(&world);
}

/* Of each register but rsp, which loop: a frame takes some 48,000 operations. */
static void test_long_expressions(void **state)
{
	static const uint8_t loop[] = { DW_OP_const2u, 0x20,        0x03,
					DW_OP_lit1,    DW_OP_minus, DW_OP_dup,
					DW_OP_bra,     0xfa,        0xff };
	struct sample sample = make_sample(CODE + BIAS + 8, 0, STACK_MAX);
	struct world world = { 0 };
	enum pm_unw_stop stop;
	size_t begin, len;

	(void)state;
	put_cie(&world.cfi, true);
	begin = begin_fde(&world.cfi, CODE, CODE_BYTES);
	for (uint8_t reg = 0; reg < 16; reg++) {
		if (reg == PM_UNW_X86_64_RSP)
			continue;
		put(&world.cfi, (uint8_t[]){ DW_CFA_val_expression, reg, sizeof(loop) },
		    3);
		put(&world.cfi, loop, sizeof(loop));
	}
	end_entry(&world.cfi, begin, false);
	make_world(&world, CODE);
	/* In all ways the same: nothing of it is cached. */
	len = chain(&world, &sample, &stop);
	assert_int_equal(stop, PM_UNW_STOP_WORK_LIMIT);
	assert_in_range(len, 5, 7);
	release_world(&world);
}

/* Several chains share a limit: each leaves less to the next, and the last ones have one
 * frame. */
static void test_shared_work(void **state)
{
	static const uint8_t loop[] = { DW_OP_const2u, 100,         0,
					DW_OP_lit1,    DW_OP_minus, DW_OP_dup,
					DW_OP_bra,     0xfa,        0xff };
	struct sample sample = make_sample(CODE + BIAS + 8, 0, 80);
	uint32_t work_left = 200000, before;
	struct world world = { 0 };
	enum pm_unw_stop stop;
	size_t begin, whole = 0;

	(void)state;
	put_cie(&world.cfi, true);
	begin = begin_fde(&world.cfi, CODE, CODE_BYTES);
	put(&world.cfi, (uint8_t[]){ DW_CFA_val_expression, 3, sizeof(loop) }, 3);
	put(&world.cfi, loop, sizeof(loop));
	end_entry(&world.cfi, begin, false);
	make_world(&world, CODE);
	world.space.work_left = &work_left;
	do {
		size_t len;

		before = work_left;
		len = pm_unwind(world.unwinder, &world.space, &sample.regs, &sample.stack,
				single, &stop);
		assert_true(work_left < before);
		assert_int_equal(stop, work_left > 0 ? PM_UNW_STOP_TRUNCATED
						     : PM_UNW_STOP_WORK_LIMIT);
		whole += stop == PM_UNW_STOP_TRUNCATED && len == 11;
	} while (work_left > 0);
	assert_in_range(whole, 2, 4);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			(i == 0 ? pm_unwind(world.unwinder, &world.space, &sample.regs,
					    &sample.stack, single, &stop)
				: pm_unw_walk(world.plain, &world.space, &sample.regs,
					      &sample.stack, single, &stop)),
			1);
		assert_int_equal(stop, PM_UNW_STOP_WORK_LIMIT);
	}
	release_world(&world);
}

/* That others hold all that may be held says nothing about this program's CFI. */
static void test_short_budget_is_not_remembered(void **state)
{
	PM_AUTO_CLOSE int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct pm_unwinder *unwinder = pm_unwinder_new();
	struct pm_unw_module *module;
	size_t taken = 0;
	/* Of _start, where aarch64 says behind the first instruction that nobody called it. */
#if defined(__aarch64__)
	const uint64_t behind = 4;
#else
	const uint64_t behind = 0;
#endif

	(void)state;
	assert_non_null(unwinder);
	assert_int_equal(pm_unw_module_open(&module, fd, NULL), 0);
	for (size_t len = (size_t)1 << 40; len > 0; len /= 2)
		while (pm_unw_budget_take(len))
			taken += len;
	assert_true(pm_unw_budget_is_short());
	assert_int_equal(pm_unw_rule_find(unwinder, module, module->entry + behind).found,
			 PM_UNW_FOUND_BAD_CFI);
	pm_unw_budget_give(taken);
	assert_false(pm_unw_budget_is_short());
	assert_int_equal(pm_unw_rule_find(unwinder, module, module->entry + behind).found,
			 PM_UNW_FOUND_ROOT);
	pm_unw_module_free(module);
	pm_unwinder_free(unwinder);
}

/* Its addresses in the file are those in memory. */
static void test_generated_code_is_cached(void **state)
{
	struct sample sample = make_sample(CODE + BIAS + 8, 0, STACK_MAX);
	uint64_t svma = 0x7f1234560000;
	struct world world = { 0 };
	enum pm_unw_stop stop;

	(void)state;
	put_cie(&world.cfi, true);
	end_entry(&world.cfi, begin_fde(&world.cfi, svma, CODE_BYTES), false);
	make_world(&world, svma);
	assert_int_equal(chain(&world, &sample, &stop), PM_UNW_FRAMES_MAX);
	/* The interrupted place and the one it returns to. */
	assert_int_equal(world.unwinder->stats.cache_misses, 2);
	assert_int_equal(world.plain->stats.cache_misses, 2);
	release_world(&world);
}

static void test_more_than_a_batch(void **state)
{
	enum {
		JOBS = 2 * PM_UNW_BATCH_MAX + 3,
		STACK_BYTES = 512,
	};
	struct pm_unw_job jobs[JOBS];
	struct sample sample = make_sample(CODE + BIAS + 8, 0, STACK_BYTES);
	struct pm_unw_frame *frames = calloc(JOBS, PM_UNW_FRAMES_MAX * sizeof(*frames));
	struct world world = { 0 };

	(void)state;
	assert_non_null(frames);
	put_cie(&world.cfi, true);
	end_entry(&world.cfi, begin_fde(&world.cfi, CODE, CODE_BYTES), false);
	make_world(&world, CODE);
	for (size_t i = 0; i < JOBS; i++) {
		jobs[i] = (struct pm_unw_job){ .space = &world.space,
					       .regs = &sample.regs,
					       .stack = sample.stack,
					       .frames = frames + i * PM_UNW_FRAMES_MAX };
		jobs[i].stack.len = STACK_BYTES - i * 8;
	}
	pm_unwind_batch(world.unwinder, jobs, JOBS);
	for (size_t i = 0; i < JOBS; i++) {
		assert_int_equal(jobs[i].len, STACK_BYTES / 8 - i + 1);
		assert_int_equal(jobs[i].stop, PM_UNW_STOP_TRUNCATED);
	}
	pm_unwind_batch(world.unwinder, jobs, 0);
	release_world(&world);
	free(frames);
}

/* ---- without CFI ------------------------------------------------------------------------ */

static void test_trampolines_are_remembered(void **state)
{
	/* mov $15, %rax; syscall */
	static const uint8_t restore[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	uint8_t code[128] = { 0 };
	struct world world = { .code = { CODE, code, sizeof(code) } };

	(void)state;
	memcpy(code + 64, restore, sizeof(restore));
	make_world(&world, CODE);
	/* Twice: as it is found, and as it is remembered. */
	for (size_t i = 0; i < 2 * sizeof(code); i++) {
		size_t at = i % sizeof(code);
		struct pm_unw_lookup lookup =
			pm_unw_rule_find(world.unwinder, world.module, CODE + at);

		assert_int_equal(lookup.found, PM_UNW_FOUND_NO_CFI);
		/* From the return address less one to the end of the system call. */
		assert_int_equal(lookup.index, at < 63 || at > 64 + sizeof(restore));
	}
	release_world(&world);
}

/* Fewer bytes stand before these places than the longest call has. */
static void test_calls_where_code_begins(void **state)
{
	static const struct {
		uint8_t code[16];
		uint64_t after;
		bool is_call;
	} cases[] = {
		{ { 0xe8, 1, 2, 3, 4, 0x90 }, 5, true },
		{ { 0x90, 0xe8, 1, 2, 3, 4, 0x90 }, 6, true },
		{ { 0xff, 0xd0, 0x90 }, 2, true },
		{ { 0xff, 0x50, 8, 0x90 }, 3, true },
		{ { 0xff, 0xd0, 0x90 }, 1, false },
		{ { 0x90, 0x90, 0x90, 0x90, 0x90 }, 5, false },
		{ { 1, 2, 3, 4 }, 4, false },
	};

	(void)state;
	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct world world = { .code = { CODE, cases[i].code,
						 sizeof(cases[i].code) } };
		struct pm_unw_state at = { .space = &world.space };

		make_world(&world, CODE);
		assert_int_equal(pm_unw_follows_call(&at, CODE + BIAS + cases[i].after),
				 cases[i].is_call);
		release_world(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_return_address),
		cmocka_unit_test(test_long_programs),
		cmocka_unit_test(test_long_expressions),
		cmocka_unit_test(test_shared_work),
		cmocka_unit_test(test_short_budget_is_not_remembered),
		cmocka_unit_test(test_generated_code_is_cached),
		cmocka_unit_test(test_more_than_a_batch),
		cmocka_unit_test(test_trampolines_are_remembered),
		cmocka_unit_test(test_calls_where_code_begins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
