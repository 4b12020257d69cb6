/* SPDX-License-Identifier: MIT */
/*
 * The flow of control in one function: its instructions, where they lead, how deep the stack
 * is at each; and from that the places where control comes in and goes out.
 */
#pragma once

#include "pm/count.h"

enum pm_flow_kind {
	PM_FLOW_PLAIN,
	PM_FLOW_CALL,
	PM_FLOW_JUMP, /* always, to `target` */
	PM_FLOW_BRANCH, /* maybe, to `target` */
	PM_FLOW_INDIRECT, /* a jump to what a register or memory says */
	PM_FLOW_RETURN,
	PM_FLOW_STOP, /* nothing comes behind it: ud2, hlt */
	PM_FLOW_BAD, /* no instruction that is known */
};

/* What an instruction does to sp and to a frame pointer. */
enum pm_flow_sp {
	PM_FLOW_SP_SAME,
	PM_FLOW_SP_ADD, /* sp below the entry's grows by `sp_by` */
	PM_FLOW_SP_FROM_FP, /* it is sp_by more than the frame pointer's */
	PM_FLOW_SP_LOST,
};
enum pm_flow_fp {
	PM_FLOW_FP_SAME,
	PM_FLOW_FP_FROM_SP, /* it is fp_by more than sp's */
	PM_FLOW_FP_LOST,
};

/* What else is to be known of an instruction to find the tables of indirect jumps. Registers
 * by number. */
enum pm_flow_fact {
	PM_FLOW_FACT_NONE,
	PM_FLOW_FACT_WRITE, /* of `to`, something */
	PM_FLOW_FACT_ADDRESS, /* to = value */
	PM_FLOW_FACT_LOAD, /* to = size bytes at value + base + index × scale */
	PM_FLOW_FACT_ADD, /* to = base + index × scale */
	PM_FLOW_FACT_MOVE, /* to = from + value */
	PM_FLOW_FACT_POP, /* of `to`, from the stack */
	PM_FLOW_FACT_LIMIT, /* `from` is compared with value, and nothing written */
};
#define PM_FLOW_NO_REGISTER 0xff

struct pm_flow_insn {
	uint64_t address, target; /* target: of direct jumps and calls */
	int64_t sp; /* sp at the function's first instruction minus sp here */
	uint64_t value; /* of the fact; of INDIRECT through memory, of its address */
	uint32_t indirect; /* of INDIRECT: index in pm_flow.indirect */
	uint64_t condition_bits; /* as of pm_place */
	int32_t sp_by, fp_by;
	uint8_t sp_effect, fp_effect; /* enum pm_flow_sp, pm_flow_fp */
	uint8_t fact; /* enum pm_flow_fact */
	/* Of the fact. An INDIRECT has only `from` (a register) or base, index and scale. */
	uint8_t to, from, base, index, scale, size;
	uint8_t to_also; /* written, too */
	bool is_signed; /* of LOAD: what was loaded; of ADD: the index, by its width */
	uint8_t len;
	uint8_t kind; /* enum pm_flow_kind */
	uint8_t condition, condition_register; /* as of pm_place */
	bool has_target, sp_known;
	bool reached; /* from the first instruction, as far as jumps are known */
	bool pad; /* does nothing: between functions and blocks */
	bool cheap; /* as pm_place.cheap */
	bool harmed; /* a probe on it breaks the program */
	bool movable; /* an entry's probe may be behind it: it cannot fault, nor is it a call */
	/* From an exclusive load to its store: who interrupts it makes it begin again. */
	bool atomic;
};

/* An indirect jump, and what is known of its targets. */
enum pm_flow_indirect_kind {
	PM_FLOW_TABLE, /* by a table that was read, or at least recognised */
	PM_FLOW_LEAVES, /* a tail call */
	PM_FLOW_UNSURE, /* one of both; taken for a tail call where the stack is as at the entry */
};
struct pm_flow_indirect {
	uint32_t insn;
	enum pm_flow_indirect_kind kind;
	PM_VEC(uint64_t) targets; /* inside of the function */
};

/* Where the bytes are. */
struct pm_flow_source {
	uint16_t machine; /* EM_* */
	bool is_64;
	/* Copies @len bytes at @address, or is false. */
	bool (*read)(void *user, uint64_t address, void *ret, size_t len);
	/* The code around @address that belongs together by itself, or false; may be NULL. */
	bool (*part)(void *user, uint64_t address, struct pm_probe_piece *ret);
	/* Whether the function around @address may catch exceptions; NULL: each may. */
	bool (*catches)(void *user, uint64_t address);
	void *user;
	/* Give all candidates for each place: it is not known yet which of them take a
	 * probe. pm_place_choose() takes one. */
	bool candidates;
};

struct pm_flow {
	PM_VEC(struct pm_probe_piece) pieces; /* ascending */
	uint64_t entry;
	PM_VEC(struct pm_flow_insn) insns; /* ascending */
	PM_VEC(struct pm_flow_indirect) indirect;
	uint64_t bad_bytes;
	bool catches; /* or may do so */
	bool candidates; /* as of the source */
};

/*
 * Reads a function: @whole and, of @parts, those that it jumps to; one that nobody jumps to or
 * calls only where @own_name says that no other function could have it. 0, -EOPNOTSUPP,
 * -ENODATA (the file lacks its bytes), -E2BIG, -ENOMEM.
 */
int pm_flow_open(struct pm_flow *flow, const struct pm_flow_source *source,
		 const struct pm_probe_piece *whole, const struct pm_probe_piece *parts,
		 size_t parts_len, bool own_name);
void pm_flow_close(struct pm_flow *flow);

/* The instruction at @address, SIZE_MAX: none begins there. */
size_t pm_flow_find(const struct pm_flow *flow, uint64_t address);
/* Where a jump to @address goes: some jump over the prefix of an instruction. */
size_t pm_flow_find_target(const struct pm_flow *flow, uint64_t address);

typedef PM_VEC(struct pm_place) pm_places;
typedef PM_VEC(struct pm_probe_piece) pm_pieces;
/* What is not certain about the places. */
struct pm_flow_doubts {
	size_t indirect; /* jumps that were taken for tail calls, or for tables */
	size_t conditions; /* exits under a condition that no flags tell */
	size_t bad_bytes; /* that are no known instructions */
	size_t atomic; /* places in what nobody may interrupt: left out */
};
/* Chooses the place to look at among the candidates for one place, which start with its
 * first instruction. Keeps the first one if none is suitable. */
size_t pm_place_choose(const struct pm_place *candidates, size_t len);
/* Appends the entry and all exits; bytes and offsets are the caller's to fill. 0, -ENOMEM. */
int pm_flow_function_places(const struct pm_flow *flow, pm_places *places,
			    struct pm_flow_doubts *doubts);
/* Appends where control comes into the @len ranges, which may go beyond this function, and
 * where it leaves them. */
int pm_flow_range_places(const struct pm_flow *flow, const struct pm_probe_piece *ranges,
			 size_t len, pm_places *places, struct pm_flow_doubts *doubts);

/* Appends to @ranges what control comes to from them alone of the @len pieces @lent: each up to
 * the first instruction that is reached otherwise. 0, -ENOMEM. */
int pm_flow_add_straight(const struct pm_flow *flow, pm_pieces *ranges,
			 const struct pm_probe_piece *lent, size_t len);

/* ---- flow-x86.c, flow-aarch64.c ---------------------------------------------------------- */

struct pm_flow_machine {
	uint16_t number; /* EM_* */
	/* What decode() needs, or NULL. 0, -EOPNOTSUPP, -ENOMEM. */
	int (*open)(void **state);
	void (*close)(void *state);
	/* Appends the instructions of one piece. 0, -ENOMEM, -E2BIG. */
	int (*decode)(void *state, struct pm_flow *flow, const uint8_t *bytes, size_t len,
		      uint64_t address);
};
extern const struct pm_flow_machine pm_flow_x86, pm_flow_aarch64;

/* ---- flow-tables.c --------------------------------------------------------------------- */

/* Fills flow->indirect with what can be said of each indirect jump by how it is computed; of
 * those that are UNSURE the stack may say more. 0 or -ENOMEM. */
int pm_flow_find_tables(struct pm_flow *flow, const struct pm_flow_source *source);
bool pm_flow_holds(const struct pm_flow *flow, uint64_t address);

/* ---- flow-stack.c ----------------------------------------------------------------------- */

/* Goes along all known jumps: fills `reached` and `sp`, and decides about indirect jumps that
 * are UNSURE where the stack tells. 0 or -ENOMEM. */
int pm_flow_follow(struct pm_flow *flow);
/* Whether control can go on to the instruction behind it. */
static inline bool pm_flow_falls_through(const struct pm_flow_insn *insn)
{
	return insn->kind == PM_FLOW_PLAIN || insn->kind == PM_FLOW_CALL ||
	       insn->kind == PM_FLOW_BRANCH || insn->kind == PM_FLOW_BAD;
}
/* Calls @each with the number of each instruction of the function that control can go to from
 * number @at. Negative stops. */
typedef int (*pm_flow_next_fn)(void *user, size_t at, size_t next);
int pm_flow_each_next(const struct pm_flow *flow, size_t at, pm_flow_next_fn each,
		      void *user);
