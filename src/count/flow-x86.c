/* SPDX-License-Identifier: MIT */
/*
 * Decodes x86-64 instructions with capstone. The input may be any bytes: every step
 * advances. The cost of a probe depends on the kernel (arch/x86/kernel/uprobes.c): it
 * emulates pushes of registers, relative jumps and calls, and one-byte nops, and steps
 * over everything else, which costs several times as much.
 */
#include "flow.h"

#include <capstone.h>
#include <elf.h>
#include <string.h>

enum {
	INSNS_MAX = 1 << 20, /* in one function */
	RBP = 5,
	RSP = 4,
};

struct decoder {
	csh handle;
	cs_insn *insn;
};

static void x86_close_decoder(void *state)
{
	struct decoder *decoder = state;

	if (!decoder)
		return;
	if (decoder->insn)
		cs_free(decoder->insn, 1);
	cs_close(&decoder->handle);
	free(decoder);
}

static int x86_open_decoder(void **out)
{
	struct decoder *decoder = calloc(1, sizeof(*decoder));

	if (!decoder)
		return -ENOMEM;
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &decoder->handle) != CS_ERR_OK) {
		free(decoder);
		return -EOPNOTSUPP; /* capstone was built without x86 */
	}
	cs_option(decoder->handle, CS_OPT_DETAIL, CS_OPT_ON);
	decoder->insn = cs_malloc(decoder->handle);
	if (!decoder->insn) {
		x86_close_decoder(decoder);
		return -ENOMEM;
	}
	*out = decoder;
	return 0;
}

/* ---- registers --------------------------------------------------------------------------- */

/* The number by which instructions encode the register. */
static uint8_t register_number(x86_reg reg)
{
	static const uint16_t numbers[16][4] = {
		{ X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL },
		{ X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL },
		{ X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL },
		{ X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL },
		{ X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL },
		{ X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL },
		{ X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL },
		{ X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL },
		{ X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B },
		{ X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B },
		{ X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B },
		{ X86_REG_R11, X86_REG_R11D, X86_REG_R11W, X86_REG_R11B },
		{ X86_REG_R12, X86_REG_R12D, X86_REG_R12W, X86_REG_R12B },
		{ X86_REG_R13, X86_REG_R13D, X86_REG_R13W, X86_REG_R13B },
		{ X86_REG_R14, X86_REG_R14D, X86_REG_R14W, X86_REG_R14B },
		{ X86_REG_R15, X86_REG_R15D, X86_REG_R15W, X86_REG_R15B },
	};

	for (uint8_t i = 0; i < 16; i++)
		for (int width = 0; width < 4; width++)
			if (numbers[i][width] == reg)
				return i;
	return PM_FLOW_NO_REGISTER;
}

static bool is_register(const cs_x86_op *op, uint8_t number)
{
	return op->type == X86_OP_REG && register_number(op->reg) == number;
}

/* ---- the stack ------------------------------------------------------------------------------ */

static void set_sp_lost(struct pm_flow_insn *insn)
{
	insn->sp_effect = PM_FLOW_SP_LOST;
}

static void set_sp_moved(struct pm_flow_insn *insn, int64_t by)
{
	if (by >= INT32_MIN && by <= INT32_MAX)
		insn->sp_effect = PM_FLOW_SP_ADD;
	else
		insn->sp_effect = PM_FLOW_SP_LOST;
	insn->sp_by = (int32_t)by;
}

/* lea DISP(%rsp|%rbp), %rsp|%rbp, and the equivalent mov. */
static void copy_pointer(struct pm_flow_insn *insn, uint8_t to, uint8_t from,
			 int64_t disp)
{
	bool fits = disp >= INT32_MIN && disp <= INT32_MAX;

	if (to == RSP) {
		if (from == RSP)
			set_sp_moved(insn, -disp);
		else if (from == RBP && fits)
			insn->sp_effect = PM_FLOW_SP_FROM_FP;
		else
			set_sp_lost(insn);
		insn->sp_by = (int32_t)-disp;
	} else if (to == RBP) {
		if (from == RSP && fits)
			insn->fp_effect = PM_FLOW_FP_FROM_SP;
		else
			insn->fp_effect = PM_FLOW_FP_LOST;
		insn->fp_by = (int32_t)-disp;
	}
}

/* Any other write to the two registers makes them unknown. */
static void x86_find_writes(const cs_insn *from, struct pm_flow_insn *insn)
{
	const cs_x86 *x86 = &from->detail->x86;

	for (uint8_t i = 0; i < x86->op_count; i++) {
		const cs_x86_op *op = &x86->operands[i];

		/* An operand whose access capstone does not know may be written. */
		if (op->type != X86_OP_REG || op->access == CS_AC_READ)
			continue;
		if (is_register(op, RSP))
			set_sp_lost(insn);
		if (is_register(op, RBP))
			insn->fp_effect = PM_FLOW_FP_LOST;
	}
	for (uint8_t i = 0; i < from->detail->regs_write_count; i++) {
		uint8_t number = register_number((x86_reg)from->detail->regs_write[i]);

		if (number == RSP)
			set_sp_lost(insn);
		else if (number == RBP)
			insn->fp_effect = PM_FLOW_FP_LOST;
	}
}

static void x86_classify_stack(const cs_insn *from, struct pm_flow_insn *insn)
{
	const cs_x86 *x86 = &from->detail->x86;
	const cs_x86_op *op = x86->operands;

	switch (from->id) {
	case X86_INS_PUSH:
		set_sp_moved(insn, x86->op_count == 1 && op[0].size == 2 ? 2 : 8);
		break;
	case X86_INS_PUSHFQ:
		set_sp_moved(insn, 8);
		break;
	case X86_INS_POP:
		set_sp_moved(insn, x86->op_count == 1 && op[0].size == 2 ? -2 : -8);
		if (is_register(&op[0], RSP))
			set_sp_lost(insn);
		if (is_register(&op[0], RBP))
			insn->fp_effect = PM_FLOW_FP_LOST;
		break;
	case X86_INS_POPFQ:
		set_sp_moved(insn, -8);
		break;
	case X86_INS_LEAVE:
		insn->sp_effect = PM_FLOW_SP_FROM_FP;
		insn->sp_by = -8;
		insn->fp_effect = PM_FLOW_FP_LOST;
		break;
	case X86_INS_CALL:
		break; /* balanced after its return */
	default:
		if (x86->op_count == 2 && op[1].type == X86_OP_IMM &&
		    is_register(&op[0], RSP) &&
		    (from->id == X86_INS_SUB || from->id == X86_INS_ADD))
			set_sp_moved(insn,
				     from->id == X86_INS_SUB ? op[1].imm : -op[1].imm);
		else if (from->id == X86_INS_LEA && op[1].mem.index == X86_REG_INVALID)
			copy_pointer(insn, register_number(op[0].reg),
				     register_number(op[1].mem.base), op[1].mem.disp);
		else if (from->id == X86_INS_MOV && op[0].type == X86_OP_REG &&
			 op[1].type == X86_OP_REG)
			copy_pointer(insn, register_number(op[0].reg),
				     register_number(op[1].reg), 0);
		else
			x86_find_writes(from, insn);
	}
}

/* ---- facts ---------------------------------------------------------------------------------- */

static void x86_set_memory_operand(const cs_insn *from, const x86_op_mem *mem,
				   struct pm_flow_insn *insn)
{
	insn->value = (uint64_t)mem->disp;
	if (mem->base == X86_REG_RIP)
		insn->value += from->address + from->size;
	if (mem->base == X86_REG_RIP)
		insn->base = PM_FLOW_NO_REGISTER;
	else
		insn->base = register_number(mem->base);
	insn->index = register_number(mem->index);
	insn->scale = (uint8_t)mem->scale;
}

static void x86_find_facts(const cs_insn *from, struct pm_flow_insn *insn)
{
	const cs_x86 *x86 = &from->detail->x86;
	const cs_x86_op *op = x86->operands;

	if (x86->op_count == 0 || op[0].type != X86_OP_REG || op[0].access == CS_AC_READ)
		return;
	insn->to = register_number(op[0].reg);
	if (from->id == X86_INS_POP)
		insn->fact = PM_FLOW_FACT_POP;
	else
		insn->fact = PM_FLOW_FACT_WRITE;
	if (x86->op_count != 2)
		return;
	if (from->id == X86_INS_LEA && op[1].mem.base == X86_REG_RIP) {
		insn->fact = PM_FLOW_FACT_ADDRESS;
		x86_set_memory_operand(from, &op[1].mem, insn);
	} else if (from->id == X86_INS_LEA && op[1].mem.scale == 1 &&
		   op[1].mem.disp == 0 && op[1].mem.index != X86_REG_INVALID) {
		insn->fact = PM_FLOW_FACT_ADD;
		x86_set_memory_operand(from, &op[1].mem, insn);
	} else if ((from->id == X86_INS_MOV || from->id == X86_INS_MOVABS) &&
		   op[1].type == X86_OP_IMM) {
		insn->fact = PM_FLOW_FACT_ADDRESS;
		insn->value = (uint64_t)op[1].imm;
	} else if ((from->id == X86_INS_MOV || from->id == X86_INS_MOVSXD) &&
		   op[1].type == X86_OP_MEM && op[1].mem.segment == X86_REG_INVALID) {
		insn->fact = PM_FLOW_FACT_LOAD;
		insn->size = op[1].size;
		insn->is_signed = true;
		x86_set_memory_operand(from, &op[1].mem, insn);
	} else if (from->id == X86_INS_ADD && op[1].type == X86_OP_REG) {
		insn->fact = PM_FLOW_FACT_ADD;
		insn->base = insn->to;
		insn->index = register_number(op[1].reg);
		insn->scale = 1;
	} else if (from->id == X86_INS_MOV && op[1].type == X86_OP_REG) {
		insn->fact = PM_FLOW_FACT_MOVE;
		insn->from = register_number(op[1].reg);
	}
}

/* ---- where control goes ---------------------------------------------------------------------- */

/* Returns the condition in a jump's opcode (Intel SDM 1, B.1), numbered from 1; 0: it
 * does not depend on flags. */
static uint8_t condition_of(const cs_insn *from)
{
	const uint8_t *opcode = from->detail->x86.opcode;

	if (opcode[0] >= 0x70 && opcode[0] <= 0x7f)
		return (uint8_t)(1 + (opcode[0] & 15));
	if (opcode[0] == 0x0f && opcode[1] >= 0x80 && opcode[1] <= 0x8f)
		return (uint8_t)(1 + (opcode[1] & 15));
	return 0;
}

static void x86_classify_jump(const cs_insn *from, struct pm_flow_insn *insn)
{
	const cs_x86 *x86 = &from->detail->x86;
	const cs_x86_op *op = x86->operands;
	bool always = from->id == X86_INS_JMP || from->id == X86_INS_LJMP;

	if (x86->op_count == 1 && op[0].type == X86_OP_IMM) {
		insn->has_target = true;
		insn->target = (uint64_t)op[0].imm;
	}
	if (insn->kind == PM_FLOW_CALL)
		return;
	if (insn->has_target && !always)
		insn->kind = PM_FLOW_BRANCH;
	else if (insn->has_target)
		insn->kind = PM_FLOW_JUMP;
	else
		insn->kind = PM_FLOW_INDIRECT;
	if (insn->kind == PM_FLOW_BRANCH)
		insn->condition = condition_of(from);
	if (insn->kind != PM_FLOW_INDIRECT || x86->op_count != 1)
		return;
	if (op[0].type == X86_OP_REG)
		insn->from = register_number(op[0].reg);
	else if (op[0].type == X86_OP_MEM)
		x86_set_memory_operand(from, &op[0].mem, insn);
}

static void x86_classify_flow(const struct decoder *decoder, const cs_insn *from,
			      struct pm_flow_insn *insn)
{
	if (from->id == X86_INS_UD2 || from->id == X86_INS_UD0 ||
	    from->id == X86_INS_HLT || from->id == X86_INS_INT3)
		insn->kind = PM_FLOW_STOP;
	if (cs_insn_group(decoder->handle, from, CS_GRP_JUMP))
		insn->kind = PM_FLOW_JUMP;
	if (cs_insn_group(decoder->handle, from, CS_GRP_CALL))
		insn->kind = PM_FLOW_CALL;
	if (cs_insn_group(decoder->handle, from, CS_GRP_RET) ||
	    cs_insn_group(decoder->handle, from, CS_GRP_IRET))
		insn->kind = PM_FLOW_RETURN;
	if (insn->kind == PM_FLOW_JUMP || insn->kind == PM_FLOW_CALL)
		x86_classify_jump(from, insn);
}

/* ---- probes ----------------------------------------------------------------------------------- */

static bool is_cheap(const uint8_t *bytes, uint8_t len)
{
	if (bytes[0] == 0x41)
		return len == 2 && bytes[1] >= 0x50 && bytes[1] <= 0x57;
	if (bytes[0] >= 0x50 && bytes[0] <= 0x57)
		return true;
	if (bytes[0] == 0xeb || bytes[0] == 0xe9 || bytes[0] == 0xe8 || bytes[0] == 0x90)
		return true;
	return (bytes[0] >= 0x70 && bytes[0] <= 0x7f) ||
	       (bytes[0] == 0x0f && len == 6 && bytes[1] >= 0x80 && bytes[1] <= 0x8f);
}

/* Whether the instruction affects registers and flags only: then it makes no difference
 * whether the call was already seen. */
static bool is_movable(const cs_insn *from)
{
	static const unsigned int plain[] = {
		X86_INS_ENDBR64, X86_INS_MOV, X86_INS_MOVABS, X86_INS_MOVZX,
		X86_INS_MOVSX,   X86_INS_LEA, X86_INS_MOVSXD, X86_INS_XOR,
		X86_INS_TEST,    X86_INS_CMP, X86_INS_SUB,    X86_INS_ADD,
		X86_INS_AND,     X86_INS_OR,  X86_INS_SHL,    X86_INS_SHR,
		X86_INS_SAR,     X86_INS_NOP
	};
	const cs_x86 *x86 = &from->detail->x86;

	for (uint8_t i = 0; i < x86->op_count; i++)
		if (x86->operands[i].type == X86_OP_MEM && from->id != X86_INS_LEA &&
		    from->id != X86_INS_NOP)
			return false;
	for (size_t i = 0; i < PM_ARRAY_LEN(plain); i++)
		if (plain[i] == from->id)
			return true;
	for (uint8_t i = 0; i < from->detail->groups_count; i++)
		if (from->detail->groups[i] == X86_GRP_AVX ||
		    from->detail->groups[i] == X86_GRP_AVX2)
			return true;
	return false;
}

/* ---- pieces ------------------------------------------------------------------------------------ */

/* The length of a ModRM byte at @at and the operand bytes that follow it (Intel SDM 2,
 * 2.1.5). */
static size_t operand_len(const uint8_t *bytes, size_t left, size_t at)
{
	uint8_t mod, rm;
	size_t len = 1;

	if (at >= left)
		return SIZE_MAX / 2;
	mod = bytes[at] >> 6;
	rm = bytes[at] & 7;
	if (mod == 3)
		return len;
	if (rm == 4) {
		if (at + 1 < left && mod == 0 && (bytes[at + 1] & 7) == 5)
			len += 4;
		len++;
	}
	if (mod == 1)
		len += 1;
	else if (mod == 2 || (mod == 0 && rm == 5))
		len += 4;
	return len;
}

/* Instructions with a VEX or EVEX prefix (2.3, 2.7): capstone 4 lacks the newer ones, but
 * their length can be computed. */
static uint8_t vector_len(const uint8_t *bytes, size_t left)
{
	size_t opcode_at, len;
	uint8_t map, opcode;
	bool has_byte;

	if (left < 2)
		return 0;
	switch (bytes[0]) {
	case 0xc5:
		opcode_at = 2;
		map = 1;
		break;
	case 0xc4:
		opcode_at = 3;
		map = bytes[1] & 31;
		break;
	case 0x62:
		opcode_at = 4;
		map = bytes[1] & 7;
		break;
	default:
		return 0;
	}
	if (left < opcode_at + 2)
		return 0;

	opcode = bytes[opcode_at];
	has_byte = map == 3 ||
		   (map == 1 && ((opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 ||
				 (opcode >= 0xc4 && opcode <= 0xc6)));
	len = opcode_at + 1 + operand_len(bytes, left, opcode_at + 1) + has_byte;
	if (map > 0 && len <= left && len < 16)
		return (uint8_t)len;
	return 0;
}

/*
 * Instructions that capstone 4 does not know, although libraries contain them: shadow
 * stack hints that are otherwise nops (F3 0F 1E, F3 0F AE /5), RDPKRU and WRPKRU, and
 * vector instructions. 0: none of these.
 */
static uint8_t unknown_len(const uint8_t *bytes, size_t left)
{
	size_t at = left > 2 && bytes[0] == 0xf3 && (bytes[1] & 0xf0) == 0x40 ? 2 : 1;

	if (left >= 3 && bytes[0] == 0x0f && bytes[1] == 0x01 &&
	    (bytes[2] == 0xee || bytes[2] == 0xef))
		return 3;
	if (left < at + 3 || bytes[0] != 0xf3 || bytes[at] != 0x0f ||
	    (bytes[at + 2] & 0xc0) != 0xc0)
		return vector_len(bytes, left);
	if (bytes[at + 1] == 0x1e ||
	    (bytes[at + 1] == 0xae && (bytes[at + 2] & 0x38) == 0x28))
		return (uint8_t)(at + 3);
	return 0;
}

static int x86_decode(void *state, struct pm_flow *flow, const uint8_t *bytes, size_t len,
		      uint64_t address)
{
	const struct decoder *decoder = state;
	size_t left = len;

	while (left > 0) {
		const uint8_t *here = bytes + (len - left), *at = here;
		size_t rest = left;
		uint64_t next = address + (len - left);
		struct pm_flow_insn insn = { .address = next,
					     .to = PM_FLOW_NO_REGISTER,
					     .to_also = PM_FLOW_NO_REGISTER,
					     .from = PM_FLOW_NO_REGISTER,
					     .base = PM_FLOW_NO_REGISTER,
					     .index = PM_FLOW_NO_REGISTER };
		const cs_insn *from = decoder->insn;

		if (flow->insns.len >= INSNS_MAX)
			return -E2BIG;
		if (cs_disasm_iter(decoder->handle, &at, &rest, &next, decoder->insn) &&
		    from->size > 0 && from->size <= left && from->size < 16) {
			insn.len = (uint8_t)from->size;
			insn.pad = from->id == X86_INS_NOP || from->id == X86_INS_INT3 ||
				   (from->id == X86_INS_XCHG && insn.len <= 2);
			insn.cheap = is_cheap(here, insn.len);
			insn.movable = is_movable(from);
			x86_classify_flow(decoder, from, &insn);
			x86_classify_stack(from, &insn);
			if (insn.kind != PM_FLOW_INDIRECT)
				x86_find_facts(from, &insn);
		} else if ((insn.len = unknown_len(here, left)) == 0) {
			insn.len = 1;
			insn.kind = PM_FLOW_BAD;
			flow->bad_bytes++;
		}
		if (pm_vec_push(&flow->insns, insn) < 0)
			return -ENOMEM;
		left -= insn.len;
	}
	return 0;
}

const struct pm_flow_machine pm_flow_x86 = {
	.number = EM_X86_64,
	.open = x86_open_decoder,
	.close = x86_close_decoder,
	.decode = x86_decode,
};
