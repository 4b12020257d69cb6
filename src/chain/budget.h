/* SPDX-License-Identifier: MIT */
/*
 * How much work the samples of each process may make the recorder do. A process decides what
 * its stacks look like, and the samples of all others wait in the rings meanwhile.
 *
 * Work is counted in nanoseconds, by what it is expected to cost (PM_UNW_COST_*). A little is
 * free for each sample. The rest comes from what the process has left and from what all have left
 * together; both fill again with time. A process that has used up its share gets stacks of one
 * frame for a while, and for longer each time that it does so again.
 */
#pragma once

#include "pm/chain.h"

enum {
	/* For a frame that the last stack of the thread did not have, in about nanoseconds. */
	PM_CHAIN_COST_FRAME = 100,
	PM_CHAIN_COST_NEW_STACK =
		600, /* that is written to the file, mostly with a frame */
	PM_CHAIN_COST_PAGE = 1000, /* read from a process */
};

struct pm_chain_budget;

struct pm_chain_budget *pm_chain_budget_new(void); /* NULL without memory */
void pm_chain_budget_free(struct pm_chain_budget *budget);
/*
 * Before the stack of a sample of process @pid, of @time_ns, is unwound. Returns how much that
 * may cost, for struct pm_unw_space; it is good until the next call but for others that prepare
 * samples to be unwound together.
 */
uint32_t *pm_chain_budget_begin(struct pm_chain_budget *budget, uint32_t pid,
				uint64_t time_ns);
/* After the stacks of such samples were unwound: takes what that has cost from what is left. */
void pm_chain_budget_settle(struct pm_chain_budget *budget);
/* Takes the work of @ns from what @pid has left. */
void pm_chain_budget_spend(struct pm_chain_budget *budget, uint32_t pid, uint64_t ns);
/* What happened to the processes that have used up theirs. */
const struct pm_chain_cut *pm_chain_budget_cut(const struct pm_chain_budget *budget);
