/* SPDX-License-Identifier: MIT */
/*
 * From a function's bytes to the places where its calls and exits can be observed.
 *
 * All bytes are decoded in order, as objdump does, not only those on a known path:
 * landing pads and targets of unknown jumps contain returns, too. A place that is never
 * reached costs nothing.
 */
#include "flow.h"

#include <string.h>

enum {
	PIECE_BYTES_MAX = 16 << 20,
	PART_BYTES_MAX = 4096, /* of a part without a name */
	ROUNDS_MAX = 16, /* each round finds another part of a function */
	SLIDE_MAX = 8, /* instructions to move an entry's probe by, to a cheaper one */
	CANDIDATES_MAX = 32, /* instructions to try if no probe is accepted before them */
};

void pm_flow_close(struct pm_flow *flow)
{
	for (size_t i = 0; i < flow->indirect.len; i++)
		pm_vec_release(&flow->indirect.data[i].targets);
	pm_vec_release(&flow->indirect);
	pm_vec_release(&flow->insns);
	pm_vec_release(&flow->pieces);
	*flow = (struct pm_flow){ 0 };
}

/* ---- machines ---------------------------------------------------------------------------- */

struct decoder {
	const struct pm_flow_machine *machine;
	void *state;
};

static int open_machine_decoder(struct decoder *decoder,
				const struct pm_flow_source *source)
{
	static const struct pm_flow_machine *const machines[] = { &pm_flow_x86,
								  &pm_flow_aarch64 };

	for (size_t i = 0; i < PM_ARRAY_LEN(machines); i++)
		if (machines[i]->number == source->machine) {
			decoder->machine = machines[i];
			if (machines[i]->open)
				return machines[i]->open(&decoder->state);
			return 0;
		}
	return -EOPNOTSUPP;
}

static void close_machine_decoder(struct decoder *decoder)
{
	if (decoder->machine && decoder->machine->close)
		decoder->machine->close(decoder->state);
}

/* ---- pieces ------------------------------------------------------------------------------ */

static int compare_insn_addresses(const void *a, const void *b)
{
	const struct pm_flow_insn *x = a, *y = b;

	return PM_COMPARE(x->address, y->address);
}

static int compare_flow_pieces(const void *a, const void *b)
{
	const struct pm_probe_piece *x = a, *y = b;

	return PM_COMPARE(x->low, y->low);
}

static int add_piece(struct pm_flow *flow, const struct pm_flow_source *source,
		     struct decoder *decoder, const struct pm_probe_piece *piece)
{
	PM_AUTO_FREE uint8_t *bytes = NULL;
	size_t len, before = flow->insns.len;
	int ret;

	if (piece->high <= piece->low || piece->high - piece->low > PIECE_BYTES_MAX) {
		if (piece->high <= piece->low)
			return -ENODATA;
		return -E2BIG;
	}
	/* Overlapping pieces would add an instruction twice. */
	for (size_t i = 0; i < flow->pieces.len; i++)
		if (piece->low < flow->pieces.data[i].high &&
		    flow->pieces.data[i].low < piece->high)
			return 0;
	len = (size_t)(piece->high - piece->low);
	bytes = malloc(len);
	if (!bytes || pm_vec_reserve(&flow->pieces, flow->pieces.len + 1) < 0)
		return -ENOMEM;
	if (!source->read(source->user, piece->low, bytes, len))
		return -ENODATA;
	ret = decoder->machine->decode(decoder->state, flow, bytes, len, piece->low);
	if (ret < 0)
		return ret;
	for (size_t i = before; i < flow->insns.len; i++) {
		struct pm_flow_insn *insn = &flow->insns.data[i];

		insn->harmed =
			pm_probe_harms(decoder->machine->number,
				       bytes + (insn->address - piece->low), insn->len);
	}
	flow->pieces.data[flow->pieces.len++] = *piece;
	qsort(flow->pieces.data, flow->pieces.len, sizeof(*flow->pieces.data),
	      compare_flow_pieces);
	qsort(flow->insns.data, flow->insns.len, sizeof(*flow->insns.data),
	      compare_insn_addresses);
	return 0;
}

/* Whether the function jumps to @part (1), calls it (-1), or neither. */
static int relation_to_part(const struct pm_flow *flow, const struct pm_probe_piece *part)
{
	int called = 0;

	for (size_t i = 0; i < flow->insns.len; i++) {
		const struct pm_flow_insn *insn = &flow->insns.data[i];

		if (!insn->has_target || insn->target < part->low ||
		    insn->target >= part->high)
			continue;
		if (insn->kind != PM_FLOW_CALL)
			return 1;
		called = -1;
	}
	return called;
}

static int add_parts(struct pm_flow *flow, const struct pm_flow_source *source,
		     struct decoder *decoder, const struct pm_probe_piece *parts,
		     size_t len, bool own_name)
{
	bool more = true;
	int ret = 0;

	/* One part may lead to another. */
	for (size_t round = 0; round < len && more; round++) {
		more = false;
		for (size_t i = 0; i < len && ret == 0; i++) {
			int how = relation_to_part(flow, &parts[i]);

			if (pm_flow_find(flow, parts[i].low) != SIZE_MAX || how < 0 ||
			    (how == 0 && !own_name))
				continue;
			ret = add_piece(flow, source, decoder, &parts[i]);
			more = true;
		}
	}
	if (ret == -ENODATA)
		return 0;
	return ret;
}

static void forget_jumps(struct pm_flow *flow)
{
	for (size_t i = 0; i < flow->indirect.len; i++)
		pm_vec_release(&flow->indirect.data[i].targets);
	pm_vec_clear(&flow->indirect);
}

/* Whether the code of @piece jumps back into the middle of the function. Returns 1, 0, or
 * a negative error. */
static int comes_back(const struct pm_flow *flow, const struct pm_flow_source *source,
		      struct decoder *decoder, const struct pm_probe_piece *piece)
{
	struct pm_flow other = { 0 };
	int ret = -ENODATA;
	bool found = false;

	if (piece->high - piece->low <= PART_BYTES_MAX)
		ret = add_piece(&other, source, decoder, piece);
	for (size_t i = 0; i < other.insns.len && ret == 0 && !found; i++) {
		const struct pm_flow_insn *insn = &other.insns.data[i];

		found = (insn->kind == PM_FLOW_JUMP || insn->kind == PM_FLOW_BRANCH) &&
			insn->target != flow->entry && pm_flow_holds(flow, insn->target);
	}
	pm_flow_close(&other);
	if (ret == -ENODATA)
		return 0;
	if (ret < 0)
		return ret;
	return found;
}

/* A tail call has released the stack frame and does not come back. Other jumps out of the
 * function lead to parts of it that have no name. Returns 1 if a part was added, 0 if
 * not, or a negative error. */
static int add_nameless_part(struct pm_flow *flow, const struct pm_flow_source *source,
			     struct decoder *decoder)
{
	for (size_t i = 0; i < flow->insns.len && source->part; i++) {
		const struct pm_flow_insn *insn = &flow->insns.data[i];
		struct pm_probe_piece piece;
		size_t before = flow->pieces.len;
		int ret;

		if ((insn->kind != PM_FLOW_JUMP && insn->kind != PM_FLOW_BRANCH) ||
		    !insn->sp_known || pm_flow_holds(flow, insn->target) ||
		    !source->part(source->user, insn->target, &piece))
			continue;
		if (insn->sp != 0)
			ret = 1;
		else
			ret = comes_back(flow, source, decoder, &piece);
		if (ret > 0)
			ret = add_piece(flow, source, decoder, &piece);
		if (ret < 0 && ret != -ENODATA)
			return ret;
		if (flow->pieces.len > before)
			return 1;
	}
	return 0;
}

static int decode_all_parts(struct pm_flow *flow, const struct pm_flow_source *source,
			    struct decoder *decoder)
{
	int more = 1, ret = 0;

	for (int round = 0; round < ROUNDS_MAX && more > 0; round++) {
		forget_jumps(flow);
		ret = pm_flow_find_tables(flow, source);
		if (ret == 0)
			ret = pm_flow_follow(flow);
		if (ret < 0)
			more = ret;
		else
			more = add_nameless_part(flow, source, decoder);
	}
	if (more < 0)
		return more;
	return ret;
}

int pm_flow_open(struct pm_flow *flow, const struct pm_flow_source *source,
		 const struct pm_probe_piece *whole, const struct pm_probe_piece *parts,
		 size_t parts_len, bool own_name)
{
	struct decoder decoder PM_CLEANUP(close_machine_decoder) = { 0 };
	struct pm_flow read = { .entry = whole->low,
				.catches = !source->catches ||
					   source->catches(source->user, whole->low),
				.candidates = source->candidates };
	int ret = open_machine_decoder(&decoder, source);

	if (ret == 0)
		ret = add_piece(&read, source, &decoder, whole);
	if (ret == 0)
		ret = add_parts(&read, source, &decoder, parts, parts_len, own_name);
	if (ret == 0)
		ret = decode_all_parts(&read, source, &decoder);
	if (ret == 0)
		*flow = read;
	else
		pm_flow_close(&read);
	return ret;
}

/* ---- places ------------------------------------------------------------------------------ */

static struct pm_place place_at(const struct pm_flow_insn *insn, enum pm_place_kind kind)
{
	struct pm_place place = { .kind = kind,
				  .address = insn->address,
				  .len = insn->len,
				  .cheap = insn->cheap,
				  .refused = insn->harmed,
				  .sp_known = insn->sp_known };

	if (insn->sp_known && insn->sp >= 0)
		place.sp_offset = (uint32_t)insn->sp;
	else
		place.sp_known = false;
	/* Whatever was done to the stack: at a return it is as at the entry. */
	if (insn->kind == PM_FLOW_RETURN) {
		place.sp_offset = 0;
		place.sp_known = true;
	}
	if (insn->kind == PM_FLOW_BRANCH &&
	    (kind == PM_PLACE_EXIT || kind == PM_PLACE_OUT)) {
		place.condition = insn->condition;
		place.condition_register = insn->condition_register;
		place.condition_bits = insn->condition_bits;
	}
	return place;
}

static int add_insn_place(pm_places *places, const struct pm_flow_insn *insn,
			  enum pm_place_kind kind, struct pm_flow_doubts *doubts)
{
	if (insn->atomic) {
		doubts->atomic++;
		return 0;
	}
	return pm_vec_push(places, place_at(insn, kind));
}

/* Whether @insn may take control out of the function. */
static bool insn_leaves_function(const struct pm_flow *flow,
				 const struct pm_flow_insn *insn,
				 struct pm_flow_doubts *doubts)
{
	switch ((enum pm_flow_kind)insn->kind) {
	case PM_FLOW_RETURN:
		return true;
	case PM_FLOW_JUMP:
		return !pm_flow_holds(flow, insn->target);
	case PM_FLOW_BRANCH:
		if (pm_flow_holds(flow, insn->target))
			return false;
		doubts->conditions += insn->condition == 0;
		return insn->condition != 0;
	case PM_FLOW_INDIRECT: {
		enum pm_flow_indirect_kind kind =
			flow->indirect.data[insn->indirect].kind;

		doubts->indirect += kind == PM_FLOW_UNSURE ||
				    (kind == PM_FLOW_LEAVES && !insn->sp_known);
		return kind != PM_FLOW_TABLE;
	}
	case PM_FLOW_PLAIN:
	case PM_FLOW_CALL:
	case PM_FLOW_STOP:
	case PM_FLOW_BAD:
		break;
	}
	return false;
}

struct target {
	bool *is_target;
};

static int mark_target(void *user, size_t at, size_t next)
{
	struct target *target = user;

	if (next != at + 1)
		target->is_target[next] = true;
	return 0;
}

/* Returns which instructions are jumped to from inside; NULL if out of memory. */
static bool *find_targets(const struct pm_flow *flow)
{
	struct target target = { calloc(flow->insns.len + 1, sizeof(bool)) };

	for (size_t i = 0; i < flow->insns.len && target.is_target; i++)
		pm_flow_each_next(flow, i, mark_target, &target);
	return target.is_target;
}

size_t pm_place_choose(const struct pm_place *candidates, size_t len)
{
	size_t ret = len;

	for (size_t i = 0; i < len; i++) {
		if (candidates[i].refused)
			continue;
		if (candidates[i].slides && candidates[i].cheap)
			return i;
		if (ret == len)
			ret = i;
	}
	if (ret < len)
		return ret;
	return 0;
}

/* Whether control at @insn always continues with the instruction after it. */
static bool goes_straight_on(const struct pm_flow_insn *insn)
{
	return insn->kind == PM_FLOW_PLAIN &&
	       insn[1].address == insn->address + insn->len;
}

/*
 * Adds the places that every call passes after it enters at @first: the instructions that
 * follow, as long as the code is straight. If code inside the function jumps to a place,
 * one call passes it several times.
 */
static int add_entry_candidates(const struct pm_flow *flow, const bool *is_target,
				size_t first, pm_places *out)
{
	bool slides = true, again = is_target[first];
	struct pm_flow_doubts unused = { 0 };
	uint8_t passed = 0;

	for (uint8_t n = 0; n < CANDIDATES_MAX && first + n < flow->insns.len; n++) {
		const struct pm_flow_insn *insn = &flow->insns.data[first + n];
		struct pm_place place = place_at(insn, PM_PLACE_ENTRY);

		again |= is_target[first + n];
		slides &= n < SLIDE_MAX && (n == 0 || !is_target[first + n]) &&
			  !insn_leaves_function(flow, insn, &unused);
		place.behind = n;
		place.slides = slides;
		place.again = again;
		place.passed = passed;
		if (!insn->atomic && (n == 0 || place.sp_known) &&
		    pm_vec_push(out, place) < 0)
			return -ENOMEM;
		if (first + n + 1 == flow->insns.len || !goes_straight_on(insn))
			break;
		slides &= insn->movable;
		passed += !insn->movable;
	}
	return 0;
}

static int add_entry(const struct pm_flow *flow, const bool *is_target, size_t first,
		     pm_places *places, struct pm_flow_doubts *doubts)
{
	pm_places candidates = { 0 };
	int ret;

	if (flow->insns.data[first].atomic)
		return add_insn_place(places, &flow->insns.data[first], PM_PLACE_ENTRY,
				      doubts);
	if (flow->candidates)
		return add_entry_candidates(flow, is_target, first, places);
	ret = add_entry_candidates(flow, is_target, first, &candidates);
	if (ret == 0)
		ret = pm_vec_push(places, candidates.data[pm_place_choose(
						  candidates.data, candidates.len)]);
	pm_vec_release(&candidates);
	return ret;
}

/* Adds an exit where control runs past the end of the function into the next one. */
static int add_end(const struct pm_flow *flow, pm_places *places)
{
	for (size_t i = 0; i < flow->insns.len; i++) {
		const struct pm_flow_insn *insn = &flow->insns.data[i];
		uint64_t end = insn->address + insn->len;
		struct pm_place place = { .kind = PM_PLACE_EXIT,
					  .address = end,
					  .sp_known = insn->sp_known };

		if (pm_flow_holds(flow, end) || !insn->reached || insn->pad ||
		    (insn->kind != PM_FLOW_PLAIN && insn->kind != PM_FLOW_BRANCH))
			continue;
		place.sp_known &= insn->sp_effect == PM_FLOW_SP_SAME && insn->sp >= 0;
		if (place.sp_known)
			place.sp_offset = (uint32_t)insn->sp;
		if (pm_vec_push(places, place) < 0)
			return -ENOMEM;
	}
	return 0;
}

int pm_flow_function_places(const struct pm_flow *flow, pm_places *places,
			    struct pm_flow_doubts *doubts)
{
	PM_AUTO_FREE bool *is_target = find_targets(flow);
	size_t first = pm_flow_find(flow, flow->entry);
	int ret = 0;

	if (!is_target)
		ret = -ENOMEM;
	if (first == SIZE_MAX || ret < 0)
		return ret;
	ret = add_entry(flow, is_target, first, places, doubts);
	for (size_t i = 0; i < flow->insns.len && ret == 0; i++)
		if (insn_leaves_function(flow, &flow->insns.data[i], doubts))
			ret = add_insn_place(places, &flow->insns.data[i], PM_PLACE_EXIT,
					     doubts);
	doubts->bad_bytes += flow->bad_bytes;
	if (ret < 0)
		return ret;
	return add_end(flow, places);
}

/* ---- ranges -------------------------------------------------------------------------------- */

enum {
	INSIDE = 1,
	FROM_INSIDE = 2, /* control comes from inside */
	FROM_OUTSIDE = 4,
	FROM_CALL = 8, /* from outside if the call returns, otherwise by an exception */
};

static bool ranges_contain(const struct pm_probe_piece *ranges, size_t len,
			   uint64_t address)
{
	for (size_t i = 0; i < len; i++)
		if (address >= ranges[i].low && address < ranges[i].high)
			return true;
	return false;
}

struct marking {
	const struct pm_flow *flow;
	uint8_t *marks;
};

static int mark_next(void *user, size_t at, size_t next)
{
	struct marking *marking = user;
	uint8_t *marks = marking->marks;

	if (marks[at] & INSIDE)
		marks[next] |= FROM_INSIDE;
	else if (marking->flow->insns.data[at].kind == PM_FLOW_CALL &&
		 marking->flow->catches)
		marks[next] |= FROM_CALL;
	else
		marks[next] |= FROM_OUTSIDE;
	return 0;
}

/* Returns marks for the instructions inside the ranges; NULL if out of memory. */
static uint8_t *mark_ranges(const struct pm_flow *flow,
			    const struct pm_probe_piece *ranges, size_t len)
{
	uint8_t *marks = calloc(flow->insns.len + 1, 1);

	for (size_t i = 0; i < flow->insns.len && marks; i++) {
		if (ranges_contain(ranges, len, flow->insns.data[i].address))
			marks[i] = INSIDE;
		else
			marks[i] = 0;
	}
	return marks;
}

/* Marks each instruction with where control reaches it from. */
static void mark_ways(const struct pm_flow *flow, uint8_t *marks)
{
	struct marking marking = { flow, marks };
	size_t first = pm_flow_find(flow, flow->entry);

	for (size_t i = 0; i < flow->insns.len; i++)
		marks[i] &= INSIDE;
	for (size_t i = 0; i < flow->insns.len; i++)
		pm_flow_each_next(flow, i, mark_next, &marking);
	if (first != SIZE_MAX)
		marks[first] |= FROM_OUTSIDE;
}

/* Whether it is unknown from where control comes: by an exception, or an unknown jump. */
static bool is_orphan(const struct pm_flow_insn *insn, uint8_t marks)
{
	return !(marks & (FROM_INSIDE | FROM_OUTSIDE | FROM_CALL)) && !insn->pad &&
	       insn->kind != PM_FLOW_BAD;
}

int pm_flow_add_straight(const struct pm_flow *flow, pm_pieces *ranges,
			 const struct pm_probe_piece *lent, size_t len)
{
	PM_AUTO_FREE uint8_t *marks = mark_ranges(flow, ranges->data, ranges->len);
	PM_AUTO_FREE uint8_t *is_lent = mark_ranges(flow, lent, len);
	bool changed = true;
	int ret = 0;

	if (!marks || !is_lent)
		ret = -ENOMEM;
	for (size_t i = 0; i < flow->insns.len && ret == 0; i++) {
		is_lent[i] &= !marks[i];
		marks[i] |= is_lent[i];
	}
	for (int round = 0; round < ROUNDS_MAX && changed && ret == 0; round++) {
		changed = false;
		mark_ways(flow, marks);
		for (size_t i = 0; i < flow->insns.len; i++) {
			bool behind = i > 0 && is_lent[i - 1] && !(marks[i - 1] & INSIDE);

			if (!is_lent[i] || !(marks[i] & INSIDE) ||
			    (!behind && !(marks[i] & (FROM_OUTSIDE | FROM_CALL)) &&
			     !is_orphan(&flow->insns.data[i], marks[i])))
				continue;
			marks[i] &= (uint8_t)~INSIDE;
			changed = true;
		}
	}
	for (size_t i = 0; i < flow->insns.len && ret == 0; i++) {
		const struct pm_flow_insn *insn = &flow->insns.data[i];
		struct pm_probe_piece piece = { insn->address,
						insn->address + insn->len };

		if (is_lent[i] && marks[i] & INSIDE)
			ret = pm_vec_push(ranges, piece);
	}
	return ret;
}

/* Whether the ranges contain a jump that may lead anywhere in the function. */
static bool jumps_anywhere(const struct pm_flow *flow, const uint8_t *marks)
{
	for (size_t i = 0; i < flow->indirect.len; i++) {
		const struct pm_flow_indirect *indirect = &flow->indirect.data[i];

		if (marks[indirect->insn] & INSIDE && indirect->targets.len == 0 &&
		    indirect->kind != PM_FLOW_LEAVES)
			return true;
	}
	return false;
}

/*
 * Adds places that also observe control that has passed the place @first of a range's
 * edge: the instructions after it, as long as the code is straight, on the same side of
 * the edge, and not entered from elsewhere.
 */
static int add_edge_candidates(const struct pm_flow *flow, const uint8_t *marks,
			       const bool *is_target, size_t first, pm_places *places)
{
	const struct pm_place *edge = &places->data[places->len - 1];
	enum pm_place_kind kind = edge->kind;
	bool fresh = edge->fresh;
	uint8_t passed = 0;

	for (uint8_t n = 1; n < CANDIDATES_MAX && first + n < flow->insns.len; n++) {
		const struct pm_flow_insn *insn = &flow->insns.data[first + n];
		struct pm_place place = place_at(insn, kind);

		if (!goes_straight_on(&insn[-1]) || is_target[first + n] ||
		    (marks[first + n] & INSIDE) != (marks[first] & INSIDE))
			break;
		passed += !insn[-1].movable;
		place.behind = n;
		place.passed = passed;
		place.fresh = fresh;
		/* Otherwise it would be treated as a conditional exit. */
		place.condition = 0;
		if (!insn->atomic && place.sp_known && pm_vec_push(places, place) < 0)
			return -ENOMEM;
	}
	return 0;
}

int pm_flow_range_places(const struct pm_flow *flow, const struct pm_probe_piece *ranges,
			 size_t len, pm_places *places, struct pm_flow_doubts *doubts)
{
	PM_AUTO_FREE uint8_t *marks = mark_ranges(flow, ranges, len);
	PM_AUTO_FREE bool *is_target = find_targets(flow);
	int ret = 0;
	bool anywhere;

	if (!marks || !is_target)
		ret = -ENOMEM;
	if (ret < 0)
		return ret;
	mark_ways(flow, marks);
	anywhere = jumps_anywhere(flow, marks);
	for (size_t i = 0; i < flow->insns.len && ret == 0; i++) {
		const struct pm_flow_insn *insn = &flow->insns.data[i];
		bool orphan = is_orphan(insn, marks[i]), is_inside = marks[i] & INSIDE;
		size_t edges = places->len;

		if (is_inside && (marks[i] & (FROM_OUTSIDE | FROM_CALL) || orphan)) {
			size_t before = places->len;

			ret = add_insn_place(places, insn, PM_PLACE_IN, doubts);
			if (places->len > before)
				places->data[before].fresh =
					!anywhere && marks[i] == (INSIDE | FROM_OUTSIDE);
		}
		if (!is_inside && (marks[i] & FROM_INSIDE || orphan))
			ret = add_insn_place(places, insn, PM_PLACE_OUT, doubts);
		if (flow->candidates && ret == 0 && places->len > edges)
			ret = add_edge_candidates(flow, marks, is_target, i, places);
		if (is_inside && ret == 0 && insn_leaves_function(flow, insn, doubts))
			ret = add_insn_place(places, insn, PM_PLACE_OUT, doubts);
	}
	doubts->bad_bytes += flow->bad_bytes;
	return ret;
}
