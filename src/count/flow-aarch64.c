/* SPDX-License-Identifier: MIT */
/*
 * Decodes aarch64 instructions by their bits (Arm ARM C4.1). Each is one word, and so few
 * of them affect control or the stack that all of these can be distinguished here,
 * including those of newer processors. The input may be any words. The cost of a probe
 * depends on the kernel (arch/arm64/kernel/probes/decode-insn.c): it emulates jumps,
 * returns and adr, and steps over everything else, which costs several times as much.
 */
#include "flow.h"

#include <elf.h>
#include <string.h>

enum {
	A64_WORD = 4,
	A64_FP = 29,
	A64_SP = 31, /* or the zero register; the instruction determines which */
};

static uint32_t a64_field(uint32_t word, unsigned int high, unsigned int low)
{
	return word >> low & ((UINT32_C(2) << (high - low)) - 1);
}

static int64_t a64_sfield(uint32_t word, unsigned int high, unsigned int low)
{
	int64_t value = a64_field(word, high, low), half = INT64_C(1) << (high - low);

	return value < half ? value : value - 2 * half;
}

static bool a64_bit(uint32_t word, unsigned int at)
{
	return word >> at & 1;
}

/* As a destination register of most instructions: 31 means none. */
static uint8_t a64_plain(uint32_t number)
{
	return number == A64_SP ? PM_FLOW_NO_REGISTER : (uint8_t)number;
}

static void a64_move_sp(struct pm_flow_insn *insn, int64_t by)
{
	insn->sp_effect =
		by >= INT32_MIN && by <= INT32_MAX ? PM_FLOW_SP_ADD : PM_FLOW_SP_LOST;
	insn->sp_by = (int32_t)by;
}

/* Records that the word writes a register, in whichever way. */
static void a64_write_to(struct pm_flow_insn *insn, uint8_t number)
{
	if (number == PM_FLOW_NO_REGISTER)
		return;
	if (number == A64_FP)
		insn->fp_effect = PM_FLOW_FP_LOST;
	if (insn->fact == PM_FLOW_FACT_NONE)
		insn->fact = PM_FLOW_FACT_WRITE;
	if (insn->to == PM_FLOW_NO_REGISTER)
		insn->to = number;
	else
		insn->to_also = number;
}

enum {
	INSNS_MAX = 1 << 20, /* in one function */
	CONSTANT_BACK = 8, /* from a constant to its subtraction from sp */
	ATOMIC_MAX = 16, /* instructions from an exclusive load to the store */
};

/* ---- the stack --------------------------------------------------------------------------- */

/* to = from + by; either may be sp. */
static void add_constant(struct pm_flow_insn *insn, uint32_t to, uint32_t from,
			 int64_t by)
{
	if (to == A64_SP) {
		if (from == A64_SP) {
			a64_move_sp(insn, -by);
		} else if (from == A64_FP) {
			insn->sp_effect = PM_FLOW_SP_FROM_FP;
			insn->sp_by = (int32_t)-by;
		} else {
			insn->sp_effect = PM_FLOW_SP_LOST;
		}
		return;
	}
	a64_write_to(insn, (uint8_t)to);
	insn->fact = PM_FLOW_FACT_MOVE;
	insn->from = (uint8_t)from;
	insn->value = (uint64_t)by;
	if (to == A64_FP && from == A64_SP) {
		insn->fp_effect = PM_FLOW_FP_FROM_SP;
		insn->fp_by = (int32_t)-by;
	}
}

/* A constant that was loaded into the register shortly before: the size of a frame that
 * is too large for an immediate. */
static bool constant_in(const struct pm_flow *flow, uint64_t address, uint8_t number,
			int64_t *out)
{
	for (size_t back = 1; back <= CONSTANT_BACK && back <= flow->insns.len; back++) {
		const struct pm_flow_insn *insn =
			&flow->insns.data[flow->insns.len - back];

		if (insn->address + back * A64_WORD != address ||
		    insn->kind != PM_FLOW_PLAIN)
			return false;
		if (insn->fact == PM_FLOW_FACT_NONE ||
		    (insn->to != number && insn->to_also != number))
			continue;
		*out = (int64_t)insn->value;
		return insn->fact == PM_FLOW_FACT_ADDRESS;
	}
	return false;
}

/* ---- arithmetic -------------------------------------------------------------------------- */

static void a64_classify_add(uint32_t word, struct pm_flow_insn *insn)
{
	int64_t by = (int64_t)a64_field(word, 21, 10) << (a64_bit(word, 22) ? 12 : 0);
	uint32_t to = a64_field(word, 4, 0), from = a64_field(word, 9, 5);

	if (a64_bit(word, 29)) {
		a64_write_to(insn, a64_plain(to));
		if (to == A64_SP && a64_bit(word, 30)) { /* cmp */
			insn->fact = PM_FLOW_FACT_LIMIT;
			insn->from = (uint8_t)from;
			insn->value = (uint64_t)by;
		}
	} else if (a64_bit(word, 31)) {
		add_constant(insn, to, from, a64_bit(word, 30) ? -by : by);
	} else if (to == A64_SP) {
		insn->sp_effect = PM_FLOW_SP_LOST;
	} else {
		a64_write_to(insn, (uint8_t)to);
	}
}

static void a64_classify_immediates(uint32_t word, struct pm_flow_insn *insn)
{
	uint32_t to = a64_field(word, 4, 0);
	int64_t distance = a64_sfield(word, 23, 5) * 4 + a64_field(word, 30, 29);

	switch (a64_field(word, 25, 23)) {
	case 0:
	case 1:
		a64_write_to(insn, a64_plain(to));
		insn->fact = PM_FLOW_FACT_ADDRESS;
		if (a64_bit(word, 31))
			insn->value = (insn->address & ~UINT64_C(4095)) +
				      (uint64_t)(distance * 4096);
		else
			insn->value = insn->address + (uint64_t)distance;
		insn->cheap = true;
		break;
	case 2:
		a64_classify_add(word, insn);
		break;
	case 3: /* memory tagging */
		if (to == A64_SP)
			insn->sp_effect = PM_FLOW_SP_LOST;
		a64_write_to(insn, a64_plain(to));
		break;
	case 4:
		if (to == A64_SP && a64_field(word, 30, 29) != 3)
			insn->sp_effect = PM_FLOW_SP_LOST;
		a64_write_to(insn, a64_plain(to));
		break;
	case 5:
		a64_write_to(insn, a64_plain(to));
		if (a64_field(word, 30, 29) != 2)
			break;
		insn->fact = PM_FLOW_FACT_ADDRESS;
		insn->value = (uint64_t)a64_field(word, 20, 5)
			      << 16 * a64_field(word, 22, 21);
		break;
	default:
		a64_write_to(insn, a64_plain(to));
		break;
	}
	insn->movable = insn->sp_effect != PM_FLOW_SP_LOST;
}

static void fact_of_sum(uint32_t word, struct pm_flow_insn *insn, uint32_t shift,
			bool is_signed)
{
	a64_write_to(insn, a64_plain(a64_field(word, 4, 0)));
	if (a64_bit(word, 30) || a64_bit(word, 29) || shift > 4)
		return;
	insn->fact = PM_FLOW_FACT_ADD;
	insn->base = (uint8_t)a64_field(word, 9, 5);
	insn->index = (uint8_t)a64_field(word, 20, 16);
	insn->scale = (uint8_t)(1u << shift);
	insn->is_signed = is_signed;
}

/* add and sub with an extended register, the form that allows sp. */
static void a64_classify_extended(uint32_t word, const struct pm_flow *flow,
				  struct pm_flow_insn *insn)
{
	uint32_t to = a64_field(word, 4, 0), shift = a64_field(word, 12, 10);
	int64_t by;

	if (to != A64_SP || a64_bit(word, 29)) {
		fact_of_sum(word, insn, shift, a64_field(word, 15, 13) >= 4);
		return;
	}
	insn->sp_effect = PM_FLOW_SP_LOST;
	if (a64_bit(word, 31) && a64_field(word, 9, 5) == A64_SP && shift == 0 &&
	    constant_in(flow, insn->address, a64_plain(a64_field(word, 20, 16)), &by))
		a64_move_sp(insn, a64_bit(word, 30) ? by : -by);
}

static void a64_classify_registers(uint32_t word, const struct pm_flow *flow,
				   struct pm_flow_insn *insn)
{
	uint32_t to = a64_field(word, 4, 0);

	if (a64_bit(word, 28)) {
		/* Of these, only conditional comparisons have no result. */
		if (a64_field(word, 24, 21) != 2)
			a64_write_to(insn, a64_plain(to));
	} else if (!a64_bit(word, 24)) {
		a64_write_to(insn, a64_plain(to));
		/* mov */
		if (a64_field(word, 30, 29) == 1 && a64_field(word, 9, 5) == A64_SP &&
		    a64_field(word, 23, 21) == 0 && a64_field(word, 15, 10) == 0) {
			insn->fact = PM_FLOW_FACT_MOVE;
			insn->from = a64_plain(a64_field(word, 20, 16));
		}
	} else if (a64_bit(word, 21)) {
		a64_classify_extended(word, flow, insn);
	} else {
		fact_of_sum(word, insn,
			    a64_field(word, 23, 22) == 0 ? a64_field(word, 15, 10) : 8,
			    false);
	}
	insn->movable = insn->sp_effect != PM_FLOW_SP_LOST;
}

/* Only results in general registers matter here. */
static void a64_classify_vectors(uint32_t word, struct pm_flow_insn *insn)
{
	uint32_t operation = a64_field(word, 18, 16);
	/* smov, umov */
	bool moves = (word & 0xbfe08400) == 0x0e000400 &&
		     (a64_field(word, 14, 11) == 5 || a64_field(word, 14, 11) == 7);
	/* fcvt… and fmov; scvtf, ucvtf (2, 3) and fmov (7) go the other way */
	bool converts = (word & 0x5f20fc00) == 0x1e200000 && operation != 2 &&
			operation != 3 && operation != 7;
	bool fixed = (word & 0x5f200000) == 0x1e000000 && operation < 2;

	if (moves || converts || fixed)
		a64_write_to(insn, a64_plain(a64_field(word, 4, 0)));
}

/* ---- where control goes ------------------------------------------------------------------ */

static void jump_to(struct pm_flow_insn *insn, enum pm_flow_kind kind, int64_t words)
{
	insn->kind = (uint8_t)kind;
	insn->has_target = true;
	insn->target = insn->address + (uint64_t)(words * A64_WORD);
	insn->cheap = true;
}

/* cbz, cbnz, tbz, tbnz. */
static void a64_classify_zero(uint32_t word, struct pm_flow_insn *insn)
{
	bool one_bit = a64_bit(word, 25);
	uint64_t all = a64_bit(word, 31) ? UINT64_MAX : UINT32_MAX;

	jump_to(insn, PM_FLOW_BRANCH,
		one_bit ? a64_sfield(word, 18, 5) : a64_sfield(word, 23, 5));
	if (a64_bit(word, 24))
		insn->condition = PM_PLACE_IF_BITS;
	else
		insn->condition = PM_PLACE_IF_NO_BITS;
	insn->condition_register = (uint8_t)a64_field(word, 4, 0);
	if (one_bit)
		insn->condition_bits = UINT64_C(1) << (a64_field(word, 31, 31) * 32 +
						       a64_field(word, 23, 19));
	else
		insn->condition_bits = all;
	/* The register is the zero register. */
	if (insn->condition_register == A64_SP) {
		insn->condition = 0;
		if (a64_bit(word, 24))
			insn->kind = PM_FLOW_PLAIN;
		else
			insn->kind = PM_FLOW_JUMP;
	}
}

static void a64_classify_condition(uint32_t word, struct pm_flow_insn *insn)
{
	uint32_t condition = a64_field(word, 3, 0);

	jump_to(insn, condition < 14 ? PM_FLOW_BRANCH : PM_FLOW_JUMP,
		a64_sfield(word, 23, 5));
	if (condition < 14)
		insn->condition = (uint8_t)(PM_PLACE_IF_NZCV + condition);
}

/* Jumps to a register, with and without authentication. The low bits select the keys. */
static void a64_classify_register_jump(uint32_t word, struct pm_flow_insn *insn)
{
	uint32_t what = a64_field(word, 24, 21);
	bool authenticates = a64_field(word, 15, 11) == 1;

	if (a64_field(word, 20, 16) != A64_SP ||
	    (a64_field(word, 15, 10) != 0 && !authenticates)) {
		insn->kind = PM_FLOW_BAD;
		return;
	}
	switch (what & 7) {
	case 0:
		insn->kind = PM_FLOW_INDIRECT;
		insn->from = (uint8_t)a64_field(word, 9, 5);
		break;
	case 1:
		insn->kind = PM_FLOW_CALL;
		break;
	case 2:
		insn->kind = PM_FLOW_RETURN;
		break;
	default:
		insn->kind = PM_FLOW_STOP; /* privileged */
		return;
	}
	insn->cheap = !authenticates;
}

/* Whether the word is a nop, a landing pad, or signs a return address; hints that check
 * or wait are none of these. */
static bool is_plain_hint(uint32_t word)
{
	switch (a64_field(word, 11, 5)) {
	case 0: /* nop */
	case 7: /* xpaclri */
	case 8: /* pacia1716 */
	case 10: /* pacib1716 */
	case 24: /* paciaz */
	case 25: /* paciasp */
	case 26: /* pacibz */
	case 27: /* pacibsp */
	case 32: /* bti, and with c, j, jc */
	case 34:
	case 36:
	case 38:
		return true;
	default:
		return false;
	}
}

static void a64_classify_system(uint32_t word, struct pm_flow_insn *insn)
{
	if (a64_bit(word, 21))
		a64_write_to(insn, a64_plain(a64_field(word, 4, 0)));
	insn->pad = word == 0xd503201f;
	insn->movable = (word & 0xfffff01f) == 0xd503201f && is_plain_hint(word);
}

static void a64_classify_control(uint32_t word, struct pm_flow_insn *insn)
{
	if ((word & 0x7c000000) == 0x14000000)
		jump_to(insn, a64_bit(word, 31) ? PM_FLOW_CALL : PM_FLOW_JUMP,
			a64_sfield(word, 25, 0));
	else if ((word & 0xff000000) == 0x54000000)
		a64_classify_condition(word, insn);
	else if ((word & 0x7c000000) == 0x34000000)
		a64_classify_zero(word, insn);
	else if ((word & 0xff000000) == 0xd4000000)
	/* brk and hlt */
	{
		if (a64_field(word, 23, 21) == 1 || a64_field(word, 23, 21) == 2)
			insn->kind = PM_FLOW_STOP;
		else
			insn->kind = PM_FLOW_PLAIN;
	} else if ((word & 0xff000000) == 0xd5000000)
		a64_classify_system(word, insn);
	else if ((word & 0xfe000000) == 0xd6000000)
		a64_classify_register_jump(word, insn);
	else
		insn->kind = PM_FLOW_BAD;
}

/* ---- loads and stores (Arm ARM C4.1.94) -------------------------------------------------- */

/* The base register changes by @by; whether before or after the access makes no
 * difference to sp. */
static void write_back(uint32_t word, struct pm_flow_insn *insn, int64_t by)
{
	uint32_t base = a64_field(word, 9, 5);

	if (base != A64_SP) {
		a64_write_to(insn, (uint8_t)base);
		return;
	}
	a64_move_sp(insn, -by);
	if (insn->fact == PM_FLOW_FACT_WRITE)
		insn->fact = PM_FLOW_FACT_POP;
}

/* Returns the size of each register of a pair, as a power of two in bytes. */
static unsigned int pair_size(uint32_t word, bool vector, bool load)
{
	if (vector)
		return 2 + a64_field(word, 31, 30);
	if (a64_bit(word, 31))
		return 3;
	if (!a64_bit(word, 30))
		return 2;
	if (load)
		return 2; /* ldpsw */
	return 4; /* stgp */
}

static void a64_classify_pair(uint32_t word, struct pm_flow_insn *insn)
{
	bool vector = a64_bit(word, 26), load = a64_bit(word, 22);
	unsigned int size = pair_size(word, vector, load);

	if (load && !vector) {
		a64_write_to(insn, a64_plain(a64_field(word, 4, 0)));
		a64_write_to(insn, a64_plain(a64_field(word, 14, 10)));
	}
	if (a64_bit(word, 23))
		write_back(word, insn, a64_sfield(word, 21, 15) * (INT64_C(1) << size));
}

/* The fact for a load from @base + @value; the caller adds an index. */
static void fact_of_load(uint32_t word, struct pm_flow_insn *insn, int64_t value)
{
	a64_write_to(insn, a64_plain(a64_field(word, 4, 0)));
	insn->fact = PM_FLOW_FACT_LOAD;
	insn->size = (uint8_t)(1u << a64_field(word, 31, 30));
	insn->is_signed = a64_bit(word, 23);
	insn->base = (uint8_t)a64_field(word, 9, 5);
	insn->value = (uint64_t)value;
}

static void a64_classify_single(uint32_t word, struct pm_flow_insn *insn)
{
	uint32_t size = a64_field(word, 31, 30), how = a64_field(word, 11, 10);
	bool loads = !a64_bit(word, 26) && a64_field(word, 23, 22) != 0 &&
		     !(size == 3 && a64_field(word, 23, 22) == 2); /* prfm */

	if (a64_bit(word, 24)) {
		if (loads)
			fact_of_load(word, insn,
				     (int64_t)a64_field(word, 21, 10) << size);
	} else if (!a64_bit(word, 21)) {
		if (loads && (how & 1))
			a64_write_to(insn, a64_plain(a64_field(word, 4, 0)));
		else if (loads)
			fact_of_load(word, insn, a64_sfield(word, 20, 12));
		if (how & 1)
			write_back(word, insn, a64_sfield(word, 20, 12));
	} else if (how == 2) {
		if (!loads)
			return;
		fact_of_load(word, insn, 0);
		insn->index = (uint8_t)a64_field(word, 20, 16);
		if (a64_bit(word, 12))
			insn->scale = insn->size;
		else
			insn->scale = 1;
	} else if (how == 0) {
		a64_write_to(insn,
			     a64_plain(a64_field(word, 4, 0))); /* an atomic operation */
	} else {
		/* With an authenticated pointer. */
		a64_write_to(insn, a64_plain(a64_field(word, 4, 0)));
		if (a64_bit(word, 11))
			write_back(word, insn,
				   (a64_sfield(word, 22, 22) * 512 +
				    a64_field(word, 20, 12)) *
					   8);
	}
}

/* Exclusive and ordered accesses, compare and swap. */
static void a64_classify_exclusive(uint32_t word, struct pm_flow_insn *insn)
{
	bool compares = a64_bit(word, 21) && (a64_bit(word, 23) || !a64_bit(word, 31));

	if (compares) {
		a64_write_to(insn, a64_plain(a64_field(word, 20, 16)));
	} else if (a64_bit(word, 22)) {
		a64_write_to(insn, a64_plain(a64_field(word, 4, 0)));
		if (a64_bit(word, 21))
			a64_write_to(insn, a64_plain(a64_field(word, 14, 10)));
	} else if (!a64_bit(word, 23)) {
		a64_write_to(insn,
			     a64_plain(a64_field(word, 20, 16))); /* the store's status */
	}
}

/* Memory tags, and ordered accesses with an offset. */
static void a64_classify_tags(uint32_t word, struct pm_flow_insn *insn)
{
	if (!a64_bit(word, 21) && a64_field(word, 23, 22) != 0)
		a64_write_to(insn, a64_plain(a64_field(word, 4, 0)));
	else if (a64_bit(word, 21) && a64_bit(word, 10))
		write_back(word, insn, a64_sfield(word, 20, 12) * 16);
	else if (a64_bit(word, 21) && a64_field(word, 11, 10) == 0)
		a64_write_to(insn, a64_plain(a64_field(word, 4, 0)));
}

/* A load from data between instructions: @size bytes are not code. */
static void a64_classify_literal(uint32_t word, struct pm_flow_insn *insn)
{
	uint32_t size = a64_field(word, 31, 30);

	if (a64_bit(word, 26)) {
		insn->size = (uint8_t)(4u << size);
	} else if (size < 3) {
		a64_write_to(insn, a64_plain(a64_field(word, 4, 0)));
		if (size == 1)
			insn->size = 8;
		else
			insn->size = 4;
	}
	insn->fact = PM_FLOW_FACT_LOAD;
	insn->value = insn->address + (uint64_t)(a64_sfield(word, 23, 5) * 4);
	insn->movable = true;
}

/* Effects of loads and stores on registers. */
static void a64_look_at_memory(uint32_t word, struct pm_flow_insn *insn)
{
	switch (a64_field(word, 29, 28)) {
	case 0:
		if (!a64_bit(word, 26))
			a64_classify_exclusive(word, insn);
		else if (a64_bit(word, 23) && a64_field(word, 9, 5) == A64_SP)
			insn->sp_effect = PM_FLOW_SP_LOST;
		else if (a64_bit(word, 23))
			a64_write_to(insn, (uint8_t)a64_field(word, 9, 5));
		break;
	case 1:
		if (!a64_bit(word, 24))
			a64_classify_literal(word, insn);
		else
			a64_classify_tags(word, insn);
		break;
	case 2:
		a64_classify_pair(word, insn);
		break;
	default:
		a64_classify_single(word, insn);
		break;
	}
}

/* ---- words ------------------------------------------------------------------------------- */

static void a64_classify(uint32_t word, const struct pm_flow *flow,
			 struct pm_flow_insn *insn)
{
	switch (a64_field(word, 28, 25)) {
	case 0:
		/* udf, which includes a word of zeros; matrix instructions */
		if (word < 0x10000)
			insn->kind = PM_FLOW_STOP;
		else if (a64_bit(word, 31))
			insn->kind = PM_FLOW_PLAIN;
		else
			insn->kind = PM_FLOW_BAD;
		insn->pad = word == 0;
		break;
	case 2:
		/* Scalable vectors: addvl, addpl and their matrix variants. */
		if ((word & 0xffa0f000) == 0x04205000 && a64_field(word, 4, 0) == A64_SP)
			insn->sp_effect = PM_FLOW_SP_LOST;
		break;
	case 1:
	case 3:
		insn->kind = PM_FLOW_BAD;
		break;
	case 8:
	case 9:
		a64_classify_immediates(word, insn);
		break;
	case 10:
	case 11:
		a64_classify_control(word, insn);
		break;
	case 5:
	case 13:
		a64_classify_registers(word, flow, insn);
		break;
	case 7:
	case 15:
		a64_classify_vectors(word, insn);
		break;
	default:
		a64_look_at_memory(word, insn);
		break;
	}
}

/* ---- sequences of instructions ----------------------------------------------------------- */

/* Marks the instructions between an exclusive load and its store. A trap to the kernel
 * clears the reservation of the load: a loop that repeats until the store succeeds would
 * never end. */
static void mark_atomic(struct pm_flow_insn *insns, size_t len, const uint32_t *words)
{
	size_t left = 0;

	for (size_t i = 0; i < len; i++) {
		/* ld[a]xr, ld[a]xp; and st[l]xr, st[l]xp */
		bool exclusive = (words[i] & 0x3f800000) == 0x08000000 &&
				 (!a64_bit(words[i], 21) || a64_bit(words[i], 31));
		enum pm_flow_kind kind = insns[i].kind;

		if (exclusive && a64_bit(words[i], 22))
			left = ATOMIC_MAX;
		insns[i].atomic = left > 0;
		if ((exclusive && !a64_bit(words[i], 22)) || kind == PM_FLOW_RETURN ||
		    kind == PM_FLOW_JUMP || kind == PM_FLOW_INDIRECT)
			left = 0;
		left -= left > 0;
	}
}

/* Marks literals: data that is loaded is not code, whatever it looks like. */
static void mark_literals(struct pm_flow_insn *insns, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		const struct pm_flow_insn load = insns[i];
		uint64_t first = (load.value - insns[0].address) / A64_WORD;

		if (load.fact != PM_FLOW_FACT_LOAD || load.base != PM_FLOW_NO_REGISTER ||
		    load.value < insns[0].address)
			continue;
		for (uint64_t at = first; at < len && at < first + load.size / A64_WORD;
		     at++)
			insns[at] = (struct pm_flow_insn){
				.address = insns[at].address,
				.to = PM_FLOW_NO_REGISTER,
				.to_also = PM_FLOW_NO_REGISTER,
				.from = PM_FLOW_NO_REGISTER,
				.base = PM_FLOW_NO_REGISTER,
				.index = PM_FLOW_NO_REGISTER,
				.len = insns[at].len,
				.kind = PM_FLOW_BAD,
				.pad = true,
			};
	}
}

static int a64_decode(void *state, struct pm_flow *flow, const uint8_t *bytes, size_t len,
		      uint64_t address)
{
	size_t words_len = len / A64_WORD, before = flow->insns.len;
	PM_AUTO_FREE uint32_t *words = malloc(words_len * A64_WORD + 1);

	(void)state;
	if (!words)
		return -ENOMEM;
	if (before + words_len > INSNS_MAX)
		return -E2BIG;
	/* Instructions are aligned words; the remaining bytes belong to none. */
	flow->bad_bytes += len % A64_WORD;
	memcpy(words, bytes, words_len * A64_WORD);
	for (size_t i = 0; i < words_len; i++) {
		struct pm_flow_insn insn = { .address = address + i * A64_WORD,
					     .to = PM_FLOW_NO_REGISTER,
					     .to_also = PM_FLOW_NO_REGISTER,
					     .from = PM_FLOW_NO_REGISTER,
					     .base = PM_FLOW_NO_REGISTER,
					     .index = PM_FLOW_NO_REGISTER,
					     .len = A64_WORD };

		if (address % A64_WORD != 0)
			insn.kind = PM_FLOW_BAD;
		else
			a64_classify(words[i], flow, &insn);
		if (pm_vec_push(&flow->insns, insn) < 0)
			return -ENOMEM;
	}
	mark_atomic(flow->insns.data + before, words_len, words);
	mark_literals(flow->insns.data + before, words_len);
	for (size_t i = before; i < flow->insns.len; i++)
		if (flow->insns.data[i].kind == PM_FLOW_BAD && !flow->insns.data[i].pad)
			flow->bad_bytes += A64_WORD;
	return 0;
}

const struct pm_flow_machine pm_flow_aarch64 = { .number = EM_AARCH64,
						 .decode = a64_decode };
