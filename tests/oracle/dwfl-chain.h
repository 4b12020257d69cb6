/* SPDX-License-Identifier: MIT */
/*
 * elfutils' unwinder on the same registers and stack bytes as ours. Shares with it the list
 * of mappings and the files, and nothing else.
 */
#pragma once

#include "pm/proc.h"
#include "pm/unwind.h"
#include "tests/oracle/spaces.h"

/* What libdw says about the code at one address. */
enum dwfl_rule {
	DWFL_RULE_NONE, /* no module, or no FDE covers it */
	DWFL_RULE_RETURNS, /* the return address has a rule */
	DWFL_RULE_ROOT, /* the return address is undefined */
};

struct dwfl_frame {
	uint64_t pc;
	bool activation; /* dwfl_frame_pc(): look up pc itself, not pc - 1 */
};

/* libdwfl for one address space as it is now. */
struct dwfl_space;

struct dwfl_space *dwfl_space_new(const struct spaces_maps *maps,
				  const struct spaces_modules *modules);
void dwfl_space_free(struct dwfl_space *space);

/*
 * Returns how many frames. @failed: it ended by an error instead of an undefined return
 * address; libdwfl calls a return address that it could not read undefined as well.
 */
size_t dwfl_space_unwind(struct dwfl_space *space, const struct pm_unw_regs *regs,
			 const struct pm_unw_stack *stack, struct dwfl_frame *frames,
			 size_t max, bool *failed);

/*
 * Lets the next calls read what an epilogue has popped. Compilers leave the rule "saved in
 * its slot" in force after the pop, when the slot lies below the stack pointer and no copy
 * of a stack has it, or is counted from an rbp that is the caller's already. Serves such
 * slots of callee-saved registers in the frame at @regs from the registers. Returns how many
 * there are. NULL ends it.
 */
size_t dwfl_space_serve_popped(struct dwfl_space *space, const struct pm_unw_regs *regs);

/* Whether @reg is lost, by what libdw says of the code at @lookup. */
bool dwfl_space_loses(struct dwfl_space *space, uint64_t lookup, int reg);
/*
 * Whether CFI at @lookup counts the CFA from below a pair that the PLT of aarch64 has pushed: the
 * return address stands 8 bytes above it, or does so an instruction later.
 */
bool dwfl_space_lacks_pair(struct dwfl_space *space, uint64_t lookup);
/* As dwfl_space_unwind(), and frame @at is such a one: its caller's stack pointer is given the 16
 * bytes, and libdwfl begins anew from its registers. */
size_t dwfl_space_unwind_with_pair(struct dwfl_space *space,
				   const struct pm_unw_regs *regs,
				   const struct pm_unw_stack *stack, size_t at,
				   struct dwfl_frame *frames, size_t max, bool *failed);

enum dwfl_rule dwfl_space_rule(struct dwfl_space *space, uint64_t lookup);
/* The rule at @lookup is of a signal frame (augmentation "S"). */
bool dwfl_space_is_signal(struct dwfl_space *space, uint64_t lookup);
/* The CFI at @address is that of the first instruction of its FDE. */
bool dwfl_space_begins_fde(struct dwfl_space *space, uint64_t address);
/* The symbol that covers @address, and where in it; NULL: none. Valid as long as @space. */
const char *dwfl_space_function(struct dwfl_space *space, uint64_t address,
				uint64_t *offset);
enum {
	DWFL_CFA_EXPRESSION = -1, /* or none is described */
	DWFL_CFA_NONE = -2, /* libdw gives an expression without operations */
};

/* The register that the CFA at @lookup is counted from, or one of these. */
int dwfl_space_cfa_reg(struct dwfl_space *space, uint64_t lookup);

enum {
	DWFL_RETURN_ELSEWHERE = -1
};
/* The register in which the return address is at @lookup, or that it is in memory or nowhere. */
int dwfl_space_return_reg(struct dwfl_space *space, uint64_t lookup);
