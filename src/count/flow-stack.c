/* SPDX-License-Identifier: MIT */
/*
 * Computes the stack depth at each instruction, along all known paths from the first one.
 * It is unknown where two paths disagree, or after an operation that is not modelled.
 */
#include "flow.h"

#include <string.h>

/* Before an instruction. fp is the frame pointer's distance below the entry's sp. */
struct state {
	int64_t sp, fp;
	bool seen, sp_known, fp_known, queued;
};

struct walk {
	struct pm_flow *flow;
	struct state *states;
	PM_VEC(size_t) queue;
	struct state out; /* after the current instruction */
};

int pm_flow_each_next(const struct pm_flow *flow, size_t at, pm_flow_next_fn each,
		      void *user)
{
	const struct pm_flow_insn *insn = &flow->insns.data[at];
	int ret = 0;

	if (pm_flow_falls_through(insn) && at + 1 < flow->insns.len &&
	    flow->insns.data[at + 1].address == insn->address + insn->len)
		ret = each(user, at, at + 1);
	if ((insn->kind == PM_FLOW_JUMP || insn->kind == PM_FLOW_BRANCH) && ret == 0) {
		size_t target = pm_flow_find_target(flow, insn->target);

		if (target != SIZE_MAX)
			ret = each(user, at, target);
	}
	if (insn->kind == PM_FLOW_INDIRECT) {
		const struct pm_flow_indirect *indirect =
			&flow->indirect.data[insn->indirect];

		for (size_t i = 0; i < indirect->targets.len && ret == 0; i++) {
			size_t target = pm_flow_find(flow, indirect->targets.data[i]);

			if (target != SIZE_MAX)
				ret = each(user, at, target);
		}
	}
	return ret;
}

static void state_apply_insn(const struct pm_flow_insn *insn, struct state *state)
{
	struct state before = *state;

	switch ((enum pm_flow_sp)insn->sp_effect) {
	case PM_FLOW_SP_SAME:
		break;
	case PM_FLOW_SP_ADD:
		state->sp += insn->sp_by;
		break;
	case PM_FLOW_SP_FROM_FP:
		state->sp = before.fp + insn->sp_by;
		state->sp_known = before.fp_known;
		break;
	case PM_FLOW_SP_LOST:
		state->sp_known = false;
		break;
	}
	switch ((enum pm_flow_fp)insn->fp_effect) {
	case PM_FLOW_FP_SAME:
		break;
	case PM_FLOW_FP_FROM_SP:
		state->fp = before.sp + insn->fp_by;
		state->fp_known = before.sp_known;
		break;
	case PM_FLOW_FP_LOST:
		state->fp_known = false;
		break;
	}
	/* No stack is that large; and sums stay far from an overflow. */
	if (state->sp > INT32_MAX || state->sp < INT32_MIN)
		state->sp_known = false;
	if (state->fp > INT32_MAX || state->fp < INT32_MIN)
		state->fp_known = false;
}

/* Merges @with into the state of the instruction. A state can only lose knowledge, so the
 * walk ends. */
static int walk_arrive(struct walk *walk, size_t at, const struct state *with)
{
	struct state *state = &walk->states[at];
	bool changed = false;

	if (!state->seen) {
		bool queued = state->queued;

		*state = *with;
		state->seen = true;
		state->queued = queued;
		changed = true;
	}
	if (state->sp_known && (!with->sp_known || with->sp != state->sp)) {
		state->sp_known = false;
		changed = true;
	}
	if (state->fp_known && (!with->fp_known || with->fp != state->fp)) {
		state->fp_known = false;
		changed = true;
	}
	if (!changed || state->queued)
		return 0;
	state->queued = true;
	return pm_vec_push(&walk->queue, at);
}

static int walk_arrive_at_next(void *user, size_t at, size_t next)
{
	struct walk *walk = user;

	(void)at;
	return walk_arrive(walk, next, &walk->out);
}

static int walk_run(struct walk *walk)
{
	int ret = 0;

	while (walk->queue.len > 0 && ret == 0) {
		size_t at = walk->queue.data[--walk->queue.len];

		walk->states[at].queued = false;
		walk->out = walk->states[at];
		state_apply_insn(&walk->flow->insns.data[at], &walk->out);
		ret = pm_flow_each_next(walk->flow, at, walk_arrive_at_next, walk);
	}
	return ret;
}

/* Gets the stack depth assumed for unknown jump targets and landing pads: that at an
 * unknown jump, or at a call, which is where exceptions come from. */
static bool usual_state(const struct walk *walk, struct state *out)
{
	const struct pm_flow *flow = walk->flow;
	bool found = false;

	for (size_t i = 0; i < flow->insns.len; i++) {
		const struct pm_flow_insn *insn = &flow->insns.data[i];
		const struct state *state = &walk->states[i];
		bool jumps = insn->kind == PM_FLOW_INDIRECT &&
			     flow->indirect.data[insn->indirect].targets.len == 0;

		if (!state->seen || !state->sp_known || state->sp == 0 ||
		    (!jumps && insn->kind != PM_FLOW_CALL) ||
		    (found && state->sp <= out->sp))
			continue;
		*out = *state;
		found = true;
	}
	return found;
}

/* Walks code that no known path reaches: landing pads, and targets of unknown jumps. */
static int walk_run_the_rest(struct walk *walk)
{
	const struct pm_flow *flow = walk->flow;
	struct state usual = { 0 };
	bool known = usual_state(walk, &usual);
	int ret = 0;

	usual.queued = false;
	for (size_t i = 0; i < flow->insns.len && ret == 0 && known; i++) {
		if (walk->states[i].seen || flow->insns.data[i].pad)
			continue;
		ret = walk_arrive(walk, i, &usual);
		if (ret == 0)
			ret = walk_run(walk);
	}
	return ret;
}

static void decide_indirect_jumps(struct pm_flow *flow)
{
	for (size_t i = 0; i < flow->indirect.len; i++) {
		struct pm_flow_indirect *indirect = &flow->indirect.data[i];
		const struct pm_flow_insn *insn = &flow->insns.data[indirect->insn];

		/* A jump that leaves the function has released its stack frame first. */
		if (indirect->kind != PM_FLOW_TABLE && insn->sp_known && insn->sp != 0)
			indirect->kind = PM_FLOW_TABLE;
	}
}

int pm_flow_follow(struct pm_flow *flow)
{
	PM_AUTO_FREE struct state *states = calloc(flow->insns.len + 1, sizeof(*states));
	struct walk walk = { .flow = flow, .states = states };
	struct state entry = { .sp_known = true };
	size_t first = pm_flow_find(flow, flow->entry);
	int ret = 0;

	if (!states)
		return -ENOMEM;
	if (first != SIZE_MAX)
		ret = walk_arrive(&walk, first, &entry);
	if (ret == 0)
		ret = walk_run(&walk);
	for (size_t i = 0; i < flow->insns.len && ret == 0; i++)
		flow->insns.data[i].reached = states[i].seen;
	if (ret == 0)
		ret = walk_run_the_rest(&walk);
	for (size_t i = 0; i < flow->insns.len && ret == 0; i++) {
		flow->insns.data[i].sp_known = states[i].sp_known;
		flow->insns.data[i].sp = states[i].sp;
	}
	if (ret == 0)
		decide_indirect_jumps(flow);
	pm_vec_release(&walk.queue);
	return ret;
}
