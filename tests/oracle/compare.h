/* SPDX-License-Identifier: MIT */
/* Two chains of one sample: the same, different for a reason that is proven, or wrong. */
#pragma once

#include "tests/oracle/dwfl-chain.h"

enum {
	/* One more than ours can have, so that a longer chain of theirs is seen. */
	COMPARE_FRAMES_MAX = PM_UNW_FRAMES_MAX + 1,
};

struct our_chain {
	struct pm_unw_frame frames[PM_UNW_FRAMES_MAX];
	size_t len;
	enum pm_unw_stop stop;
};

struct their_chain {
	struct dwfl_frame frames[COMPARE_FRAMES_MAX];
	size_t len;
	bool failed;
};

enum verdict {
	VERDICT_EQUAL,
	/*
	 * libdw itself has no CFI for the last frame that both have. Beyond it both sides
	 * guess: libdwfl follows rbp without looking (backends/x86_64_unwind.c), we ask for
	 * a call before the return address. Neither is the truth. The frames before it are
	 * compared.
	 */
	VERDICT_NO_CFI,
	/*
	 * Both find the same return address, which lies in no executable mapping. libdwfl
	 * gives it as its last frame, we end with PM_UNW_STOP_NO_MODULE before it.
	 */
	VERDICT_OUTSIDE,
	/* Ours ends at PM_UNW_FRAMES_MAX, theirs goes on. */
	VERDICT_LIMIT,
	/*
	 * The sample fell between the pop of a register and the ret. libdwfl looks for the
	 * register in its slot below the stack pointer, has no bytes there and loses the
	 * chain; we know that it is back in the register (pm_unw_row_keep_popped()). With
	 * the slot served from the register libdwfl finds the very chain that we found.
	 * oracle-step shows on live processes that this chain is the true one.
	 */
	VERDICT_POPPED,
	VERDICT_WRONG,
};
#define VERDICT_COUNT (VERDICT_WRONG + 1)
const char *verdict_name(enum verdict verdict);

/* @why: what is wrong, in words; set for VERDICT_WRONG. Never gives VERDICT_POPPED: that
 * takes the sample, see the caller. */
enum verdict compare_chains(struct dwfl_space *space, const struct spaces_maps *maps,
			    const struct our_chain *ours,
			    const struct their_chain *theirs, const char **why);
