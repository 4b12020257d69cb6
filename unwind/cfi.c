/* SPDX-License-Identifier: MIT */
/* Interprets call frame programs (DWARF 5 §6.4.2) up to the row of an address. */
#include "unwind-parts.h"

#include <dwarf.h>
#include <string.h>

/* AADWARF64 §4.6; older releases of elf.h and dwarf.h lack the second. */
enum {
	AARCH64_NEGATE_RA_STATE = 0x2d,
	AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
};

enum {
	REMEMBER_MAX = 64, /* size of DW_CFA_remember_state's stack; compilers use one
	                    * row */
	INSTRUCTIONS_MAX = 1 << 15, /* of one FDE; the largest one seen has 9,000 */
};

struct machine {
	const struct pm_unw_fde *fde;
	struct pm_reader reader;
	struct pm_unw_row row;
	/* The row after the CIE's program; NULL while that program runs. */
	const struct pm_unw_row *initial;
	/* REMEMBER_MAX rows, allocated on first use. */
	struct pm_unw_row *remembered;
	size_t remembered_len;
	bool no_memory;
	uint64_t location;
	uint32_t work_left;
};

/* Whether CFA + @offset is known to be below the stack pointer. */
static bool is_slot_below_sp(const struct pm_unw_arch_info *arch,
			     const struct pm_unw_row *row, int64_t offset)
{
	if (row->cfa_is_expr || row->cfa_reg != arch->sp || offset >= 0)
		return false;
	return row->cfa_offset < 0 || (uint64_t)row->cfa_offset < 0 - (uint64_t)offset;
}

static void cfi_set_rule(struct machine *machine, uint64_t reg,
			 enum pm_unw_rule_kind kind, int64_t value)
{
	/* CFI also describes vector registers and others, which no chain needs. */
	if (reg >= machine->fde->arch->regs)
		return;
	machine->row.regs[reg] = (struct pm_unw_reg_rule){ .kind = kind, .value = value };
	if (kind == PM_UNW_RULE_OFFSET &&
	    !is_slot_below_sp(machine->fde->arch, &machine->row, value))
		machine->row.pushed |= (uint64_t)1 << reg;
}

static void cfi_set_expression(struct machine *machine, uint64_t reg,
			       enum pm_unw_rule_kind kind)
{
	uint64_t len = pm_reader_uleb(&machine->reader);
	const uint8_t *expr;

	if (len > pm_reader_left(&machine->reader)) {
		machine->reader.failed = true;
		return;
	}
	expr = pm_reader_bytes(&machine->reader, len);
	if (machine->reader.failed || reg >= machine->fde->arch->regs)
		return;
	machine->row.regs[reg] = (struct pm_unw_reg_rule){ .kind = kind,
							   .expr_len = (uint32_t)len,
							   .expr = expr };
}

static void cfi_set_cfa(struct machine *machine, uint64_t reg, int64_t offset)
{
	struct pm_unw_row *row = &machine->row;

	if (reg >= machine->fde->arch->regs) {
		machine->reader.failed = true;
		return;
	}
	row->cfa_is_expr = 0;
	row->cfa_expr = NULL;
	row->cfa_expr_len = 0;
	row->cfa_reg = reg;
	row->cfa_offset = offset;
}

/* Sets the register; the offset stays. After an expression, that is the last offset that
 * was given before it. libgcc and binutils interpret the assembly of libgcrypt in the
 * same way. */
static void cfi_change_cfa_reg(struct machine *machine, uint64_t reg)
{
	cfi_set_cfa(machine, reg, machine->row.cfa_offset);
}

/* Fails unless the CFA is "register + offset". */
static void cfi_change_cfa_offset(struct machine *machine, int64_t offset)
{
	if (machine->row.cfa_is_expr)
		machine->reader.failed = true;
	else
		cfi_set_cfa(machine, machine->row.cfa_reg, offset);
}

static void cfi_set_cfa_expression(struct machine *machine)
{
	uint64_t len = pm_reader_uleb(&machine->reader);

	if (len > pm_reader_left(&machine->reader)) {
		machine->reader.failed = true;
		return;
	}
	machine->row.cfa_is_expr = 1;
	machine->row.cfa_expr = pm_reader_bytes(&machine->reader, len);
	machine->row.cfa_expr_len = len;
}

static void cfi_restore_reg(struct machine *machine, uint64_t reg)
{
	if (reg < machine->fde->arch->regs && machine->initial)
		machine->row.regs[reg] = machine->initial->regs[reg];
}

static void cfi_push_state(struct machine *machine)
{
	pm_unw_take_work(&machine->work_left, PM_UNW_COST_REMEMBER);
	if (!machine->remembered)
		machine->remembered = malloc(REMEMBER_MAX * sizeof(*machine->remembered));
	if (!machine->remembered)
		machine->no_memory = true;
	if (!machine->remembered || machine->remembered_len == REMEMBER_MAX)
		machine->reader.failed = true;
	else
		memcpy(&machine->remembered[machine->remembered_len++], &machine->row,
		       sizeof(machine->row));
}

static void cfi_pop_state(struct machine *machine)
{
	pm_unw_take_work(&machine->work_left, PM_UNW_COST_REMEMBER);
	if (machine->remembered_len == 0)
		machine->reader.failed = true;
	else
		memcpy(&machine->row, &machine->remembered[--machine->remembered_len],
		       sizeof(machine->row));
}

/* Returns a * b, wrapping as addresses do. */
static int64_t multiply_wrapping(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* Runs DW_CFA_set_loc and the instructions that advance the location. Returns false for
 * other instructions. */
static bool cfi_run_location(struct machine *machine, uint8_t opcode)
{
	struct pm_reader *reader = &machine->reader;
	uint64_t code_align = machine->fde->code_align;

	switch (opcode) {
	case DW_CFA_set_loc:
		machine->location = pm_unw_read_encoded(
			machine->fde->arch, reader, machine->fde->encoding,
			machine->fde->region_svma +
				(uint64_t)(reader->data - machine->fde->region_data));
		return true;
	case DW_CFA_advance_loc1:
		machine->location += pm_reader_u8(reader) * code_align;
		return true;
	case DW_CFA_advance_loc2:
		machine->location += pm_reader_u16(reader) * code_align;
		return true;
	case DW_CFA_advance_loc4:
		machine->location += pm_reader_u32(reader) * code_align;
		return true;
	case DW_CFA_MIPS_advance_loc8:
		machine->location += pm_reader_u64(reader) * code_align;
		return true;
	default:
		return false;
	}
}

/* Runs an instruction that defines the CFA. Returns false for other instructions. */
static bool cfi_run_cfa(struct machine *machine, uint8_t opcode)
{
	struct pm_reader *reader = &machine->reader;
	int64_t data_align = machine->fde->data_align;
	uint64_t reg;

	switch (opcode) {
	case DW_CFA_def_cfa:
		reg = pm_reader_uleb(reader);
		cfi_set_cfa(machine, reg, (int64_t)pm_reader_uleb(reader));
		return true;
	case DW_CFA_def_cfa_sf:
		reg = pm_reader_uleb(reader);
		cfi_set_cfa(machine, reg,
			    multiply_wrapping(pm_reader_sleb(reader), data_align));
		return true;
	case DW_CFA_def_cfa_register:
		cfi_change_cfa_reg(machine, pm_reader_uleb(reader));
		return true;
	case DW_CFA_def_cfa_offset:
		cfi_change_cfa_offset(machine, (int64_t)pm_reader_uleb(reader));
		return true;
	case DW_CFA_def_cfa_offset_sf:
		cfi_change_cfa_offset(
			machine, multiply_wrapping(pm_reader_sleb(reader), data_align));
		return true;
	case DW_CFA_def_cfa_expression:
		cfi_set_cfa_expression(machine);
		return true;
	default:
		return false;
	}
}

/* Runs a rule with a register and a factored offset. Returns false for other
 * instructions. */
static bool cfi_run_offset(struct machine *machine, uint8_t opcode)
{
	struct pm_reader *reader = &machine->reader;
	enum pm_unw_rule_kind kind = PM_UNW_RULE_OFFSET;
	uint64_t reg;
	int64_t value;

	switch (opcode) {
	case DW_CFA_offset_extended:
	case DW_CFA_val_offset:
		reg = pm_reader_uleb(reader);
		value = (int64_t)pm_reader_uleb(reader);
		break;
	case DW_CFA_offset_extended_sf:
	case DW_CFA_val_offset_sf:
		reg = pm_reader_uleb(reader);
		value = pm_reader_sleb(reader);
		break;
	case DW_CFA_GNU_negative_offset_extended:
		reg = pm_reader_uleb(reader);
		value = (int64_t)(0 - pm_reader_uleb(reader));
		break;
	default:
		return false;
	}
	if (opcode == DW_CFA_val_offset || opcode == DW_CFA_val_offset_sf)
		kind = PM_UNW_RULE_VAL_OFFSET;
	cfi_set_rule(machine, reg, kind,
		     multiply_wrapping(value, machine->fde->data_align));
	return true;
}

/* Runs any other rule of a register. Returns false for other instructions. */
static bool cfi_run_rule(struct machine *machine, uint8_t opcode)
{
	struct pm_reader *reader = &machine->reader;
	uint64_t reg;

	switch (opcode) {
	case DW_CFA_restore_extended:
		cfi_restore_reg(machine, pm_reader_uleb(reader));
		return true;
	case DW_CFA_undefined:
		cfi_set_rule(machine, pm_reader_uleb(reader), PM_UNW_RULE_UNDEFINED, 0);
		return true;
	case DW_CFA_same_value:
		cfi_set_rule(machine, pm_reader_uleb(reader), PM_UNW_RULE_SAME, 0);
		return true;
	case DW_CFA_register:
		reg = pm_reader_uleb(reader);
		cfi_set_rule(machine, reg, PM_UNW_RULE_REGISTER,
			     (int64_t)pm_reader_uleb(reader));
		return true;
	case DW_CFA_expression:
		cfi_set_expression(machine, pm_reader_uleb(reader),
				   PM_UNW_RULE_EXPRESSION);
		return true;
	case DW_CFA_val_expression:
		cfi_set_expression(machine, pm_reader_uleb(reader),
				   PM_UNW_RULE_VAL_EXPRESSION);
		return true;
	default:
		return false;
	}
}

/* Runs all instructions except the three that have an operand in the opcode. */
static void cfi_run_extended(struct machine *machine, uint8_t opcode)
{
	switch (opcode) {
	case DW_CFA_nop:
		break;
	case DW_CFA_remember_state:
		cfi_push_state(machine);
		break;
	case DW_CFA_restore_state:
		cfi_pop_state(machine);
		break;
	case DW_CFA_GNU_args_size:
		/* The size of pushed arguments, which landing pads need. The CFA rules of
		 * x86-64 already include it. */
		pm_reader_uleb(&machine->reader);
		break;
	case AARCH64_NEGATE_RA_STATE:
	case AARCH64_NEGATE_RA_STATE_WITH_PC:
		if (machine->fde->arch->ra_is_link)
			machine->row.ra_signed ^= 1;
		else
			machine->reader.failed = true;
		break;
	default:
		if (!cfi_run_location(machine, opcode) && !cfi_run_cfa(machine, opcode) &&
		    !cfi_run_offset(machine, opcode) && !cfi_run_rule(machine, opcode))
			machine->reader.failed = true;
	}
}

static void cfi_run_instruction(struct machine *machine)
{
	uint8_t opcode = pm_reader_u8(&machine->reader);
	uint8_t operand = opcode & 0x3f;

	switch (opcode & 0xc0) {
	case DW_CFA_advance_loc:
		machine->location += operand * machine->fde->code_align;
		break;
	case DW_CFA_offset:
		cfi_set_rule(machine, operand, PM_UNW_RULE_OFFSET,
			     multiply_wrapping((int64_t)pm_reader_uleb(&machine->reader),
					       machine->fde->data_align));
		break;
	case DW_CFA_restore:
		cfi_restore_reg(machine, operand);
		break;
	default:
		cfi_run_extended(machine, opcode);
	}
}

/*
 * Runs until the location passes @svma or the program ends. An advance changes only the
 * location; the previous row is therefore still in place.
 */
static int cfi_run_program(struct machine *machine, const uint8_t *program,
			   const uint8_t *end, uint64_t svma)
{
	pm_reader_init(&machine->reader, program, (size_t)(end - program));
	for (size_t i = 0; pm_reader_left(&machine->reader) > 0; i++) {
		if (machine->work_left == 0)
			return -EDQUOT;
		pm_unw_take_work(&machine->work_left, PM_UNW_COST_INSTRUCTION);
		cfi_run_instruction(machine);
		if (machine->reader.failed || i == INSTRUCTIONS_MAX) {
			if (machine->no_memory)
				return -ENOMEM;
			return -EBADMSG;
		}
		if (machine->location > svma)
			return 0;
	}
	return 0;
}

void pm_unw_row_keep_popped(const struct pm_unw_arch_info *arch, struct pm_unw_row *row)
{
	for (uint32_t reg = 0; reg < arch->regs; reg++) {
		struct pm_unw_reg_rule *rule = &row->regs[reg];

		if ((reg != row->ra_reg || arch->ra_is_link) && row->pushed >> reg & 1 &&
		    rule->kind == PM_UNW_RULE_OFFSET &&
		    is_slot_below_sp(arch, row, rule->value))
			*rule = (struct pm_unw_reg_rule){ .kind = PM_UNW_RULE_SAME };
	}
	row->pushed = 0;
}

int pm_unw_cfi_row_within(const struct pm_unw_fde *fde, uint64_t svma,
			  uint32_t *work_left, struct pm_unw_row *out)
{
	struct machine machine = { .fde = fde,
				   .work_left = work_left ? *work_left : UINT32_MAX };
	struct pm_unw_row initial;
	int ret;

	memset(&machine.row, 0, sizeof(machine.row));
	if (fde->ra_reg >= fde->arch->regs)
		return -EBADMSG;
	machine.row.ra_reg = fde->ra_reg;
	machine.row.signal = fde->signal;
	machine.location = fde->start;
	ret = cfi_run_program(&machine, fde->initial, fde->initial_end, UINT64_MAX);
	if (ret == 0) {
		memcpy(&initial, &machine.row, sizeof(initial));
		machine.initial = &initial;
		machine.location = fde->start;
		ret = cfi_run_program(&machine, fde->program, fde->program_end, svma);
	}
	free(machine.remembered);
	if (work_left)
		*work_left = machine.work_left;
	if (ret == 0)
		memcpy(out, &machine.row, sizeof(*out));
	return ret;
}

int pm_unw_cfi_row(const struct pm_unw_fde *fde, uint64_t svma, struct pm_unw_row *out)
{
	return pm_unw_cfi_row_within(fde, svma, NULL, out);
}

/* Whether the return address is where the pair has it, and all slots can be moved. */
static bool does_row_lack_pair(const struct pm_unw_arch_info *arch,
			       const struct pm_unw_row *row)
{
	const struct pm_unw_reg_rule *link = &row->regs[arch->ra];

	if (row->ra_reg != arch->ra || row->signal || row->cfa_is_expr ||
	    row->cfa_reg != arch->sp || row->cfa_offset > INT32_MAX ||
	    link->kind != PM_UNW_RULE_OFFSET ||
	    link->value != PM_UNW_PAIR_BYTES - arch->word_bytes)
		return false;
	for (uint32_t reg = 0; reg < arch->regs; reg++)
		if (row->regs[reg].kind > PM_UNW_RULE_OFFSET ||
		    row->regs[reg].value < INT32_MIN)
			return false;
	return true;
}

static void count_return_address_pair(const struct pm_unw_arch_info *arch,
				      struct pm_unw_row *row)
{
	row->cfa_offset += PM_UNW_PAIR_BYTES;
	for (uint32_t reg = 0; reg < arch->regs; reg++)
		if (row->regs[reg].kind == PM_UNW_RULE_OFFSET)
			row->regs[reg].value -= PM_UNW_PAIR_BYTES;
}

/* Finds the row after the instruction at @svma, if that is a hint, which does nothing. */
static int find_row_behind_hint(struct pm_unw_module *module,
				const struct pm_unw_fde *fde, uint64_t svma,
				uint32_t *work_left, struct pm_unw_row *out)
{
	uint32_t code;

	/* Arm ARM C4.1.66: nop, bti and others. */
	if (!pm_unw_module_read(module, svma, &code, sizeof(code)) ||
	    (code & 0xfffff01f) != 0xd503201f || fde->end - svma <= sizeof(code))
		return -ENOENT;
	return pm_unw_cfi_row_within(fde, svma + sizeof(code), work_left, out);
}

int pm_unw_row_count_pair(struct pm_unw_module *module, const struct pm_unw_fde *fde,
			  uint64_t svma, uint32_t *work_left, struct pm_unw_row *row)
{
	const struct pm_unw_arch_info *arch = fde->arch;
	struct pm_unw_row next;
	int ret = 0;

	if (!arch->ra_is_link)
		return 0;
	if (svma == fde->start && row->regs[arch->ra].kind == PM_UNW_RULE_UNSPECIFIED) {
		ret = find_row_behind_hint(module, fde, svma, work_left, &next);
		if (ret == 0 && does_row_lack_pair(arch, &next))
			memcpy(row, &next, sizeof(*row));
	}
	if (does_row_lack_pair(arch, row))
		count_return_address_pair(arch, row);
	if (ret == -EDQUOT)
		return ret;
	return 0;
}
