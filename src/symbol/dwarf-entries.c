/* SPDX-License-Identifier: MIT */
/*
 * Walks the entries of one unit once, from first to last, and keeps the functions and
 * inlined functions whose code contains a wanted address. An entry takes a few
 * nanoseconds: only the attributes that describe its code are decoded; the others are
 * skipped, adjacent ones of fixed size in a single step. No subtree is skipped, because
 * functions can be in any of them (nested functions of Fortran, Ada and GNU C are outside
 * the ranges of their parents).
 */
#include "dwarf-parts.h"

#include <string.h>

enum {
	/* Real code nests a few dozen levels (blocks in inlined functions in blocks). */
	DEPTH_MAX = 1024,
	ABBREV_CODE_MAX = 1 << 20,
	ABBREV_ATTRIBUTES_MAX = 256,
	NODES_MAX = 1 << 22, /* of one unit */
};

enum step_kind {
	STEP_FIXED, /* `size` bytes */
	STEP_LEB,
	STEP_STRING,
	STEP_BLOCK, /* a length of `size` bytes (0: LEB128), then that many bytes */
	STEP_INDIRECT, /* the entry itself states the form */
};

/* The field of the result that gets the attribute; TARGET_NONE: skip it. */
enum step_target {
	TARGET_NONE,
	TARGET_LOW,
	TARGET_HIGH,
	TARGET_RANGES,
};

struct step {
	uint8_t kind, target;
	uint16_t form;
	uint32_t size;
	int64_t implicit; /* DW_FORM_implicit_const */
};

struct abbrev {
	uint32_t unit; /* number of the unit that it belongs to */
	uint16_t tag;
	bool has_children, has_linkage_name, has_code;
	uint32_t first_step, steps;
};

struct level {
	uint32_t node, scope;
	uint64_t function; /* see struct pm_scope */
};

struct pm_walk {
	struct pm_entries *entries;
	PM_VEC(struct abbrev) abbrevs; /* indexed by code */
	PM_VEC(struct step) steps;
	struct pm_reader reader;
	struct level levels[DEPTH_MAX];
	size_t depth;
};

/* Sets @out to the step that skips a form (DWARF 5 §7.5.6). Returns false if the form,
 * and therefore its size, is unknown. */
static bool step_from_form(const struct pm_unit *unit, unsigned int form,
			   struct step *out)
{
	uint8_t offset = unit->offset_size;

	*out = (struct step){ .kind = STEP_FIXED, .form = (uint16_t)form };
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		out->size = 0;
		return true;
	case DW_FORM_data1:
	case DW_FORM_flag:
	case DW_FORM_ref1:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		out->size = 1;
		return true;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		out->size = 2;
		return true;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		out->size = 3;
		return true;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		out->size = 4;
		return true;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		out->size = 8;
		return true;
	case DW_FORM_data16:
		out->size = 16;
		return true;
	case DW_FORM_addr:
		out->size = unit->address_size;
		return true;
	case DW_FORM_ref_addr:
		out->size = unit->version <= 2 ? unit->address_size : offset;
		return true;
	case DW_FORM_sec_offset:
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		out->size = offset;
		return true;
	case DW_FORM_sdata:
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		out->kind = STEP_LEB;
		return true;
	case DW_FORM_string:
		out->kind = STEP_STRING;
		return true;
	case DW_FORM_block1:
	case DW_FORM_block2:
	case DW_FORM_block4:
		out->kind = STEP_BLOCK;
		if (form == DW_FORM_block1)
			out->size = 1;
		else if (form == DW_FORM_block2)
			out->size = 2;
		else
			out->size = 4;
		return true;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		out->kind = STEP_BLOCK;
		return true;
	case DW_FORM_indirect:
		out->kind = STEP_INDIRECT;
		return true;
	default:
		return false;
	}
}

static bool is_function_tag(unsigned int tag)
{
	return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine ||
	       tag == DW_TAG_entry_point;
}

static bool is_scope_tag(unsigned int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_class_type ||
	       tag == DW_TAG_structure_type || tag == DW_TAG_union_type ||
	       tag == DW_TAG_interface_type || tag == DW_TAG_module;
}

/* Makes the steps for the attributes of one abbreviation. */
static int read_steps(struct pm_walk *walk, Dwarf_Abbrev *from, struct abbrev *abbrev)
{
	bool open = false; /* the last step can be extended */
	unsigned int name, form;
	Dwarf_Sword implicit = 0;

	abbrev->first_step = (uint32_t)walk->steps.len;
	/* This does not use dwarf_getattrcnt(), which mistakes constants in abbreviations
	 * for attributes and then reads past them (0.188). */
	for (size_t i = 0;
	     dwarf_getabbrevattr_data(from, i, &name, &form, &implicit, NULL) == 0; i++) {
		struct step step;

		if (i >= ABBREV_ATTRIBUTES_MAX ||
		    !step_from_form(walk->entries->unit, form, &step))
			return -EBADMSG;
		abbrev->has_linkage_name |=
			name == DW_AT_linkage_name || name == DW_AT_MIPS_linkage_name;
		if (is_function_tag(abbrev->tag)) {
			if (name == DW_AT_low_pc)
				step.target = TARGET_LOW;
			else if (name == DW_AT_high_pc)
				step.target = TARGET_HIGH;
			else if (name == DW_AT_ranges)
				step.target = TARGET_RANGES;
			else
				step.target = TARGET_NONE;
			abbrev->has_code |= step.target != TARGET_NONE;
			step.implicit = implicit;
		}
		bool plain = step.kind == STEP_FIXED && step.target == TARGET_NONE;

		if (plain && open)
			walk->steps.data[walk->steps.len - 1].size += step.size;
		else if (pm_vec_push(&walk->steps, step) < 0)
			return -ENOMEM;
		open = plain;
	}
	abbrev->steps = (uint32_t)walk->steps.len - abbrev->first_step;
	return 0;
}

/* Reads abbreviation @code, whose first use is the entry at @offset of the unit's
 * bytes. */
static int read_abbrev(struct pm_walk *walk, uint64_t code, size_t offset)
{
	const struct pm_unit *unit = walk->entries->unit;
	struct abbrev abbrev = { .unit = walk->entries->number };
	Dwarf_Die die;
	int tag, ret;

	if (code > ABBREV_CODE_MAX)
		return -EBADMSG;
	if (!dwarf_offdie(walk->entries->dwarf->dwarf, unit->dies_offset + offset, &die))
		return -EBADMSG;
	tag = dwarf_tag(&die); /* this makes libdw look up the abbreviation */
	if (tag <= 0 || tag > UINT16_MAX)
		return -EBADMSG;
	abbrev.tag = (uint16_t)tag;
	abbrev.has_children = dwarf_abbrevhaschildren(die.abbrev) != 0;
	ret = read_steps(walk, die.abbrev, &abbrev);
	if (ret < 0)
		return ret;
	if (pm_vec_reserve(&walk->abbrevs, code + 1) < 0)
		return -ENOMEM;
	while (walk->abbrevs.len <= code)
		walk->abbrevs.data[walk->abbrevs.len++] = (struct abbrev){ 0 };
	walk->abbrevs.data[code] = abbrev;
	return 0;
}

static uint64_t read_fixed_size(struct pm_reader *reader, uint32_t size)
{
	switch (size) {
	case 1:
		return pm_quick_u8(reader);
	case 2:
		return pm_reader_u16(reader);
	case 3: {
		const uint8_t *at = pm_reader_bytes(reader, 3);

		if (at)
			return at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16;
		return 0;
	}
	case 4:
		return pm_reader_u32(reader);
	case 8:
		return pm_reader_u64(reader);
	default:
		pm_quick_skip(reader, size);
		return 0;
	}
}

static void pcs_set_attribute(struct pm_pcs *pcs, const struct step *step, uint64_t value)
{
	if (step->target == TARGET_LOW) {
		pcs->low_form = step->form;
		pcs->low = value;
	} else if (step->target == TARGET_HIGH) {
		pcs->high_form = step->form;
		pcs->high = value;
	} else if (step->target == TARGET_RANGES) {
		pcs->ranges_form = step->form;
		pcs->ranges = value;
	}
}

/* Reads or skips one attribute. Returns false if the rest of the unit cannot be read. */
static bool walk_read_attribute(struct pm_walk *walk, const struct step *step,
				struct pm_pcs *pcs)
{
	struct pm_reader *reader = &walk->reader;
	uint64_t value = 0;

	switch ((enum step_kind)step->kind) {
	case STEP_FIXED:
		if (step->target == TARGET_NONE)
			return pm_quick_skip(reader, step->size);
		if (step->form == DW_FORM_implicit_const)
			value = (uint64_t)step->implicit;
		else
			value = read_fixed_size(reader, step->size);
		break;
	case STEP_LEB:
		if (step->form == DW_FORM_sdata)
			value = (uint64_t)pm_reader_sleb(reader);
		else
			value = pm_quick_uleb(reader);
		break;
	case STEP_STRING:
		return pm_reader_cstr(reader) != NULL;
	case STEP_BLOCK:
		if (step->size)
			value = read_fixed_size(reader, step->size);
		else
			value = pm_quick_uleb(reader);
		return pm_quick_skip(reader, value);
	case STEP_INDIRECT: {
		struct step inner;

		/* An indirect form may not refer to another one (DWARF 5 §7.5.3). */
		if (!step_from_form(walk->entries->unit,
				    (unsigned int)pm_quick_uleb(reader), &inner) ||
		    inner.kind == STEP_INDIRECT || inner.form == DW_FORM_implicit_const)
			return false;
		inner.target = step->target;
		return walk_read_attribute(walk, &inner, pcs);
	}
	}
	if (reader->failed)
		return false;
	pcs_set_attribute(pcs, step, value);
	return true;
}

/* ---- claims --------------------------------------------------------------------------- */

struct claim {
	struct pm_entries *entries;
	struct pm_node node;
	uint32_t id; /* of the node, once it has claimed an address */
	bool is_inlined, has_entry;
	int error;
};

static bool may_claim(const struct claim *claim, const struct pm_hit *hit)
{
	const struct pm_entries *entries = claim->entries;

	/* The first unit that claims an address gets it; within that unit, the first
	 * function. */
	if (hit->has_node && hit->unit != entries->number)
		return false;
	if (claim->is_inlined)
		return hit->has_node && hit->node == claim->node.parent;
	return !hit->has_node;
}

static int claim_range(void *user, uint64_t start, uint64_t end)
{
	struct claim *claim = user;
	struct pm_entries *entries = claim->entries;
	const struct pm_wanted *wanted = entries->wanted;

	if (!claim->has_entry) {
		claim->node.entry = start;
		claim->has_entry = true;
		if (claim->id != PM_NODE_NONE)
			entries->nodes.data[claim->id].entry = start;
	}
	for (size_t i = pm_wanted_from(wanted, start);
	     i < wanted->len && wanted->addresses[i] < end; i++) {
		struct pm_hit *hit = &entries->hits[i];

		if (*entries->claims_budget == 0)
			return -EBADMSG;
		--*entries->claims_budget;
		if (!may_claim(claim, hit))
			continue;
		if (claim->id == PM_NODE_NONE) {
			if (entries->nodes.len >= NODES_MAX)
				return -EBADMSG;
			if (pm_vec_push(&entries->nodes, claim->node) < 0)
				return -ENOMEM;
			claim->id = (uint32_t)entries->nodes.len - 1;
		}
		if (hit->unit != entries->number &&
		    pm_vec_push(&entries->owned->of, i) < 0)
			return -ENOMEM;
		if (hit->unit != entries->number)
			hit->has_line = false; /* the line belongs to another unit */
		hit->has_node = true;
		hit->unit = entries->number;
		hit->node = claim->id;
		hit->low = start;
	}
	return 0;
}

/* Assigns wanted addresses to a function that has code. Sets @out to its node, or to
 * PM_NODE_NONE if it contains none. */
static int walk_visit_function(struct pm_walk *walk, const struct abbrev *abbrev,
			       size_t offset, const struct pm_pcs *pcs,
			       const struct level *level, uint32_t *out)
{
	struct pm_entries *entries = walk->entries;
	struct claim claim = {
		.entries = entries,
		.id = PM_NODE_NONE,
		.is_inlined = abbrev->tag == DW_TAG_inlined_subroutine,
		.node = {
			.offset = entries->unit->dies_offset + offset,
			.parent = PM_NODE_NONE,
			.scope = level->scope,
		},
	};
	int ret;

	*out = PM_NODE_NONE;
	if (entries->each)
		return entries->each(entries->user, claim.is_inlined, claim.node.offset,
				     pcs);
	if (claim.is_inlined) {
		if (level->node == PM_NODE_NONE)
			return 0; /* inlined into a function that contains no wanted
			           * address */
		claim.node.parent = level->node;
	}
	ret = pm_pcs_each(entries->dwarf, entries->unit, pcs, claim_range, &claim);
	*out = claim.id;
	if (ret < 0)
		return ret;
	return 0;
}

/* ---- the walk ------------------------------------------------------------------------- */

static int walk_note_scope(struct pm_walk *walk, const struct abbrev *abbrev,
			   size_t offset, struct level *below)
{
	struct pm_entries *entries = walk->entries;
	uint64_t at = entries->unit->dies_offset + offset;

	if (is_scope_tag(abbrev->tag) && abbrev->has_children &&
	    entries->scopes.len < NODES_MAX) {
		struct pm_scope scope = { at, below->function, below->scope };

		if (pm_vec_push(&entries->scopes, scope) < 0)
			return -ENOMEM;
		below->scope = (uint32_t)entries->scopes.len - 1;
		below->function = 0;
	} else if (abbrev->tag == DW_TAG_subprogram && !abbrev->has_linkage_name &&
		   below->scope != PM_SCOPE_NONE && entries->members.len < NODES_MAX) {
		struct pm_member member = { at, below->scope };

		return pm_vec_push(&entries->members, member);
	}
	return 0;
}

/* Visits one entry, or the end of a list of children. Returns 1, or 0 at the end of the
 * unit. */
static int walk_visit_entry(struct pm_walk *walk)
{
	size_t offset = walk->reader.pos;
	uint64_t code = pm_quick_uleb(&walk->reader);
	struct level *level = &walk->levels[walk->depth];
	struct pm_pcs pcs = { 0 };
	struct level below = *level;
	struct abbrev abbrev;
	int ret = 0;

	if (walk->reader.failed)
		return -EBADMSG;
	if (code == 0) {
		if (walk->depth <= 1)
			return 0; /* this ends the unit's own entry */
		walk->depth--;
		return 1;
	}
	if (code >= walk->abbrevs.len ||
	    walk->abbrevs.data[code].unit != walk->entries->number)
		ret = read_abbrev(walk, code, offset);
	if (ret < 0)
		return ret;
	abbrev = walk->abbrevs.data[code];
	for (uint32_t i = 0; i < abbrev.steps; i++)
		if (!walk_read_attribute(walk, &walk->steps.data[abbrev.first_step + i],
					 &pcs))
			return -EBADMSG;
	if (is_function_tag(abbrev.tag)) {
		below.node = PM_NODE_NONE;
		if (abbrev.has_code)
			ret = walk_visit_function(walk, &abbrev, offset, &pcs, level,
						  &below.node);
	}
	if (ret == 0)
		ret = walk_note_scope(walk, &abbrev, offset, &below);
	if (abbrev.tag == DW_TAG_subprogram)
		below.function = walk->entries->unit->dies_offset + offset;
	if (ret < 0)
		return ret;
	if (!abbrev.has_children)
		return walk->depth > 0;
	if (walk->depth + 1 >= DEPTH_MAX)
		return -EBADMSG;
	walk->levels[++walk->depth] = below;
	return 1;
}

struct pm_walk *pm_walk_new(void)
{
	return calloc(1, sizeof(struct pm_walk));
}

void pm_walk_free(struct pm_walk *walk)
{
	if (!walk)
		return;
	pm_vec_release(&walk->abbrevs);
	pm_vec_release(&walk->steps);
	free(walk);
}

int pm_entries_scan(struct pm_entries *entries)
{
	struct pm_walk *walk = entries->walk;
	int ret;

	walk->entries = entries;
	walk->depth = 0;
	walk->levels[0] = (struct level){ PM_NODE_NONE, PM_SCOPE_NONE, 0 };
	pm_vec_clear(&walk->steps);
	pm_reader_init(&walk->reader, entries->unit->dies.data, entries->unit->dies.len);
	do {
		if (pm_reader_left(&walk->reader) > 0)
			ret = walk_visit_entry(walk);
		else
			ret = 0;
	} while (ret > 0);
	if (ret == -ENOMEM)
		return ret;
	return 0;
}

void pm_entries_release(struct pm_entries *entries)
{
	pm_vec_release(&entries->nodes);
	pm_vec_release(&entries->scopes);
	pm_vec_release(&entries->members);
}

/* ---- units ---------------------------------------------------------------------------- */

uint64_t pm_form_attribute(Dwarf_Die *die, unsigned int name, unsigned int other)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if ((!dwarf_attr(die, name, &attr) &&
	     (!other || !dwarf_attr(die, other, &attr))) ||
	    dwarf_formudata(&attr, &value) != 0)
		return 0;
	return value;
}

int pm_unit_init(struct pm_unit *unit, const struct pm_dwarf *dwarf, Dwarf_Die *die,
		 unsigned int version)
{
	const uint8_t *at = die->addr;
	const uint8_t *end = dwarf->info.data + dwarf->info.len;
	Dwarf_Off start, next;
	Dwarf_Die owner;
	Dwarf_Addr base;

	*unit = (struct pm_unit){ .die = *die, .version = (uint16_t)version };
	if (at < dwarf->info.data || at >= end ||
	    !dwarf_diecu(die, &owner, &unit->address_size, &unit->offset_size))
		return -EBADMSG;
	unit->dies_offset = dwarf_dieoffset(die);
	start = unit->dies_offset - dwarf_cuoffset(die);
	if (dwarf_nextcu(dwarf->dwarf, start, &next, &(size_t){ 0 }, NULL, NULL, NULL) !=
		    0 ||
	    next > dwarf->info.len)
		next = dwarf->info.len;
	if (next <= unit->dies_offset ||
	    unit->dies_offset != (size_t)(at - dwarf->info.data))
		return -EBADMSG;
	unit->dies = (struct pm_bytes){ at, next - unit->dies_offset };
	unit->addr_base = pm_form_attribute(die, DW_AT_addr_base, DW_AT_GNU_addr_base);
	unit->rnglists_base = pm_form_attribute(die, DW_AT_rnglists_base, 0);
	if (dwarf_lowpc(die, &base) == 0)
		unit->base = base;
	return 0;
}
