/* SPDX-License-Identifier: MIT */
/*
 * A thread of any architecture that a test makes up: one module of code and CFI, one stack,
 * registers.
 */
#pragma once

#include "unwind/unwind-parts.h"

#include "cfi-bytes.h"

enum {
	EH_FRAME = 0x10000, /* svma */
	CODE = 0x40000,
	CODE_BYTES = 0x1000,
	STACK_BYTES = 0x800,
};

/* How frames are found, in few letters. */
enum {
	IP = PM_UNW_HOW_IP,
	CFI = PM_UNW_HOW_CFI,
	FP = PM_UNW_HOW_FP,
	LEAF = PM_UNW_HOW_LEAF,
	TRAMPOLINE = PM_UNW_HOW_TRAMPOLINE,
};

/* Every world has a function that is the root: its return address is undefined. */
enum {
	ROOT = 0xf00,
	IN_ROOT = 0xf10,
};

struct world {
	const struct pm_unw_arch_info *arch;
	uint64_t bias, stack_start;
	struct bytes eh_frame;
	uint8_t code[CODE_BYTES];
	size_t cie; /* of the FDEs that follow */
	struct pm_unw_map map;
	struct pm_unw_space space;
	struct pm_unwinder *unwinder;
	struct pm_unw_regs regs;
	uint8_t stack[STACK_BYTES];
	struct pm_unw_frame frames[PM_UNW_FRAMES_MAX];
	size_t len;
	enum pm_unw_stop stop;
};

/* Code alignment is that of instructions, data alignment a word down. */
static inline void world_cie(struct world *world, const char *letters, uint8_t ra,
			     const uint8_t *program, size_t len)
{
	struct bytes *to = &world->eh_frame;
	size_t begin;

	world->cie = to->vec.len;
	begin = begin_entry(to, false);
	put_u32(to, 0);
	put_u8(to, 1);
	put(to, letters, strlen(letters) + 1);
	put_u8(to, world->arch->ra_is_link ? 4 : 1);
	put_u8(to, (uint8_t)(0x80 - world->arch->word_bytes));
	put_u8(to, ra);
	put_u8(to, 1);
	put_u8(to, PCREL);
	put(to, program, len);
	end_entry(to, begin, false);
}

/* The usual CIE of the architecture. */
static inline struct world *world_new(enum pm_unw_arch arch)
{
	struct world *world = calloc(1, sizeof(*world));
	uint8_t program[5] = { DW_CFA_def_cfa };

	assert_non_null(world);
	world->arch = &pm_unw_arch_infos[arch];
	world->regs.arch = arch;
	world->bias = world->arch->word_bytes == 4 ? 0x56000000 : 0xaaaa00000000;
	world->stack_start = world->arch->word_bytes == 4 ? 0xffb00000 : 0xffffd0000000;
	world->unwinder = pm_unwinder_new();
	assert_non_null(world->unwinder);
	program[1] = world->arch->sp;
	if (!world->arch->ra_is_link) {
		program[2] = world->arch->word_bytes;
		program[3] = (uint8_t)(DW_CFA_offset | world->arch->ra);
		program[4] = 1;
	}
	world_cie(world, "zR", world->arch->ra, program, sizeof(program));
	return world;
}

static inline void world_free(struct world *world)
{
	pm_unw_module_free(world->map.module);
	pm_unwinder_free(world->unwinder);
	pm_vec_release(&world->eh_frame.vec);
	free(world);
}

static inline void world_fde(struct world *world, uint64_t start, uint64_t len,
			     const uint8_t *program, size_t program_len)
{
	struct bytes *to = &world->eh_frame;
	size_t begin = begin_entry(to, false);

	put_u32(to, begin - world->cie);
	put_u32(to, CODE + start - (EH_FRAME + to->vec.len));
	put_u32(to, len);
	put_u8(to, 0);
	put(to, program, program_len);
	end_entry(to, begin, false);
}

/* A function [start, start + len) of the code with this program. */
#define FDE(world, start, len, ...)                                                 \
	world_fde((world), (start), (len), (const uint8_t[]){ 0, __VA_ARGS__ } + 1, \
		  sizeof((const uint8_t[]){ 0, __VA_ARGS__ }) - 1)

#define CODE_AT(world, offset, ...)                                  \
	memcpy((world)->code + (offset), (uint8_t[]){ __VA_ARGS__ }, \
	       sizeof((uint8_t[]){ __VA_ARGS__ }))

static inline void insn(struct world *world, uint64_t offset, uint32_t code)
{
	memcpy(world->code + offset, &code, 4);
}

/* A call instruction that ends there. */
static inline void call_before(struct world *world, uint64_t offset)
{
	if (world->arch->ra_is_link)
		insn(world, offset - 4, 0x94000010);
	else
		CODE_AT(world, offset - 5, 0xe8, 1, 2, 0, 0);
}

/* avma of that place in the code. */
static inline uint64_t at(const struct world *world, uint64_t offset)
{
	return world->bias + CODE + offset;
}

static inline uint64_t on_stack(const struct world *world, uint64_t offset)
{
	return world->stack_start + offset;
}

/* A word of the stack. */
static inline void poke(struct world *world, uint64_t offset, uint64_t value)
{
	assert_true(offset + world->arch->word_bytes <= STACK_BYTES);
	memcpy(world->stack + offset, &value, world->arch->word_bytes);
}

static inline void set(struct world *world, unsigned int reg, uint64_t value)
{
	world->regs.value[reg] = value;
	world->regs.known |= (uint64_t)1 << reg;
}

static inline void begin_at(struct world *world, uint64_t offset)
{
	set(world, world->arch->pc, at(world, offset));
	set(world, world->arch->sp, world->stack_start);
}

static inline void world_build(struct world *world, enum pm_unw_arch arch)
{
	const struct pm_unw_part code = { CODE, world->code, CODE_BYTES };
	const struct pm_unw_part_load load = { .vaddr = CODE,
					       .filesz = CODE_BYTES,
					       .executable = true };
	const struct pm_unw_parts parts = {
		.arch = arch,
		.loads = &load,
		.loads_len = 1,
		.eh_frame = { EH_FRAME, world->eh_frame.vec.data,
			      world->eh_frame.vec.len },
		.code = &code,
		.code_len = 1,
	};

	pm_unw_module_free(world->map.module);
	world->map = (struct pm_unw_map){ .start = at(world, 0),
					  .end = at(world, CODE_BYTES),
					  .bias = world->bias };
	assert_int_equal(pm_unw_module_from_parts(&world->map.module, &parts, NULL), 0);
	world->space.maps = &world->map;
	world->space.len = 1;
}

static inline void walk(struct world *world)
{
	const struct pm_unw_stack stack = { world->stack_start, world->stack,
					    STACK_BYTES };

	if (!world->map.module)
		world_build(world, world->regs.arch);
	world->len = pm_unwind(world->unwinder, &world->space, &world->regs, &stack,
			       world->frames, &world->stop);
}

/* One frame of a chain as it has to be; sp is an offset from the stack's start. */
struct expected {
	uint64_t pc;
	uint64_t sp;
	uint32_t how; /* enum pm_unw_how */
};

enum {
	SP_UNKNOWN = -1,
};

static inline void assert_chain(struct world *world, enum pm_unw_stop stop,
				const struct expected *expected, size_t len)
{
	walk(world);
	for (size_t i = 0; i < len && i < world->len; i++) {
		assert_int_equal(world->frames[i].pc, at(world, expected[i].pc));
		assert_int_equal(world->frames[i].how, expected[i].how);
		assert_int_equal(world->frames[i].sp,
				 expected[i].sp == (uint64_t)SP_UNKNOWN
					 ? 0
					 : on_stack(world, expected[i].sp));
	}
	assert_int_equal(world->stop, stop);
	assert_int_equal(world->len, len);
}

/* { pc, sp, how } of each frame, leaf first. */
#define ASSERT_CHAIN(world, stop, ...)                                          \
	assert_chain((world), (stop), (const struct expected[]){ __VA_ARGS__ }, \
		     sizeof((const struct expected[]){ __VA_ARGS__ }) /         \
			     sizeof(struct expected))

/* With that function. */
static inline struct world *make(enum pm_unw_arch arch)
{
	struct world *world = world_new(arch);

	FDE(world, ROOT, 0x40, DW_CFA_undefined, world->arch->ra);
	call_before(world, IN_ROOT);
	return world;
}
