/* SPDX-License-Identifier: MIT */
/*
 * Finds the return address of code without CFI: follows the code from the interrupted
 * instruction to a `ret`. Compiled code has one depth of the stack at each instruction,
 * independently of the path that led there. Therefore any path to a `ret` without a call
 * shows where that `ret` reads its address. A word that merely looks like a return
 * address is not enough: stacks are full of words that earlier calls have left.
 *
 * If every path makes a call, the paths go on after the calls: a callee leaves the stack
 * pointer and the saved registers as they were (psABI 3.2.1). But a call that does not
 * return may be followed by another function. Therefore all these paths have to agree.
 *
 * Lengths and operands of instructions: Intel SDM volume 2, chapter 2 and appendix A.
 */
#include "unwind-parts.h"

#include <string.h>

enum {
	INSTRUCTIONS_MAX = 2048, /* followed for one address */
	WAYS_MAX = 32, /* targets of conditional jumps */
	STORES_MAX = 24, /* on one path, with known values */
	WINDOW_BYTES = 64,
	INSTRUCTION_MAX = 15,
	FUNCTION_ALIGNMENT = 16, /* of most functions */
	STACK_ALIGNMENT = 16,
};

/* Register numbers in instructions. */
enum {
	RAX,
	RCX,
	RDX,
	RBX,
	RSP,
	RBP,
	RSI,
	RDI,
	R11 = 11,
	REGS = 16,
	NONE = 0xff,
};

/* ---- decoding --------------------------------------------------------------------------- */

enum map {
	MAP_ONE, /* one byte */
	MAP_0F,
	MAP_0F38,
	MAP_0F3A,
};

struct instruction {
	unsigned int len;
	enum map map;
	uint8_t opcode;
	bool vex, rex, wide, is_16, repeated, has_modrm;
	uint8_t mod, reg, rm; /* including the bit of a REX or VEX prefix */
	uint8_t selector; /* `reg` without that bit */
	uint8_t low; /* a register: low bits of the opcode, with the prefix bit */
	uint8_t base, index; /* of a memory operand; NONE: none */
	uint8_t vvvv;
	int32_t displacement;
	int64_t immediate; /* sign-extended; also the distance of jumps and calls */
};

enum {
	KNOWN = 1, /* if not set, the instruction ends a path */
	MODRM = 2 | KNOWN,
	IMM8 = 4 | KNOWN,
	IMM = 8 | KNOWN, /* 16 or 32 bits */
};

#define ALU(at) [at... at + 3] = MODRM, [at + 4] = IMM8, [at + 5] = IMM
static const uint8_t one_byte[256] = {
	ALU(0x00),
	ALU(0x08),
	ALU(0x10),
	ALU(0x18),
	ALU(0x20),
	ALU(0x28),
	ALU(0x30),
	ALU(0x38),
	[0x50 ... 0x5f] = KNOWN,
	[0x63] = MODRM,
	[0x68] = IMM,
	[0x69] = MODRM | IMM,
	[0x6a] = IMM8,
	[0x6b] = MODRM | IMM8,
	[0x70 ... 0x7f] = IMM8,
	[0x80] = MODRM | IMM8,
	[0x81] = MODRM | IMM,
	[0x83] = MODRM | IMM8,
	[0x84 ... 0x8d] = MODRM,
	[0x8f] = MODRM,
	[0x90 ... 0x99] = KNOWN,
	[0x9b ... 0x9f] = KNOWN,
	[0xa4 ... 0xa7] = KNOWN,
	[0xa8] = IMM8,
	[0xa9] = IMM,
	[0xaa ... 0xaf] = KNOWN,
	[0xb0 ... 0xb7] = IMM8,
	[0xb8 ... 0xbf] = IMM,
	[0xc0 ... 0xc1] = MODRM | IMM8,
	[0xc2] = KNOWN,
	[0xc3] = KNOWN,
	[0xc6] = MODRM | IMM8,
	[0xc7] = MODRM | IMM,
	[0xc9] = KNOWN,
	[0xd0 ... 0xd3] = MODRM,
	[0xd7] = KNOWN,
	[0xd8 ... 0xdf] = MODRM,
	[0xe0 ... 0xe3] = IMM8,
	[0xe8 ... 0xe9] = IMM,
	[0xeb] = IMM8,
	[0xf5] = KNOWN,
	[0xf6 ... 0xf7] = MODRM,
	[0xf8 ... 0xf9] = KNOWN,
	[0xfc ... 0xfd] = KNOWN,
	[0xfe ... 0xff] = MODRM,
};
static const uint8_t after_0f[256] = {
	[0x05] = KNOWN,
	[0x0d] = MODRM,
	[0x10 ... 0x1f] = MODRM,
	[0x28 ... 0x2f] = MODRM,
	[0x31] = KNOWN,
	[0x40 ... 0x6f] = MODRM,
	[0x70 ... 0x73] = MODRM | IMM8,
	[0x74 ... 0x76] = MODRM,
	[0x77] = KNOWN,
	[0x7c ... 0x7f] = MODRM,
	[0x80 ... 0x8f] = IMM,
	[0x90 ... 0x9f] = MODRM,
	[0xa2] = KNOWN,
	[0xa3] = MODRM,
	[0xa4] = MODRM | IMM8,
	[0xa5] = MODRM,
	[0xab] = MODRM,
	[0xac] = MODRM | IMM8,
	[0xad ... 0xb1] = MODRM,
	[0xb3] = MODRM,
	[0xb6 ... 0xb8] = MODRM,
	[0xba] = MODRM | IMM8,
	[0xbb ... 0xc1] = MODRM,
	[0xc2] = MODRM | IMM8,
	[0xc3] = MODRM,
	[0xc4 ... 0xc6] = MODRM | IMM8,
	[0xc7] = MODRM,
	[0xc8 ... 0xcf] = KNOWN,
	[0xd0 ... 0xfe] = MODRM,
};

/* Reads bytes in order. Beyond the end it returns 0 and sets `failed`. */
struct cursor {
	const uint8_t *code;
	size_t have, at;
	bool failed;
};

static uint8_t cursor_next_byte(struct cursor *cursor)
{
	if (cursor->at < cursor->have)
		return cursor->code[cursor->at++];
	cursor->failed = true;
	return 0;
}

static int64_t cursor_next_signed(struct cursor *cursor, unsigned int bytes)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < bytes; i++)
		value |= (uint64_t)cursor_next_byte(cursor) << i * 8;
	return (int64_t)(value << (64 - bytes * 8)) >> (64 - bytes * 8);
}

struct prefixes {
	bool r, x, b; /* the fourth bits of reg, of index, and of rm, base or opcode */
};

static void decode_modrm(struct cursor *cursor, struct prefixes bits,
			 struct instruction *out)
{
	uint8_t modrm = cursor_next_byte(cursor), rm = modrm & 7;

	out->has_modrm = true;
	out->mod = modrm >> 6;
	out->selector = modrm >> 3 & 7;
	out->reg = (uint8_t)(out->selector | bits.r << 3);
	out->rm = (uint8_t)(rm | bits.b << 3);
	if (out->mod == 3)
		return;
	out->base = out->rm;
	if (rm == 4) {
		uint8_t sib = cursor_next_byte(cursor);

		rm = sib & 7;
		out->base = (uint8_t)(rm | bits.b << 3);
		out->index = (uint8_t)((sib >> 3 & 7) | bits.x << 3);
		if (out->index == RSP)
			out->index = NONE;
	}
	if (out->mod == 0 && rm == 5) {
		out->base = NONE;
		out->displacement = (int32_t)cursor_next_signed(cursor, 4);
	} else if (out->mod != 0) {
		out->displacement =
			(int32_t)cursor_next_signed(cursor, out->mod == 1 ? 1 : 4);
	}
}

/* Decodes the bytes after the first byte of a VEX prefix. Returns false if there is no
 * such instruction. */
static bool decode_vex(struct cursor *cursor, bool is_long, struct prefixes *bits,
		       struct instruction *out)
{
	uint8_t byte = cursor_next_byte(cursor), map = 1;

	bits->r = !(byte & 0x80);
	if (is_long) {
		bits->x = !(byte & 0x40);
		bits->b = !(byte & 0x20);
		map = byte & 0x1f;
		byte = cursor_next_byte(cursor);
		out->wide = byte & 0x80;
	}
	out->vex = true;
	out->vvvv = ~byte >> 3 & 15;
	out->repeated = (byte & 3) == 2;
	out->map = (enum map)map;
	out->opcode = cursor_next_byte(cursor);
	return map >= MAP_0F && map <= MAP_0F3A;
}

static uint8_t immediate_form_of(const struct instruction *instruction)
{
	switch (instruction->map) {
	case MAP_ONE:
		return one_byte[instruction->opcode];
	case MAP_0F:
		return after_0f[instruction->opcode];
	case MAP_0F38:
		return MODRM;
	case MAP_0F3A:
		return MODRM | IMM8;
	}
	return 0;
}

/* Returns the size of the immediate of "test rm, immediate" (group 3). */
static unsigned int bytes_of_test_immediate(const struct instruction *in)
{
	if (in->opcode == 0xf6)
		return 1;
	if (in->is_16)
		return 2;
	return 4;
}

static void decode_immediate(struct cursor *cursor, uint8_t form, struct instruction *out)
{
	bool is_branch = out->map == MAP_0F || (out->opcode & 0xfe) == 0xe8;

	if (out->map == MAP_ONE && out->opcode == 0xc2)
		out->immediate = (uint16_t)cursor_next_signed(cursor, 2);
	else if (out->map == MAP_ONE && (out->opcode & 0xf8) == 0xb8 && out->wide)
		cursor_next_signed(cursor, 8);
	else if ((form & IMM8) == IMM8)
		out->immediate = cursor_next_signed(cursor, 1);
	else if ((form & IMM) == IMM)
		out->immediate =
			cursor_next_signed(cursor, out->is_16 && !is_branch ? 2 : 4);
	/* test has an immediate, unlike the other instructions of its opcode */
	else if (out->map == MAP_ONE && (out->opcode & 0xfe) == 0xf6 && out->selector < 2)
		cursor_next_signed(cursor, bytes_of_test_immediate(out));
}

/* Returns false if the instruction is not supported, or cannot be read completely. */
static bool decode_instruction(const uint8_t *code, size_t have, struct instruction *out)
{
	struct cursor cursor = { .code = code, .have = have };
	struct prefixes bits = { 0 };
	uint8_t byte, form;

	*out = (struct instruction){ .base = NONE, .index = NONE };
	for (;;) {
		byte = cursor_next_byte(&cursor);
		if (byte == 0x66)
			out->is_16 = true;
		else if (byte == 0xf3 || byte == 0xf2)
			out->repeated = true;
		else if (byte != 0x2e && byte != 0x36 && byte != 0x3e && byte != 0x26 &&
			 byte != 0x64 && byte != 0x65 && byte != 0xf0)
			break;
	}
	if ((byte & 0xf0) == 0x40) {
		out->rex = true;
		out->wide = byte & 8;
		bits = (struct prefixes){ byte & 4, byte & 2, byte & 1 };
		byte = cursor_next_byte(&cursor);
	}
	if (byte == 0xc4 || byte == 0xc5) {
		if (!decode_vex(&cursor, byte == 0xc4, &bits, out))
			return false;
	} else if (byte == 0x0f) {
		out->map = MAP_0F;
		out->opcode = cursor_next_byte(&cursor);
		if (out->opcode == 0x38 || out->opcode == 0x3a) {
			out->map = out->opcode == 0x38 ? MAP_0F38 : MAP_0F3A;
			out->opcode = cursor_next_byte(&cursor);
		}
	} else {
		out->opcode = byte;
	}
	form = immediate_form_of(out);
	if (!(form & KNOWN))
		return false;
	out->low = (uint8_t)((out->opcode & 7) | bits.b << 3);
	if ((form & MODRM) == MODRM)
		decode_modrm(&cursor, bits, out);
	decode_immediate(&cursor, form, out);
	out->len = (unsigned int)cursor.at;
	return !cursor.failed && cursor.at <= INSTRUCTION_MAX;
}

/* ---- which registers are written -------------------------------------------------------- */

static uint32_t bit_of_reg(uint8_t reg)
{
	return 1u << reg;
}

/* Without a REX prefix, the numbers 4 to 7 are ah, ch, dh and bh. */
static uint8_t reg_of_byte_operand(const struct instruction *in, uint8_t reg)
{
	if (!in->rex && reg >= 4 && reg < 8)
		return reg - 4;
	return reg;
}

static uint32_t rm_bit_of_instruction(const struct instruction *in, bool is_byte)
{
	if (in->mod != 3)
		return 0;
	return bit_of_reg(is_byte ? reg_of_byte_operand(in, in->rm) : in->rm);
}

static uint32_t regs_written_by_map_one(const struct instruction *in)
{
	uint8_t op = in->opcode;
	uint32_t reg = bit_of_reg(op & 1 ? in->reg : reg_of_byte_operand(in, in->reg));
	uint32_t rm = rm_bit_of_instruction(in, !(op & 1));

	if (op < 0x40) {
		if (op >> 3 == 7)
			return 0; /* cmp */
		if ((op & 7) < 2)
			return rm;
		if ((op & 7) < 4)
			return reg;
		return bit_of_reg(RAX);
	}
	if (op == 0x63 || op == 0x69 || op == 0x6b || op == 0x8a || op == 0x8b ||
	    op == 0x8d) {
		if (op == 0x8a)
			return reg;
		return bit_of_reg(in->reg);
	}
	if (op >= 0x80 && op <= 0x83) {
		if (in->selector == 7)
			return 0;
		return rm;
	}
	if (op == 0x86 || op == 0x87)
		return reg | rm;
	if (op == 0x88 || op == 0x89 || (op >= 0xc0 && op <= 0xc1) || op == 0xc6 ||
	    op == 0xc7 || (op >= 0xd0 && op <= 0xd3))
		return rm;
	if (op == 0x8c)
		return rm_bit_of_instruction(in, false);
	if (op >= 0x90 && op <= 0x97)
		return bit_of_reg(RAX) | bit_of_reg(in->low);
	if (op >= 0xb0 && op <= 0xb7)
		return bit_of_reg(reg_of_byte_operand(in, in->low));
	if (op >= 0xb8 && op <= 0xbf)
		return bit_of_reg(in->low);
	if ((op & 0xfe) == 0xf6) {
		if (in->selector < 2)
			return 0;
		if (in->selector < 4)
			return rm;
		return bit_of_reg(RAX) | bit_of_reg(RDX);
	}
	if ((op & 0xfe) == 0xfe)
		return rm;
	if (op == 0x98 || op == 0x9f || op == 0xd7 || op == 0xdf)
		return bit_of_reg(RAX);
	if (op == 0x99)
		return bit_of_reg(RDX);
	if ((op >= 0xa4 && op <= 0xa7) || (op >= 0xaa && op <= 0xaf))
		return bit_of_reg(RAX) | bit_of_reg(RCX) | bit_of_reg(RSI) |
		       bit_of_reg(RDI);
	if (op >= 0xe0 && op <= 0xe3)
		return bit_of_reg(RCX);
	return 0;
}

static uint32_t regs_written_by_map_0f(const struct instruction *in)
{
	uint8_t op = in->opcode;

	if (op == 0x05)
		return bit_of_reg(RAX) | bit_of_reg(RCX) | bit_of_reg(R11);
	if (op == 0x31)
		return bit_of_reg(RAX) | bit_of_reg(RDX);
	if (op == 0xa2)
		return bit_of_reg(RAX) | bit_of_reg(RBX) | bit_of_reg(RCX) |
		       bit_of_reg(RDX);
	if ((op >= 0x40 && op <= 0x4f && !in->vex) || op == 0x50 || op == 0x2c ||
	    op == 0x2d || op == 0xaf || (op >= 0xb6 && op <= 0xb8) ||
	    (op >= 0xbc && op <= 0xbf) || op == 0xc5 || op == 0xd7)
		return bit_of_reg(in->reg);
	if (op == 0x7e) {
		if (in->repeated)
			return 0;
		return rm_bit_of_instruction(in, false);
	}
	if (op >= 0x90 && op <= 0x9f)
		return rm_bit_of_instruction(in, true);
	if (op == 0xa4 || op == 0xa5 || op == 0xab || op == 0xac || op == 0xad ||
	    op == 0xae || op == 0xb3 || op == 0xbb)
		return rm_bit_of_instruction(in, false);
	if (op == 0xba) {
		if (in->selector == 4)
			return 0;
		return rm_bit_of_instruction(in, false);
	}
	if (op == 0xb0 || op == 0xb1)
		return bit_of_reg(RAX) | rm_bit_of_instruction(in, op == 0xb0);
	if (op == 0xc0 || op == 0xc1)
		return bit_of_reg(op == 0xc0 ? reg_of_byte_operand(in, in->reg)
					     : in->reg) |
		       rm_bit_of_instruction(in, op == 0xc0);
	if (op == 0xc7)
		return bit_of_reg(RAX) | bit_of_reg(RDX) |
		       rm_bit_of_instruction(in, false);
	if (op >= 0xc8 && op <= 0xcf)
		return bit_of_reg(in->low);
	return 0;
}

/* Returns all general registers that may be written, with some that are not if in
 * doubt. */
static uint32_t regs_written_by_instruction(const struct instruction *in)
{
	uint8_t op = in->opcode;

	switch (in->map) {
	case MAP_ONE:
		return regs_written_by_map_one(in);
	case MAP_0F:
		return regs_written_by_map_0f(in);
	case MAP_0F38:
		if (op < 0xf0)
			return 0;
		return bit_of_reg(in->reg) | (in->vex ? bit_of_reg(in->vvvv) : 0);
	case MAP_0F3A:
		if (op >= 0x14 && op <= 0x17)
			return rm_bit_of_instruction(in, false);
		if (op >= 0x60 && op <= 0x63)
			return bit_of_reg(RCX);
		if (op == 0xf0)
			return bit_of_reg(in->reg);
		return 0;
	}
	return 0;
}

/* ---- following -------------------------------------------------------------------------- */

/* The value of a register, relative to the time of the interruption. */
struct value {
	enum {
		VALUE_OWN, /* the register's own value at that time */
		VALUE_PLACE, /* the stack pointer at that time + offset */
		VALUE_WORD, /* the word on the stack at (that stack pointer + offset) */
		VALUE_LOST,
	} kind;
	int32_t offset;
};

/* A path through the code: where it continues, and what it has changed. */
struct way {
	uint64_t pc;
	/* The stack pointer has been restored from the frame pointer. From there on, `sp`
	 * and all offsets are relative to the frame pointer at the interruption, no
	 * longer to its stack pointer. */
	bool by_fp;
	/* The stack pointer was rounded down, by an unknown number of bytes. */
	bool is_aligned;
	int32_t sp; /* relative to the base at the interruption, see by_fp */
	bool is_behind_call; /* the previous instruction is a call */
	bool has_called;
	int32_t call_sp; /* the stack pointer at a call */
	struct value regs[REGS];
	/* The values that the path has pushed or stored, by the offsets of their
	 * places. */
	struct store {
		int32_t offset;
		struct value value;
	} stores[STORES_MAX];
	size_t stores_len;
};

enum outcome {
	OUTCOME_ON, /* the path continues at way->pc */
	OUTCOME_LOST,
	OUTCOME_ENDED, /* other code follows here, or a call does not return */
	OUTCOME_ELSEWHERE, /* it jumps to the word on top of another stack */
	OUTCOME_RETURN,
};

struct search {
	const struct pm_unw_space *space;
	uint32_t *work_left; /* NULL: no limit */
	bool cut; /* some paths were not followed to their end */
	bool over_calls; /* paths continue after calls */
	/* Paths are followed one after the other; those before `at` are done. */
	struct way ways[WAYS_MAX];
	uint64_t starts[WAYS_MAX];
	size_t at, len;
	uint8_t window[WINDOW_BYTES];
	uint64_t window_at;
	size_t window_len;
};

static const struct value lost = { .kind = VALUE_LOST };

/* Returns the value of the word at @offset from the interrupted stack pointer, or frame
 * pointer if way->by_fp. */
static struct value way_read_stack_word(const struct way *way, int64_t offset)
{
	for (size_t i = 0; i < way->stores_len; i++)
		if (way->stores[i].offset == offset)
			return way->stores[i].value;
	/* The memory below the stack pointer is not copied, and its contents are
	 * arbitrary. */
	if (offset < (way->by_fp ? -PM_UNW_STACK_SPAN_MAX : 0) ||
	    offset > PM_UNW_STACK_SPAN_MAX || offset % 8 != 0)
		return lost;
	return (struct value){ VALUE_WORD, (int32_t)offset };
}

static enum outcome way_store_stack_word(struct way *way, int64_t offset,
					 struct value value)
{
	size_t i = 0;

	while (i < way->stores_len && way->stores[i].offset != offset)
		i++;
	/* Most of these are values that no caller needs, in places that hold nothing
	 * else. */
	if (i == way->stores_len && value.kind == VALUE_LOST && offset < 0 && !way->by_fp)
		return OUTCOME_ON;
	if (i == STORES_MAX || offset < INT32_MIN || offset > INT32_MAX)
		return OUTCOME_LOST;
	way->stores[i] = (struct store){ (int32_t)offset, value };
	way->stores_len += i == way->stores_len;
	return OUTCOME_ON;
}

/* Returns false if that is an implausible distance. */
static bool way_move_sp(struct way *way, int64_t by)
{
	int64_t sp = way->sp + by;

	if (sp < -(int64_t)PM_UNW_STACK_SPAN_MAX || sp > (int64_t)PM_UNW_STACK_SPAN_MAX)
		return false;
	way->sp = (int32_t)sp;
	return true;
}

static enum outcome way_push_stack_word(struct way *way, struct value value)
{
	if (!way->is_aligned && way_move_sp(way, -8))
		return way_store_stack_word(way, way->sp, value);
	return OUTCOME_LOST;
}

static enum outcome way_pop_reg(struct way *way, uint8_t reg)
{
	struct value value = way_read_stack_word(way, way->sp);

	if (reg == RSP || way->is_aligned || !way_move_sp(way, 8))
		return OUTCOME_LOST;
	if (reg != NONE)
		way->regs[reg] = value;
	return OUTCOME_ON;
}

/* From here on, the base is the frame pointer at the interruption. Its distance from the
 * stack pointer at the interruption is not known. */
static void way_count_from_fp(struct way *way)
{
	way->by_fp = true;
	way->has_called = false;
	way->stores_len = 0;
	for (uint8_t reg = 0; reg < REGS; reg++)
		if (way->regs[reg].kind != VALUE_OWN)
			way->regs[reg] = lost;
}

/* Sets the stack pointer to the frame pointer + @offset. */
static enum outcome way_set_sp_from_fp(struct way *way, int64_t offset)
{
	const struct value *fp = &way->regs[RBP];

	if (fp->kind == VALUE_OWN) {
		if (!way->by_fp)
			way_count_from_fp(way);
		way->sp = 0;
		way->is_aligned = false;
		if (way_move_sp(way, offset))
			return OUTCOME_ON;
		return OUTCOME_LOST;
	}
	if (fp->kind != VALUE_PLACE)
		return OUTCOME_LOST;
	way->sp = 0;
	way->is_aligned = false;
	if (way_move_sp(way, fp->offset + offset))
		return OUTCOME_ON;
	return OUTCOME_LOST;
}

/* Runs an instruction that writes the stack pointer. */
static enum outcome way_change_sp(struct way *way, const struct instruction *in)
{
	uint8_t op = in->opcode;

	if (in->map != MAP_ONE || !in->wide)
		return OUTCOME_LOST;
	/* and $-64, %rsp: from here on, the stack pointer does not locate anything. */
	if ((op == 0x81 || op == 0x83) && in->selector == 4) {
		way->is_aligned = true;
		return OUTCOME_ON;
	}
	if ((op == 0x81 || op == 0x83) && (in->selector == 0 || in->selector == 5)) {
		if (way_move_sp(way, in->selector == 0 ? in->immediate : -in->immediate))
			return OUTCOME_ON;
		return OUTCOME_LOST;
	}
	if (op == 0x8d && in->index == NONE && in->base == RSP) {
		if (way_move_sp(way, in->displacement))
			return OUTCOME_ON;
		return OUTCOME_LOST;
	}
	if (op == 0x8d && in->index == NONE && in->base == RBP)
		return way_set_sp_from_fp(way, in->displacement);
	if ((op == 0x89 && in->reg == RBP) ||
	    (op == 0x8b && in->mod == 3 && in->rm == RBP))
		return way_set_sp_from_fp(way, 0);
	return OUTCOME_LOST;
}

/* Returns the value that the instruction leaves in the one register that it writes. */
static struct value result_of_instruction(const struct way *way,
					  const struct instruction *in)
{
	struct value place = { VALUE_PLACE, way->sp };

	if (in->map != MAP_ONE || !in->wide || way->is_aligned)
		return lost;
	if ((in->opcode == 0x89 && in->reg == RSP) ||
	    (in->opcode == 0x8b && in->mod == 3 && in->rm == RSP))
		return place;
	if (in->base != RSP || in->index != NONE)
		return lost;
	if (in->opcode == 0x8b)
		return way_read_stack_word(way, (int64_t)way->sp + in->displacement);
	if (in->opcode != 0x8d ||
	    __builtin_add_overflow(way->sp, in->displacement, &place.offset))
		return lost;
	return place;
}

static enum outcome way_change_regs(struct way *way, const struct instruction *in)
{
	bool is_store = in->map == MAP_ONE && in->opcode == 0x89 && in->wide &&
			in->base == RSP && in->index == NONE && !way->is_aligned;
	uint32_t mask = regs_written_by_instruction(in);
	struct value value = mask & (mask - 1) ? lost : result_of_instruction(way, in);

	if (mask & bit_of_reg(RSP))
		return way_change_sp(way, in);
	for (uint8_t reg = 0; reg < REGS; reg++)
		if (mask >> reg & 1)
			way->regs[reg] = value;
	/* Values of local variables are not needed, and there may be many such stores. */
	if (is_store && way->regs[in->reg].kind != VALUE_LOST)
		return way_store_stack_word(way, (int64_t)way->sp + in->displacement,
					    way->regs[in->reg]);
	return OUTCOME_ON;
}

/*
 * Whether GHC has compiled this code. Such code has its own stack, at rbp, and never
 * returns: it jumps to the word on top of that stack, or to the closure at rbx. Code of
 * the psABI restores both registers, which are its caller's, before it jumps out of its
 * function; within its function it jumps through a table, by an index.
 */
static bool is_jump_to_continuation(const struct instruction *in)
{
	return in->map == MAP_ONE && in->opcode == 0xff && in->selector == 4 &&
	       (in->base == RBP || in->base == RBX) && in->index == NONE &&
	       in->displacement == 0;
}

static enum outcome way_follow_stack_op(struct way *way, const struct instruction *in)
{
	uint8_t op = in->opcode;
	enum outcome ret;

	if (in->map != MAP_ONE)
		return way_change_regs(way, in);
	if (in->is_16 && ((op >= 0x50 && op <= 0x5f) || op == 0x68 || op == 0x6a ||
			  op == 0x8f || op == 0x9c || op == 0x9d || op == 0xff))
		return OUTCOME_LOST;
	if (op >= 0x50 && op <= 0x57)
		return way_push_stack_word(way, way->regs[in->low]);
	if (op >= 0x58 && op <= 0x5f)
		return way_pop_reg(way, in->low);
	if (op == 0x68 || op == 0x6a || op == 0x9c || (op == 0xff && in->selector == 6))
		return way_push_stack_word(way, lost);
	if (op == 0x9d)
		return way_pop_reg(way, NONE);
	if (op == 0x8f) {
		if (in->selector != 0)
			return OUTCOME_LOST;
		return way_pop_reg(way, in->mod == 3 ? in->rm : NONE);
	}
	if (is_jump_to_continuation(in))
		return OUTCOME_ELSEWHERE;
	if (op == 0xff && in->selector > 1)
		return OUTCOME_LOST; /* a call, or a jump to an unknown target */
	if (op == 0xc9) {
		ret = way_set_sp_from_fp(way, 0);
		if (ret != OUTCOME_ON)
			return ret;
		return way_pop_reg(way, RBP);
	}
	return way_change_regs(way, in);
}

static bool is_call_instruction(const struct instruction *in)
{
	return in->map == MAP_ONE &&
	       (in->opcode == 0xe8 || (in->opcode == 0xff && in->selector == 2));
}

/*
 * Continues after a call. A callee may change all registers except rbx, rsp, rbp and r12
 * to r15; their values are lost. Returns false if another function may start there.
 *
 * At a call the stack pointer is a multiple of 16 (psABI 3.2.2). Code after a call that
 * does not return belongs to another function, which is entered with a different
 * remainder.
 */
static bool way_follow_call(struct way *way)
{
	size_t kept = 0;

	if (way->pc % FUNCTION_ALIGNMENT == 0 ||
	    (way->has_called && !way->is_aligned &&
	     (way->sp - way->call_sp) % STACK_ALIGNMENT != 0))
		return false;
	for (uint8_t reg = 0; reg < REGS; reg++)
		if (reg != RBX && reg != RSP && reg != RBP && reg < 12)
			way->regs[reg] = lost;
	/* The callee may overwrite everything below the stack pointer. */
	for (size_t i = 0; i < way->stores_len; i++)
		if (way->stores[i].offset >= way->sp)
			way->stores[kept++] = way->stores[i];
	way->stores_len = kept;
	way->is_behind_call = true;
	if (way->is_aligned)
		return true;
	way->has_called = true;
	way->call_sp = way->sp;
	return true;
}

/* Whether this is nop, int3 or zeros, which only follow a call if the call does not
 * return. */
static bool is_padding_after_call(const struct instruction *in)
{
	if (in->map != MAP_ONE)
		return in->map == MAP_0F && !in->vex && in->opcode == 0x1f;
	return in->opcode == 0x90 || in->opcode == 0xcc ||
	       (in->opcode == 0 && in->mod == 0 && in->reg == RAX && in->base == RAX);
}

static void search_add_way(struct search *search, const struct way *from, uint64_t pc)
{
	for (size_t i = 0; i < search->len; i++)
		if (search->starts[i] == pc)
			return;
	if (search->len == WAYS_MAX) {
		search->cut = true;
		return;
	}
	search->ways[search->len] = *from;
	search->ways[search->len].pc = pc;
	search->starts[search->len++] = pc;
}

/*
 * Whether a call of the same function is right before or after this one, which ends at
 * the path's pc. Compilers place calls of abort(3) and similar functions in this way.
 */
static bool is_one_of_equal_calls(const struct search *search, const struct way *way,
				  const struct instruction *in)
{
	uint8_t code[5];
	int32_t distance;

	for (int side = -1; in->opcode == 0xe8 && side <= 1; side += 2) {
		uint64_t at = side < 0 ? way->pc - 2 * sizeof(code) : way->pc;

		if (!pm_unw_read_code(search->space, at, code, sizeof(code)) ||
		    code[0] != 0xe8)
			continue;
		memcpy(&distance, code + 1, sizeof(distance));
		if (distance + side * (int64_t)sizeof(code) == in->immediate)
			return true;
	}
	return false;
}

/* Follows one instruction. */
static enum outcome search_follow_instruction(struct search *search, struct way *way,
					      const struct instruction *in)
{
	uint64_t target = way->pc + in->len + (uint64_t)in->immediate;
	uint8_t op = in->opcode;

	way->pc += in->len;
	if (is_call_instruction(in)) {
		if (!search->over_calls)
			return OUTCOME_LOST;
		if (is_one_of_equal_calls(search, way, in))
			return OUTCOME_ENDED;
		if (way_follow_call(way))
			return OUTCOME_ON;
		return OUTCOME_ENDED;
	}
	if (way->is_behind_call && is_padding_after_call(in))
		return OUTCOME_ENDED;
	way->is_behind_call = false;
	if (in->map == MAP_ONE && (op == 0xc2 || op == 0xc3))
		return OUTCOME_RETURN;
	if (in->map == MAP_ONE && (op == 0xe9 || op == 0xeb)) {
		/* Each loop is followed once: the code from the target on was already
		 * followed. */
		if (target < way->pc) {
			search_add_way(search, way, target);
			return OUTCOME_ENDED;
		}
		way->pc = target;
		return OUTCOME_ON;
	}
	if ((in->map == MAP_ONE && (op & 0xf0) == 0x70) ||
	    (in->map == MAP_ONE && op >= 0xe0 && op <= 0xe3) ||
	    (in->map == MAP_0F && !in->vex && (op & 0xf0) == 0x80))
		search_add_way(search, way, target);
	return way_follow_stack_op(way, in);
}

/* Reads and decodes the next instruction of @way. */
static bool search_fetch_instruction(struct search *search, const struct way *way,
				     struct instruction *out)
{
	uint64_t skip = way->pc - search->window_at;

	if (skip < search->window_len &&
	    decode_instruction(search->window + skip, search->window_len - skip, out))
		return true;
	search->window_at = way->pc;
	/* Fewer bytes are readable at the end of the code. */
	for (search->window_len = WINDOW_BYTES; search->window_len > 0;
	     search->window_len /= 2)
		if (pm_unw_read_code(search->space, way->pc, search->window,
				     search->window_len))
			break;
	return decode_instruction(search->window, search->window_len, out);
}

/* Whether the return address is right above the word that the frame pointer points at. */
static bool is_return_above_fp(const struct way *way)
{
	struct value address = way_read_stack_word(way, way->sp);

	return way->by_fp && address.kind == VALUE_WORD && address.offset == 8;
}

/* Makes the row of a path that has reached a `ret`. Returns false unless the return
 * address is a word that was on the stack at the interruption. */
static bool way_make_row(const struct way *way, int64_t popped, struct pm_unw_row *out)
{
	/* rbx, rbp, r12 to r15 in instructions and in DWARF */
	static const uint8_t saved[][2] = { { 3, 3 },   { 5, 6 },   { 12, 12 },
					    { 13, 13 }, { 14, 14 }, { 15, 15 } };
	struct value address = way_read_stack_word(way, way->sp);

	/* V8's builtins for prologues create their caller's frame: they pop their return
	 * address, push that frame, and are at no frame of their own when they return.
	 * This rejects them. */
	if (way->is_aligned || address.kind != VALUE_WORD || way->sp < 0 ||
	    address.offset < 0 || address.offset > way->sp)
		return false;
	/* See way_follow_call(): a return address is at an odd multiple of 8. */
	if (way->has_called && (address.offset - way->call_sp) % STACK_ALIGNMENT == 0)
		return false;
	*out = (struct pm_unw_row){ .cfa_reg = way->by_fp ? PM_UNW_X86_64_RBP
							  : PM_UNW_X86_64_RSP,
				    .cfa_offset = way->sp + 8 + popped,
				    .ra_reg = PM_UNW_X86_64_RIP };
	out->regs[PM_UNW_X86_64_RIP] =
		(struct pm_unw_reg_rule){ .kind = PM_UNW_RULE_OFFSET,
					  .value = address.offset - out->cfa_offset };
	for (size_t i = 0; i < PM_ARRAY_LEN(saved); i++) {
		const struct value *value = &way->regs[saved[i][0]];
		struct pm_unw_reg_rule *rule = &out->regs[saved[i][1]];

		if (value->kind == VALUE_OWN)
			continue;
		if (value->kind == VALUE_WORD)
			rule->kind = PM_UNW_RULE_OFFSET;
		else if (value->kind == VALUE_PLACE)
			rule->kind = PM_UNW_RULE_VAL_OFFSET;
		else
			rule->kind = PM_UNW_RULE_UNDEFINED;
		if (value->kind != VALUE_LOST)
			rule->value = value->offset - out->cfa_offset;
	}
	return true;
}

/* Whether the path ends in ud2 or hlt, which compilers place where execution cannot
 * continue. */
static bool does_way_end_in_trap(const struct search *search, const struct way *way)
{
	uint8_t code[2] = { 0 };

	return pm_unw_read_code(search->space, way->pc, code, sizeof(code)) &&
	       ((code[0] == 0x0f && code[1] == 0x0b) || code[0] == 0xf4);
}

/* Whether both rows have the return address at the same place. @out keeps only the
 * registers for which they agree. */
static bool do_exit_rows_agree(struct pm_unw_row *out, const struct pm_unw_row *other)
{
	static const uint8_t saved[] = { 3, 6, 12, 13, 14, 15 };
	const struct pm_unw_reg_rule *own_ra = &out->regs[PM_UNW_X86_64_RIP];
	const struct pm_unw_reg_rule *other_ra = &other->regs[PM_UNW_X86_64_RIP];

	if (out->cfa_reg != other->cfa_reg || out->cfa_offset != other->cfa_offset ||
	    own_ra->value != other_ra->value)
		return false;
	for (size_t i = 0; i < PM_ARRAY_LEN(saved); i++) {
		struct pm_unw_reg_rule *rule = &out->regs[saved[i]];

		if (rule->kind != other->regs[saved[i]].kind ||
		    rule->value != other->regs[saved[i]].value)
			*rule = (struct pm_unw_reg_rule){ .kind = PM_UNW_RULE_UNDEFINED };
	}
	return true;
}

/* Returns the first result of a path without calls, or the result on which all other
 * paths agree. */
static enum pm_unw_exit search_find_exit(struct search *search, struct pm_unw_row *out)
{
	unsigned int left = INSTRUCTIONS_MAX;
	enum pm_unw_exit found = PM_UNW_EXIT_UNKNOWN;

	for (; search->at < search->len; search->at++) {
		struct way *way = &search->ways[search->at];
		enum pm_unw_exit exit = PM_UNW_EXIT_UNKNOWN;
		enum outcome outcome = OUTCOME_ON;
		struct pm_unw_row row;

		while (outcome == OUTCOME_ON && left > 0) {
			struct instruction in;

			left--;
			pm_unw_take_work(search->work_left, PM_UNW_COST_CODE);
			if (!search_fetch_instruction(search, way, &in))
				break;
			outcome = search_follow_instruction(search, way, &in);
			if (outcome == OUTCOME_RETURN && !is_return_above_fp(way) &&
			    way_make_row(way, in.immediate, &row))
				exit = PM_UNW_EXIT_BY_ROW;
		}
		if (outcome == OUTCOME_ELSEWHERE)
			exit = PM_UNW_EXIT_ELSEWHERE;
		/* Usually the return address is right above the saved frame pointer, even
		 * if the `ret` was not found. */
		if (exit == PM_UNW_EXIT_UNKNOWN && way->by_fp)
			exit = PM_UNW_EXIT_BY_FP;
		if (exit == PM_UNW_EXIT_UNKNOWN) {
			search->cut |= outcome == OUTCOME_LOST ||
				       (outcome == OUTCOME_ON &&
					!does_way_end_in_trap(search, way));
			continue;
		}
		if (found != PM_UNW_EXIT_UNKNOWN && exit != found)
			return PM_UNW_EXIT_UNKNOWN;
		if (exit == PM_UNW_EXIT_BY_ROW && found == exit &&
		    !do_exit_rows_agree(out, &row))
			return PM_UNW_EXIT_UNKNOWN;
		if (exit == PM_UNW_EXIT_BY_ROW && found != exit)
			*out = row;
		found = exit;
		if (!search->over_calls)
			return found;
	}
	/* A path that was not followed could have disagreed. */
	if (search->cut)
		return PM_UNW_EXIT_UNKNOWN;
	return found;
}

enum pm_unw_exit pm_unw_x86_find_exit(const struct pm_unw_space *space, uint64_t pc,
				      uint32_t *work_left, struct pm_unw_row *out)
{
	const struct pm_unw_map *map = pm_unw_space_find(space, pc);
	/* In code generated at run time, only paths without calls are followed: its
	 * functions may pop words that their caller has pushed. */
	int passes = map && map->module ? 2 : 1;
	struct search search;
	enum pm_unw_exit found = PM_UNW_EXIT_UNKNOWN;

	for (int calls = 0; calls < passes && found == PM_UNW_EXIT_UNKNOWN; calls++) {
		/* Only paths before search.len are ever read, so the others are not
		 * initialized. */
		search.space = space;
		search.work_left = work_left;
		search.cut = false;
		search.over_calls = calls > 0;
		search.at = 0;
		search.len = 1;
		search.window_len = 0;
		search.ways[0] = (struct way){ .pc = pc };
		search.starts[0] = pc;
		found = search_find_exit(&search, out);
	}
	return found;
}
