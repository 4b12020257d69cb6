/* SPDX-License-Identifier: MIT */
/* Chains of a stepped program against the truth. */
#pragma once

#include "tests/oracle/dwfl-chain.h"
#include "tests/oracle/tracee.h"

enum class {
	CLASS_TRUE,
	/*
	 * In longjmp(3), swapcontext(3), _Unwind_RaiseException: the chain is already that
	 * of the frame they go to. Proved by going there: it is the chain of the next place.
	 */
	CLASS_TARGET,
	/*
	 * A signal's handler on a stack of its own: the chain is true up to the frame that
	 * was interrupted, whose stack is not in the copy, and it says that bytes are
	 * missing.
	 */
	CLASS_OTHER_STACK,
	/*
	 * libdw, too, has no CFI for one of the frames, and the chain says so by the way in
	 * which the next one was found or by its stop reason. All before that is true.
	 */
	CLASS_NO_CFI,
	/*
	 * The slot of the return address holds another one by now, so nothing in the thread
	 * tells the caller any more: libgcc's unwinder fills its own frame with the
	 * registers of the frame that it goes to. Proved by reading the slot.
	 */
	CLASS_OVERWRITTEN,
	/*
	 * The CFA stands below the stack pointer, in the red zone, of which no copy of a
	 * stack has anything; the chain says that. Proved by giving these bytes, too: then
	 * it is the true one. OpenSSL's SHA-256 and SHA-512 for AVX2 do it.
	 */
	CLASS_RED_ZONE,
	/*
	 * The CFA of a caller is in a register that a called function may change (psABI
	 * figure 3.4), so the chain ends there and says that the register is not known;
	 * all before it is true. Subroutines of OpenSSL's ciphers leave it alone, but that
	 * is nowhere written.
	 */
	CLASS_CALLER_SAVED,
	/* A function that is known to lie about itself: see known[]. */
	CLASS_KNOWN,
	CLASS_WRONG,
};
#define CLASS_COUNT (CLASS_WRONG + 1)
const char *class_name(enum class class);

struct chain {
	struct pm_unw_frame *frames;
	size_t len;
	enum pm_unw_stop stop;
	struct pm_unw_stack stack;
	bool true_with_red_zone; /* see CLASS_RED_ZONE */
};

/* A chain that is not the true one, until it is known why. */
struct doubt {
	struct chain chain; /* frames owned, no stack bytes */
	struct shadow_entry *truth; /* leaf first: frames 1… */
	size_t truth_len;
	size_t base; /* the frame that was interrupted, or 0 */
	bool in_transit; /* that frame is */
	uint64_t step;
};

struct judge {
	struct tracer *tracer; /* borrowed */
	PM_VEC(struct doubt) doubts;
	PM_VEC(struct shadow_entry) truth; /* leaf first: frames 1… */
	struct dwfl_space *dwfl;
	unsigned int dwfl_epoch;
	unsigned int places, frames;
	unsigned int counts[CLASS_COUNT];
	unsigned int printed_max, printed;
	bool verbose;
};

/* @printed: how many wrong chains to print; @verbose: those of the other classes, too. */
void judge_init(struct judge *judge, struct tracer *tracer, unsigned int printed_max,
		bool verbose);
void judge_release(struct judge *judge);
/* Whether it is the true one; once it was not, with the bytes below the stack pointer, too. */
bool judge_is_true(struct judge *judge, const struct chain *chain);
/* The chain found here. */
void judge_look(struct judge *judge, const struct chain *chain);
/* The tracer has moved. */
void judge_moved(struct judge *judge, enum tracer_result result);
/* Nothing more comes. */
void judge_settle(struct judge *judge);
