/* SPDX-License-Identifier: MIT */
/* DWARF expressions (DWARF 5 §2.5) as they occur in call frame information. */
#include "unwind-parts.h"

#include <dwarf.h>
#include <string.h>

struct evaluation {
	const struct pm_unw_expr_input *input;
	const struct pm_unw_arch_info *arch; /* the generic type has the size of its
	                                      * addresses */
	struct pm_reader reader;
	uint64_t stack[PM_UNW_EXPR_STACK_MAX];
	size_t depth;
	enum pm_unw_stop stop; /* the reason, if `failed` */
	bool failed;
};

static void eval_fail(struct evaluation *eval, enum pm_unw_stop stop)
{
	if (!eval->failed)
		eval->stop = stop;
	eval->failed = true;
}

static void eval_push(struct evaluation *eval, uint64_t value)
{
	if (eval->depth == PM_UNW_EXPR_STACK_MAX)
		eval_fail(eval, PM_UNW_STOP_BAD_CFI);
	else
		eval->stack[eval->depth++] = value & eval->arch->address_mask;
}

/* Returns the entry @from_top places below the top (0: the top itself). If the stack is
 * not that deep, makes the evaluation fail and returns 0. */
static uint64_t eval_peek(struct evaluation *eval, size_t from_top)
{
	if (from_top >= eval->depth) {
		eval_fail(eval, PM_UNW_STOP_BAD_CFI);
		return 0;
	}
	return eval->stack[eval->depth - 1 - from_top];
}

static uint64_t eval_pop(struct evaluation *eval)
{
	uint64_t value = eval_peek(eval, 0);

	if (!eval->failed)
		eval->depth--;
	return value;
}

static uint64_t eval_reg_value(struct evaluation *eval, uint64_t reg)
{
	const struct pm_unw_regs *regs = eval->input->regs;

	if (reg >= eval->arch->regs || !(regs->known >> reg & 1)) {
		eval_fail(eval, reg >= eval->arch->regs ? PM_UNW_STOP_BAD_CFI
							: PM_UNW_STOP_NO_REGISTER);
		return 0;
	}
	return regs->value[reg];
}

static void eval_deref(struct evaluation *eval, uint64_t size)
{
	uint64_t address = eval_pop(eval), value = 0;
	enum pm_unw_stop why = PM_UNW_STOP_BAD_MEMORY;
	const uint8_t *bytes;

	if (eval->failed)
		return;
	if (size == 0 || size > eval->arch->word_bytes) {
		eval_fail(eval, PM_UNW_STOP_BAD_CFI);
		return;
	}
	bytes = pm_unw_stack_find(eval->input->stack, address, size, &why);
	if (!bytes) {
		eval_fail(eval, why);
		return;
	}
	memcpy(&value, bytes, size);
	eval_push(eval, value);
}

static int64_t eval_as_signed(const struct evaluation *eval, uint64_t value)
{
	if (eval->arch->word_bytes == 4)
		return (int32_t)value;
	return (int64_t)value;
}

static uint64_t eval_divide(struct evaluation *eval, uint64_t a, uint64_t b)
{
	int64_t sa = eval_as_signed(eval, a), sb = eval_as_signed(eval, b);

	if (sb == 0) {
		eval_fail(eval, PM_UNW_STOP_BAD_CFI);
		return 0;
	}
	if (sb == -1)
		return 0 - a;
	return (uint64_t)(sa / sb);
}

static uint64_t eval_modulo(struct evaluation *eval, uint64_t a, uint64_t b)
{
	if (b == 0) {
		eval_fail(eval, PM_UNW_STOP_BAD_CFI);
		return 0;
	}
	return a % b;
}

static bool compare_operands(uint8_t op, int64_t a, int64_t b)
{
	switch (op) {
	case DW_OP_eq:
		return a == b;
	case DW_OP_ne:
		return a != b;
	case DW_OP_lt:
		return a < b;
	case DW_OP_le:
		return a <= b;
	case DW_OP_gt:
		return a > b;
	default: /* DW_OP_ge */
		return a >= b;
	}
}

static uint64_t eval_arithmetic(struct evaluation *eval, uint8_t op, uint64_t a,
				uint64_t b)
{
	uint64_t bits = eval->arch->word_bytes * 8u;

	switch (op) {
	case DW_OP_and:
		return a & b;
	case DW_OP_or:
		return a | b;
	case DW_OP_xor:
		return a ^ b;
	case DW_OP_plus:
		return a + b;
	case DW_OP_minus:
		return a - b;
	case DW_OP_mul:
		return a * b;
	case DW_OP_div:
		return eval_divide(eval, a, b);
	case DW_OP_mod:
		return eval_modulo(eval, a, b);
	case DW_OP_shl:
		if (b < bits)
			return a << b;
		return 0;
	case DW_OP_shr:
		if (b < bits)
			return a >> b;
		return 0;
	default: /* DW_OP_shra */
		return (uint64_t)(eval_as_signed(eval, a) >> (b < bits ? b : bits - 1));
	}
}

static void eval_binary_op(struct evaluation *eval, uint8_t op)
{
	uint64_t b = eval_pop(eval), a = eval_pop(eval);

	if (op >= DW_OP_eq && op <= DW_OP_ne)
		eval_push(eval, compare_operands(op, eval_as_signed(eval, a),
						 eval_as_signed(eval, b)));
	else
		eval_push(eval, eval_arithmetic(eval, op, a, b));
}

static void eval_rotate(struct evaluation *eval)
{
	uint64_t top = eval_pop(eval), second = eval_pop(eval), third = eval_pop(eval);

	eval_push(eval, top);
	eval_push(eval, third);
	eval_push(eval, second);
}

/* Jumps within the expression; its end is a valid target. */
static void eval_jump(struct evaluation *eval, int16_t by)
{
	int64_t to = (int64_t)eval->reader.pos + by;

	if (eval->reader.failed || to < 0 || to > (int64_t)eval->reader.len)
		eval_fail(eval, PM_UNW_STOP_BAD_CFI);
	else
		eval->reader.pos = (size_t)to;
}

static void eval_push_constant(struct evaluation *eval, uint8_t op)
{
	struct pm_reader *reader = &eval->reader;

	switch (op) {
	case DW_OP_addr:
		eval_push(eval, (eval->arch->word_bytes == 4 ? pm_reader_u32(reader)
							     : pm_reader_u64(reader)) +
					eval->input->bias);
		break;
	case DW_OP_const1u:
		eval_push(eval, pm_reader_u8(reader));
		break;
	case DW_OP_const1s:
		eval_push(eval, (uint64_t)(int64_t)(int8_t)pm_reader_u8(reader));
		break;
	case DW_OP_const2u:
		eval_push(eval, pm_reader_u16(reader));
		break;
	case DW_OP_const2s:
		eval_push(eval, (uint64_t)(int64_t)(int16_t)pm_reader_u16(reader));
		break;
	case DW_OP_const4u:
		eval_push(eval, pm_reader_u32(reader));
		break;
	case DW_OP_const4s:
		eval_push(eval, (uint64_t)(int64_t)(int32_t)pm_reader_u32(reader));
		break;
	case DW_OP_const8u:
	case DW_OP_const8s:
		eval_push(eval, pm_reader_u64(reader));
		break;
	case DW_OP_constu:
		eval_push(eval, pm_reader_uleb(reader));
		break;
	default: /* DW_OP_consts */
		eval_push(eval, (uint64_t)pm_reader_sleb(reader));
	}
}

/* Runs operations that move stack entries, and control flow. */
static void eval_run_stack_op(struct evaluation *eval, uint8_t op)
{
	uint64_t a, b;
	int16_t by;

	switch (op) {
	case DW_OP_dup:
		eval_push(eval, eval_peek(eval, 0));
		break;
	case DW_OP_drop:
		eval_pop(eval);
		break;
	case DW_OP_over:
		eval_push(eval, eval_peek(eval, 1));
		break;
	case DW_OP_pick:
		eval_push(eval, eval_peek(eval, pm_reader_u8(&eval->reader)));
		break;
	case DW_OP_swap:
		a = eval_pop(eval);
		b = eval_pop(eval);
		eval_push(eval, a);
		eval_push(eval, b);
		break;
	case DW_OP_rot:
		eval_rotate(eval);
		break;
	case DW_OP_skip:
		eval_jump(eval, (int16_t)pm_reader_u16(&eval->reader));
		break;
	case DW_OP_bra:
		by = (int16_t)pm_reader_u16(&eval->reader);
		if (eval_pop(eval) != 0)
			eval_jump(eval, by);
		break;
	case DW_OP_nop:
		break;
	default:
		eval_fail(eval, PM_UNW_STOP_BAD_CFI);
	}
}

static void eval_run_op(struct evaluation *eval, uint8_t op)
{
	struct pm_reader *reader = &eval->reader;
	uint64_t reg;

	if (op >= DW_OP_lit0 && op <= DW_OP_lit31) {
		eval_push(eval, op - DW_OP_lit0);
	} else if (op >= DW_OP_breg0 && op <= DW_OP_breg31) {
		reg = eval_reg_value(eval, op - DW_OP_breg0);
		eval_push(eval, reg + (uint64_t)pm_reader_sleb(reader));
	} else if (op == DW_OP_bregx) {
		reg = eval_reg_value(eval, pm_reader_uleb(reader));
		eval_push(eval, reg + (uint64_t)pm_reader_sleb(reader));
	} else if (op == DW_OP_addr || (op >= DW_OP_const1u && op <= DW_OP_consts)) {
		eval_push_constant(eval, op);
	} else if (op == DW_OP_deref) {
		eval_deref(eval, eval->arch->word_bytes);
	} else if (op == DW_OP_deref_size) {
		eval_deref(eval, pm_reader_u8(reader));
	} else if (op == DW_OP_abs) {
		reg = eval_pop(eval);
		eval_push(eval, eval_as_signed(eval, reg) < 0 ? 0 - reg : reg);
	} else if (op == DW_OP_neg) {
		eval_push(eval, 0 - eval_pop(eval));
	} else if (op == DW_OP_not) {
		eval_push(eval, ~eval_pop(eval));
	} else if (op == DW_OP_plus_uconst) {
		reg = eval_pop(eval);
		eval_push(eval, reg + pm_reader_uleb(reader));
	} else if (op == DW_OP_call_frame_cfa && eval->input->cfa) {
		eval_push(eval, *eval->input->cfa);
	} else if ((op >= DW_OP_and && op <= DW_OP_xor) ||
		   (op >= DW_OP_eq && op <= DW_OP_ne)) {
		eval_binary_op(eval, op);
	} else {
		eval_run_stack_op(eval, op);
	}
}

static bool take_expression_work(uint32_t *left)
{
	if (left && *left == 0)
		return false;
	pm_unw_take_work(left, PM_UNW_COST_OPERATION);
	return true;
}

bool pm_unw_expr_eval(const struct pm_unw_expr_input *input, uint64_t *out,
		      enum pm_unw_stop *stop)
{
	struct evaluation eval = { .input = input,
				   .arch = &pm_unw_arch_infos[input->regs->arch] };
	uint64_t top;

	pm_reader_init(&eval.reader, input->expr, input->len);
	if (input->cfa)
		eval_push(&eval, *input->cfa);
	for (size_t steps = 0; pm_reader_left(&eval.reader) > 0 && !eval.failed;
	     steps++) {
		if (steps == PM_UNW_EXPR_STEPS_MAX ||
		    !take_expression_work(input->work_left))
			eval_fail(&eval, PM_UNW_STOP_BAD_CFI);
		else
			eval_run_op(&eval, pm_reader_u8(&eval.reader));
	}
	if (eval.reader.failed)
		eval_fail(&eval, PM_UNW_STOP_BAD_CFI);
	top = eval_peek(&eval, 0);
	if (eval.failed)
		*stop = eval.stop;
	else
		*out = top;
	return !eval.failed;
}
