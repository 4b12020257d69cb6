/* SPDX-License-Identifier: MIT */
/*
 * Indirect jumps: tables that compilers generate for `switch`, and calls through a
 * pointer at the end of a function. They are recognised by how the target is computed: a
 * table has a load with an index, either of addresses, or of distances from the table,
 * followed by an addition.
 */
#include "flow.h"

#include <string.h>

enum {
	BACK_MAX = 64, /* instructions that are examined before a jump */
	TARGETS_MAX = 4096, /* in one table */
};

/* Returns the index of the last instruction before @at that writes @reg, or SIZE_MAX. */
static size_t writer_of(const struct pm_flow *flow, size_t at, uint8_t reg, size_t back)
{
	if (reg == PM_FLOW_NO_REGISTER)
		return SIZE_MAX;
	while (at-- > 0 && back-- > 0) {
		const struct pm_flow_insn *insn = &flow->insns.data[at];

		if (insn->fact != PM_FLOW_FACT_NONE &&
		    (insn->to == reg || insn->to_also == reg))
			return at;
	}
	return SIZE_MAX;
}

/* Gets the address in @reg at @at, if it was set to one. If a table is used in a loop,
 * that mostly happened far before. */
static bool address_in(const struct pm_flow *flow, size_t at, uint8_t reg, uint64_t *out)
{
	uint64_t more = 0;

	for (int hops = 0; hops < 4; hops++) {
		size_t writer = writer_of(flow, at, reg, SIZE_MAX);

		if (writer == SIZE_MAX)
			return false;
		if (flow->insns.data[writer].fact == PM_FLOW_FACT_ADDRESS) {
			*out = flow->insns.data[writer].value + more;
			return true;
		}
		if (flow->insns.data[writer].fact != PM_FLOW_FACT_MOVE)
			return false;
		more += flow->insns.data[writer].value;
		reg = flow->insns.data[writer].from;
		at = writer;
	}
	return false;
}

/* A table. If len is 0, it ends at the first target that is not in the function. */
struct table {
	uint64_t at, origin; /* origin: base of its distances; of addresses 0 */
	uint64_t scale; /* of distances */
	size_t len;
	uint8_t size; /* of an entry, in bytes */
	bool is_signed;
};

/* Returns the number of entries according to a comparison of the index @reg before the
 * load at @at; 0: unknown. */
static size_t limit_of(const struct pm_flow *flow, size_t at, uint8_t reg)
{
	for (size_t back = 0; at-- > 0 && back < BACK_MAX; back++) {
		const struct pm_flow_insn *insn = &flow->insns.data[at];

		if (insn->fact == PM_FLOW_FACT_LIMIT && insn->from == reg) {
			if (insn->value < TARGETS_MAX)
				return (size_t)insn->value + 1;
			return 0;
		}
		if (insn->fact == PM_FLOW_FACT_NONE ||
		    (insn->to != reg && insn->to_also != reg))
			continue;
		if (insn->fact != PM_FLOW_FACT_MOVE || insn->value != 0)
			return 0;
		reg = insn->from;
	}
	return 0;
}

static bool read_target(const struct pm_flow_source *source, const struct table *table,
			size_t index, uint64_t *out)
{
	unsigned int unused = 64 - 8 * table->size;
	uint64_t value = 0;

	if (!source->read(source->user, table->at + index * table->size, &value,
			  table->size))
		return false;
	if (table->is_signed && unused > 0)
		value = (uint64_t)((int64_t)(value << unused) >> unused);
	*out = table->origin + value * table->scale;
	return true;
}

static int read_targets(struct pm_flow *flow, const struct pm_flow_source *source,
			struct pm_flow_indirect *indirect, const struct table *table)
{
	/* Any byte leads to an address nearby: without a known end there would be too
	 * many. */
	if (table->size < 4 && table->len == 0)
		return 0;
	for (size_t i = 0; i < TARGETS_MAX && (table->len == 0 || i < table->len); i++) {
		uint64_t target;

		if (!read_target(source, table, i, &target) ||
		    !pm_flow_holds(flow, target) ||
		    pm_flow_find(flow, target) == SIZE_MAX)
			break;
		if (pm_vec_push(&indirect->targets, target) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Handles a load with an index, at @at, that reads an address. */
static int by_addresses(struct pm_flow *flow, const struct pm_flow_source *source,
			struct pm_flow_indirect *indirect, size_t at)
{
	const struct pm_flow_insn *load = &flow->insns.data[at];
	struct table table = { .at = load->value, .scale = 1, .size = 8 };
	uint64_t base = 0;
	int ret;

	if (load->index == PM_FLOW_NO_REGISTER) {
		/* A pointer in a structure, or in a table of imported functions. */
		indirect->kind = PM_FLOW_LEAVES;
		return 0;
	}
	if (load->base != PM_FLOW_NO_REGISTER && !address_in(flow, at, load->base, &base))
		return 0;
	table.at += base;
	table.len = limit_of(flow, at, load->index);
	ret = read_targets(flow, source, indirect, &table);
	if (indirect->targets.len > 0)
		indirect->kind = PM_FLOW_TABLE;
	return ret;
}

/* Handles an addition at @add of a table's address and a distance loaded from the
 * table. */
static int by_distances(struct pm_flow *flow, const struct pm_flow_source *source,
			struct pm_flow_indirect *indirect, size_t add)
{
	const struct pm_flow_insn *sum = &flow->insns.data[add];
	uint8_t parts[2] = { sum->base, sum->index };
	struct table table = { .scale = sum->scale };
	uint64_t base = 0, origin;

	for (int i = 0; i < 2; i++) {
		size_t at = writer_of(flow, add, parts[i], BACK_MAX);
		const struct pm_flow_insn *load = NULL;

		if (at != SIZE_MAX)
			load = &flow->insns.data[at];
		if (!load || load->fact != PM_FLOW_FACT_LOAD || load->size > 4 ||
		    load->index == PM_FLOW_NO_REGISTER)
			continue;
		indirect->kind = PM_FLOW_TABLE;
		if (!address_in(flow, add, parts[1 - i], &table.origin))
			return 0;
		if (load->base != PM_FLOW_NO_REGISTER &&
		    !address_in(flow, at, load->base, &base))
			base = table.origin;
		table.at = base + load->value;
		table.size = load->size;
		table.is_signed = load->is_signed || sum->is_signed;
		table.len = limit_of(flow, at, load->index);
		return read_targets(flow, source, indirect, &table);
	}
	/* A distance in instructions from the code itself: a jump into an unrolled
	 * loop. */
	for (int i = 0; i < 2; i++)
		if (address_in(flow, add, parts[i], &origin) &&
		    pm_flow_holds(flow, origin))
			indirect->kind = PM_FLOW_TABLE;
	return 0;
}

static int find_jump_table(struct pm_flow *flow, const struct pm_flow_source *source,
			   struct pm_flow_indirect *indirect)
{
	const struct pm_flow_insn *jump = &flow->insns.data[indirect->insn];
	uint8_t reg = jump->from;
	size_t at = indirect->insn;

	if (reg == PM_FLOW_NO_REGISTER)
		return by_addresses(flow, source, indirect, at);
	for (int hops = 0; hops < 4; hops++) {
		at = writer_of(flow, at, reg, BACK_MAX);
		/* The value is an argument, or was set before a loop. */
		if (at == SIZE_MAX)
			break;
		switch ((enum pm_flow_fact)flow->insns.data[at].fact) {
		case PM_FLOW_FACT_ADD:
			return by_distances(flow, source, indirect, at);
		case PM_FLOW_FACT_LOAD:
			return by_addresses(flow, source, indirect, at);
		case PM_FLOW_FACT_MOVE:
			if (flow->insns.data[at].value != 0)
				break;
			reg = flow->insns.data[at].from;
			continue;
		case PM_FLOW_FACT_POP:
			if (hops == 0)
				return 0;
			break; /* of the code before this block */
		case PM_FLOW_FACT_NONE:
		case PM_FLOW_FACT_WRITE:
		case PM_FLOW_FACT_ADDRESS:
		case PM_FLOW_FACT_LIMIT:
			break;
		}
		break;
	}
	/* A pointer that was selected or demangled, without any table. */
	indirect->kind = PM_FLOW_LEAVES;
	return 0;
}

int pm_flow_find_tables(struct pm_flow *flow, const struct pm_flow_source *source)
{
	int ret = 0;

	for (size_t i = 0; i < flow->insns.len && ret == 0; i++) {
		struct pm_flow_indirect indirect = { .insn = (uint32_t)i,
						     .kind = PM_FLOW_UNSURE };

		if (flow->insns.data[i].kind != PM_FLOW_INDIRECT)
			continue;
		flow->insns.data[i].indirect = (uint32_t)flow->indirect.len;
		ret = find_jump_table(flow, source, &indirect);
		if (ret == 0)
			ret = pm_vec_push(&flow->indirect, indirect);
		if (ret < 0)
			pm_vec_release(&indirect.targets);
	}
	return ret;
}
