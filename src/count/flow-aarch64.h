/* SPDX-License-Identifier: MIT */
/* Words of aarch64: helpers shared by the files that decode them. */
#pragma once

#include "flow.h"

enum {
	PM_A64_WORD = 4,
	PM_A64_FP = 29,
	PM_A64_SP = 31, /* or the zero register; the instruction determines which */
};

static inline uint32_t pm_a64_field(uint32_t word, unsigned int high, unsigned int low)
{
	return word >> low & ((UINT32_C(2) << (high - low)) - 1);
}

static inline int64_t pm_a64_sfield(uint32_t word, unsigned int high, unsigned int low)
{
	int64_t value = pm_a64_field(word, high, low), half = INT64_C(1) << (high - low);

	return value < half ? value : value - 2 * half;
}

static inline bool pm_a64_bit(uint32_t word, unsigned int at)
{
	return word >> at & 1;
}

/* As a destination register of most instructions: 31 means none. */
static inline uint8_t pm_a64_plain(uint32_t number)
{
	return number == PM_A64_SP ? PM_FLOW_NO_REGISTER : (uint8_t)number;
}

static inline void pm_a64_move_sp(struct pm_flow_insn *insn, int64_t by)
{
	insn->sp_effect =
		by >= INT32_MIN && by <= INT32_MAX ? PM_FLOW_SP_ADD : PM_FLOW_SP_LOST;
	insn->sp_by = (int32_t)by;
}

/* Records that the word writes a register, in whichever way. */
static inline void pm_a64_write_to(struct pm_flow_insn *insn, uint8_t number)
{
	if (number == PM_FLOW_NO_REGISTER)
		return;
	if (number == PM_A64_FP)
		insn->fp_effect = PM_FLOW_FP_LOST;
	if (insn->fact == PM_FLOW_FACT_NONE)
		insn->fact = PM_FLOW_FACT_WRITE;
	if (insn->to == PM_FLOW_NO_REGISTER)
		insn->to = number;
	else
		insn->to_also = number;
}

/* ---- flow-aarch64-memory.c --------------------------------------------------------------- */

/* Effects of loads and stores on registers. */
void pm_a64_look_at_memory(uint32_t word, struct pm_flow_insn *insn);
