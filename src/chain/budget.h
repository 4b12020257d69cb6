/* SPDX-License-Identifier: MIT */
/*
 * Limits the work that the samples of each process may cause. A process determines what
 * its stacks look like, and while these are unwound, the samples of all other processes
 * wait in the rings.
 *
 * Work is counted in nanoseconds of expected cost (PM_UNW_COST_*). A small amount is free
 * for each sample. The rest is taken from the budget of the process and from the shared
 * budget; both refill with time. If a process has used up its share, its stacks have only
 * one frame for a while. Each repetition lengthens that time.
 */
#pragma once

#include "pm/chain.h"

enum {
	/* Costs in nanoseconds. A frame that the thread's previous stack did not have. */
	PM_CHAIN_COST_FRAME = 100,
	PM_CHAIN_COST_NEW_STACK =
		600, /* it is written to the file, usually with a frame */
	PM_CHAIN_COST_PAGE = 1000, /* a page read from a process */
};

struct pm_chain_budget;

/* For @rate, see struct pm_chain_source. Returns NULL if memory runs out. */
struct pm_chain_budget *pm_chain_budget_new(uint64_t rate);
void pm_chain_budget_free(struct pm_chain_budget *budget);
/*
 * To be called before the stack of a sample of process @pid at @time_ns is unwound.
 * Returns the work that this may cost, for struct pm_unw_space. The pointer is valid
 * until the next call, unless that call prepares a sample that is unwound together with
 * this one.
 */
uint32_t *pm_chain_budget_begin(struct pm_chain_budget *budget, uint32_t pid,
				uint64_t time_ns);
/* To be called after the stacks of such samples were unwound: subtracts their costs from
 * the budgets. */
void pm_chain_budget_settle(struct pm_chain_budget *budget);
/* Subtracts work of @ns from the budget of @pid. */
void pm_chain_budget_spend(struct pm_chain_budget *budget, uint32_t pid, uint64_t ns);
/* Returns the processes that have used up their share. */
const struct pm_chain_cut *pm_chain_budget_cut(const struct pm_chain_budget *budget);
