/* SPDX-License-Identifier: MIT */
/* Loads and stores of aarch64 (Arm ARM C4.1.94). */
#include "flow-aarch64.h"

/* The base register changes by @by; whether before or after the access makes no
 * difference to sp. */
static void write_back(uint32_t word, struct pm_flow_insn *insn, int64_t by)
{
	uint32_t base = pm_a64_field(word, 9, 5);

	if (base != PM_A64_SP) {
		pm_a64_write_to(insn, (uint8_t)base);
		return;
	}
	pm_a64_move_sp(insn, -by);
	if (insn->fact == PM_FLOW_FACT_WRITE)
		insn->fact = PM_FLOW_FACT_POP;
}

/* The size of each register of a pair, as a power of two in bytes. */
static unsigned int pair_size(uint32_t word, bool vector, bool load)
{
	if (vector)
		return 2 + pm_a64_field(word, 31, 30);
	if (pm_a64_bit(word, 31))
		return 3;
	if (!pm_a64_bit(word, 30))
		return 2;
	if (load)
		return 2; /* ldpsw */
	return 4; /* stgp */
}

static void a64_classify_pair(uint32_t word, struct pm_flow_insn *insn)
{
	bool vector = pm_a64_bit(word, 26), load = pm_a64_bit(word, 22);
	unsigned int size = pair_size(word, vector, load);

	if (load && !vector) {
		pm_a64_write_to(insn, pm_a64_plain(pm_a64_field(word, 4, 0)));
		pm_a64_write_to(insn, pm_a64_plain(pm_a64_field(word, 14, 10)));
	}
	if (pm_a64_bit(word, 23))
		write_back(word, insn,
			   pm_a64_sfield(word, 21, 15) * (INT64_C(1) << size));
}

/* The fact for a load from @base + @value; the caller adds an index. */
static void fact_of_load(uint32_t word, struct pm_flow_insn *insn, int64_t value)
{
	pm_a64_write_to(insn, pm_a64_plain(pm_a64_field(word, 4, 0)));
	insn->fact = PM_FLOW_FACT_LOAD;
	insn->size = (uint8_t)(1u << pm_a64_field(word, 31, 30));
	insn->is_signed = pm_a64_bit(word, 23);
	insn->base = (uint8_t)pm_a64_field(word, 9, 5);
	insn->value = (uint64_t)value;
}

static void a64_classify_single(uint32_t word, struct pm_flow_insn *insn)
{
	uint32_t size = pm_a64_field(word, 31, 30), how = pm_a64_field(word, 11, 10);
	bool loads = !pm_a64_bit(word, 26) && pm_a64_field(word, 23, 22) != 0 &&
		     !(size == 3 && pm_a64_field(word, 23, 22) == 2); /* prfm */

	if (pm_a64_bit(word, 24)) {
		if (loads)
			fact_of_load(word, insn,
				     (int64_t)pm_a64_field(word, 21, 10) << size);
	} else if (!pm_a64_bit(word, 21)) {
		if (loads && (how & 1))
			pm_a64_write_to(insn, pm_a64_plain(pm_a64_field(word, 4, 0)));
		else if (loads)
			fact_of_load(word, insn, pm_a64_sfield(word, 20, 12));
		if (how & 1)
			write_back(word, insn, pm_a64_sfield(word, 20, 12));
	} else if (how == 2) {
		if (!loads)
			return;
		fact_of_load(word, insn, 0);
		insn->index = (uint8_t)pm_a64_field(word, 20, 16);
		if (pm_a64_bit(word, 12))
			insn->scale = insn->size;
		else
			insn->scale = 1;
	} else if (how == 0) {
		pm_a64_write_to(insn, pm_a64_plain(pm_a64_field(
					      word, 4, 0))); /* an atomic operation */
	} else {
		/* With an authenticated pointer. */
		pm_a64_write_to(insn, pm_a64_plain(pm_a64_field(word, 4, 0)));
		if (pm_a64_bit(word, 11))
			write_back(word, insn,
				   (pm_a64_sfield(word, 22, 22) * 512 +
				    pm_a64_field(word, 20, 12)) *
					   8);
	}
}

/* Exclusive and ordered accesses, compare and swap. */
static void a64_classify_exclusive(uint32_t word, struct pm_flow_insn *insn)
{
	bool compares =
		pm_a64_bit(word, 21) && (pm_a64_bit(word, 23) || !pm_a64_bit(word, 31));

	if (compares) {
		pm_a64_write_to(insn, pm_a64_plain(pm_a64_field(word, 20, 16)));
	} else if (pm_a64_bit(word, 22)) {
		pm_a64_write_to(insn, pm_a64_plain(pm_a64_field(word, 4, 0)));
		if (pm_a64_bit(word, 21))
			pm_a64_write_to(insn, pm_a64_plain(pm_a64_field(word, 14, 10)));
	} else if (!pm_a64_bit(word, 23)) {
		pm_a64_write_to(insn, pm_a64_plain(pm_a64_field(
					      word, 20, 16))); /* the store's status */
	}
}

/* Memory tags, and ordered accesses with an offset. */
static void a64_classify_tags(uint32_t word, struct pm_flow_insn *insn)
{
	if (!pm_a64_bit(word, 21) && pm_a64_field(word, 23, 22) != 0)
		pm_a64_write_to(insn, pm_a64_plain(pm_a64_field(word, 4, 0)));
	else if (pm_a64_bit(word, 21) && pm_a64_bit(word, 10))
		write_back(word, insn, pm_a64_sfield(word, 20, 12) * 16);
	else if (pm_a64_bit(word, 21) && pm_a64_field(word, 11, 10) == 0)
		pm_a64_write_to(insn, pm_a64_plain(pm_a64_field(word, 4, 0)));
}

/* A load from data between instructions: @size bytes are not code. */
static void a64_classify_literal(uint32_t word, struct pm_flow_insn *insn)
{
	uint32_t size = pm_a64_field(word, 31, 30);

	if (pm_a64_bit(word, 26)) {
		insn->size = (uint8_t)(4u << size);
	} else if (size < 3) {
		pm_a64_write_to(insn, pm_a64_plain(pm_a64_field(word, 4, 0)));
		if (size == 1)
			insn->size = 8;
		else
			insn->size = 4;
	}
	insn->fact = PM_FLOW_FACT_LOAD;
	insn->value = insn->address + (uint64_t)(pm_a64_sfield(word, 23, 5) * 4);
	insn->movable = true;
}

void pm_a64_look_at_memory(uint32_t word, struct pm_flow_insn *insn)
{
	switch (pm_a64_field(word, 29, 28)) {
	case 0:
		if (!pm_a64_bit(word, 26))
			a64_classify_exclusive(word, insn);
		else if (pm_a64_bit(word, 23) && pm_a64_field(word, 9, 5) == PM_A64_SP)
			insn->sp_effect = PM_FLOW_SP_LOST;
		else if (pm_a64_bit(word, 23))
			pm_a64_write_to(insn, (uint8_t)pm_a64_field(word, 9, 5));
		break;
	case 1:
		if (!pm_a64_bit(word, 24))
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
