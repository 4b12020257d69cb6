/* SPDX-License-Identifier: MIT */
#include "tests/oracle/compare.h"

static const char *const names[VERDICT_COUNT] = {
	[VERDICT_EQUAL] = "equal",       [VERDICT_NO_CFI] = "no-cfi",
	[VERDICT_OUTSIDE] = "outside",   [VERDICT_LIMIT] = "limit",
	[VERDICT_POPPED] = "popped",     [VERDICT_KEPT] = "kept",
	[VERDICT_MIXED] = "mixed",       [VERDICT_RESOLVER] = "resolver",
	[VERDICT_UNCALLED] = "uncalled", [VERDICT_WRONG] = "wrong",
};

const char *verdict_name(enum verdict verdict)
{
	return names[verdict];
}

static bool is_mapped(const struct spaces_maps *maps, uint64_t address)
{
	for (size_t i = 0; i < maps->maps.len; i++)
		if (address - maps->maps.data[i].start <
		    maps->maps.data[i].end - maps->maps.data[i].start)
			return true;
	return false;
}

/* Returns how many frames are equal, counted from the leaf. */
static size_t common_frames(const struct our_chain *ours,
			    const struct their_chain *theirs)
{
	size_t at = 0;

	while (at < ours->len && at < theirs->len &&
	       ours->frames[at].pc == theirs->frames[at].pc)
		at++;
	return at;
}

/* Checks at which address each of the first @len frames is looked up. */
static const char *check_lookups(struct dwfl_space *space, const struct our_chain *ours,
				 const struct their_chain *theirs, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		uint64_t pc = ours->frames[i].pc;
		uint64_t lookup = ours->frames[i].lookup;

		if (lookup == pc && theirs->frames[i].activation)
			continue;
		if (lookup == pc - 1 && !theirs->frames[i].activation)
			continue;
		/* dwfl_frame_pc() also calls the frame of a signal trampoline an
		 * activation, but libdwfl unwinds from it with pc - 1, as we do
		 * (frame_unwind.c). */
		if (lookup == pc - 1 && dwfl_space_is_signal(space, lookup))
			continue;
		return "a frame is looked up at another place";
	}
	return NULL;
}

/* For equal chains: checks that our stop reason is correct. */
static const char *check_stop(struct dwfl_space *space, const struct our_chain *ours,
			      const struct their_chain *theirs)
{
	const struct pm_unw_frame *last = &ours->frames[ours->len - 1];
	enum dwfl_rule rule = dwfl_space_rule(space, last->lookup);
	bool root = ours->stop == PM_UNW_STOP_ROOT;

	if (rule == DWFL_RULE_ROOT && !root)
		return "the return address is undefined, yet we do not call it the root";
	if (rule == DWFL_RULE_RETURNS && root && theirs->failed)
		return "we call it the root, yet its return address has a rule";
	if (rule == DWFL_RULE_RETURNS && ours->stop == PM_UNW_STOP_NO_CFI)
		return "there is CFI that we did not find";
	return NULL;
}

/* Their chain ends after the first @len frames. Checks whether libdwfl is known to lose
 * the register from which the next caller is found. */
static enum verdict why_theirs_ends(struct dwfl_space *space,
				    const struct our_chain *ours, size_t len)
{
	const struct pm_unw_frame *next = &ours->frames[len];
	int reg = dwfl_space_cfa_reg(space, ours->frames[len - 1].lookup);
	int returns = dwfl_space_return_reg(space, ours->frames[len - 1].lookup);

	if (next->how == PM_UNW_HOW_FP &&
	    ((reg >= 8 && reg <= 11) || (returns >= 9 && returns <= 15)))
		return VERDICT_KEPT;
	if (next->how == PM_UNW_HOW_CFI && reg == PM_UNW_X86_64_RBX && len > 1 &&
	    dwfl_space_loses(space, ours->frames[len - 2].lookup, reg))
		return VERDICT_KEPT;
	if (reg == DWFL_CFA_NONE && next->how == PM_UNW_HOW_CFI)
		return VERDICT_MIXED;
	return VERDICT_WRONG;
}

/*
 * Whether libdwfl guessed after one of the first @len frames that both have.
 *
 * For aarch64 it takes the return address from x30, and then at once the frame record as
 * that of the same frame, although in a leaf it belongs to the caller
 * (backends/aarch64_unwind.c): one frame is right, but its registers are those of the
 * next one.
 */
static bool guessed(struct dwfl_space *space, const struct our_chain *ours, size_t len)
{
	for (size_t i = 0; i + 1 < len; i++)
		if (ours->frames[i + 1].how == PM_UNW_HOW_LEAF &&
		    dwfl_space_rule(space, ours->frames[i].lookup) == DWFL_RULE_NONE)
			return true;
	return false;
}

/* See VERDICT_UNCALLED. The frames before the last one are looked up at the same
 * addresses. */
static bool ends_uncalled(struct dwfl_space *space, const struct our_chain *ours,
			  const struct their_chain *theirs, size_t common)
{
	const struct pm_unw_frame *last = &ours->frames[ours->len - 1];

	return common == ours->len && common > 1 && ours->stop == PM_UNW_STOP_ROOT &&
	       last->lookup == last->pc && !theirs->frames[common - 1].activation &&
	       !check_lookups(space, ours, theirs, common - 1) &&
	       dwfl_space_begins_fde(space, last->pc);
}

enum verdict compare_chains(struct dwfl_space *space, const struct spaces_maps *maps,
			    const struct our_chain *ours,
			    const struct their_chain *theirs, const char **why)
{
	size_t common = common_frames(ours, theirs);
	const struct pm_unw_frame *last;

	if (common == 0) {
		*why = "not even the first frame is the same";
		return VERDICT_WRONG;
	}
	if (ends_uncalled(space, ours, theirs, common))
		return VERDICT_UNCALLED;
	*why = check_lookups(space, ours, theirs, common);
	if (*why)
		return VERDICT_WRONG;
	if (common == ours->len && common == theirs->len) {
		*why = check_stop(space, ours, theirs);
		return *why ? VERDICT_WRONG : VERDICT_EQUAL;
	}
	last = &ours->frames[common - 1];
	if (dwfl_space_rule(space, last->lookup) == DWFL_RULE_NONE) {
		if (common == ours->len || ours->frames[common].how != PM_UNW_HOW_CFI)
			return VERDICT_NO_CFI;
		*why = "we found a frame by CFI that is not there";
		return VERDICT_WRONG;
	}
	if (guessed(space, ours, common))
		return VERDICT_NO_CFI;
	if (common == ours->len && ours->stop == PM_UNW_STOP_NO_MODULE &&
	    !is_mapped(maps, theirs->frames[common].pc))
		return VERDICT_OUTSIDE;
	if (common == ours->len && ours->stop == PM_UNW_STOP_LIMIT)
		return VERDICT_LIMIT;
	*why = "the chains differ";
	if (common < ours->len && common == theirs->len)
		return why_theirs_ends(space, ours, common);
	return VERDICT_WRONG;
}
