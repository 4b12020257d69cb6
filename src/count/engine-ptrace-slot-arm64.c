/* SPDX-License-Identifier: MIT */
/*
 * Instructions of aarch64 that were replaced by a breakpoint. They have one length, and
 * few depend on their own address. Those that do affect registers only, and are carried
 * out while the thread is stopped; the others are copied to a slot. Source: Arm ARM (DDI
 * 0487), C4.1 for the classes, C6.2 for each instruction.
 */
#include "engine-ptrace.h"

#include <string.h>

enum {
	WORD = 4,
	LINK = 30,
	ZERO = 31, /* as a register number, where it does not mean sp */
};

#define NEGATIVE       (UINT64_C(1) << 31)
#define EQUAL          (UINT64_C(1) << 30)
#define CARRY          (UINT64_C(1) << 29)
#define OVERFLOWN      (UINT64_C(1) << 28)
#define BRANCHED       (UINT64_C(3) << 10) /* BTYPE: the kind of branch that led here */
#define PAGE_OF_ADRP   UINT64_C(4096)
#define LITERAL_VECTOR (UINT32_C(1) << 26)

enum kind {
	PLAIN,
	REFUSED,
	JUMP, /* b, bl */
	CONDITION, /* b.cond */
	COMPARE, /* cbz, cbnz */
	TEST, /* tbz, tbnz */
	ADDRESS, /* adr, adrp */
	LITERAL, /* pc-relative ldr, ldrsw, prfm */
	REGISTER, /* br, blr, ret */
	/* REGISTER with an authentication code, which only the processor can check */
	SIGNED,
};

/* ---- classification -------------------------------------------------------------------- */

static bool word_matches(uint32_t word, uint32_t mask, uint32_t bits)
{
	return (word & mask) == bits;
}

/* br, blr and ret, with and without authentication; eret and drps are privileged. */
static enum kind class_of_register(uint32_t word)
{
	if (word_matches(word, 0xff9ffc1f, 0xd61f0000) &&
	    !word_matches(word, 0x00600000, 0x00600000))
		return REGISTER;
	/* A call would store the return address of the slot. */
	if (word_matches(word, 0xfe9ff800, 0xd61f0800) &&
	    !word_matches(word, 0x00600000, 0x00600000) &&
	    !word_matches(word, 0x00600000, 0x00200000))
		return SIGNED;
	return REFUSED;
}

/*
 * Instructions that would fail elsewhere, or after a stop: exceptions, which record their
 * address; the second of an exclusive pair, which fails after each stop; memory copies in
 * three parts, which the kernel restarts at the first; and authentication by the
 * instruction's address.
 */
static bool is_refused(uint32_t word)
{
	return word_matches(word, 0xff000000, 0xd4000000) ||
	       word_matches(word, 0x3fe00000, 0x08000000) ||
	       word_matches(word, 0xbfe00000, 0x88200000) ||
	       word_matches(word, 0x3b200c00, 0x19000400) ||
	       word_matches(word, 0xff000000, 0x55000000) ||
	       word_matches(word, 0xff800000, 0xf3800000) ||
	       word_matches(word, 0xffff8000, 0xdac18000) ||
	       word_matches(word, 0x7e000000, 0x74000000);
}

static enum kind classify_insn(uint32_t word)
{
	if (word_matches(word, 0x7c000000, 0x14000000))
		return JUMP;
	if (word_matches(word, 0xff000000, 0x54000000))
		return CONDITION;
	if (word_matches(word, 0x7e000000, 0x34000000))
		return COMPARE;
	if (word_matches(word, 0x7e000000, 0x36000000))
		return TEST;
	if (word_matches(word, 0x1f000000, 0x10000000))
		return ADDRESS;
	if (word_matches(word, 0x3b000000, 0x18000000))
		return LITERAL;
	if (word_matches(word, 0xfe000000, 0xd6000000))
		return class_of_register(word);
	if (is_refused(word))
		return REFUSED;
	return PLAIN;
}

/* The @len bits from bit @at on, as a signed number. */
static uint64_t signed_field(uint32_t word, unsigned int at, unsigned int len)
{
	uint64_t bits = word >> at & ((UINT64_C(1) << len) - 1);
	uint64_t sign = UINT64_C(1) << (len - 1);

	return (bits ^ sign) - sign;
}

static uint8_t register_at(uint32_t word, unsigned int at)
{
	return word >> at & 31;
}

/* ---- instructions carried out here ----------------------------------------------------- */

static uint64_t get_register(const struct pm_ptr_arm64 *regs, uint8_t number)
{
	if (number == ZERO)
		return 0;
	return regs->x[number];
}

static void set_register(struct pm_ptr_arm64 *regs, uint8_t number, uint64_t value)
{
	if (number != ZERO)
		regs->x[number] = value;
}

/* C1.2.4: each condition is followed by its opposite, except for the last, which always
 * holds. */
static bool condition_holds(uint32_t condition, uint64_t flags)
{
	bool negative = flags & NEGATIVE, overflown = flags & OVERFLOWN;
	bool equal = flags & EQUAL, carry = flags & CARRY, ret = true;

	switch (condition >> 1) {
	case 0:
		ret = equal;
		break;
	case 1:
		ret = carry;
		break;
	case 2:
		ret = negative;
		break;
	case 3:
		ret = overflown;
		break;
	case 4:
		ret = carry && !equal;
		break;
	case 5:
		ret = negative == overflown;
		break;
	case 6:
		ret = negative == overflown && !equal;
		break;
	default:
		return true;
	}
	return ret != (condition & 1);
}

static bool register_is_zero(const struct pm_ptr_arm64 *regs, uint32_t word)
{
	uint64_t value = get_register(regs, register_at(word, 0));

	if (word >> 31)
		return value == 0;
	return (uint32_t)value == 0;
}

/* Bit 24 of both: whether they jump if the value is not zero. */
static bool branch_is_taken(const struct pm_ptr_arm64 *regs, uint32_t word,
			    enum kind class)
{
	bool wanted = word >> 24 & 1;
	unsigned int bit = word >> 31 << 5 | (word >> 19 & 31);

	if (class == CONDITION)
		return condition_holds(word & 15, regs->pstate);
	if (class == COMPARE)
		return register_is_zero(regs, word) != wanted;
	return (get_register(regs, register_at(word, 0)) >> bit & 1) == wanted;
}

static void run_branch(struct pm_ptr_arm64 *regs, uint32_t word, enum kind class)
{
	uint64_t by =
		class == TEST ? signed_field(word, 5, 14) : signed_field(word, 5, 19);

	if (branch_is_taken(regs, word, class))
		regs->pc += by * WORD;
	else
		regs->pc += WORD;
}

static void run_address(struct pm_ptr_arm64 *regs, uint32_t word)
{
	uint64_t by = signed_field(word, 5, 19) << 2 | (word >> 29 & 3), from = regs->pc;

	if (word >> 31) {
		by *= PAGE_OF_ADRP;
		from &= ~(PAGE_OF_ADRP - 1);
	}
	set_register(regs, register_at(word, 0), from + by);
	regs->pc += WORD;
}

static void run_register(struct pm_ptr_arm64 *regs, uint32_t word)
{
	uint64_t to = get_register(regs, register_at(word, 5));

	if (word_matches(word, 0x00600000, 0x00200000))
		regs->x[LINK] = regs->pc + WORD;
	regs->pc = to;
}

static void run_jump(struct pm_ptr_arm64 *regs, uint32_t word)
{
	if (word >> 31)
		regs->x[LINK] = regs->pc + WORD;
	regs->pc += signed_field(word, 0, 26) * WORD;
}

/* A literal whose value is not used: prfm, or a load into the zero register. */
static bool is_lost(uint32_t word)
{
	return !(word & LITERAL_VECTOR) &&
	       (word >> 30 == 3 || register_at(word, 0) == ZERO);
}

bool pm_ptr_arm64_run(uint32_t word, struct pm_ptr_arm64 *regs)
{
	enum kind class = classify_insn(word);

	switch (class) {
	case JUMP:
		run_jump(regs, word);
		break;
	case CONDITION:
	case COMPARE:
	case TEST:
		run_branch(regs, word, class);
		break;
	case ADDRESS:
		run_address(regs, word);
		break;
	case REGISTER:
		run_register(regs, word);
		break;
	case LITERAL:
		if (!is_lost(word))
			return false;
		regs->pc += WORD;
		break;
	case PLAIN:
	case SIGNED:
	case REFUSED:
		return false;
	}
	regs->pstate &= ~BRANCHED;
	return true;
}

/* ---- code for slots -------------------------------------------------------------------- */

static void emit_word(struct pm_ptr_code *code, uint32_t word)
{
	memcpy(code->bytes + code->len, &word, sizeof(word));
	code->len = (uint8_t)(code->len + sizeof(word));
}

/* The destination register holds the address first. */
static void emit_literal(struct pm_ptr_code *code, uint32_t word, uint64_t target)
{
	static const uint32_t loads[] = { 0xb9400000, 0xf9400000, 0xb9800000 };
	uint32_t to = register_at(word, 0);

	for (uint32_t part = 0; part < 4; part++) {
		uint32_t bits = target >> (part * 16) & 0xffff;

		/* movz, and then movk */
		emit_word(code,
			  (part ? 0xf2800000 : 0xd2800000) | part << 21 | bits << 5 | to);
	}
	emit_word(code, loads[word >> 30] | to << 5 | to);
}

/* Returns false if @target is out of reach. */
static bool emit_direct_jump(struct pm_ptr_code *code, uint64_t slot, uint64_t target)
{
	uint64_t by = target - (slot + code->len);

	emit_word(code, 0x14000000 | ((uint32_t)(by / WORD) & 0x03ffffff));
	return signed_field((uint32_t)(by / WORD), 0, 26) * WORD == by;
}

/* Arm ARM, D11: a call also pushes its return address on a second stack, and ret compares
 * its target with that. Only the processor can write there. */
static enum kind class_with_second_stack(uint32_t word)
{
	enum kind class = classify_insn(word);

	if (class == JUMP && word >> 31)
		return REFUSED;
	if (class != REGISTER)
		return class;
	if (word_matches(word, 0x00600000, 0x00400000))
		return SIGNED; /* ret runs in the slot, as SIGNED ones do */
	if (word_matches(word, 0x00600000, 0x00200000))
		return REFUSED;
	return class;
}

int pm_ptr_slot_make_arm64(const uint8_t *bytes, uint8_t len, uint64_t address,
			   uint64_t slot, bool second_stack, struct pm_ptr_code *out)
{
	struct pm_ptr_code made = { 0 };
	struct pm_ptr_arm64 unused = { 0 };
	enum kind class;
	uint32_t word;

	if (len != WORD || address % WORD != 0)
		return -EOPNOTSUPP;
	memcpy(&word, bytes, sizeof(word));
	if (second_stack)
		class = class_with_second_stack(word);
	else
		class = classify_insn(word);
	if (class == REFUSED || (class == LITERAL && (word & LITERAL_VECTOR)))
		return -EOPNOTSUPP;
	if (class != SIGNED && pm_ptr_arm64_run(word, &unused)) {
		*out = made;
		return 0;
	}
	if (class == LITERAL)
		emit_literal(&made, word, address + signed_field(word, 5, 19) * WORD);
	else
		emit_word(&made, word);
	if (class != SIGNED) {
		made.tail_at = made.len;
		if (!emit_direct_jump(&made, slot, address + WORD))
			return -EOPNOTSUPP;
	}
	*out = made;
	return 0;
}
