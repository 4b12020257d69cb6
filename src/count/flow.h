/* SPDX-License-Identifier: MIT */
/*
 * The control flow in one function: its instructions, their successors, and the stack
 * depth at each of them; and, derived from these, the places where control enters and
 * leaves.
 */
#pragma once

#include "pm/count.h"

enum pm_flow_kind {
	PM_FLOW_PLAIN,
	PM_FLOW_CALL,
	PM_FLOW_JUMP, /* unconditional, to `target` */
	PM_FLOW_BRANCH, /* conditional, to `target` */
	PM_FLOW_INDIRECT, /* a jump to an address in a register or in memory */
	PM_FLOW_RETURN,
	PM_FLOW_STOP, /* execution does not continue after it: ud2, hlt */
	PM_FLOW_BAD, /* not a known instruction */
};

/* Effects of an instruction on sp and on a frame pointer. */
enum pm_flow_sp {
	PM_FLOW_SP_SAME,
	PM_FLOW_SP_ADD, /* the depth below the entry's sp grows by `sp_by` */
	PM_FLOW_SP_FROM_FP, /* the depth is the frame pointer's plus sp_by */
	PM_FLOW_SP_LOST,
};
enum pm_flow_fp {
	PM_FLOW_FP_SAME,
	PM_FLOW_FP_FROM_SP, /* the depth is sp's plus fp_by */
	PM_FLOW_FP_LOST,
};

/* Other effects that matter for finding the tables of indirect jumps. Registers are
 * numbers. */
enum pm_flow_fact {
	PM_FLOW_FACT_NONE,
	PM_FLOW_FACT_WRITE, /* `to` is written, with an unknown value */
	PM_FLOW_FACT_ADDRESS, /* to = value */
	PM_FLOW_FACT_LOAD, /* to = size bytes at value + base + index × scale */
	PM_FLOW_FACT_ADD, /* to = base + index × scale */
	PM_FLOW_FACT_MOVE, /* to = from + value */
	PM_FLOW_FACT_POP, /* `to` is popped from the stack */
	PM_FLOW_FACT_LIMIT, /* `from` is compared with value; nothing is written */
};
#define PM_FLOW_NO_REGISTER 0xff

struct pm_flow_insn {
	uint64_t address, target; /* target: for direct jumps and calls */
	int64_t sp; /* sp at the function's first instruction minus sp here */
	uint64_t value; /* of the fact; for an INDIRECT through memory, of its address */
	uint32_t indirect; /* for INDIRECT: index in pm_flow.indirect */
	uint64_t condition_bits; /* as in pm_place */
	int32_t sp_by, fp_by;
	uint8_t sp_effect, fp_effect; /* enum pm_flow_sp, pm_flow_fp */
	uint8_t fact; /* enum pm_flow_fact */
	/* Operands of the fact. An INDIRECT has only `from` (a register), or base, index
	 * and scale. */
	uint8_t to, from, base, index, scale, size;
	uint8_t to_also; /* also written */
	bool is_signed; /* LOAD: the value is signed; ADD: the index, by its width */
	uint8_t len;
	uint8_t kind; /* enum pm_flow_kind */
	uint8_t condition, condition_register; /* as in pm_place */
	bool has_target, sp_known;
	bool reached; /* it can be reached from the first instruction over known jumps */
	bool pad; /* does nothing: padding between functions and blocks */
	bool cheap; /* as in pm_place */
	bool harmed; /* a probe on it would break the program */
	bool movable; /* an entry's probe may come after it: it cannot fault or call */
	/* Between an exclusive load and its store: an interruption makes the sequence
	 * restart. */
	bool atomic;
};

/* An indirect jump, and what is known about its targets. */
enum pm_flow_indirect_kind {
	PM_FLOW_TABLE, /* through a table that was read, or at least recognised */
	PM_FLOW_LEAVES, /* a tail call */
	PM_FLOW_UNSURE, /* either; treated as a tail call if sp is that of the entry */
};
struct pm_flow_indirect {
	uint32_t insn;
	enum pm_flow_indirect_kind kind;
	PM_VEC(uint64_t) targets; /* inside the function */
};

/* Access to the code. */
struct pm_flow_source {
	uint16_t machine; /* EM_* */
	bool is_64;
	/* Copies @len bytes at @address, or returns false. */
	bool (*read)(void *user, uint64_t address, void *out, size_t len);
	/* Finds the piece of code around @address that belongs together, or returns
	 * false. May be NULL. */
	bool (*part)(void *user, uint64_t address, struct pm_probe_piece *out);
	/* Whether the function around @address may catch exceptions. If NULL, every
	 * function may. */
	bool (*catches)(void *user, uint64_t address);
	void *user;
	/* Return all candidates for each place, because it is not known yet which of them
	 * accept a probe. pm_place_choose() selects one. */
	bool candidates;
};

struct pm_flow {
	PM_VEC(struct pm_probe_piece) pieces; /* ascending */
	uint64_t entry;
	PM_VEC(struct pm_flow_insn) insns; /* ascending */
	PM_VEC(struct pm_flow_indirect) indirect;
	uint64_t bad_bytes;
	bool catches; /* or may catch */
	bool candidates; /* as in the source */
};

/*
 * Reads a function: @whole, and those of @parts that it jumps to. A part that is neither
 * jumped to nor called belongs to it only if @own_name: no other function can have its
 * name. Returns 0, -EOPNOTSUPP, -ENODATA (the bytes are not in the file), -E2BIG or
 * -ENOMEM.
 */
int pm_flow_open(struct pm_flow *flow, const struct pm_flow_source *source,
		 const struct pm_probe_piece *whole, const struct pm_probe_piece *parts,
		 size_t parts_len, bool own_name);
void pm_flow_close(struct pm_flow *flow);

typedef PM_VEC(struct pm_place) pm_places;
typedef PM_VEC(struct pm_probe_piece) pm_pieces;
/* Uncertainties about the places. */
struct pm_flow_doubts {
	size_t indirect; /* jumps that were assumed to be tail calls, or tables */
	size_t conditions; /* exits under a condition that the flags do not show */
	size_t bad_bytes; /* bytes that are not known instructions */
	size_t atomic; /* places left out because the code must not be interrupted */
};
/* Chooses one of the @candidates for a place; the first candidate is the place's first
 * instruction. Returns the index of the choice, which is 0 if none is suitable. */
size_t pm_place_choose(const struct pm_place *candidates, size_t len);
/* Appends the entry and all exits; the caller has to fill in bytes and offsets. Returns 0
 * or -ENOMEM. */
int pm_flow_function_places(const struct pm_flow *flow, pm_places *places,
			    struct pm_flow_doubts *doubts);
/* Appends the places where control enters and leaves the @len ranges, which may extend
 * beyond this function. */
int pm_flow_range_places(const struct pm_flow *flow, const struct pm_probe_piece *ranges,
			 size_t len, pm_places *places, struct pm_flow_doubts *doubts);

/* From the @len pieces @lent, appends to @ranges the code that control reaches only from
 * @ranges: each piece up to the first instruction that is reached otherwise. Returns 0 or
 * -ENOMEM. */
int pm_flow_add_straight(const struct pm_flow *flow, pm_pieces *ranges,
			 const struct pm_probe_piece *lent, size_t len);

/* ---- flow-x86.c, flow-aarch64.c ---------------------------------------------------------- */

struct pm_flow_machine {
	uint16_t number; /* EM_* */
	/* Allocates the state for decode(). Returns 0, -EOPNOTSUPP or -ENOMEM. NULL:
	 * decode() needs none. */
	int (*open)(void **state);
	void (*close)(void *state);
	/* Appends the instructions of one piece. Returns 0, -ENOMEM or -E2BIG. */
	int (*decode)(void *state, struct pm_flow *flow, const uint8_t *bytes, size_t len,
		      uint64_t address);
};
extern const struct pm_flow_machine pm_flow_x86, pm_flow_aarch64;

/* ---- flow-find.c ----------------------------------------------------------------------- */

/* Returns the index of the instruction that begins at @address, or SIZE_MAX. */
size_t pm_flow_find(const struct pm_flow *flow, uint64_t address);
/* Returns the index of the instruction that a jump to @address reaches: some jumps skip
 * the prefix of an instruction. */
size_t pm_flow_find_target(const struct pm_flow *flow, uint64_t address);
/* Whether @address is in a piece of the function. */
bool pm_flow_holds(const struct pm_flow *flow, uint64_t address);

/* ---- flow-tables.c --------------------------------------------------------------------- */

/* Fills flow->indirect according to how each target is computed. Those that are UNSURE
 * may be decided later by the stack depth. Returns 0 or -ENOMEM. */
int pm_flow_find_tables(struct pm_flow *flow, const struct pm_flow_source *source);

/* ---- flow-stack.c ----------------------------------------------------------------------- */

/* Follows all known jumps: fills `reached` and `sp`, and decides about UNSURE indirect
 * jumps by the stack depth, if that is known. Returns 0 or -ENOMEM. */
int pm_flow_follow(struct pm_flow *flow);
/* Whether control can continue with the next instruction. */
static inline bool pm_flow_falls_through(const struct pm_flow_insn *insn)
{
	return insn->kind == PM_FLOW_PLAIN || insn->kind == PM_FLOW_CALL ||
	       insn->kind == PM_FLOW_BRANCH || insn->kind == PM_FLOW_BAD;
}
/* Calls @each with the index of each instruction of the function that can follow the one
 * at index @at. A negative result ends this. */
typedef int (*pm_flow_next_fn)(void *user, size_t at, size_t next);
int pm_flow_each_next(const struct pm_flow *flow, size_t at, pm_flow_next_fn each,
		      void *user);
