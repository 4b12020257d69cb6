/* SPDX-License-Identifier: MIT */
/*
 * An instruction of x86-64 that was replaced by a breakpoint runs elsewhere: a slot has
 * its copy, followed by a jump back. The original byte is never put back while other
 * threads run, and a visit takes one stop, not two. Instructions that depend on their
 * address are rewritten. Sources: Intel SDM volume 2, §2.1 (formats), appendix A (opcode
 * maps).
 */
#include "engine-ptrace.h"

#include <string.h>

/* The properties of an instruction that matter here. */
struct shape {
	uint8_t len;
	uint8_t opcode_at; /* after the prefixes */
	uint8_t modrm_at; /* 0: none */
	bool two_bytes; /* the map of 0F */
	uint8_t opcode;
};

/* One bit per opcode: it has a ModRM byte. */
static const uint32_t modrm_one[8] = { 0x0f0f0f0f, 0x0f0f0f0f, 0x00000000, 0x00000a08,
				       0x0000ffff, 0x00000000, 0xff0f00c3, 0xc0c00000 };
static const uint32_t modrm_two[8] = { 0xffffa00f, 0xff00ffff, 0xffffffff, 0xff7fffff,
				       0xffff0000, 0xfffff8f8, 0xffff00ff, 0xffffffff };

static bool has_bit(const uint32_t bits[8], uint8_t opcode)
{
	return bits[opcode / 32] >> (opcode % 32) & 1;
}

static bool is_prefix(uint8_t byte)
{
	return byte == 0x66 || byte == 0x67 || byte == 0xf0 || byte == 0xf2 ||
	       byte == 0xf3 || byte == 0x2e || byte == 0x36 || byte == 0x3e ||
	       byte == 0x26 || byte == 0x64 || byte == 0x65;
}

/* VEX, EVEX and the like: prefixes of a fixed length, then opcode and ModRM. */
static size_t vector_prefix(uint8_t byte)
{
	if (byte == 0xc5)
		return 2;
	if (byte == 0xc4)
		return 3;
	if (byte == 0x62)
		return 4;
	return 0;
}

/* Returns false if the instruction is cut off. */
static bool parse_insn_shape(const uint8_t *bytes, uint8_t len, struct shape *out)
{
	uint8_t at = 0;
	size_t vector;

	*out = (struct shape){ .len = len };
	while (at < len && is_prefix(bytes[at]))
		at++;
	if (at < len && (bytes[at] & 0xf0) == 0x40)
		at++; /* REX */
	if (at >= len)
		return false;
	out->opcode_at = at;
	out->opcode = bytes[at];
	vector = vector_prefix(bytes[at]);
	if (vector > 0) {
		at = (uint8_t)(at + vector);
		/* Only vzeroupper and vzeroall have no ModRM byte. */
		if (at < len && bytes[at] != 0x77)
			out->modrm_at = at + 1;
		else
			out->modrm_at = 0;
	} else if (bytes[at] != 0x0f) {
		if (has_bit(modrm_one, bytes[at]))
			out->modrm_at = at + 1;
		else
			out->modrm_at = 0;
	} else {
		if (++at >= len)
			return false;
		out->two_bytes = true;
		out->opcode = bytes[at];
		if (bytes[at] == 0x38 || bytes[at] == 0x3a)
			out->modrm_at = at + 2;
		else if (has_bit(modrm_two, bytes[at]))
			out->modrm_at = at + 1;
	}
	return out->modrm_at < len;
}

/* ---- code for slots ----------------------------------------------------------------- */

struct code {
	uint64_t at; /* of the slot */
	struct pm_ptr_code *ret;
	bool failed;
};

static void emit_bytes(struct code *code, const void *bytes, size_t len)
{
	if (sizeof(code->ret->bytes) - code->ret->len < len) {
		code->failed = true;
		return;
	}
	memcpy(code->ret->bytes + code->ret->len, bytes, len);
	code->ret->len = (uint8_t)(code->ret->len + len);
}

static void emit_32(struct code *code, uint32_t value)
{
	emit_bytes(code, &value, sizeof(value));
}

/* The displacement to @target; @rest bytes follow it in the instruction. */
static void emit_relative(struct code *code, uint64_t target, size_t rest)
{
	int64_t distance =
		(int64_t)(target - (code->at + code->ret->len + sizeof(int32_t) + rest));

	if (distance != (int32_t)distance)
		code->failed = true;
	emit_32(code, (uint32_t)distance);
}

static void emit_near_jump(struct code *code, uint64_t target)
{
	emit_bytes(code, "\xe9", 1);
	emit_relative(code, target, 0);
}

/* The return address must be that of the original place, as unwinders use it. */
static void emit_return_address(struct code *code, uint64_t back)
{
	emit_bytes(code, "\x48\x8d\x64\x24\xf8",
		   5); /* lea -8(%rsp),%rsp: leaves the flags */
	code->ret->pushed_at = code->ret->len;
	emit_bytes(code, "\xc7\x04\x24", 3); /* movl $…,(%rsp) */
	emit_32(code, (uint32_t)back);
	emit_bytes(code, "\xc7\x44\x24\x04", 4); /* movl $…,4(%rsp) */
	emit_32(code, (uint32_t)(back >> 32));
}

static int32_t decode_displacement(const uint8_t *bytes, uint8_t at, uint8_t len)
{
	int32_t wide;

	if (len - at == 1)
		return (int8_t)bytes[at];
	memcpy(&wide, bytes + len - sizeof(wide), sizeof(wide));
	return wide;
}

static bool is_rip_relative(uint8_t modrm)
{
	return (modrm & 0xc7) == 0x05;
}

/* Emits the bytes with a displacement from rip adjusted. @as_jump: the instruction is an
 * indirect call, and is replaced by a jump. */
static void emit_moved(struct code *code, const uint8_t *bytes, const struct shape *shape,
		       uint64_t address, bool as_jump)
{
	uint8_t at = shape->modrm_at, copy[PM_PTR_INSN_MAX];
	int32_t distance;

	memcpy(copy, bytes, shape->len);
	if (as_jump)
		copy[at] = (uint8_t)((copy[at] & 0xc7) | 4 << 3);
	if (at == 0 || !is_rip_relative(copy[at])) {
		emit_bytes(code, copy, shape->len);
		return;
	}
	if (shape->len - at < 5) {
		code->failed = true;
		return;
	}
	memcpy(&distance, copy + at + 1, sizeof(distance));
	emit_bytes(code, copy, (size_t)at + 1);
	emit_relative(code, address + shape->len + (uint64_t)(int64_t)distance,
		      (size_t)(shape->len - at - 5));
	emit_bytes(code, copy + at + 5, (size_t)(shape->len - at - 5));
}

/* ---- by kind ------------------------------------------------------------------------- */

/* call and jmp through a register or memory: FF /2, FF /4. */
static bool is_indirect(const uint8_t *bytes, const struct shape *shape, uint8_t kind)
{
	return shape->opcode == 0xff && !shape->two_bytes && shape->modrm_at != 0 &&
	       (bytes[shape->modrm_at] >> 3 & 7) == kind;
}

/* Whether the operand uses rsp, which has already changed when the copy runs. */
static bool uses_rsp(const uint8_t *bytes, const struct shape *shape)
{
	uint8_t modrm = bytes[shape->modrm_at];

	return (modrm & 7) == 4 &&
	       (modrm >> 6 == 3 || shape->modrm_at + 1 >= shape->len ||
		(bytes[shape->modrm_at + 1] & 7) == 4);
}

static bool is_conditional_jump(const struct shape *shape, uint8_t *condition)
{
	bool near = shape->two_bytes && (shape->opcode & 0xf0) == 0x80;

	*condition = shape->opcode & 0xf;
	return near || (!shape->two_bytes && (shape->opcode & 0xf0) == 0x70);
}

static void make_branch(struct code *code, const uint8_t *bytes,
			const struct shape *shape, uint64_t target, uint64_t back)
{
	uint8_t condition, wide[2] = { 0x0f };

	if (is_conditional_jump(shape, &condition)) {
		wide[1] = 0x80 | condition;
		emit_bytes(code, wide, sizeof(wide));
		emit_relative(code, target, 0);
		code->ret->tail_at = code->ret->len;
		emit_near_jump(code, back);
		return;
	}
	/* loop and jrcxz have a short form only: it skips the jump back. */
	emit_bytes(code, bytes, (size_t)(shape->len - 1));
	emit_bytes(code, "\x05", 1);
	code->ret->tail_at = code->ret->len;
	emit_near_jump(code, back);
	emit_near_jump(code, target);
}

static bool is_loop(const struct shape *shape)
{
	return !shape->two_bytes && shape->opcode >= 0xe0 && shape->opcode <= 0xe3;
}

static void emit_moved_insn(struct code *code, const uint8_t *bytes,
			    const struct shape *shape, uint64_t address)
{
	uint64_t back = address + shape->len, target = 0;
	bool one = !shape->two_bytes,
	     jump = one && (shape->opcode == 0xe9 || shape->opcode == 0xeb);
	bool call = one && shape->opcode == 0xe8;
	uint8_t condition;

	if (jump || call || is_loop(shape) || is_conditional_jump(shape, &condition)) {
		uint8_t at = (uint8_t)(shape->opcode_at + 1 + shape->two_bytes);

		if (shape->len - at != 1 && shape->len - at != 4) {
			code->failed = true;
			return;
		}
		target = back +
			 (uint64_t)(int64_t)decode_displacement(bytes, at, shape->len);
	}
	if (call)
		emit_return_address(code, back);
	if (call || jump) {
		emit_near_jump(code, target);
	} else if (is_loop(shape) || is_conditional_jump(shape, &condition)) {
		make_branch(code, bytes, shape, target, back);
	} else if (is_indirect(bytes, shape, 2)) {
		code->failed = uses_rsp(bytes, shape);
		emit_return_address(code, back);
		emit_moved(code, bytes, shape, address, true);
	} else if (one && shape->opcode == 0xc7 && bytes[shape->modrm_at] == 0xf8) {
		code->failed = true; /* xbegin */
	} else {
		emit_moved(code, bytes, shape, address, false);
		code->ret->tail_at = code->ret->len;
		emit_near_jump(code, back);
	}
}

int pm_ptr_slot_make_x86(const uint8_t *bytes, uint8_t len, uint64_t address,
			 uint64_t slot, struct pm_ptr_code *out)
{
	struct pm_ptr_code made = { 0 };
	struct code code = { .at = slot, .ret = &made };
	struct shape shape;

	if (len == 0 || len > PM_PTR_INSN_MAX || !parse_insn_shape(bytes, len, &shape))
		return -EOPNOTSUPP;
	emit_moved_insn(&code, bytes, &shape, address);
	if (code.failed)
		return -EOPNOTSUPP;
	*out = made;
	return 0;
}
