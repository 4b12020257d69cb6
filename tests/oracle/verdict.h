/* SPDX-License-Identifier: MIT */
/* Compares chains of a single-stepped program with the truth. */
#pragma once

#include "tests/oracle/dwfl-chain.h"
#include "tests/oracle/tracee.h"

enum class {
	CLASS_TRUE,
	/*
	 * In longjmp(3), swapcontext(3), _Unwind_RaiseException: the chain is already
	 * that of the target frame. Proved by continuing to it: it is the chain of the
	 * next place.
	 */
	CLASS_TARGET,
	/*
	 * In a signal handler on its own stack: the chain is true up to the interrupted
	 * frame, whose stack is not in the copy, and its stop reason says that bytes are
	 * missing.
	 */
	CLASS_OTHER_STACK,
	/*
	 * libdw has no CFI for one of the frames either, and the chain shows that by the
	 * way in which the next one was found, or by its stop reason. All frames before
	 * it are true.
	 */
	CLASS_NO_CFI,
	/*
	 * The slot of the return address has been overwritten, so nothing in the thread
	 * identifies the caller any more: libgcc's unwinder fills its own frame with the
	 * registers of the target frame. Proved by reading the slot.
	 */
	CLASS_OVERWRITTEN,
	/*
	 * The CFA is below the stack pointer, in the red zone, which is never in a copy
	 * of a stack; the stop reason says so. Proved by adding these bytes: then the
	 * chain is the true one. OpenSSL's SHA-256 and SHA-512 for AVX2 have such code.
	 */
	CLASS_RED_ZONE,
	/*
	 * The CFA of a caller is in a register that a called function may change (psABI
	 * figure 3.4), so the chain ends there, and its stop reason says that the
	 * register is not known; all frames before it are true. Subroutines of OpenSSL's
	 * ciphers preserve the register, but this is not described anywhere.
	 */
	CLASS_CALLER_SAVED,
	/* A function whose CFI is known to be wrong: see known[]. */
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

/* A chain that is not the true one, until the reason is known. */
struct doubt {
	struct chain chain; /* frames owned, no stack bytes */
	struct shadow_entry *truth; /* leaf first: frames 1… */
	size_t truth_len;
	size_t base; /* the interrupted frame, or 0 */
	bool in_transit; /* that frame is in transit */
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

/* @printed_max: how many wrong chains to print; @verbose: also print those of the other
 * classes. */
void judge_init(struct judge *judge, struct tracer *tracer, unsigned int printed_max,
		bool verbose);
void judge_release(struct judge *judge);
/* Whether the chain is the true one; also used for a chain from a copy that includes the
 * bytes below the stack pointer. */
bool judge_is_true(struct judge *judge, const struct chain *chain);
/* Compares the chain that was found at the present place. */
void judge_look(struct judge *judge, const struct chain *chain);
/* Call after each step of the tracer. */
void judge_moved(struct judge *judge, enum tracer_result result);
/* Call at the end: no more steps follow. */
void judge_settle(struct judge *judge);
