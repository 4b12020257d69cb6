/* SPDX-License-Identifier: MIT */
/*
 * elfutils' unwinder on the same registers and stack bytes as our unwinder. They share
 * the list of mappings and the files, and nothing else.
 */
#pragma once

#include "pm/proc.h"
#include "pm/unwind.h"
#include "tests/oracle/spaces.h"

/* What libdw reports about the code at one address. */
enum dwfl_rule {
	DWFL_RULE_NONE, /* no module, or no FDE that covers it */
	DWFL_RULE_RETURNS, /* the return address has a rule */
	DWFL_RULE_ROOT, /* the return address is undefined */
};

struct dwfl_frame {
	uint64_t pc;
	bool activation; /* dwfl_frame_pc(): look up pc itself, not pc - 1 */
};

/* libdwfl for one address space in its present state. */
struct dwfl_space;

struct dwfl_space *dwfl_space_new(const struct spaces_maps *maps,
				  const struct spaces_modules *modules);
void dwfl_space_free(struct dwfl_space *space);

/*
 * Returns the number of frames. @failed: the chain ended by an error instead of an
 * undefined return address; libdwfl also treats a return address that it could not read
 * as undefined.
 */
size_t dwfl_space_unwind(struct dwfl_space *space, const struct pm_unw_regs *regs,
			 const struct pm_unw_stack *stack, struct dwfl_frame *frames,
			 size_t max, bool *failed);

/*
 * Lets the next calls read what an epilogue has popped. Compilers keep the rule "saved in
 * its slot" after the pop, although the slot is below the stack pointer and no copy of
 * the stack has it, or is relative to rbp, which already is the caller's. Serves such
 * slots of callee-saved registers of the frame at @regs from the registers. Returns how
 * many there are. NULL ends it.
 */
size_t dwfl_space_serve_popped(struct dwfl_space *space, const struct pm_unw_regs *regs);

/* Whether @reg is lost according to libdw, for the code at @lookup. */
bool dwfl_space_loses(struct dwfl_space *space, uint64_t lookup, int reg);
/*
 * Whether the CFI at @lookup omits a pair that the PLT of aarch64 has pushed: the return
 * address is 8 bytes above the CFA, or will be after the next instruction.
 */
bool dwfl_space_lacks_pair(struct dwfl_space *space, uint64_t lookup);
/* As dwfl_space_unwind(), but frame @at omits such a pair: the 16 bytes are added to its
 * caller's stack pointer, and libdwfl starts again from the caller's registers. */
size_t dwfl_space_unwind_with_pair(struct dwfl_space *space,
				   const struct pm_unw_regs *regs,
				   const struct pm_unw_stack *stack, size_t at,
				   struct dwfl_frame *frames, size_t max, bool *failed);

enum dwfl_rule dwfl_space_rule(struct dwfl_space *space, uint64_t lookup);
/* Whether the CFI at @lookup is of a signal frame (augmentation "S"). */
bool dwfl_space_is_signal(struct dwfl_space *space, uint64_t lookup);
/* Whether the CFI at @address is that of the first instruction of its FDE. */
bool dwfl_space_begins_fde(struct dwfl_space *space, uint64_t address);
/* Returns the symbol that covers @address, and the offset in it; NULL: none. Valid as
 * long as @space. */
const char *dwfl_space_function(struct dwfl_space *space, uint64_t address,
				uint64_t *offset);
enum {
	DWFL_CFA_EXPRESSION = -1, /* or no CFA is described */
	DWFL_CFA_NONE = -2, /* libdw reports an expression without operations */
};

/* Returns the register on which the CFA at @lookup is based, or one of these. */
int dwfl_space_cfa_reg(struct dwfl_space *space, uint64_t lookup);

enum {
	DWFL_RETURN_ELSEWHERE = -1
};
/* Returns the register that has the return address at @lookup, or DWFL_RETURN_ELSEWHERE
 * if it is in memory or nowhere. */
int dwfl_space_return_reg(struct dwfl_space *space, uint64_t lookup);
